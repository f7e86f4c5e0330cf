// An opened run. All events are read once when it is opened, which is when a damaged trace is found. After that the
// state at any position is available within milliseconds: a seek applies at most kCheckpointEvents events to a
// checkpoint. When the checkpoints exceed checkpoint_bytes(), every second one is dropped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"
#include "viz/playback/state.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

// Called with the number of events read so far and the total. If it returns false, Run::open throws Cancelled.
using OpenProgress = std::function<bool(std::int64_t done, std::int64_t all)>;

class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

// The objects that the events of the current step have changed so far. The panels highlight them.
struct Marks {
  std::vector<trace::TokensWritten> written;  // in order
  std::vector<BlockIdx> allocated, shared, copied, released, evicted;
  std::vector<SeqIdx> admitted, preempted, finished, refused;
  friend bool operator==(const Marks& a, const Marks& b);
};

// Adds one event; a step_began clears the marks of the previous step. `copied` has the new blocks, not their sources.
void add(Marks& marks, const trace::Event& event);

class EventTape;

class Run {
 public:
  static constexpr std::int64_t kCheckpointEvents = 16384;  // minimum between two checkpoints
  // Approximate limit for all checkpoints. Those of a large pool share less. Example: 100,000 blocks: 116 MB.
  [[nodiscard]] static constexpr std::int64_t checkpoint_bytes(std::int64_t blocks) {
    return std::min<std::int64_t>(100'000'000 + 160 * blocks, 260'000'000);
  }

  // Reads every event once. `shown` is the run's name if its scenario has none. Throws InputError if the trace is
  // damaged, of a newer version, or contradicts itself (object `shown`, "event 57: ...").
  [[nodiscard]] static std::unique_ptr<Run> open(std::unique_ptr<EventSource> source, std::string shown,
                                                 const OpenProgress& progress = {});

  ~Run();

  [[nodiscard]] const Facts& facts() const;
  [[nodiscard]] const trace::Meta& meta() const;
  [[nodiscard]] const std::vector<std::string>& remarks() const;  // of the event source
  [[nodiscard]] const Timeline& timeline() const;

  // Entry of the event source's index.
  [[nodiscard]] const trace::StepSpan& span(std::int64_t row) const;  // IndexError past facts().rows
  // The row of the last event before `position`; 0 at position 0.
  [[nodiscard]] std::int64_t row_at(Position position) const;
  [[nodiscard]] Position end_of_row(std::int64_t row) const;  // after its last event
  // After the row's last tokens_written, when the step's kernels read the cache: later in the step, sequences end and
  // release their blocks. The end of a row without tokens_written.
  [[nodiscard]] Position written_of_row(std::int64_t row) const;
  [[nodiscard]] std::optional<std::int64_t> find_row(StepIdx step) const;
  // The last row whose step is at most `step`: a trace may begin at any step. 0: before the first step.
  [[nodiscard]] std::int64_t row_of_step(StepIdx step) const;
  // The most recently used rows stay unpacked: scrolling through a table of events unpacks each row once. As all other
  // members, it may be called by several threads at once: a picture is written while the window goes on.
  [[nodiscard]] std::shared_ptr<const std::vector<trace::Event>> events_of_row(std::int64_t row) const;

  // All events, in order.
  [[nodiscard]] const EventTape& tape() const;

  // Position of the last checkpoint at or before `position`: where the computation of its state begins.
  [[nodiscard]] Position checkpoint_before(Position position) const;
  [[nodiscard]] State state_at(Position position) const;  // IndexError outside [0, facts().events]
  [[nodiscard]] Marks marks_at(Position position) const;

 private:
  class Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::viz
