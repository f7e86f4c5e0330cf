// The checks of an unknown file before any event is read: first its header as bytes, then its list of tables.
// No SQL of the file is executed before or after these checks: no view, no trigger, no function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/trace/detail/sqlite.h"

namespace kvscope::trace {

// Returns the file's size in bytes. Throws InputError when it cannot be read, is not a trace, has a newer version, or
// has another length than its header declares.
[[nodiscard]] std::int64_t check_header(const std::filesystem::path& path, const std::string& shown);

// A row of the table `kind`.
struct FileKind {
  std::size_t kind = 0;     // this program's number of the kind
  std::int64_t id = 0;      // the file's number of the kind, used in its checksums
  std::int64_t events = 0;  // rows of its table, as declared by the file
};

// Checks that the tables are exactly those that trace_file.h creates, with the same statements. All faults are in one
// InputError.
[[nodiscard]] std::vector<FileKind> check_schema(Database& db);

}  // namespace kvscope::trace
