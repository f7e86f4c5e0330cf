// Copies of the state along a run. To compute the state at any position, the events since the last checkpoint before it
// are applied to that checkpoint. Checkpoints share the memory of all state that is equal in both. When they exceed the
// memory limit, every second one is dropped and the distance between checkpoints is doubled.
//
//   Checkpoints checkpoints(empty_state(facts), 4096, 256 << 20);
//   after each event: checkpoints.offer(position, state);
//   checkpoints.before(position)     the last checkpoint at or before the position
#pragma once

#include <cstdint>
#include <vector>

#include "viz/playback/state.h"

namespace kvscope::viz {

struct Checkpoint {
  Position position;
  State state;
};

class Checkpoints {
 public:
  // `first` is the state at position 0. `distance` [events] is the minimum between two checkpoints. `bytes` is the
  // approximate memory limit of all checkpoints: for each one, the memory that it does not share with the previous one.
  Checkpoints(const State& first, std::int64_t distance, std::int64_t bytes);

  // Offers the state at `position` (all events before `position` applied). Precondition (caller): positions ascend.
  void offer(Position position, const State& state) {
    if (position - all_.back().position >= distance_) keep(position, state);
  }
  [[nodiscard]] const Checkpoint& before(Position position) const;  // position >= 0

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(all_.size()); }
  [[nodiscard]] std::int64_t distance() const { return distance_; }  // [events]
  [[nodiscard]] std::int64_t held() const { return held_; }          // [bytes]

 private:
  void keep(Position position, const State& state);
  void thin_out();

  std::int64_t distance_, bytes_, held_ = 0;
  std::vector<Checkpoint> all_;  // by position, the first at 0
};

}  // namespace kvscope::viz
