// Where the events of a run come from: a trace file, or a run that has just been recorded into memory. Rows are those
// of the trace file's index: row 0 is the prologue (step -1), row k holds the k-th step_began and all that follows it.
// One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/trace/events.h"
#include "core/trace/trace_file.h"

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
};

// Throws InputError as trace::TraceReader does.
[[nodiscard]] std::unique_ptr<EventSource> open_trace(const std::filesystem::path& path);

// `meta` as trace::TraceWriter takes it: "producer", "scenario", ...
[[nodiscard]] std::unique_ptr<EventSource> from_memory(std::vector<trace::Event> events, trace::Meta meta,
                                                       trace::Detail detail);

}  // namespace kvscope::viz
