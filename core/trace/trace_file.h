// The trace file: a run's events in an SQLite database, readable by kvscope, by Python, and by
// the `sqlite3` program.
//
// Tables. Every number is a 64-bit INTEGER and none is NULL.
//
//   <kind>  one table per kind of event, named by its kName, one row per event:
//             event      the event's number in the whole trace, from 0
//             <field>... the struct's fields, by name and in order ("from" and "to" need quotes in SQL)
//             row          0, 1, 2, ...; row 0 is the prologue (step -1): the events before the first step_began, if
//                          any. Every step_began opens a row.
//             step         the step's number, as in its step_began
//             first_event  the number of its first event (the step_began); rows follow each other without a gap
//             events       number of events
//             crc          CRC-32 of its events' bytes
//   kind    kind, name, events: the number of a kind in the checksums, its table, and the number of its rows
//   meta    key, value (text): what the program passed to the writer (producer, scenario, ...), and
//             detail    "steps" or "full"
//             events    the number of events, decimal
//             steps     the number of rows of `step`, decimal
//             checksum  CRC-32 of the index, decimal
//
// Checksums are CRC-32 as zlib.crc32 computes it, over these bytes (i64 = little-endian two's complement):
//   a step's crc   for each event in order: i64 event, i64 kind, then i64 of each field in column order
//   the checksum   for each row of `step`: i64 step, first_event, events, crc; then for each row of `kind`: i64 kind,
//                  i64 events, the name, a zero byte; then for each row of `meta` but the checksum, ordered by the
//                  keys' bytes: the key, a zero byte, the value, a zero byte
// Example: a trace that holds only the event step_began step=0 time_us=0 has two rows in `step`: the prologue with
// events 0 and crc 0, and step 0 with the crc of 32 zero bytes, 420107693 (held by
// tests/core/trace/trace_file_test.cpp).
//
// The header's application_id is "kvtr" and user_version the format version. A program opens its format version and
// every older one; for a newer one it reports both versions. SQLite checks its own page format.
//
// In Python, the checksum of one step:
//
//   db = sqlite3.connect("trace.kvt")
//   first, n, crc = db.execute("SELECT first_event, events, crc FROM step WHERE step = 7").fetchone()
//   rows = sorted((r[0], k, *r[1:]) for k, name in db.execute("SELECT kind, name FROM kind").fetchall()
//                 for r in db.execute(f"SELECT * FROM {name} WHERE event BETWEEN {first} AND {first + n - 1}"))
//   assert zlib.crc32(b"".join(struct.pack(f"<{len(r)}q", *r) for r in rows)) == crc
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/base/index.h"

namespace kvscope::trace {

inline constexpr std::int32_t kApplicationId = 0x6B767472;  // "kvtr"
// 2: the events of a tile, from tile_opened on; 3: the geometry of a tile and its registers, from tile_memory on;
// 4: operands that a matrix instruction reads by itself, operand_read and operand_chunk
inline constexpr std::int32_t kFormatVersion = 4;

// Maximum size of meta keys and values together; a file that claims more is rejected before it is read.
inline constexpr std::int64_t kMaxMetaBytes = std::int64_t{64} << 20;  // [bytes]

// One row of the index.
struct StepSpan {
  StepIdx step;                  // -1: the prologue
  std::int64_t first_event = 0;  // number of the first event
  std::int64_t events = 0;
  std::uint32_t crc = 0;
  [[nodiscard]] std::int64_t end_event() const { return first_event + events; }
  friend bool operator==(const StepSpan&, const StepSpan&) = default;
};

using Meta = std::map<std::string, std::string, std::less<>>;

// Keys the writer sets itself.
[[nodiscard]] bool is_reserved_meta_key(std::string_view key);

// The CREATE TABLE statement of a kind's table and of `step`, `kind`, `meta`, with exactly the characters in a file.
[[nodiscard]] std::string create_kind_table(std::size_t kind);
[[nodiscard]] std::string_view create_step_table();
[[nodiscard]] std::string_view create_kind_list();
[[nodiscard]] std::string_view create_meta_table();

// A CRC-32 over numbers and text, added one at a time.
class Checksum {
 public:
  void add(std::int64_t number);  // 8 bytes, little-endian
  void add(std::span<const std::int64_t> numbers);
  void add(std::string_view bytes);  // unchanged
  void add_text(std::string_view text) { add(text), add(std::string_view("", 1)); }
  [[nodiscard]] std::uint32_t value();
  void reset();

 private:
  void flush();
  std::string buffer_;  // not yet in crc_: CRC functions are slow on eight bytes at a time
  std::uint32_t crc_ = 0;
};

// First part of the checksum: call add_index_row for each row, then add the kinds and meta.
void add_index_row(Checksum& checksum, const StepSpan& row);
void add_kind_row(Checksum& checksum, std::int64_t kind, std::int64_t events, std::string_view name);
void add_meta(Checksum& checksum, const Meta& meta);  // leaves out "checksum"

}  // namespace kvscope::trace
