// Clock, with one number per warp, against a map with one number per actor.
#include "gpu/virtual/check/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/property.h"

namespace kvscope::ptx::test::clock_test {
namespace {

constexpr int kWarps = 3, kCtas = 3;

struct Pair {
  Clock clock{kWarps};
  std::map<ActorKey, Step> plain;

  void raise(ActorKey actor, Step step) { plain[actor] = std::max(plain[actor], step); }
  void random() {
    const int warp = prop::uniform<int>(0, kWarps), lane = prop::uniform<int>(0, 4);
    const auto cta = static_cast<std::uint32_t>(prop::uniform<int>(0, kCtas));
    const auto step = static_cast<Step>(prop::uniform<int>(1, 9));
    const ActorKey lane0 = actor_key(cta, static_cast<std::uint32_t>(warp * kLanes));
    const ActorKey thread = lane0 + static_cast<ActorKey>(lane);
    switch (prop::uniform<int>(0, 5)) {
      case 0:
        clock.raise_warp(lane0, step);
        for (ActorKey l = 0; l < kLanes; ++l) raise(lane0 + l, step);
        break;
      case 1:
        clock.raise_warp(kCopiesOf + lane0, step);
        for (ActorKey l = 0; l < kLanes; ++l) raise(kCopiesOf + lane0 + l, step);
        break;
      default: {
        const ActorKey engine = actor_key(cta, kEngines + static_cast<std::uint32_t>(lane));
        const std::array<ActorKey, 3> actors{thread, kCopiesOf + thread, engine};
        const ActorKey actor = actors[static_cast<std::size_t>(prop::uniform<int>(0, 3))];
        clock.raise(actor, step);
        raise(actor, step);
      }
    }
  }
  void expect_same() const {
    for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
      for (std::uint32_t thread = 0; thread < kWarps * kLanes; ++thread) {
        for (const std::uint32_t base : {0u, kCopiesOf}) expect_same(actor_key(cta, base + thread));
      }
      for (std::uint32_t e = 0; e < 5; ++e) expect_same(actor_key(cta, kEngines + e));
    }
  }
  void expect_same(ActorKey actor) const {
    const auto place = plain.find(actor);
    const Step step = place == plain.end() ? 0 : place->second;
    if (step > 0) RC_ASSERT(clock.covers(actor, step));
    RC_ASSERT(!clock.covers(actor, step + 1));
  }
};

TEST(Clock, CoversExactlyTheStepsRaisedOrJoined) {
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

// A clock is the same whether or not another one shares parts with it.
TEST(Clock, ACopyKeepsItsNumbersWhenTheOriginalIsRaised) {
  EXPECT_TRUE(prop::check("copy, then raise", [] {
    Pair a;
    for (int i = prop::uniform<int>(0, 12); i > 0; --i) a.random();
    const Pair before = a;
    for (int i = prop::uniform<int>(1, 12); i > 0; --i) a.random();
    a.expect_same();
    before.expect_same();
  }));
}

TEST(Clock, LowerKeepsTheMinimumOfEachWarp) {
  EXPECT_TRUE(prop::check("lower", [] {
    Pair a, b;
    for (int i = prop::uniform<int>(0, 12); i > 0; --i) a.random();
    for (int i = prop::uniform<int>(0, 12); i > 0; --i) b.random();
    const Clock unchanged = a.clock;
    a.clock.lower(b.clock);
    for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
      for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
        const ActorKey lane0 = actor_key(cta, warp * kLanes);
        for (Step step = 1; step < 10; ++step) {
          const bool both = unchanged.covers_warp(lane0, step) && b.clock.covers_warp(lane0, step);
          RC_ASSERT(a.clock.covers_warp(lane0, step) == both);
        }
      }
    }
  }));
}

TEST(ActorKey, NamesAnEngineByItsKindAndItsBarrier) {
  const ActorKey engine = actor_key(5, engine_of_barrier(AsyncKind::tensor_load, 0x0100'0408));  // rank 1
  EXPECT_EQ(cta_of(engine), 5u);
  EXPECT_TRUE(is_engine(engine));
  EXPECT_TRUE(counts_on_barrier(engine));
  EXPECT_EQ(kind_of_engine(engine), AsyncKind::tensor_load);
  EXPECT_EQ(mbarrier_of_engine(engine), 0x0100'0408u);
  const ActorKey store = actor_key(0, engine_of_thread(AsyncKind::bulk_store, 1023));
  EXPECT_FALSE(counts_on_barrier(store));
  EXPECT_EQ(kind_of_engine(store), AsyncKind::bulk_store);
  EXPECT_EQ(thread_of(store), 1023);
  EXPECT_TRUE(is_copy(actor_key(7, kCopiesOf + 40)));
  EXPECT_EQ(thread_of(actor_key(7, kCopiesOf + 40)), 40);
}

}  // namespace
}  // namespace kvscope::ptx::test::clock_test
