#include <gmock/gmock.h>

#include <vector>

#include "core/tma/arrival_barrier.h"
#include "gpu/virtual/machine/barriers/mbarrier.h"
#include "tests/gpu/virtual/machine/one_kernel.h"
#include "tests/property.h"

namespace kvscope::ptx::test::mbarrier_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Step {
  char what;  // e expect_tx, a arrive, c complete_tx
  std::int64_t amount;
  std::int64_t phase, pending, tx;
};

// The traces of the model, with the machine's arithmetic.
TEST(Mbarrier, FollowsThePublishedTraces) {
  struct Trace {
    const char* name;
    std::int64_t count;
    std::vector<Step> steps;
  };
  const std::vector<Trace> traces = {
      {"M1", 1, {{'e', 1024, 0, 1, 1024}, {'a', 1, 0, 0, 1024}, {'c', 512, 0, 0, 512}, {'c', 512, 1, 1, 0}}},
      {"M2", 1, {{'c', 512, 0, 1, -512}, {'e', 1024, 0, 1, 512}, {'a', 1, 0, 0, 512}, {'c', 512, 1, 1, 0}}},
      {"M3", 2, {{'e', 256, 0, 2, 256}, {'a', 1, 0, 1, 256}, {'c', 256, 0, 1, 0}, {'a', 1, 1, 2, 0}}},
      {"M4", 1, {{'a', 1, 1, 1, 0}, {'a', 1, 2, 1, 0}}},
      {"M5",
       1,
       {{'e', 512, 0, 1, 512},
        {'a', 1, 0, 0, 512},
        {'c', 256, 0, 0, 256},
        {'c', 256, 1, 1, 0},
        {'c', 512, 1, 1, -512}}},
  };
  for (const Trace& trace : traces) {
    Mbarrier b;
    b.init(trace.count);
    for (const Step& step : trace.steps) {
      const bool done = step.what == 'e'   ? b.expect_tx(step.amount)
                        : step.what == 'a' ? b.arrive(step.amount)
                                           : b.complete_tx(step.amount);
      EXPECT_TRUE(done) << trace.name;
      EXPECT_EQ(b.phase, step.phase) << trace.name;
      EXPECT_EQ(b.pending, step.pending) << trace.name;
      EXPECT_EQ(b.tx, step.tx) << trace.name;
      EXPECT_EQ(b.phase_done(0), step.phase % 2 == 1);
      EXPECT_EQ(b.phase_done(1), step.phase % 2 == 0);
    }
  }
}

// An engine completes in pieces: if too few bytes were announced, the phase completes early and the rest counts in the
// next.
TEST(Mbarrier, ACopyOfMoreThanAnnouncedEndsThePhaseEarly) {
  Mbarrier b;
  b.init(1);
  EXPECT_TRUE(b.expect_tx(8192));
  EXPECT_TRUE(b.arrive(1));
  EXPECT_TRUE(b.complete_tx(16384));
  EXPECT_EQ(b.phase, 1);
  EXPECT_EQ(b.pending, 1);
  EXPECT_EQ(b.tx, -8192);
}

TEST(Mbarrier, ADroppedArrivalIsNotExpectedInTheNextPhase) {
  Mbarrier b;
  b.init(3);
  EXPECT_TRUE(b.arrive_and_drop(1));
  EXPECT_TRUE(b.arrive(2));
  EXPECT_EQ(b.phase, 1);
  EXPECT_EQ(b.pending, 2);
  EXPECT_FALSE(b.arrive(3));
  EXPECT_EQ(b.pending, 2);
}

TEST(Mbarrier, ATokenKeepsThePhaseAndWhatWasMissing) {
  Mbarrier b;
  b.init(5);
  static_cast<void>(b.arrive(5));
  static_cast<void>(b.arrive(2));
  EXPECT_EQ(b.token(), (std::uint64_t{1} << 40) | 3);
  EXPECT_EQ(Mbarrier::phase_of(b.token()), 1);
  EXPECT_EQ(Mbarrier::pending_of(b.token()), 3);
}

// The machine's barrier and the model's agree after every legal call.
TEST(Mbarrier, AgreesWithTheTeachingModelOnEveryLegalSequence) {
  EXPECT_TRUE(prop::check([] {
    const auto count = prop::in_range<std::int64_t>(1, 6);
    Mbarrier machine;
    machine.init(count);
    ArrivalBarrier model(count);
    for (const std::int64_t call : prop::vector_of<std::int64_t>(0, 8192)) {
      const std::int64_t amount = 1 + call / 4;
      const BarrierState before = model.state();
      if (before.pending == 0) {  // bytes are missing: only bytes can land
        const std::int64_t bytes = std::min(amount, before.tx);
        RC_ASSERT(machine.complete_tx(bytes));
        model.complete_tx(bytes);
      } else if (call % 4 == 0) {
        RC_ASSERT(machine.expect_tx(amount));
        model.expect_tx(amount);
      } else if (call % 4 == 1) {  // including bytes that are not yet announced
        RC_ASSERT(machine.complete_tx(amount));
        model.complete_tx(amount);
      } else if (call % 4 == 2) {
        const std::int64_t arrivals = 1 + amount % before.pending;
        if (before.pending == arrivals && before.tx < 0) continue;  // no arrival would be left to announce them
        RC_ASSERT(machine.arrive(arrivals));
        model.arrive(arrivals);
      } else {
        if (before.pending == 1 && before.tx + amount < 0) continue;
        RC_ASSERT(machine.expect_tx(amount));
        RC_ASSERT(machine.arrive(1));
        model.arrive_expect_tx(amount);
      }
      RC_ASSERT(machine.phase == model.state().phase);
      RC_ASSERT(machine.pending == model.state().pending);
      RC_ASSERT(machine.tx == model.state().tx);
    }
  }));
}

constexpr const char* kInit = R"(
  mov.u32 %r1, s;
  setp.eq.u32 %p0, %r0, 0;
)";

TEST(MbarrierInstructions, TokensAndParitiesTellThePhase) {
  const Ran ran = run({.body = std::string(kInit) + R"(
    @%p0 mbarrier.init.shared::cta.b64 [%r1], 33;
    bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %rd2, [%r1];
    @!%p0 bra REST;
    mbarrier.pending_count.b64 %r2, %rd2;
    st.global.u32 [%rd0], %r2;
    mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd2;
    selp.u32 %r3, 1, 0, %p1;   st.global.u32 [%rd0+4], %r3;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 1;
    selp.u32 %r3, 1, 0, %p1;   st.global.u32 [%rd0+8], %r3;
    mbarrier.arrive.shared::cta.b64 _, [%r1];
    mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd2;
    selp.u32 %r3, 1, 0, %p1;   st.global.u32 [%rd0+12], %r3;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
    selp.u32 %r3, 1, 0, %p1;   st.global.u32 [%rd0+16], %r3;
    mbarrier.inval.shared::cta.b64 [%r1];
    REST:)"});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 33u);  // lane 0 was first: 33 were missing
  EXPECT_EQ(ran.word(1), 0u);
  EXPECT_EQ(ran.word(2), 1u);
  EXPECT_EQ(ran.word(3), 1u);
  EXPECT_EQ(ran.word(4), 1u);
}

// A waiting warp sleeps until another arrives: it does not poll.
TEST(MbarrierInstructions, ATryWaitSleepsUntilTheLastArrival) {
  const Ran ran = run({.body = std::string(kInit) + R"(
    @%p0 mbarrier.init.shared::cta.b64 [%r1], 32;
    bar.sync 0;
    setp.lt.u32 %p1, %r0, 32;
    @%p1 bra WAITS;
    st.shared.u32 [s+64], 5;
    mbarrier.arrive.shared::cta.b64 _, [%r1];
    bra END;
    WAITS:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
    @!%p2 bra WAITS;
    ld.shared.u32 %r3, [s+64];
    st.global.u32 [%rd0], %r3;
    END:)",
                       .threads = 64});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 5u);
  EXPECT_LT(ran.result.steps, 40u);
}

TEST(MbarrierInstructions, DropsLowerWhatIsExpected) {
  const Ran ran = run({.body = R"(
    mov.u32 %r1, s;
    mbarrier.init.shared.b64 [%r1], 2;
    mbarrier.arrive_drop.shared.b64 %rd2, [%r1];
    mbarrier.arrive.shared.b64 %rd3, [%r1];
    mbarrier.arrive.shared.b64 %rd4, [%r1];
    mbarrier.test_wait.shared.b64 %p1, [%r1], %rd4;
    selp.u32 %r3, 1, 0, %p1;
    st.global.u32 [%rd0], %r3;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 1u);  // phase 1 has one arrival
}

TEST(MbarrierReports, EachIsToTheLetter) {
  const Ran ran = run({.body = R"(
    mov.u32 %r1, s;
    mbarrier.arrive.shared.b64 _, [%r1+64];
    mbarrier.init.shared.b64 [%r1], 2;
    mbarrier.init.shared.b64 [%r1], 2;
    mbarrier.arrive.shared.b64 _, [%r1], 3;
    mbarrier.arrive.noComplete.shared.b64 %rd2, [%r1], 2;
    ld.shared.u32 %r2, [%r1+4];
    st.shared.u8 [%r1], %r2;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048576;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
    mbarrier.arrive.shared.b64 _, [%r1], 2;
    mbarrier.init.shared.b64 [%r1+8], 0;
    mbarrier.init.shared.b64 [%r1+20], 1;)",
                       .threads = 1});
  EXPECT_THAT(
      ran.messages,
      ElementsAre("NO_MBARRIER there is no mbarrier at s + 64",
                  "MBARRIER_TOUCHED mbarrier.init of a live mbarrier, s + 0 (phase 0, pending 2 of 2, tx 0)",
                  "MBAR_UNDERFLOW an arrival of 3 at s + 0 (phase 0, pending 2 of 2, tx 0)",
                  "MBAR_UNDERFLOW arrive.noComplete of 2 would complete the phase: s + 0 (phase 0, pending 2 of "
                  "2, tx 0)",
                  "MBARRIER_TOUCHED 4 bytes of a live mbarrier, s + 0 (phase 0, pending 2 of 2, tx 0)",
                  "MBARRIER_TOUCHED 1 bytes of a live mbarrier, s + 0 (phase 0, pending 2 of 2, tx 0)",
                  "MBAR_TX 1048576 more bytes at s + 0 (phase 0, pending 2 of 2, tx 0): a phase counts at "
                  "most 1048575",
                  "MBAR_TX 16 bytes landed without an expect_tx, and no pending arrival can add one: s + 0 "
                  "(phase 0, pending 0 of 2, tx -16)",
                  "NO_MBARRIER mbarrier.init of s + 8 with count 0: 1 to 1048575",
                  "MISALIGNED 8-byte access at shared 0x00414 (s + 20): not a multiple of 8",
                  "MBAR_TX 16 bytes arrived at s + 0 that no thread announced (tx -16, phase 0)"));
}

// A producer that does not wait for its readers arrives while the copies of the stage are under way.
TEST(MbarrierReports, AnArrivalBeforeTheBytesHaveLandedNamesTheRefilledStage) {
  const auto hint = [](const char* arrivals) {
    const Ran ran =
        run({.body = std::string("mov.u32 %r1, s;\nmbarrier.init.shared.b64 [%r1], 1;\n") + arrivals, .threads = 1});
    return ran.result.reports.empty() ? "" : ran.result.reports.front().hint;
  };
  EXPECT_THAT(
      hint("mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256; mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;"),
      HasSubstr("a stage that is filled again too early"));
  EXPECT_THAT(hint("mbarrier.arrive.shared.b64 _, [%r1], 2;"),
              StartsWith("one arrival too many: see who arrives, and the count of mbarrier.init"));
}

TEST(MbarrierReports, ATokenOfLongAgoIsReported) {
  const Ran ran = run({.body = R"(
    mov.u32 %r1, s;
    mbarrier.init.shared.b64 [%r1], 1;
    mbarrier.arrive.shared.b64 %rd2, [%r1];
    mbarrier.arrive.shared.b64 %rd3, [%r1];
    mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages,
              ElementsAre("NO_MBARRIER a token of phase 0, and the barrier is s + 0 (phase 2, pending 1 of 1, "
                          "tx 0)"));
}

}  // namespace
}  // namespace kvscope::ptx::test::mbarrier_test
