// A run, open for playing: read once from end to end (that is where a damaged trace is found), then any position of it
// within milliseconds. Checkpoints of the state are kept so often that a seek folds kCheckpointEvents
// at most, and thinned out when they would take more memory than kCheckpointBytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"
#include "viz/playback/state.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

// Events read, of all. Return false to stop: Run::open then throws Cancelled.
using OpenProgress = std::function<bool(std::int64_t done, std::int64_t all)>;

class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

// What the events of the current step have done so far: drawn over the state as "just now".
struct Marks {
  std::vector<trace::TokensWritten> written;  // in order
  std::vector<BlockIdx> allocated, shared, copied, released, evicted;
  std::vector<SeqIdx> admitted, preempted, finished;
  friend bool operator==(const Marks& a, const Marks& b);
};

// One event on: a step_began leaves nothing of the step before. `copied` are the copies, not what they are made from.
void add(Marks& marks, const trace::Event& event);

class EventTape;

class Run {
 public:
  static constexpr std::int64_t kCheckpointEvents = 16384;                   // at least, between two
  static constexpr std::int64_t kCheckpointBytes = std::int64_t{256} << 20;  // all together, about

  // Reads every event once. `shown` names the run where its scenario does not. Throws InputError when the trace is
  // damaged, of a newer version, or contradicts itself (object `shown`, "event 57: ...").
  [[nodiscard]] static std::unique_ptr<Run> open(std::unique_ptr<EventSource> source, std::string shown,
                                                 const OpenProgress& progress = {});

  ~Run();

  [[nodiscard]] const Facts& facts() const;
  [[nodiscard]] const trace::Meta& meta() const;
  [[nodiscard]] const Timeline& timeline() const;

  // Index of the event source.
  [[nodiscard]] const trace::StepSpan& span(std::int64_t row) const;  // IndexError past facts().rows
  // The row of the event that has happened last at `position`; 0 at the start.
  [[nodiscard]] std::int64_t row_at(Position position) const;
  [[nodiscard]] Position end_of_row(std::int64_t row) const;  // after its last event
  // Kept for the rows used last: paging through a table of events reads each row once.
  [[nodiscard]] std::shared_ptr<const std::vector<trace::Event>> events_of_row(std::int64_t row) const;

  // All events, in order.
  [[nodiscard]] const EventTape& tape() const;

  // Where the fold to `position` begins: at the last checkpoint before it.
  [[nodiscard]] Position checkpoint_before(Position position) const;
  [[nodiscard]] State state_at(Position position) const;  // IndexError outside [0, facts().events]
  [[nodiscard]] Marks marks_at(Position position) const;

 private:
  class Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::viz
