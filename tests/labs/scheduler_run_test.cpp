// Lab 05: the replay of decisions against kvscope's engine, and one trace worked out by hand for each rule.
#include "apps/labs/scheduler_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/whole_grid.h"

namespace kvscope::labs::scheduler_run_test {
namespace {

using testing::HasSubstr;
using Decisions = std::vector<SchedulerDecision>;

// The rules of core/paging/paging_engine.h, written again: decisions that kvscope's engine takes, without its code.
Decisions decisions_of_the_engine(const SchedulerCase& trace) {
  struct State {
    std::int64_t stored = 0, generated = 0;
  };
  std::vector<State> states(trace.requests.size());
  std::vector<std::int64_t> running, waiting;
  const auto pages = [&](std::int64_t tokens) { return (tokens + trace.page_size - 1) / trace.page_size; };
  const auto state = [&](std::int64_t r) -> State& { return states[static_cast<std::size_t>(r)]; };
  const auto given = [&](std::int64_t r) { return trace.requests[static_cast<std::size_t>(r)]; };
  Decisions decisions;
  std::size_t arrived = 0, finished = 0;
  for (std::int64_t step = 0; finished < states.size(); ++step) {
    for (; arrived < states.size() && trace.requests[arrived].arrival <= step; ++arrived) {
      waiting.push_back(static_cast<std::int64_t>(arrived));
    }
    SchedulerDecision decision;
    std::int64_t free = trace.blocks;
    for (const State& s : states) free -= pages(s.stored);
    // Decode in the order of admission; the last request gives its blocks to those before it.
    for (std::size_t i = 0; i < running.size(); ++i) {
      const std::int64_t needed = state(running[i]).stored % trace.page_size == 0 ? 1 : 0;
      while (free < needed && running.size() > i) {
        decision.preempt.push_back(running.back());
        free += pages(state(running.back()).stored);
        state(running.back()).stored = 0;
        waiting.insert(waiting.begin(), running.back());
        running.pop_back();
      }
      if (running.size() <= i) break;
      free -= needed;
      ++state(running[i]).stored;
    }
    while (decision.preempt.empty() && !waiting.empty() &&
           static_cast<std::int64_t>(running.size()) < trace.max_batch) {
      const std::int64_t r = waiting.front(), tokens = given(r).prompt + state(r).generated;
      const std::int64_t watermark =
          std::min<std::int64_t>(static_cast<std::int64_t>(running.size()), (trace.blocks + 99) / 100);
      if (free < pages(tokens) + watermark) break;
      decision.admit.push_back(r);
      running.push_back(r);
      waiting.erase(waiting.begin());
      free -= pages(tokens);
      state(r).stored = tokens;
    }
    std::erase_if(running, [&](std::int64_t r) {
      if (++state(r).generated < given(r).generate) return false;
      state(r).stored = 0;
      ++finished;
      return true;
    });
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

SchedulerCase random_trace(std::int64_t seed) {
  const CounterRng random(static_cast<std::uint64_t>(seed), 3);
  SchedulerCase made{random.integer(0, 8, 130), random.integer(1, 1, 9), random.integer(2, 1, 12), {}};
  std::int64_t arrival = 0;
  for (std::uint64_t r = 0; r < 30; ++r) {
    const std::int64_t slots = made.blocks * made.page_size;
    const std::int64_t prompt = random.integer(10 + 3 * r, 1, std::min<std::int64_t>(slots, 40));
    const std::int64_t generate = random.integer(11 + 3 * r, 1, std::min<std::int64_t>(slots - prompt + 1, 40));
    made.requests.push_back({arrival, prompt, generate});
    arrival += random.integer(12 + 3 * r, 0, 9);
  }
  return made;
}

// Steps that last one token more, requests that finish one token late, or blocks that are released a step late would
// change one of the totals.
TEST(Replay, HasTheTotalsOfThePagingEngine) {
  std::int64_t preemptions = 0;
  for (std::int64_t seed = 0; seed < test::size_for_sanitizers(20, 200); ++seed) {
    const SchedulerCase trace = random_trace(seed);
    const SchedulerRun run = replay(trace, decisions_of_the_engine(trace)), engine = engine_run(trace);
    ASSERT_EQ(run.finished, 30) << "seed " << seed;
    EXPECT_EQ(run.steps, engine.steps) << "seed " << seed;
    EXPECT_EQ(run.preemptions, engine.preemptions) << "seed " << seed;
    EXPECT_EQ(run.recomputed, engine.recomputed) << "seed " << seed;
    for (const SchedulerRule rule : {SchedulerRule::decision, SchedulerRule::capacity, SchedulerRule::finish,
                                     SchedulerRule::order, SchedulerRule::need, SchedulerRule::starvation}) {
      EXPECT_EQ(run.fault(rule), nullptr) << "seed " << seed << ": " << run.fault(rule)->message;
    }
    preemptions += run.preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

// The engine keeps one block at most in a small pool, so it breaks the lab's rule of the watermark.
TEST(Replay, FindsThatTheEngineKeepsASmallWatermark) {
  std::int64_t found = 0;
  for (std::int64_t seed = 0; seed < 50; ++seed) {
    const SchedulerCase trace = random_trace(seed);
    found += replay(trace, decisions_of_the_engine(trace)).fault(SchedulerRule::watermark) != nullptr ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

// The handout's example: three requests in six blocks of four tokens.
const SchedulerCase kExample{6, 4, 4, {{0, 6, 8}, {0, 7, 6}, {1, 4, 4}}};

std::string fault_of(const SchedulerCase& trace, SchedulerRule rule, const Decisions& decisions) {
  const SchedulerRun run = replay(trace, decisions);
  const SchedulerFault* fault = run.fault(rule);
  return fault == nullptr ? "no fault" : fault->message;
}

TEST(Replay, FollowsTheExampleOfTheHandout) {
  const Decisions decisions{{{}, {0, 1}}, {{}, {2}}, {{2}, {}}, {}, {}, {}, {{}, {2}}, {}, {}};
  EXPECT_THAT(fault_of(kExample, SchedulerRule::watermark, decisions),
              HasSubstr("step 2 preempts request 2 directly after step 1 admitted request 2"));
  const SchedulerRun run = replay(kExample, decisions);
  EXPECT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.steps, 9);
  EXPECT_EQ(run.recomputed, 4);
  EXPECT_DOUBLE_EQ(run.cost(), 9.125);
  EXPECT_EQ(engine_run(kExample).steps, 9);
  EXPECT_THAT(run.faults[0].state, HasSubstr("step 2: 1 of 6 blocks are free\n"
                                             "running: 0 (7 tokens in 2 blocks), 1 (8 tokens in 2 blocks, needs one), "
                                             "2 (4 tokens in 1 block, needs one)\n"));
}

TEST(Replay, NamesTheRuleThatADecisionBreaks) {
  using Rule = SchedulerRule;
  EXPECT_EQ(fault_of(kExample, Rule::capacity, {{{}, {0, 1}}, {{}, {2}}, {}}),
            "the pool is over-committed in step 2: the running requests need 2 blocks, 1 is free");
  const SchedulerCase full{4, 4, 4, {{0, 6, 3}, {0, 7, 3}, {0, 1, 2}}};
  EXPECT_EQ(fault_of(full, Rule::capacity, {{{}, {0, 1, 2}}}),
            "the pool is over-committed in step 0: request 2 needs 1 block for 1 token, 0 are free");
  EXPECT_EQ(fault_of(kExample, Rule::order, {{{}, {1}}}),
            "step 0 admits request 1 before request 0, which arrived earlier and waits");
  EXPECT_EQ(fault_of(kExample, Rule::need, {{{}, {0, 1}}, {{1}, {}}}),
            "step 1 preempts request 1, but the running requests need 0 blocks and 2 are free");
  EXPECT_EQ(
      fault_of(kExample, Rule::starvation, {{}, {{}, {0}}, {}, {}, {}, {}, {}, {}}),
      "request 0 starves: it still runs after step 7, and has 7 of 8 tokens. An engine that runs one request at a time "
      "has finished it");
}

// Request 1 fills its second block in step 1 and needs another in step 2.
TEST(Replay, AllowsAPreemptionOnlyWhenABlockIsMissing) {
  SchedulerCase trace{5, 4, 4, {{0, 6, 8}, {0, 7, 6}}};
  const Decisions decisions{{{}, {0, 1}}, {}, {{1}, {}}};
  EXPECT_EQ(fault_of(trace, SchedulerRule::need, decisions),
            "step 2 preempts request 1, but the running requests need 1 block and 1 is free");
  trace.blocks = 4;
  EXPECT_EQ(fault_of(trace, SchedulerRule::need, decisions), "no fault");
  EXPECT_EQ(fault_of(trace, SchedulerRule::watermark, decisions), "no fault");  // step 1 admitted no request
}

TEST(Replay, RejectsDecisionsThatCannotBeCarriedOut) {
  const auto fault = [](const Decisions& decisions) { return fault_of(kExample, SchedulerRule::decision, decisions); };
  EXPECT_EQ(fault({{{}, {2}}}), "step 0 admits request 2, which is not waiting");  // it arrives in step 1
  EXPECT_EQ(fault({{{}, {0, 0}}}), "step 0 admits request 0, which is not waiting");
  EXPECT_EQ(fault({{{0}, {}}}), "step 0 preempts request 0, which is not running");
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{3}, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(fault({{{}, {number}}}), HasSubstr("which is not waiting"));
  }
  EXPECT_THAT(fault({{{}, {0}}, {{0}, {1}}}), HasSubstr("a step does one of the two"));
  EXPECT_EQ(fault({}), "no decision for step 0");
  SchedulerCase narrow = kExample;
  narrow.max_batch = 1;
  EXPECT_EQ(fault_of(narrow, SchedulerRule::decision, {{{}, {0, 1}}}), "2 requests run in step 0: max_batch is 1");
}

TEST(Replay, ReportsARequestThatNeverReturns) {
  Decisions decisions{{{}, {0, 1}}, {{}, {2}}, {{2}, {}}};
  decisions.resize(static_cast<std::size_t>(kExample.last_step()) + 1);
  EXPECT_THAT(
      fault_of(kExample, SchedulerRule::finish, decisions),
      HasSubstr(
          "request 2 has not finished by step 42: it has 1 of 4 tokens, and was not admitted again after step 2"));
}

// Request 0 runs in steps 0 to 7, request 1 in 8 to 13, request 2 in 14 to 17.
TEST(SerialFinish, RunsOneRequestAtATime) {
  EXPECT_EQ(kExample.serial_finish(), (std::vector<std::int64_t>{7, 13, 17}));
  const SchedulerCase gap{6, 4, 4, {{0, 6, 2}, {9, 1, 3}}};
  EXPECT_EQ(gap.serial_finish(), (std::vector<std::int64_t>{1, 11}));
}

TEST(ParseDecisions, RejectsNumbersThatAreNone) {
  const auto decisions = parse_decisions({0, 2, 0, 1, 1, 7, 0});
  ASSERT_TRUE(decisions.has_value());
  EXPECT_EQ(decisions->size(), 2U);
  EXPECT_EQ((*decisions)[0].admit, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ((*decisions)[1].preempt, (std::vector<std::int64_t>{7}));
  for (const Words& words : {Words{0}, Words{1}, Words{-1, 0}, Words{0, 3, 1, 2}, Words{INT64_MAX, 0}}) {
    EXPECT_FALSE(parse_decisions(words).has_value());
  }
}

}  // namespace
}  // namespace kvscope::labs::scheduler_run_test
