// A trace file (trace_file.h), opened for reading by step or by event number. The file may be hostile: every fault in
// it is an InputError, and memory use is bounded by the step that is read plus the index, each with a limit.
//
//   TraceReader trace("run.kvt");
//   for (std::int64_t row = 0; row < trace.rows(); ++row) show(trace.span(row), trace.events_of_row(row));
//
// Checked on opening: the header, that the tables are exactly those of trace_file.h, that the index has no gap, and the
// index's checksum. Checked when a step is read: that every event occurs once, with numbers that fit, and the step's
// crc. Steps are read straight from the file's pages; from the first one whose pages are not as SQLite writes them, or
// contradict the index, on, they are read with SQL, which describes the fault. verify_all() reads everything once. Not
// thread-safe; several readers may read one file at the same time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/event_text.h"
#include "core/trace/trace_file.h"

namespace kvscope::trace {

// What a file may ask for; `kvscope trace` has an option for each. Example: the index of 4,000,000 steps takes 160 MB.
struct TraceLimits {
  std::int64_t steps = 4'000'000;
  std::int64_t events = 1'000'000'000;
  std::int64_t step_events = 4'000'000;     // of one step, which is read as a whole
  std::int64_t text_bytes = kMaxMetaBytes;  // [bytes] of meta keys and values together
};

class TraceReader {
 public:
  // Throws InputError "<path> rejected: ..."; tests/core/trace/bad_trace_test.cpp lists the messages. A limit that is
  // exceeded is a fault of the file too. Precondition (caller): every limit is at least 1.
  explicit TraceReader(const std::filesystem::path& path, const TraceLimits& limits = {});
  TraceReader(TraceReader&&) noexcept;
  ~TraceReader();

  [[nodiscard]] const std::string& path() const;  // as given
  [[nodiscard]] const Meta& meta() const;         // all keys, including the reserved ones
  [[nodiscard]] Detail detail() const;
  [[nodiscard]] std::int64_t events() const;  // in the whole trace
  [[nodiscard]] std::int64_t events_of_kind(std::size_t kind) const;

  // The index. Row 0 is the prologue (step -1), row k the k-th step_began: rows() is 1 + the number of steps.
  [[nodiscard]] std::int64_t rows() const;
  [[nodiscard]] const StepSpan& span(std::int64_t row) const;               // IndexError past rows()
  [[nodiscard]] std::optional<std::int64_t> find_step(StepIdx step) const;  // its row; the first of equals
  [[nodiscard]] std::int64_t row_of_event(std::int64_t event) const;        // IndexError past events()

  // The events of one row of the index. Throws IndexError, or InputError when they are damaged.
  [[nodiscard]] std::vector<Event> events_of_row(std::int64_t row);

  // Events [first, end). The rows that contain them are read and checked whole. IndexError unless 0 <=
  // first <= end <= events().
  [[nodiscard]] std::vector<Event> events_in(std::int64_t first, std::int64_t end);

  // All events in order with their numbers, one row of the index in memory at a time.
  void for_each(const std::function<void(std::int64_t number, const Event& event)>& visit);

  // Throws InputError unless every step is complete and every event belongs to a step.
  void verify_all();

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace kvscope::trace
