// Clocks in numbers of warps against one number for every actor.
#include "gpu/virtual/check/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/property.h"

namespace kvscope::ptx::test::clock_test {
namespace {

constexpr int kWarps = 3;

struct Pair {
  Clock clock{kWarps};
  std::map<ActorKey, Step> plain;

  void raise(ActorKey actor, Step step) { plain[actor] = std::max(plain[actor], step); }
  void random() {
    const int warp = prop::uniform<int>(0, kWarps), lane = prop::uniform<int>(0, 4);
    const auto step = static_cast<Step>(prop::uniform<int>(1, 9));
    const auto thread = static_cast<ActorKey>(warp * kLanes + lane);
    switch (prop::uniform<int>(0, 5)) {
      case 0:
        clock.raise_warp(static_cast<ActorKey>(warp * kLanes), step);
        for (int l = 0; l < kLanes; ++l) raise(static_cast<ActorKey>(warp * kLanes + l), step);
        break;
      case 1:
        clock.raise_warp(kCopiesOf + static_cast<ActorKey>(warp * kLanes), step);
        for (int l = 0; l < kLanes; ++l) raise(kCopiesOf + static_cast<ActorKey>(warp * kLanes + l), step);
        break;
      default: {
        const std::array<ActorKey, 3> actors{thread, kCopiesOf + thread, kEngines + static_cast<ActorKey>(lane)};
        const ActorKey actor = actors[static_cast<std::size_t>(prop::uniform<int>(0, 3))];
        clock.raise(actor, step);
        raise(actor, step);
      }
    }
  }
  void expect_same() const {
    for (int thread = 0; thread < kWarps * kLanes; ++thread) {
      for (const ActorKey base : {ActorKey{0}, ActorKey{kCopiesOf}}) expect_same(base + static_cast<ActorKey>(thread));
    }
    for (ActorKey e = 0; e < 5; ++e) expect_same(kEngines + e);
  }
  void expect_same(ActorKey actor) const {
    const auto place = plain.find(actor);
    const Step step = place == plain.end() ? 0 : place->second;
    if (step > 0) RC_ASSERT(clock.covers(actor, step));
    RC_ASSERT(!clock.covers(actor, step + 1));
  }
};

TEST(Clock, KnowsOfEveryActorWhatItWasToldOf) {
  EXPECT_TRUE(prop::check("raise, join, includes", [] {
    Pair a, b;
    for (int i = prop::uniform<int>(0, 12); i > 0; --i) a.random();
    for (int i = prop::uniform<int>(0, 12); i > 0; --i) b.random();
    a.expect_same();
    const bool includes = std::all_of(b.plain.begin(), b.plain.end(), [&](const auto& entry) {
      const auto place = a.plain.find(entry.first);
      return place != a.plain.end() && place->second >= entry.second;
    });
    RC_ASSERT(a.clock.includes(b.clock) == includes);
    a.clock.join(b.clock);
    for (const auto& [actor, step] : b.plain) a.raise(actor, step);
    a.expect_same();
    RC_ASSERT(a.clock.includes(b.clock));
  }));
}

}  // namespace
}  // namespace kvscope::ptx::test::clock_test
