#include "core/trace/trace_file.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/trace/event_text.h"

namespace kvscope::trace {

bool is_reserved_meta_key(std::string_view key) {
  return key == "detail" || key == "events" || key == "steps" || key == "checksum";
}

std::string create_kind_table(std::size_t kind) {
  std::string sql = "CREATE TABLE " + std::string(kind_name(kind)) + " (event INTEGER PRIMARY KEY";
  for (const std::string_view field : field_names(kind)) sql += ", \"" + std::string(field) + "\" INTEGER NOT NULL";
  return sql + ")";
}

std::string_view create_step_table() {
  return "CREATE TABLE step (row INTEGER PRIMARY KEY, step INTEGER NOT NULL, first_event INTEGER NOT NULL, "
         "events INTEGER NOT NULL, crc INTEGER NOT NULL)";
}

std::string_view create_kind_list() {
  return "CREATE TABLE kind (kind INTEGER PRIMARY KEY, name TEXT NOT NULL, events INTEGER NOT NULL)";
}

// Without rowid, because SQLite would otherwise create a separate index for the text key.
std::string_view create_meta_table() {
  return "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID";
}

void Checksum::add(std::int64_t number) {
  add(std::span(&number, 1));
}

void Checksum::add(std::span<const std::int64_t> numbers) {
  constexpr std::size_t kMost = 32;  // numbers that are converted at once
  char bytes[8 * kMost];
  for (; !numbers.empty(); numbers = numbers.subspan(std::min(numbers.size(), kMost))) {
    char* at = bytes;
    for (const std::int64_t number : numbers.first(std::min(numbers.size(), kMost))) {
      auto bits = static_cast<std::uint64_t>(number);
      for (int byte = 0; byte < 8; ++byte, bits >>= 8) *at++ = static_cast<char>(bits & 0xFF);
    }
    add(std::string_view(bytes, static_cast<std::size_t>(at - bytes)));
  }
}

void Checksum::add(std::string_view bytes) {
  constexpr std::size_t kBuffer = 16384;
  buffer_.append(bytes);
  if (buffer_.size() >= kBuffer) flush();
}

std::uint32_t Checksum::value() {
  flush();
  return crc_;
}

void Checksum::reset() {
  buffer_.clear();
  crc_ = 0;
}

void Checksum::flush() {
  if (!buffer_.empty()) crc_ = crc32(buffer_, crc_);
  buffer_.clear();
}

void add_index_row(Checksum& checksum, const StepSpan& row) {
  checksum.add(row.step.value);
  checksum.add(row.first_event);
  checksum.add(row.events);
  checksum.add(static_cast<std::int64_t>(row.crc));
}

void add_kind_row(Checksum& checksum, std::int64_t kind, std::int64_t events, std::string_view name) {
  checksum.add(kind);
  checksum.add(events);
  checksum.add_text(name);
}

void add_meta(Checksum& checksum, const Meta& meta) {
  for (const auto& [key, value] : meta) {
    if (key == "checksum") continue;
    checksum.add_text(key);
    checksum.add_text(value);
  }
}

}  // namespace kvscope::trace
