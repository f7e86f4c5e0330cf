// Traces of mbarrier operations step by step, and each misuse by name.
#include "core/tma/arrival_barrier.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::arrival_barrier_test {
namespace {

using test::message_of;

struct Step {
  const char* what;
  std::function<void(ArrivalBarrier&)> run;
  std::int64_t phase, pending, tx;
  bool wait0, wait1;
};

void expect_trace(std::int64_t expected, const std::vector<Step>& steps) {
  ArrivalBarrier barrier(expected);
  for (const Step& step : steps) {
    SCOPED_TRACE(step.what);
    step.run(barrier);
    EXPECT_EQ(barrier.state(), (BarrierState{step.phase, step.pending, step.tx}));
    ArrivalBarrier seen = barrier;  // test_wait counts as an observation; the trace continues without it
    EXPECT_EQ(seen.test_wait(0), step.wait0);
    EXPECT_EQ(seen.test_wait(1), step.wait1);
  }
}

const auto kNothing = [](ArrivalBarrier&) {};
std::function<void(ArrivalBarrier&)> expect_tx(std::int64_t bytes) {
  return [bytes](ArrivalBarrier& b) { b.expect_tx(bytes); };
}
std::function<void(ArrivalBarrier&)> complete(std::int64_t bytes) {
  return [bytes](ArrivalBarrier& b) { b.complete_tx(bytes); };
}
const auto kArrive = [](ArrivalBarrier& b) { b.arrive(); };

std::vector<BarrierFault> faults(const ArrivalBarrier& barrier) {
  std::vector<BarrierFault> result;
  for (const BarrierDiagnosis& diagnosis : barrier.diagnoses()) result.push_back(diagnosis.fault);
  return result;
}
using Faults = std::vector<BarrierFault>;

// One arrival, two copies.
TEST(ArrivalBarrierTrace, EndsAPhaseWithItsLastByte) {
  expect_trace(1, {{"init 1", kNothing, 0, 1, 0, false, true},
                   {"expect 1024", expect_tx(1024), 0, 1, 1024, false, true},
                   {"arrive", kArrive, 0, 0, 1024, false, true},
                   {"complete 512", complete(512), 0, 0, 512, false, true},
                   {"complete 512", complete(512), 1, 1, 0, true, false}});
}

// Bytes that land before they are announced.
TEST(ArrivalBarrierTrace, TakesBytesThatComeFirst) {
  expect_trace(1, {{"complete 512", complete(512), 0, 1, -512, false, true},
                   {"expect 1024", expect_tx(1024), 0, 1, 512, false, true},
                   {"arrive", kArrive, 0, 0, 512, false, true},
                   {"complete 512", complete(512), 1, 1, 0, true, false}});
  ArrivalBarrier barrier(1);
  barrier.complete_tx(512);
  EXPECT_EQ(faults(barrier), Faults{});  // the first phase is owned from init on
}

// Two producers.
TEST(ArrivalBarrierTrace, WaitsForEveryArrival) {
  expect_trace(2, {{"expect 256, arrive", [](ArrivalBarrier& b) { b.arrive_expect_tx(256); }, 0, 1, 256, false, true},
                   {"complete 256", complete(256), 0, 1, 0, false, true},
                   {"arrive", kArrive, 1, 2, 0, true, false}});
}

// Arrivals without bytes. That no thread observed the end of phase 0 is a separate fault.
TEST(ArrivalBarrierTrace, FlipsWithEveryLoneArrival) {
  expect_trace(1, {{"arrive", kArrive, 1, 1, 0, true, false}, {"arrive", kArrive, 2, 1, 0, false, true}});
  ArrivalBarrier barrier(1);
  barrier.arrive();
  EXPECT_EQ(faults(barrier), Faults{});
  barrier.arrive();
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::unobserved_phase});
  EXPECT_EQ(barrier.diagnoses()[0].message,
            "an arrival in phase 1 before any thread observed the end of phase 0: wait for each phase");
  EXPECT_EQ(barrier.diagnoses()[0].operation, 2);  // init, arrive, arrive
  ArrivalBarrier seen(1);
  seen.arrive();
  EXPECT_TRUE(seen.test_wait(0));
  seen.arrive();
  EXPECT_EQ(faults(seen), Faults{});
}

// Only half of the bytes were announced; the rest lands in the next phase.
TEST(ArrivalBarrierTrace, LetsTheRestOfAnUnderannouncedCopyIntoTheNextPhase) {
  expect_trace(1, {{"expect 512, arrive, complete 256",
                    [](ArrivalBarrier& b) { b.arrive_expect_tx(512), b.complete_tx(256); }, 0, 0, 256, false, true},
                   {"complete 256", complete(256), 1, 1, 0, true, false},
                   {"complete 512 more", complete(512), 1, 1, -512, true, false}});
  ArrivalBarrier barrier(1);
  barrier.arrive_expect_tx(512);
  barrier.complete_tx(512);
  barrier.complete_tx(512);
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::late_bytes});
  EXPECT_EQ(barrier.diagnoses()[0].message,
            "512 bytes in phase 1, which no producer has begun: phase 0 ended before they arrived, so it had announced "
            "too few: "
            "expect every byte of a copy before the phase's last arrival");
}

// A producer that issues before it announces must own the phase first: then the same bytes are legal.
TEST(ArrivalBarrierFaults, NoneWhenAProducerOwnsThePhase) {
  ArrivalBarrier barrier(1);
  barrier.arrive();
  EXPECT_TRUE(barrier.wait(0));
  barrier.own();
  barrier.complete_tx(512);
  barrier.arrive_expect_tx(512);
  EXPECT_TRUE(barrier.wait(1));
  EXPECT_EQ(faults(barrier), Faults{});
  EXPECT_EQ(barrier.state(), (BarrierState{2, 1, 0}));
}

TEST(ArrivalBarrierFaults, LeaveOutUnexpectedArrivals) {
  ArrivalBarrier barrier(2);
  barrier.arrive(3);
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::pending_underflow});
  EXPECT_EQ(barrier.diagnoses()[0].message,
            "3 arrivals, but 2 of 2 are missing in phase 0: give the barrier the number of its arrivals");
  EXPECT_EQ(barrier.state(), (BarrierState{0, 2, 0}));
  barrier.expect_tx(16);
  barrier.arrive(2);
  barrier.arrive();  // bytes keep the phase open, but all have arrived
  EXPECT_EQ(faults(barrier), (Faults{BarrierFault::pending_underflow, BarrierFault::pending_underflow}));
}

TEST(ArrivalBarrierFaults, HoldAtMostAPhasesBytes) {
  ArrivalBarrier barrier(1);
  barrier.expect_tx(ArrivalBarrier::kMaxCount);
  EXPECT_EQ(barrier.state().tx, 1048575);
  barrier.expect_tx(1);
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::too_many_bytes});
  EXPECT_EQ(barrier.diagnoses()[0].message,
            "1048576 bytes in phase 0: one phase holds at most 1048575: split the tile");
  EXPECT_EQ(barrier.state().tx, 1048575);
  ArrivalBarrier below(1);
  below.complete_tx(ArrivalBarrier::kMaxCount);
  below.complete_tx(1);
  EXPECT_EQ(faults(below), Faults{BarrierFault::too_many_bytes});
  EXPECT_EQ(below.state().tx, -1048575);
}

// A wait that never ends is reported by the model and hangs on hardware.
TEST(ArrivalBarrierFaults, ReportADeadlockWithWhatIsMissing) {
  ArrivalBarrier barrier(2);
  EXPECT_FALSE(barrier.wait(0));
  barrier.expect_tx(1024);
  barrier.arrive(2);
  barrier.complete_tx(512);
  EXPECT_FALSE(barrier.wait(0));
  EXPECT_EQ(faults(barrier), (Faults{BarrierFault::deadlock, BarrierFault::deadlock}));
  EXPECT_EQ(barrier.diagnoses()[0].message,
            "a wait for phase 0 never ends: 2 of 2 arrivals and 0 bytes are missing: let the producer arrive");
  EXPECT_EQ(
      barrier.diagnoses()[1].message,
      "a wait for phase 0 never ends: 0 of 2 arrivals and 512 bytes are missing: expect no more bytes than are copied");
}

// The parity of phase k + 2 is that of phase k.
TEST(ArrivalBarrierFaults, FindAWaiterThatIsTwoLapsOff) {
  ArrivalBarrier barrier(1);
  for (std::int64_t phase = 0; phase < 3; ++phase) {
    barrier.arrive();
    if (phase < 2) {
      EXPECT_TRUE(barrier.wait(phase));
    }
  }
  EXPECT_TRUE(barrier.wait(0));  // phase 3: parity 0 has ended, but the parity belongs to phase 2
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::two_phases_behind});
  EXPECT_EQ(
      barrier.diagnoses()[0].message,
      "a wait for phase 0 in phase 3: its parity now belongs to phase 2: a waiter must not fall two phases behind");
  EXPECT_FALSE(barrier.wait(1));
  EXPECT_EQ(faults(barrier),
            (Faults{BarrierFault::two_phases_behind, BarrierFault::two_phases_behind, BarrierFault::deadlock}));
  ArrivalBarrier fresh(1);
  EXPECT_TRUE(fresh.wait(-1));  // a producer's free first lap
  EXPECT_EQ(faults(fresh), Faults{});
  EXPECT_TRUE(fresh.wait(1));
  ASSERT_EQ(faults(fresh), Faults{BarrierFault::ahead_of_phase});
  EXPECT_EQ(fresh.diagnoses()[0].message,
            "a wait for phase 1 in phase 0: its parity belongs to phase -1: wait for every phase in turn");
}

TEST(ArrivalBarrierFaults, FindABarrierInitializedTwice) {
  ArrivalBarrier barrier(1);
  barrier.init(3);
  ASSERT_EQ(faults(barrier), Faults{BarrierFault::live_reinit});
  EXPECT_EQ(barrier.diagnoses()[0].message, "init of a live barrier: invalidate it first");
  EXPECT_EQ(barrier.state(), (BarrierState{0, 3, 0}));
  barrier.inval();
  EXPECT_EQ(message_of<GeometryError>([&] { barrier.arrive(); }),
            "barrier, arrive: the barrier is not initialized: call init first");
  barrier.init(1);
  EXPECT_EQ(faults(barrier).size(), 1U);
}

TEST(ArrivalBarrier, RejectsNumbersNoBarrierTakes) {
  EXPECT_EQ(message_of<GeometryError>([] { ArrivalBarrier barrier(0); }),
            "barrier, init: 0 arrivals are outside 1 to 1048575");
  EXPECT_THROW(ArrivalBarrier(1048576), GeometryError);
  ArrivalBarrier barrier(1048575);
  EXPECT_EQ(message_of<GeometryError>([&] { barrier.expect_tx(-1); }),
            "barrier, expect_tx: -1 bytes are outside 0 to 1048575, what one operation takes");
  EXPECT_THROW(barrier.complete_tx(1048576), GeometryError);
  EXPECT_EQ(message_of<GeometryError>([&] { barrier.arrive(0); }), "barrier, arrive: 0 arrivals: give 1 or more");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)barrier.test_wait(2); }),
            "barrier, test_wait: parity 2 is neither 0 nor 1");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)barrier.wait(-2); }),
            "barrier, wait: phase -2 is before -1, the free first lap");
  EXPECT_EQ(name(BarrierFault::late_bytes), "late bytes");
}

// For any division of a lap's bytes, mixed with its arrival in any order, the lap ends once, with the last of them.
TEST(ArrivalBarrier, EndsEachLapOnceInAnyOrder) {
  EXPECT_TRUE(prop::check("any order of pieces ends a phase once", [] {
    ArrivalBarrier barrier(1);
    for (std::int64_t lap = 0; lap < 4; ++lap) {
      RC_ASSERT(barrier.wait(lap - 1));
      barrier.own();
      const auto pieces = prop::vector_of<std::int64_t>(1, 5000);
      const std::size_t before = pieces.empty() ? 0 : prop::uniform<std::size_t>(0, pieces.size());
      std::int64_t sum = 0;
      for (const std::int64_t piece : pieces) sum += piece;
      for (std::size_t i = 0; i < before; ++i) barrier.complete_tx(pieces[i]);
      barrier.arrive_expect_tx(sum);
      for (std::size_t i = before; i < pieces.size(); ++i) {
        RC_ASSERT(barrier.state().phase == lap);
        barrier.complete_tx(pieces[i]);
      }
      RC_ASSERT(barrier.state() == (BarrierState{lap + 1, 1, 0}));
    }
    RC_ASSERT(barrier.diagnoses().empty());
  }));
}

}  // namespace
}  // namespace kvscope::arrival_barrier_test
