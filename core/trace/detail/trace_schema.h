// What an unknown file must be before a single event of it is read: first its header as bytes, then its list of tables.
// Nothing of the file has been executed by then: no view, trigger or function of it ever is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/trace/detail/sqlite.h"

namespace kvscope::trace {

// The file's size in bytes. Throws InputError when it cannot be read, is no trace, is of a newer version, or is not as
// long as its header says.
[[nodiscard]] std::int64_t check_header(const std::filesystem::path& path, const std::string& shown);

// A row of the table `kind`.
struct FileKind {
  std::size_t kind = 0;     // this program's number of it
  std::int64_t id = 0;      // the file's number of it, which its checksums use
  std::int64_t events = 0;  // rows of its table, as the file claims
};

// Every table is there with the statement that trace_file.h makes it with, and nothing else is. All
// faults in one InputError.
[[nodiscard]] std::vector<FileKind> check_schema(Database& db);

}  // namespace kvscope::trace
