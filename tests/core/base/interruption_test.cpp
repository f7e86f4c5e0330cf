#include "core/base/interruption.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace kvscope::interruption_test {
namespace {

using std::chrono::milliseconds;

// Interruption points for `time`, one every millisecond.
void work(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    interruption_point();
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(Interruption, WithoutACallerThatMayStopThemPointsDoNothing) {
  for (int i = 0; i < 1000; ++i) interruption_point();
}

TEST(Interruption, AFunctionThatReturnsFalseStopsTheWork) {
  int asked = 0;
  const Interruptible scope([&] { return ++asked < 3; });
  EXPECT_THROW(work(milliseconds(10'000)), Cancelled);
  EXPECT_EQ(asked, 3);
}

TEST(Interruption, TheFunctionIsNotAskedAtEachPoint) {
  int asked = 0;
  const Interruptible scope([&] { return ++asked > 0; });
  for (int i = 0; i < 100'000; ++i) interruption_point();
  EXPECT_LT(asked, 1000);  // each millisecond would be more often than every 20 ms on any machine that ends this loop
}

TEST(Interruption, TheInnermostFunctionIsAskedAndTheOuterOneAfterItsEnd) {
  int outer = 0;
  const Interruptible scope([&] { return ++outer < 1; });
  {
    const Interruptible inner([] { return true; });
    work(milliseconds(60));
  }
  EXPECT_EQ(outer, 0);
  EXPECT_THROW(work(milliseconds(10'000)), Cancelled);
}

TEST(Interruption, AFunctionBelongsToItsThread) {
  const Interruptible scope([] { return false; });
  bool finished = false;
  std::thread([&] {
    work(milliseconds(60));
    finished = true;
  }).join();
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace kvscope::interruption_test
