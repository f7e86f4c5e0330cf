// Helpers of the trace tests: a temporary folder, events of every kind, and edits of trace files with plain SQLite, as
// with the `sqlite3` program.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/trace/event_text.h"
#include "core/trace/trace_file.h"
#include "core/trace/trace_writer.h"

namespace kvscope::trace::testing {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvscope_trace_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::filesystem::path path_;
};

// The event of that kind with these numbers; one that does not fit its field keeps its lowest bit.
inline Event event_of(std::size_t kind, std::vector<std::int64_t> values) {
  values.resize(field_names(kind).size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::int64_t> alone(values.size(), 0);
    alone[i] = values[i];
    if (!event_from(kind, alone)) values[i] &= 1;
  }
  return event_from(kind, values).value();
}

// Steps 0..steps-1 with 0 to 6 events of every other kind between, numbers that never repeat, and a prologue of two.
inline std::vector<Event> sample_events(std::int64_t steps) {
  std::vector<Event> events{RequestArrived{SeqIdx{0}, 17, 5}, RequestArrived{SeqIdx{1}, 33, 2}};
  std::int64_t number = 100;
  for (std::int64_t step = 0; step < steps; ++step) {
    events.emplace_back(StepBegan{StepIdx{step}, number++});
    for (std::int64_t i = 0; i < step % 7; ++i) {
      const auto kind = 1 + static_cast<std::size_t>((step * 5 + i) % static_cast<std::int64_t>(kKinds - 1));
      std::vector<std::int64_t> values(field_names(kind).size());
      for (std::int64_t& value : values) value = number++;
      events.push_back(event_of(kind, values));
    }
  }
  return events;
}

inline void record_all(Recorder& recorder, const std::vector<Event>& events) {
  for (const Event& event : events) {
    std::visit([&](const auto& e) { recorder.record(e); }, event);
  }
}

inline void write_trace(const std::filesystem::path& path, const std::vector<Event>& events, Meta meta = {},
                        Detail detail = Detail::full) {
  TraceWriter writer(path, detail, std::move(meta));
  record_all(writer, events);
  writer.finish();
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline bool equal(const std::vector<Event>& a, const std::vector<Event>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_event);
}

// Runs statements on a file; each row of a SELECT goes to `row` as text.
inline void edit(const std::filesystem::path& path, const std::string& sql,
                 const std::function<void(const std::vector<std::string>&)>& row = {}) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA synchronous = OFF", nullptr, nullptr, nullptr);  // a test need not survive a power cut
  auto call = row;
  const auto each = [](void* f, int columns, char** values, char**) {
    std::vector<std::string> texts;
    for (int i = 0; i < columns; ++i) texts.emplace_back(values[i] != nullptr ? values[i] : "NULL");
    const auto& function = *static_cast<std::function<void(const std::vector<std::string>&)>*>(f);
    if (function) function(texts);
    return 0;
  };
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), each, &call, &error), SQLITE_OK) << sql << ": " << error;
  sqlite3_free(error);
  sqlite3_close(db);
}

inline std::vector<std::vector<std::string>> select(const std::filesystem::path& path, const std::string& sql) {
  std::vector<std::vector<std::string>> rows;
  edit(path, sql, [&](const auto& row) { rows.push_back(row); });
  return rows;
}

// Corrects the checksum of the index after an edit. A forger can do the same, so the reader must not rely on checksums
// alone.
inline void reseal_index(const std::filesystem::path& path) {
  std::string bytes;
  const auto add = [&](const std::string& decimal) {
    auto bits = static_cast<std::uint64_t>(std::stoll(decimal));
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes += static_cast<char>(bits & 0xFF);
  };
  edit(path, "SELECT step, first_event, events, crc FROM step ORDER BY row", [&](const auto& row) {
    for (const std::string& number : row) add(number);
  });
  edit(path, "SELECT kind, events, name FROM kind ORDER BY kind",
       [&](const auto& row) { add(row[0]), add(row[1]), bytes += row[2] + '\0'; });
  edit(path, "SELECT key, value FROM meta WHERE key <> 'checksum' ORDER BY key",
       [&](const auto& row) { bytes += row[0] + '\0' + row[1] + '\0'; });
  edit(path, "UPDATE meta SET value = '" + std::to_string(crc32(bytes)) + "' WHERE key = 'checksum'");
}

// Corrects the checksum of one row of the index, from the tables as they are, and then that of the index.
inline void reseal_row(const std::filesystem::path& path, int row) {
  const auto span =
      select(path, "SELECT first_event, first_event + events FROM step WHERE row = " + std::to_string(row));
  std::map<std::int64_t, std::vector<std::int64_t>> events;
  for (const auto& kind : select(path, "SELECT kind, name FROM kind")) {
    edit(path, "SELECT * FROM " + kind[1] + " WHERE event >= " + span[0][0] + " AND event < " + span[0][1],
         [&](const auto& values) {
           std::vector<std::int64_t>& numbers = events[std::stoll(values[0])];
           for (const std::string& value : values) numbers.push_back(std::stoll(value));
           numbers.insert(numbers.begin() + 1, std::stoll(kind[0]));
         });
  }
  std::string bytes;
  for (const auto& [number, values] : events) {
    for (const std::int64_t value : values) {
      for (int shift = 0; shift < 64; shift += 8)
        bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> shift);
    }
  }
  edit(path, "UPDATE step SET crc = " + std::to_string(crc32(bytes)) + " WHERE row = " + std::to_string(row));
  reseal_index(path);
}

// The message of the InputError that `action` throws; empty when it throws none.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace kvscope::trace::testing
