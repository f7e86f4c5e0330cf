// Converts elapsed time into the number of steps to play at the current speed. The caller supplies the clock.
//
//   Player player(4);              // steps per second
//   player.due(130)  == 0          // [ms] since the last call; the fraction of a step is kept
//   player.due(130)  == 1          // 260 ms: one step after 250 ms, 10 ms remain
#pragma once

#include <cstdint>

namespace kvscope::viz {

class Player {
 public:
  static constexpr double kSlowest = 0.25, kFastest = 4096;  // [steps/s]

  explicit Player(double steps_per_second = 4);
  [[nodiscard]] double speed() const { return speed_; }
  void set_speed(double steps_per_second);  // clamped to [kSlowest, kFastest]; the kept fraction of a step is dropped
  // Steps to play. Negative times count as 0. At most the steps of one second are returned, so that the run does not
  // jump to its end after the computer was suspended.
  [[nodiscard]] std::int64_t due(double elapsed_ms);
  void restart();

 private:
  double speed_;
  double left_over_ = 0;  // [steps]
};

}  // namespace kvscope::viz
