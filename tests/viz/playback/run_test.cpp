#include "viz/playback/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "core/base/errors.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::run_test {
namespace {

using namespace testing_support;

std::shared_ptr<const Run> open(std::vector<trace::Event> events) {
  return Run::open(from_memory(std::move(events), {}, trace::Detail::full), "shown");
}

std::string rejected(const std::vector<trace::Event>& events) {
  try {
    static_cast<void>(open(events));
  } catch (const InputError& error) {
    return error.what();
  }
  return "opened";
}

TEST(Run, ContradictionIsNamedByItsEventAndTheRunsName) {
  EXPECT_EQ(rejected({trace::StepBegan{StepIdx{0}, 0}, trace::BlockEvicted{BlockIdx{3}}}),
            "shown rejected: event 1: block_evicted block=3: block 3 is not cached");
}

// Numbers outside the pool cause neither a crash nor a large allocation: the message names the event.
TEST(Run, HostileNumbersAreRejectedAtTheirEvent) {
  EXPECT_EQ(
      rejected({trace::BlockAllocated{BlockIdx{std::numeric_limits<std::int64_t>::max()}, SeqIdx{0}, PageIdx{0}}}),
      "shown rejected: event 0: block_allocated block=9223372036854775807 seq=0 page=0: the pool's blocks are "
      "numbered [0, 0)");
  EXPECT_EQ(rejected({trace::BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{std::int64_t{1} << 40}}}),
            "shown rejected: event 0: block_allocated block=0 seq=0 page=1099511627776: the next page of sequence 0 is "
            "0");
}

// Positions between the events, rows between the steps: every one of them has its row.
TEST(Run, EveryPositionBelongsToTheRowOfItsLastEvent) {
  const Recorded recorded = gallery("parallel_samples");
  const auto run = recorded.open();
  EXPECT_EQ(run->row_at(Position{0}), 0);
  std::int64_t row = 0;
  for (std::int64_t at = 1; at <= run->facts().events; ++at) {
    row += std::holds_alternative<trace::StepBegan>(recorded.events[static_cast<std::size_t>(at - 1)]);
    ASSERT_EQ(run->row_at(Position{at}), row);
  }
  EXPECT_EQ(run->facts().rows, row + 1);
  EXPECT_EQ(run->end_of_row(row), Position{run->facts().events});
  EXPECT_THROW(static_cast<void>(run->row_at(Position{run->facts().events + 1})), IndexError);
  EXPECT_THROW(static_cast<void>(run->span(run->facts().rows)), IndexError);
  EXPECT_THROW(static_cast<void>(run->state_at(Position{-1})), IndexError);
  EXPECT_THROW(static_cast<void>(run->events_of_row(-1)), IndexError);
}

TEST(Run, EventsOfARowAreReadOnceAndKept) {
  const auto run = gallery("first_light").open();
  const auto first = run->events_of_row(3);
  EXPECT_EQ(run->events_of_row(3), first);
  EXPECT_EQ(std::ssize(*first), run->span(3).events);
  for (std::int64_t row = 0; row < run->facts().rows; ++row) static_cast<void>(run->events_of_row(row));
  EXPECT_EQ(run->events_of_row(3), first);
}

// Three rows of 100,000 events exceed the cache: the least recently used one is dropped, but a caller's shared pointer
// to it stays valid.
TEST(Run, LongRowsPushOutTheOneNotUsedForLongest) {
  std::vector<trace::Event> events;
  for (std::int64_t step = 0; step < 3; ++step) {
    events.push_back(trace::StepBegan{StepIdx{step}, 0});
    for (int i = 0; i < 50'000; ++i) {
      events.push_back(trace::BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{0}});
      events.push_back(trace::BlockReleased{BlockIdx{0}, SeqIdx{0}, PageIdx{0}, 0, false});
    }
    events.push_back(trace::StepEnded{StepIdx{step}, 0});
  }
  const auto run = open(events);
  const auto first = run->events_of_row(1);
  const auto second = run->events_of_row(2);
  EXPECT_EQ(run->events_of_row(2), second);
  EXPECT_EQ(run->events_of_row(1), first);
  const auto third = run->events_of_row(3);
  EXPECT_EQ(run->events_of_row(1), first);
  EXPECT_EQ(run->events_of_row(3), third);
  EXPECT_NE(run->events_of_row(2), second);
  EXPECT_EQ(second->size(), 100'002u);
  // There is a checkpoint inside such a row, so no seek starts at its beginning.
  EXPECT_GE(run->checkpoint_before(Position{99'000}).value, 99'000 - Run::kCheckpointEvents);
}

// A picture or an animation is written by a thread of its own, from the run that the window shows. Regression: both
// threads changed the list of kept rows, and the viewer ended by a signal.
TEST(Run, ManyThreadsReadRowsAtOnce) {
  std::vector<trace::Event> events;
  for (std::int64_t step = 0; step < 40; ++step) {
    events.push_back(trace::StepBegan{StepIdx{step}, 0});
    for (int i = 0; i < 5'000; ++i) {
      events.push_back(trace::BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{0}});
      events.push_back(trace::BlockReleased{BlockIdx{0}, SeqIdx{0}, PageIdx{0}, 0, false});
    }
    events.push_back(trace::StepEnded{StepIdx{step}, 0});
  }
  const auto run = open(events);  // more events than are kept
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t n = 0; n < 200; ++n) {
        const std::int64_t row = (n * (2 * thread + 1) + thread) % 40 + 1;
        const auto read = run->events_of_row(row);
        const auto* begun = std::get_if<trace::StepBegan>(&read->front());
        wrong += read->size() == 10'002u && begun != nullptr && begun->step == StepIdx{row - 1} ? 0 : 1;
        wrong += run->written_of_row(row) == run->end_of_row(row) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Run, ARowIsFoundByTheNumberOfItsStep) {
  std::vector<trace::Event> events;
  for (const std::int64_t step : {7, 8, 11}) {
    events.push_back(trace::StepBegan{StepIdx{step}, 0});
    events.push_back(trace::StepEnded{StepIdx{step}, 0});
  }
  const auto run = open(events);
  EXPECT_EQ(run->facts().first_step, 7);
  EXPECT_EQ(run->facts().end_step, 12);
  EXPECT_EQ(run->find_row(StepIdx{7}), 1);
  EXPECT_EQ(run->find_row(StepIdx{11}), 3);
  for (const std::int64_t step : {0, 6, 9, 12}) EXPECT_EQ(run->find_row(StepIdx{step}), std::nullopt) << step;
  EXPECT_EQ(open({})->facts().end_step, 0);
}

TEST(Run, ProgressCountsUpToAllEvents) {
  const Recorded recorded = gallery("real_traffic_slice");
  std::int64_t last = -1, calls = 0;
  const auto run = Run::open(recorded.source(), "shown", [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, std::ssize(recorded.events));
    EXPECT_GE(done, last);
    EXPECT_LE(done, all);
    last = done;
    return ++calls > 0;
  });
  EXPECT_EQ(last, run->facts().events);
  EXPECT_GT(calls, 3);
}

// Cancelled at each call of the progress function.
TEST(Run, OpeningCanBeCancelled) {
  const Recorded recorded = gallery("real_traffic_slice");
  std::int64_t all_calls = 0;
  const auto run = Run::open(recorded.source(), "shown", [&](std::int64_t, std::int64_t) { return ++all_calls > 0; });
  for (std::int64_t stop = 1; stop <= all_calls; ++stop) {
    std::int64_t calls = 0;
    const auto until = [&](std::int64_t, std::int64_t) { return ++calls < stop; };
    EXPECT_THROW(static_cast<void>(Run::open(recorded.source(), "shown", until)), Cancelled);
    EXPECT_EQ(calls, stop);
  }
}

TEST(Marks, AreTheChangesOfTheStepSoFar) {
  Marks marks;
  for (const trace::Event& event : std::vector<trace::Event>{
           trace::StepBegan{StepIdx{0}, 0}, trace::RequestAdmitted{SeqIdx{1}, 0},
           trace::BlockAllocated{BlockIdx{2}, SeqIdx{1}, PageIdx{0}},
           trace::BlockShared{BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 2},
           trace::BlockCopied{BlockIdx{3}, BlockIdx{4}, SeqIdx{1}, PageIdx{1}, 2},
           trace::BlockReleased{BlockIdx{5}, SeqIdx{2}, PageIdx{0}, 0, true}, trace::BlockEvicted{BlockIdx{6}},
           trace::RequestPreempted{SeqIdx{7}, 3}, trace::RequestFinished{SeqIdx{8}, 3},
           trace::TokensWritten{SeqIdx{1}, TokIdx{0}, 2, BlockIdx{2}, 0, false}, trace::StepEnded{StepIdx{0}, 1}}) {
    add(marks, event);
  }
  Marks expected;
  expected.admitted = {SeqIdx{1}};
  expected.allocated = {BlockIdx{2}};
  expected.shared = {BlockIdx{3}};
  expected.copied = {BlockIdx{4}};
  expected.released = {BlockIdx{5}};
  expected.evicted = {BlockIdx{6}};
  expected.preempted = {SeqIdx{7}};
  expected.finished = {SeqIdx{8}};
  expected.written = {trace::TokensWritten{SeqIdx{1}, TokIdx{0}, 2, BlockIdx{2}, 0, false}};
  EXPECT_EQ(marks, expected);
  expected.written[0].decode = true;
  EXPECT_NE(marks, expected);
  add(marks, trace::StepBegan{StepIdx{1}, 1});
  EXPECT_EQ(marks, Marks{});
}

}  // namespace
}  // namespace kvscope::viz::run_test
