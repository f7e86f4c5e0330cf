// Playing at a speed: turns time that has passed into steps that are due. No clock and no timer of its own.
//
//   Player player(4);              // steps a second
//   player.due(130)  == 0          // [ms] since the last call; what is left over is kept
//   player.due(130)  == 1          // 260 ms: one step after 250, 10 ms left
#pragma once

#include <cstdint>

namespace kvscope::viz {

class Player {
 public:
  static constexpr double kSlowest = 0.25, kFastest = 4096;  // [steps/s]

  explicit Player(double steps_per_second = 4);
  [[nodiscard]] double speed() const { return speed_; }
  void set_speed(double steps_per_second);  // clamped to [kSlowest, kFastest]; what is left over is dropped
  // Negative time counts as none. At most one second's worth: after a sleep the run does not jump to its end.
  [[nodiscard]] std::int64_t due(double elapsed_ms);
  void restart();

 private:
  double speed_;
  double left_over_ = 0;  // [steps]
};

}  // namespace kvscope::viz
