// Copies of the state along a run, so that any position is a short fold away. They share what has not changed between
// them; when they take more memory than they may, every second one is dropped and the distance doubled.
//
//   Checkpoints checkpoints(empty_state(facts), 4096, 256 << 20);
//   after each event: checkpoints.offer(position, state);
//   checkpoints.before(position)     the last one that does not lie after it
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
  // `first` stands at position 0. `distance` [events] lies between two at least; `bytes` are all of them together,
  // about: what a copy does not share with the one before it.
  Checkpoints(const State& first, std::int64_t distance, std::int64_t bytes);

  // The state after the event before `position`; positions ascend.
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
