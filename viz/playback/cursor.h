// A position in a run that moves: forwards, back, anywhere. The state it holds after any walk is the state of a fresh
// fold to its position.        // held by tests/viz/playback/cursor_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "viz/playback/breakpoint.h"
#include "viz/playback/run.h"

namespace kvscope::viz {

class Cursor {
 public:
  // Stands at position 0. The run outlives the cursor: it is shared.
  explicit Cursor(std::shared_ptr<const Run> run);

  [[nodiscard]] const Run& run() const { return *run_; }
  [[nodiscard]] Position position() const { return position_; }
  [[nodiscard]] std::int64_t row() const;  // run().row_at(position())
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] const Marks& marks() const { return marks_; }
  // The event that has happened last; nothing at the start.
  [[nodiscard]] std::optional<trace::Event> last_event() const;
  [[nodiscard]] bool at_start() const;
  [[nodiscard]] bool at_end() const;

  // Each returns whether it moved.
  bool step();                   // to the end of the next step, or of this one when standing inside it
  bool step_back();              // to the end of the step before; from inside a step, to the end of the step before it
  bool event();                  // one event on
  bool event_back();             // one event back
  bool seek(Position position);  // IndexError outside [0, events]
  bool seek_row(std::int64_t row);  // to its end

  // Runs on until an event matches one of the breakpoints and stands right after it, or to the end. Returns which one
  // matched. `keep_going` is asked now and then with the position reached; false stops there.
  [[nodiscard]] std::optional<std::size_t> run_to(std::span<const Breakpoint> breakpoints,
                                                  const std::function<bool(Position)>& keep_going = {});
  // The same backwards: stands right after the last matching event before this one.
  [[nodiscard]] std::optional<std::size_t> run_back_to(std::span<const Breakpoint> breakpoints,
                                                       const std::function<bool(Position)>& keep_going = {});

 private:
  std::shared_ptr<const Run> run_;
  Position position_;
  State state_;
  Marks marks_;
};

}  // namespace kvscope::viz
