// The current position in a run, with the state at that position. After any sequence of moves the state equals the one
// computed from the first event up to the position; tests/viz/playback/cursor_test.cpp checks this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "viz/playback/breakpoint.h"
#include "viz/playback/run.h"

namespace kvscope::viz {

class Cursor {
 public:
  // Starts at position 0. The cursor shares ownership of the run.
  explicit Cursor(std::shared_ptr<const Run> run);

  [[nodiscard]] const Run& run() const { return *run_; }
  [[nodiscard]] const std::shared_ptr<const Run>& shared_run() const { return run_; }
  [[nodiscard]] Position position() const { return position_; }
  [[nodiscard]] std::int64_t row() const;  // run().row_at(position())
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] const Marks& marks() const { return marks_; }
  [[nodiscard]] bool at_start() const;
  [[nodiscard]] bool at_end() const;

  // Each returns whether it moved.
  bool step();                      // to the end of the current step if inside one, else to the end of the next step
  bool step_back();                 // to the end of the previous step
  bool event();                     // one event forward
  bool event_back();                // one event back
  bool seek(Position position);     // IndexError outside [0, events]
  bool seek_row(std::int64_t row);  // to the end of the row

  // Moves forward to right after the next event that matches a breakpoint, or to the end of the run. Returns the index
  // of the breakpoint that matched. `keep_going` is called about every 16384 events with the position reached; when it
  // returns false, the cursor stops there.
  [[nodiscard]] std::optional<std::size_t> run_to(std::span<const Breakpoint> breakpoints,
                                                  const std::function<bool(Position)>& keep_going = {});
  // The same backwards: moves to right after the last matching event before the current one.
  [[nodiscard]] std::optional<std::size_t> run_back_to(std::span<const Breakpoint> breakpoints,
                                                       const std::function<bool(Position)>& keep_going = {});

 private:
  struct Kept {
    Position position;
    State state;
  };
  void go_back(Position position);

  std::shared_ptr<const Run> run_;
  Position position_;
  State state_;
  Marks marks_;
  // States that the last moves backward went through, by position: the next step back begins there and not at the run's
  // checkpoint, which may be 500,000 events away in a run of a million blocks. Shared with copies of the cursor.
  std::vector<std::shared_ptr<const Kept>> kept_;
};

}  // namespace kvscope::viz
