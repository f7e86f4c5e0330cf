#include "viz/playback/player.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::viz::player_test {
namespace {

// The example of the header.
TEST(Player, KeepsTheFractionOfAStep) {
  Player player(4);
  EXPECT_EQ(player.due(130), 0);
  EXPECT_EQ(player.due(130), 1);
  EXPECT_EQ(player.due(239), 0);  // 249 ms
  EXPECT_EQ(player.due(1), 1);
}

// The number of steps per second does not depend on the frame rate.
TEST(Player, PlaysTheSpeedsNumberOfStepsPerSecond) {
  ASSERT_TRUE(rc::check([] {
    const auto speed = *rc::gen::element(0.25, 0.5, 1.0, 4.0, 32.0, 256.0, 4096.0);
    Player player(speed);
    std::int64_t steps = 0, left = 8000;
    while (left > 0) {
      const auto part = *rc::gen::inRange<std::int64_t>(1, std::min<std::int64_t>(left, 900) + 1);
      steps += player.due(static_cast<double>(part));
      left -= part;
    }
    RC_ASSERT(std::abs(static_cast<double>(steps) - 8 * speed) <= 1);
  }));
}

// Ten times 0.1 steps add up to 0.9999999999999999.
TEST(Player, RoundingOfSmallPartsLosesNoStep) {
  Player player(4);
  std::int64_t steps = 0;
  for (int i = 0; i < 10; ++i) steps += player.due(25);
  EXPECT_EQ(steps, 1);
}

TEST(Player, ALongPauseCountsAsOneSecond) {
  Player player(4);
  EXPECT_EQ(player.due(3'600'000), 4);
  EXPECT_EQ(player.due(std::numeric_limits<double>::infinity()), 4);
}

TEST(Player, NegativeTimeCountsAsZero) {
  Player player(4);
  EXPECT_EQ(player.due(-1000), 0);
  EXPECT_EQ(player.due(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(player.due(0), 0);
  EXPECT_EQ(player.due(249), 0);
  EXPECT_EQ(player.due(1), 1);
}

TEST(Player, SpeedIsClampedAndDropsTheFraction) {
  Player player(0.001);
  EXPECT_EQ(player.speed(), Player::kSlowest);
  player.set_speed(1e9);
  EXPECT_EQ(player.speed(), Player::kFastest);
  player.set_speed(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(player.speed(), Player::kSlowest);
  player.set_speed(4);
  EXPECT_EQ(player.due(240), 0);
  player.set_speed(4);
  EXPECT_EQ(player.due(240), 0);
  EXPECT_EQ(player.due(240), 1);
  player.restart();
  EXPECT_EQ(player.due(240), 0);
}

}  // namespace
}  // namespace kvscope::viz::player_test
