#include "viz/playback/player.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {

Player::Player(double steps_per_second) : speed_(0) {
  set_speed(steps_per_second);
}

void Player::set_speed(double steps_per_second) {
  // NaN gives the slowest speed.
  speed_ = steps_per_second > kSlowest ? std::min(steps_per_second, kFastest) : kSlowest;
  left_over_ = 0;
}

std::int64_t Player::due(double elapsed_ms) {
  if (!(elapsed_ms > 0)) return 0;
  left_over_ += std::min(elapsed_ms, 1000.0) * speed_ / 1000;
  // Tolerance for rounding: ten times 0.1 step must give one step.
  const double whole = std::floor(left_over_ + 1e-9);
  left_over_ = std::max(left_over_ - whole, 0.0);
  return static_cast<std::int64_t>(whole);
}

void Player::restart() {
  left_over_ = 0;
}

}  // namespace kvscope::viz
