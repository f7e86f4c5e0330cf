// The source of a run's events: a trace file, or a run recorded into memory. Rows are those of the trace file's index:
// row 0 is the prologue (step -1); row k holds the k-th step_began and all events up to the next step_began.
// Not thread-safe: one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/events.h"
#include "core/trace/recorder.h"
#include "core/trace/trace_file.h"
#include "viz/playback/event_tape.h"

namespace kvscope::viz {

class EventSource {
 public:
  virtual ~EventSource() = default;
  [[nodiscard]] virtual const trace::Meta& meta() const = 0;
  [[nodiscard]] virtual trace::Detail detail() const = 0;
  [[nodiscard]] virtual std::int64_t events() const = 0;                                // in the whole run
  [[nodiscard]] virtual std::int64_t rows() const = 0;                                  // 1 + steps
  [[nodiscard]] virtual trace::StepSpan span(std::int64_t row) const = 0;               // IndexError past rows()
  [[nodiscard]] virtual std::vector<trace::Event> events_of_row(std::int64_t row) = 0;  // InputError: damaged there
  // What the file's version does not check, one sentence each, for the person who opens it.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
  // All events packed, if the source stores them that way; else null.
  [[nodiscard]] virtual std::shared_ptr<const EventTape> tape() const { return nullptr; }
};

// Throws InputError as trace::TraceReader does.
[[nodiscard]] std::unique_ptr<EventSource> open_trace(const std::filesystem::path& path);

// A recorder that packs the events: tens of millions of them need hundreds of megabytes instead of gigabytes.
//
//   TapeRecorder recorder;
//   run_engine(scenario, requests, recorder);
//   from_tape(recorder.take(), {{"producer", "..."}, {"scenario", json}}, recorder.detail());
class TapeRecorder final : public trace::Recorder {
 public:
  explicit TapeRecorder(trace::Detail detail = trace::Detail::full) : Recorder(detail) {}
  [[nodiscard]] std::int64_t size() const { return tape_.size(); }  // [events] so far
  [[nodiscard]] EventTape take() { return std::move(tape_); }

 private:
  void write(const trace::Event& event) override { tape_.push(event); }
  EventTape tape_;
};
// `meta` has the keys that trace::TraceWriter takes: "producer", "scenario", ...
[[nodiscard]] std::unique_ptr<EventSource> from_tape(EventTape tape, trace::Meta meta, trace::Detail detail,
                                                     std::vector<std::string> remarks = {});

}  // namespace kvscope::viz
