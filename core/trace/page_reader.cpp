#include "core/trace/detail/page_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace kvscope::trace {
namespace {

constexpr std::int64_t kReserved = 1 << 14;  // [events] at most: a damaged index may claim any number
constexpr std::int64_t kPastAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

void PageReader::add(std::size_t kind, std::int64_t id, std::uint32_t root) {
  tables_.push_back({kind, id, TableScan(file_, root, 1 + field_names(kind).size()), kPastAll});
  position_ = -1;
}

bool PageReader::read(std::int64_t first, std::int64_t end, Checksum& crc, std::vector<Event>& out) {
  if (position_ != first && !seek(first)) return false;
  position_ = -1;  // until the read has succeeded
  out.reserve(out.size() + static_cast<std::size_t>(std::min(end - first, kReserved)));
  std::array<std::int64_t, 2 + kMaxFields> numbers;
  for (std::int64_t number = first; number < end; ++number) {
    const auto table = std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) { return t.head == number; });
    if (table == tables_.end()) return false;
    const std::span<const std::int64_t> values = table->scan.values();
    const std::optional<Event> event = event_from(table->kind, values);
    if (!event) return false;
    out.push_back(*event);
    numbers[0] = number;
    numbers[1] = table->id;
    std::copy(values.begin(), values.end(), numbers.begin() + 2);
    crc.add(std::span(numbers).first(2 + values.size()));
    if (!take_head(*table, table->scan.next())) return false;
  }
  // A number that is in two tables remains as the head of the second.
  if (std::any_of(tables_.begin(), tables_.end(), [&](const Table& t) { return t.head < end; })) return false;
  position_ = end;
  return true;
}

bool PageReader::take_head(Table& table, TableScan::Result result) {
  table.head = result == TableScan::Result::row ? table.scan.row() : kPastAll;
  return result != TableScan::Result::odd;
}

bool PageReader::seek(std::int64_t first) {
  for (Table& table : tables_) {
    if (!take_head(table, table.scan.seek(first))) return false;
  }
  return true;
}

}  // namespace kvscope::trace
