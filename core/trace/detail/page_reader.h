// Reads events of a trace file straight from its pages, all kinds merged in order. It returns only events that are
// whole; it reports no faults. TraceReader tries it first, and reads a step with SQL if it returns nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <vector>

#include "core/trace/detail/table_scan.h"
#include "core/trace/event_text.h"
#include "core/trace/trace_file.h"

namespace kvscope::trace {

class PageReader {
 public:
  explicit PageReader(const std::filesystem::path& path) : file_(path) {}
  PageReader(const PageReader&) = delete;
  PageReader& operator=(const PageReader&) = delete;

  // `id`: the file's number of the kind. `root`: the first page of its table.
  void add(std::size_t kind, std::int64_t id, std::uint32_t root);

  // Appends events [first, end) to `out` and adds their bytes to `crc`. False: they cannot be read this way; `out` and
  // `crc` are then unspecified. Fastest where the last call ended.
  [[nodiscard]] bool read(std::int64_t first, std::int64_t end, Checksum& crc, std::vector<Event>& out);

 private:
  struct Table {
    std::size_t kind = 0;
    std::int64_t id = 0;
    TableScan scan;
    std::int64_t head = 0;  // number of its current event; none: past all numbers
  };
  [[nodiscard]] static bool take_head(Table& table, TableScan::Result result);
  [[nodiscard]] bool seek(std::int64_t first);

  PageFile file_;
  std::deque<Table> tables_;
  std::int64_t position_ = -1;  // the event at which all tables are; -1: unknown
};

}  // namespace kvscope::trace
