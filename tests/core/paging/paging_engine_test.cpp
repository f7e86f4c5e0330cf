#include "core/paging/paging_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "core/scenario/requests.h"

namespace kvscope::paging_engine_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Scenario paged(std::int64_t page_size, std::int64_t blocks) {
  Scenario s;
  s.cache.page_size = page_size;
  s.cache.blocks = blocks;
  s.scheduler.base_us = 100;
  s.scheduler.per_token_us = 10;
  s.scheduler.per_context_us = 1;
  return s;
}

Request asks(std::int64_t arrival_us, std::int64_t prompt, std::int64_t generate,
             std::vector<ContentSpan> content = {}) {
  return Request{arrival_us, prompt, generate, std::move(content)};
}

Request sampled(std::int64_t samples, Request request) {
  request.samples = samples;
  return request;
}

// One run: each step's batch, as "sequence:cached+new", and every event.
struct WholeRun {
  WholeRun(const Scenario& scenario, std::vector<Request> list)
      : requests(expand_samples(std::move(list))), engine(scenario, requests, recorder) {
    while (engine.step()) {
      const CacheState state = engine.state();
      std::string text;
      for (std::size_t b = 0; b < state.batch.size(); ++b) {
        text += (b > 0 ? " " : "") + std::to_string(state.batch[b].value) + ":" +
                std::to_string(state.cache_lengths[b]) + "+" + std::to_string(state.new_tokens[b]);
      }
      batches.push_back(text);
      EXPECT_THAT(engine.broken_invariants(), IsEmpty());
    }
  }
  template <class E>
  std::vector<E> events() const {
    std::vector<E> found;
    for (const trace::Event& event : recorder.events()) {
      if (const E* e = std::get_if<E>(&event)) found.push_back(*e);
    }
    return found;
  }
  std::vector<Request> requests;
  trace::MemoryRecorder recorder;
  PagingEngine engine;
  std::vector<std::string> batches;
};

// Prompt 5, 3 to generate: the prefill gives the first token, each decode one more, the third is never stored.
// 100 + 10 * 5 + 1 * 5 = 155 us, then 100 + 10 + 6 and 100 + 10 + 7.
TEST(PagingEngine, TakesOneStepForThePromptAndOneForEachFurtherToken) {
  const WholeRun run(paged(4, 4), {asks(0, 5, 3)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+5", "0:5+1", "0:6+1"));
  const RunReport& r = run.engine.report();
  EXPECT_EQ(r.computed_tokens, 7);
  EXPECT_EQ(r.generated_tokens, 3);
  EXPECT_EQ(r.curve[0].time_us, 155);
  EXPECT_EQ(r.curve[1].time_us, 155 + 116);
  EXPECT_EQ(r.duration_us, 155 + 116 + 117);
  EXPECT_EQ(r.peak_used_blocks, 2);
  EXPECT_EQ(r.curve[1].slots_filled, 6);
  EXPECT_EQ(r.curve[2].used_blocks, 0) << "the curve shows the step's end, after the request has gone";
}

TEST(PagingEngine, StopsAfterThePrefillWhenOneTokenOrNoneIsWanted) {
  EXPECT_THAT(WholeRun(paged(4, 4), {asks(0, 5, 1)}).batches, ElementsAre("0:0+5"));
  EXPECT_THAT(WholeRun(paged(4, 4), {asks(0, 5, 0)}).batches, ElementsAre("0:0+5"));
  EXPECT_EQ(WholeRun(paged(4, 4), {asks(0, 5, 0)}).engine.report().generated_tokens, 0);
}

TEST(PagingEngine, RoundsAStepsTimeToTheNearestMicrosecondHalfUp) {
  Scenario s = paged(4, 4);
  s.scheduler = SchedulerConfig{4, 64, 0.25, 0.25, 0};
  EXPECT_EQ(WholeRun(s, {asks(0, 1, 0)}).engine.report().duration_us, 1);  // 0.5
  s.scheduler.per_token_us = 0.125;
  EXPECT_EQ(WholeRun(s, {asks(0, 1, 0)}).engine.report().duration_us, 0);  // 0.375
}

// Costs are input: a clock that wraps would give a negative duration in a report without faults.
TEST(PagingEngine, RejectsAClockPast64BitsInsteadOfWrappingIt) {
  const auto rejection = [](std::int64_t tokens, std::int64_t generate) -> std::string {
    Scenario s = paged(65536, 200);
    s.scheduler = SchedulerConfig{4, std::int64_t{1} << 31, 0, 0, 1e12};
    try {
      const WholeRun run(s, {asks(0, tokens, generate)});
      return "the clock reads " + std::to_string(run.engine.report().duration_us);
    } catch (const OverflowError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(rejection(10'000'000, 1),
            "a step of 10000000 tokens over 10000000 attended lasts 1e+19 us, which 64 bits cannot count: lower the "
            "scheduler's costs");
  EXPECT_EQ(rejection(5'000'000, 2),
            "simulated time [us]: 5000000000000000000 + 5000001000000000000 does not fit in 64 bits");
  EXPECT_EQ(rejection(4, 1), "the clock reads 4000000000000");
}

// 4 tokens a step: the prompt of 10 takes three. The decode of request 0 is first and the prefill gets the rest.
TEST(PagingEngine, ServesDecodesFirstAndCutsPromptsIntoChunks) {
  Scenario s = paged(4, 8);
  s.scheduler.max_step_tokens = 4;
  const WholeRun run(s, {asks(0, 3, 3), asks(0, 9, 1)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+3 1:0+1", "0:3+1 1:1+3", "0:4+1 1:4+3", "1:7+2"));
}

TEST(PagingEngine, LetsDecodesBeyondTheStepsTokensWaitInOrderOfAdmission) {
  Scenario s = paged(4, 8);
  s.scheduler.max_step_tokens = 2;
  const WholeRun run(s, {asks(0, 1, 3), asks(0, 1, 3), asks(0, 1, 2)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+1 1:0+1", "0:1+1 1:1+1", "0:2+1 1:2+1", "2:0+1", "2:1+1"));
}

TEST(PagingEngine, RunsNoMoreRequestsAtOnceThanTheBatchHolds) {
  Scenario s = paged(4, 8);
  s.scheduler.max_batch = 1;
  EXPECT_THAT(WholeRun(s, {asks(0, 2, 2), asks(0, 1, 1)}).batches, ElementsAre("0:0+2", "0:2+1", "1:0+1"));
}

TEST(PagingEngine, JumpsToTheNextArrivalWhenNothingRuns) {
  const WholeRun run(paged(4, 4), {asks(5000, 1, 1), asks(70, 1, 1), asks(5000, 2, 1)});
  EXPECT_THAT(run.batches, ElementsAre("1:0+1", "0:0+1 2:0+2"));
  const auto began = run.events<trace::StepBegan>();
  EXPECT_EQ(began[0].time_us, 70);
  EXPECT_EQ(began[1].time_us, 5000);
}

TEST(PagingEngine, AdmitsInOrderOfArrivalEvenIfALaterOneWouldFit) {
  Scenario s = paged(1, 4);
  s.cache.prefix_sharing = false;
  const WholeRun run(s, {asks(0, 2, 2), asks(1, 4, 1), asks(2, 1, 1)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+2", "0:2+1", "1:0+4", "2:0+1"));
}

// --- prefixes ---------------------------------------------------------------------------------------------------

// Two equal prompts of 8 tokens, page 4: the second finds both pages but may use only the first, for without one
// computed token there are no logits to sample from.
TEST(PagingEngine, NeverTakesAWholePromptFromTheCache) {
  const WholeRun run(paged(4, 8), {asks(0, 8, 2, {{7, 8}}), asks(1, 8, 1, {{7, 8}}), asks(1, 9, 1, {{7, 9}})});
  EXPECT_THAT(run.batches, ElementsAre("0:0+8", "0:8+1 1:4+4 2:8+1"));
  EXPECT_EQ(run.engine.report().hit_tokens, 4 + 8);
  EXPECT_EQ(run.engine.report().query_tokens, 8 + 8 + 9);
}

TEST(PagingEngine, SharesWhatIsStillInUseAndWhatIsOnlyCached) {
  const WholeRun run(paged(4, 8), {asks(0, 6, 3, {{7, 6}}), asks(1, 6, 1, {{7, 6}}), asks(100'000, 6, 1, {{7, 6}})});
  std::vector<std::int64_t> ref_counts;
  for (const auto& e : run.events<trace::BlockShared>()) ref_counts.push_back(e.ref_count);
  EXPECT_THAT(ref_counts, ElementsAre(2, 1));
  EXPECT_THAT(run.batches, ElementsAre("0:0+6", "0:6+1 1:4+2", "0:7+1", "2:4+2"));
}

TEST(PagingEngine, LooksNothingUpWhenSharingIsOff) {
  Scenario s = paged(4, 8);
  s.cache.prefix_sharing = false;
  const WholeRun run(s, {asks(0, 6, 1, {{7, 6}}), asks(1, 6, 1, {{7, 6}})});
  EXPECT_THAT(run.batches, ElementsAre("0:0+6", "1:0+6"));
  EXPECT_EQ(run.engine.report().query_tokens, 0);
  EXPECT_EQ(run.engine.report().curve.back().cached_blocks, 0);
}

// A page computed in a step cannot be found by a request admitted in the same step.
TEST(PagingEngine, DoesNotFindPagesOfTheStepItself) {
  const WholeRun run(paged(4, 8), {asks(0, 5, 1, {{7, 5}}), asks(0, 5, 1, {{7, 5}})});
  EXPECT_THAT(run.batches, ElementsAre("0:0+5 1:0+5"));
  EXPECT_EQ(run.engine.report().curve.back().cached_blocks, 1) << "one of two equal pages stays";
}

// 2e9 generated tokens are 2e9 steps, whose figures would fill the memory: rejected before the first step.
TEST(PagingEngine, RejectsARequestOfMoreStepsThanItsLimit) {
  trace::Recorder off;
  const auto rejection = [&](std::vector<Request> requests, RunLimits limits) {
    try {
      PagingEngine engine(paged(4, 8), requests, off, limits);
      while (engine.step()) {
      }
    } catch (const OverflowError& error) {
      return std::string(error.what());
    }
    return std::string("ran");
  };
  EXPECT_EQ(rejection({asks(0, 5, 3)}, {.steps = 3}), "ran");
  EXPECT_EQ(rejection({asks(0, 5, 2), asks(0, 5, 3)}, {.steps = 2}),
            "request 1 generates 3 tokens, one in a step: a run has at most 2 steps; shorten the request, or raise the "
            "limit with --max-steps of kvscope run");
  EXPECT_EQ(rejection({asks(0, 5, 2'000'000'000)}, {.steps = 2}), "ran");  // never fits, so it takes no step
  EXPECT_EQ(rejection({asks(0, 5, 3), asks(100'000, 5, 3)}, {.steps = 5}),
            "the run has more than 5 steps: give fewer or shorter requests, or raise the limit with --max-steps of "
            "kvscope run");
  EXPECT_EQ(rejection({asks(0, 5, 3), asks(100'000, 5, 3)}, {.steps = 6}), "ran");
  EXPECT_EQ(rejection({asks(0, 12, 1)}, {.blocks = 2}),
            "more than 2 blocks of the pool hold tokens: use larger pages or shorter requests");
  EXPECT_EQ(rejection({asks(0, 12, 1)}, {.blocks = 3}), "ran");
}

TEST(PagingEngine, GivesEqualTokensEqualIdsInEveryRow) {
  trace::Recorder off;
  const std::vector<Request> requests = {asks(0, 6, 2, {{7, 4}, {8, 2}}), asks(0, 6, 2, {{7, 4}, {9, 2}}),
                                         asks(0, 6, 2)};
  PagingEngine engine(paged(4, 8), requests, off);
  ASSERT_TRUE(engine.step());
  const auto a = engine.token_ids(0), b = engine.token_ids(1), c = engine.token_ids(2);
  ASSERT_EQ(a.size(), 6u);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 4, b.begin()));
  EXPECT_NE(a[4], b[4]);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NE(a[i], c[i]);
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.token_ids(0).size(), 7u);
  EXPECT_NE(engine.token_ids(0)[6], engine.token_ids(1)[6]) << "what they generate is their own";
  EXPECT_THROW((void)engine.token_ids(3), IndexError);
  EXPECT_THROW((void)engine.token_ids(-1), IndexError);
}

// --- a full pool ------------------------------------------------------------------------------------------------

// Page 2, 4 blocks. Both prompts fit (2 + 1 blocks and the watermark of one), but at the first token of a fifth
// page the later request is preempted. The tokens it had generated are prompt when it returns; they are computed again
// where the cache lost it.
TEST(PagingEngine, PreemptsTheMostRecentlyAdmittedAndTakesItUpAgain) {
  Scenario s = paged(2, 4);
  s.cache.prefix_sharing = false;
  const WholeRun run(s, {asks(0, 3, 5), asks(0, 2, 3)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+3 1:0+2", "0:3+1 1:2+1", "0:4+1", "0:5+1", "0:6+1", "1:0+4"));
  const auto preempted = run.events<trace::RequestPreempted>();
  ASSERT_EQ(preempted.size(), 1u);
  EXPECT_EQ(preempted[0].seq, SeqIdx(1));
  EXPECT_EQ(preempted[0].tokens_lost, 3);
  const RunReport& r = run.engine.report();
  EXPECT_EQ(r.preemptions, 1);
  EXPECT_EQ(r.lost_tokens, 3);
  EXPECT_EQ(r.recomputed_tokens, 3);
  EXPECT_EQ(r.computed_tokens, (3 + 4) + (2 + 2) + 3);
  EXPECT_EQ(r.finished, 2);
}

// The same with prefix sharing: the preempted request's full page is still cached when it returns.
TEST(PagingEngine, FindsThePagesOfAPreemptedRequestAgain) {
  const WholeRun run(paged(2, 5), {asks(0, 3, 4), asks(0, 4, 4)});
  const RunReport& r = run.engine.report();
  EXPECT_EQ(r.preemptions, 1);
  EXPECT_GT(r.hit_tokens, 0);
  EXPECT_LT(r.recomputed_tokens, r.lost_tokens);
  EXPECT_EQ(r.computed_tokens + r.hit_tokens, (3 + 3) + (4 + 3) + r.lost_tokens);
}

// 7 blocks of one token, four requests that grow by a block a step: request 3 is preempted in step 1, request 2 in step
// 2 and request 1 in step 3. They return in the order of their admission, before request 4, which arrived later.
TEST(PagingEngine, QueuesThePreemptedInTheirOldOrderBeforeAllOthers) {
  Scenario s = paged(1, 7);
  s.cache.prefix_sharing = false;
  const WholeRun run(s, {asks(0, 1, 4), asks(0, 1, 4), asks(0, 1, 4), asks(0, 1, 4), asks(1, 1, 1)});
  std::vector<std::int64_t> admitted, preempted;
  for (const auto& e : run.events<trace::RequestAdmitted>()) admitted.push_back(e.seq.value);
  for (const auto& e : run.events<trace::RequestPreempted>()) preempted.push_back(e.seq.value);
  EXPECT_THAT(preempted, ElementsAre(3, 2, 1));
  EXPECT_THAT(admitted, ElementsAre(0, 1, 2, 3, 1, 2, 3, 4));
}

// Request 0 has room for its decodes in its second block; request 1's prefill has taken the rest of the pool. Without
// free blocks it waits and keeps its pages, because no other request needs them.
TEST(PagingEngine, LetsTheMostRecentPrefillWaitForBlocksWithoutLosingAny) {
  Scenario s = paged(4, 4);
  s.scheduler.max_step_tokens = 8;
  const WholeRun run(s, {asks(0, 5, 4), asks(0, 12, 1)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+5 1:0+3", "0:5+1 1:3+5", "0:6+1", "0:7+1", "1:8+4"));
  EXPECT_EQ(run.engine.report().preemptions, 0);
}

// 4 blocks, page 1: request 0 holds 2. A prompt of 2 would fit, but leaves no block for request 0's next token.
TEST(PagingEngine, LeavesABlockForARunningRequestWhenItAdmits) {
  Scenario s = paged(1, 4);
  s.cache.prefix_sharing = false;
  EXPECT_THAT(WholeRun(s, {asks(0, 2, 2), asks(0, 2, 1)}).batches, ElementsAre("0:0+2", "0:2+1", "1:0+2"));
  EXPECT_THAT(WholeRun(s, {asks(0, 2, 2), asks(0, 1, 1)}).batches, ElementsAre("0:0+2 1:0+1", "0:2+1"));
}

// The watermark is one percent of the pool, rounded up: 1 block of 100, 2 of 101, but no more than there are running
// requests. Two run on 10 blocks each; a third prompt of 79 leaves 1 of 100 blocks and 2 of 101, one of 80 leaves 0
// and 1. A watermark of one block a running request, or of none, or a percent rounded down, differs in one of the rows.
TEST(PagingEngine, LeavesNoMoreThanAPercentOfThePoolHoweverManyRun) {
  const auto admitted_at_once = [](std::int64_t blocks, std::vector<std::int64_t> prompts) {
    std::vector<Request> requests;
    for (const std::int64_t prompt : prompts) requests.push_back(asks(0, prompt, 1));
    const WholeRun run(paged(1, blocks), requests);
    EXPECT_EQ(run.engine.report().finished, std::ssize(prompts));
    return run.batches.size() == 1;
  };
  EXPECT_TRUE(admitted_at_once(100, {10, 10, 79}));
  EXPECT_FALSE(admitted_at_once(100, {10, 10, 80}));
  EXPECT_TRUE(admitted_at_once(101, {10, 10, 79}));
  EXPECT_FALSE(admitted_at_once(101, {10, 10, 80}));
  EXPECT_TRUE(admitted_at_once(101, {10, 90})) << "one runs: one block";
  EXPECT_FALSE(admitted_at_once(101, {10, 91}));
  EXPECT_TRUE(admitted_at_once(101, {101})) << "no request runs: none";
}

// 4 blocks of 2 hold 8 tokens: prompt 7 and 2 generated just fit (the second is never stored), 3 do not.
TEST(PagingEngine, RejectsWhatCanNeverFit) {
  const WholeRun run(paged(2, 4), {asks(0, 7, 2), asks(0, 7, 3), asks(0, 9, 0)});
  const auto rejected = run.events<trace::RequestRefused>();
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0].seq, SeqIdx(1));
  EXPECT_EQ(rejected[0].tokens, 9);
  EXPECT_EQ(rejected[0].limit, 8);
  EXPECT_EQ(run.engine.report().refused, 2);
  EXPECT_EQ(run.engine.report().finished, 1);
  Scenario s = paged(2, 4);
  s.cache.max_tokens = 5;
  EXPECT_EQ(WholeRun(s, {asks(0, 5, 1), asks(0, 5, 2)}).engine.report().refused, 1);
}

TEST(PagingEngine, EndsWithAnEmptyStepWhenTheLastRequestIsRejected) {
  const WholeRun run(paged(2, 4), {asks(0, 1, 1), asks(900, 99, 1), asks(700, 99, 1)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+1", ""));
  EXPECT_EQ(run.engine.report().duration_us, 900);
  EXPECT_EQ(run.engine.state().table_columns, 16);
  EXPECT_THAT(WholeRun(paged(2, 4), {}).batches, IsEmpty());
}

TEST(PagingEngine, PassesRejectedRequestsOnTheWayToOneThatRuns) {
  const WholeRun run(paged(2, 4), {asks(10, 99, 1), asks(20, 1, 1)});
  EXPECT_THAT(run.batches, ElementsAre("1:0+1"));
  EXPECT_EQ(run.events<trace::StepBegan>()[0].time_us, 20);
}

// --- samples ----------------------------------------------------------------------------------------------------

// Prompt 21 on pages of 8: two full pages and 5 tokens of a third in blocks 0, 1, 2, computed once and held
// three times. Each answer's first stored token goes into the third page: two writers get a copy, the last
// one then holds the original alone.
TEST(PagingEngine, ComputesAPromptOnceForAllItsSamplesAndCopiesItsLastPageForAllButOne) {
  const WholeRun run(paged(8, 16), {sampled(3, asks(0, 21, 4))});
  EXPECT_THAT(run.batches,
              ElementsAre("0:0+21", "0:21+1 1:21+1 2:21+1", "0:22+1 1:22+1 2:22+1", "0:23+1 1:23+1 2:23+1"));
  std::vector<std::string> shared, copied;
  for (const auto& e : run.events<trace::BlockShared>()) {
    shared.push_back(std::to_string(e.seq.value) + " page " + std::to_string(e.page.value) + " block " +
                     std::to_string(e.block.value) + " held by " + std::to_string(e.ref_count));
  }
  EXPECT_THAT(shared,
              ElementsAre("1 page 0 block 0 held by 2", "1 page 1 block 1 held by 2", "1 page 2 block 2 held by 2",
                          "2 page 0 block 0 held by 3", "2 page 1 block 1 held by 3", "2 page 2 block 2 held by 3"));
  for (const auto& e : run.events<trace::BlockCopied>()) {
    EXPECT_EQ(e.page, PageIdx(2));
    EXPECT_EQ(e.tokens, 5);
    copied.push_back(std::to_string(e.seq.value) + ": " + std::to_string(e.from.value) + " -> " +
                     std::to_string(e.to.value));
  }
  EXPECT_THAT(copied, ElementsAre("0: 2 -> 3", "1: 2 -> 4"));
  const RunReport& r = run.engine.report();
  EXPECT_EQ(r.requests, 3);
  EXPECT_EQ(r.finished, 3);
  EXPECT_EQ(r.copies, 2);
  EXPECT_EQ(r.computed_tokens, 21 + 3 * 3);
  EXPECT_EQ(r.forked_tokens, 2 * 21);
  EXPECT_EQ(r.hit_tokens, 2 * 21);
  EXPECT_EQ(r.query_tokens, 21 + 2 * 21) << "the parent looked up its prompt as well";
  EXPECT_EQ(r.curve[0].running, 3);
  EXPECT_EQ(r.curve[0].used_blocks, 3);
  EXPECT_EQ(r.curve[0].slots_filled, 21) << "a shared block counts once";
  EXPECT_EQ(r.curve[1].used_blocks, 5);
  EXPECT_EQ(r.curve[1].slots_filled, 16 + 3 * 6);
}

TEST(PagingEngine, CopiesNothingWhenThePromptEndsWithItsPage) {
  const WholeRun run(paged(8, 16), {sampled(2, asks(0, 16, 3))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+16", "0:16+1 1:16+1", "0:17+1 1:17+1"));
  EXPECT_EQ(run.engine.report().copies, 0);
  EXPECT_EQ(run.engine.report().peak_used_blocks, 2 + 2);
}

// The prompt of a request without content is shared only with its samples; each answer is a separate text.
TEST(PagingEngine, GivesSamplesTheIdsOfTheirParentsPromptAndAnswersOfTheirOwn) {
  const std::vector<ContentSpan> own, named = {{7, 4}, {8, 2}};
  for (const std::vector<ContentSpan>& content : {own, named}) {
    trace::Recorder off;
    const std::vector<Request> requests = expand_samples({asks(0, 6, 3), sampled(3, asks(0, 6, 3, content))});
    PagingEngine engine(paged(4, 16), requests, off);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine.step());
    ASSERT_EQ(engine.state().batch.size(), 4u);
    const auto parent = engine.token_ids(1);
    ASSERT_EQ(parent.size(), 8u);
    for (const std::int64_t row : {2, 3}) {
      const auto sample = engine.token_ids(row);
      ASSERT_EQ(sample.size(), 8u);
      EXPECT_TRUE(std::equal(parent.begin(), parent.begin() + 6, sample.begin()));
      for (std::size_t i = 6; i < 8; ++i) EXPECT_NE(parent[i], sample[i]);
    }
    EXPECT_NE(engine.token_ids(2)[6], engine.token_ids(3)[6]);
    EXPECT_NE(engine.token_ids(0)[0], parent[0]);
  }
}

TEST(PagingEngine, LetsSamplesWaitUntilTheLastChunkOfThePromptIsStored) {
  Scenario s = paged(4, 8);
  s.scheduler.max_step_tokens = 4;
  const WholeRun run(s, {sampled(2, asks(0, 6, 2))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+4", "0:4+2", "0:6+1 1:6+1"));
  EXPECT_EQ(run.engine.report().curve[0].waiting, 1);
  EXPECT_EQ(run.engine.report().curve[1].waiting, 0);
}

TEST(PagingEngine, RunsSamplesRightBehindTheirParents) {
  const WholeRun run(paged(4, 16), {sampled(2, asks(0, 5, 2)), asks(0, 3, 2), sampled(3, asks(0, 2, 2))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+5 2:0+3 3:0+2", "0:5+1 1:5+1 2:3+1 3:2+1 4:2+1 5:2+1"));
}

// A batch of two, and a prompt that takes all tokens of a step: sample 2 is queued before request 3, which already
// waits. Its two full pages are still cached when it is admitted; the token in the partly filled page is computed
// again.
TEST(PagingEngine, QueuesSamplesForWhichTheBatchHasNoPlaceBeforeLaterRequests) {
  Scenario s = paged(4, 16);
  s.scheduler.max_batch = 2;
  s.scheduler.max_step_tokens = 9;
  const WholeRun run(s, {sampled(3, asks(0, 9, 3)), asks(0, 5, 1)});
  EXPECT_THAT(run.batches, ElementsAre("0:0+9", "0:9+1 1:9+1", "0:10+1 1:10+1", "2:8+1 3:0+5", "2:9+1", "2:10+1"));
  EXPECT_EQ(run.engine.report().forked_tokens, 9);
  EXPECT_EQ(run.engine.report().hit_tokens, 9 + 8);
}

// Request 4 needs 8 of 10 blocks and does not fit beside request 0. The sample queued before it needs 2: the number of
// blocks that request 4 lacked must not be applied to the sample.
TEST(PagingEngine, LooksAtAQueuedSampleAnewEvenIfTheFrontDidNotFit) {
  Scenario s = paged(1, 10);
  s.cache.prefix_sharing = false;
  s.scheduler.max_batch = 3;
  const WholeRun run(s, {asks(0, 2, 6), sampled(3, asks(0, 2, 2)), asks(0, 8, 1)});
  EXPECT_THAT(run.batches,
              ElementsAre("0:0+2 1:0+2", "0:2+1 1:2+1 2:2+1", "0:3+1 3:0+2", "0:4+1 3:2+1", "0:5+1", "0:6+1", "4:0+8"));
}

// Several parents at once and one place left: the first parent's first sample has it, the others queue in their order.
TEST(PagingEngine, KeepsTheOrderOfTheSamplesOfSeveralParents) {
  Scenario s = paged(4, 16);
  s.scheduler.max_batch = 3;
  const WholeRun run(s, {sampled(3, asks(0, 2, 2)), sampled(2, asks(0, 3, 2))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+2 3:0+3", "0:2+1 1:2+1 3:3+1", "2:0+2 4:0+3", "2:2+1 4:3+1"));
}

TEST(PagingEngine, EndsSamplesThatWantOneTokenOrNoneInTheStepOfTheirFork) {
  for (const std::int64_t generate : {0, 1}) {
    Scenario s = paged(4, 8);
    s.scheduler.max_batch = 1;
    const WholeRun run(s, {sampled(3, asks(0, 5, generate))});
    EXPECT_THAT(run.batches, ElementsAre("0:0+5"));
    const RunReport& r = run.engine.report();
    EXPECT_EQ(r.finished, 3);
    EXPECT_EQ(r.generated_tokens, 3 * generate);
    EXPECT_EQ(r.computed_tokens + r.hit_tokens, 3 * 5);
    EXPECT_EQ(r.curve[0].used_blocks, 0);
  }
}

// 5 blocks of one token: request 0 grows and preempts the parent during its prompt. The sample waits until the parent
// has returned and stored the whole prompt.
TEST(PagingEngine, LetsSamplesWaitOnWhenTheirParentIsPreemptedBeforeItsPromptIsStored) {
  Scenario s = paged(1, 5);
  s.cache.prefix_sharing = false;
  s.scheduler.max_step_tokens = 3;
  const WholeRun run(s, {asks(0, 2, 4), sampled(2, asks(0, 3, 2))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+2 1:0+1", "0:2+1 1:1+1", "0:3+1", "0:4+1", "1:0+3", "1:3+1 2:3+1"));
  EXPECT_EQ(run.engine.report().preemptions, 1);
  EXPECT_EQ(run.engine.report().curve[2].waiting, 2);
}

// 4 blocks of 2, answers of 4 to a prompt of 3: at its fifth token the sample finds no block and releases its pages;
// after the parent has finished it computes all 5 known tokens. Forked 3, computed 1, lost 4, then computed 5 (4 of
// them again), then 1.
TEST(PagingEngine, RecomputesAPreemptedSampleLikeAnyOtherRequest) {
  Scenario s = paged(2, 4);
  s.cache.prefix_sharing = false;
  const WholeRun run(s, {sampled(2, asks(0, 3, 4))});
  EXPECT_THAT(run.batches, ElementsAre("0:0+3", "0:3+1 1:3+1", "0:4+1", "0:5+1", "1:0+5", "1:5+1"));
  const RunReport& r = run.engine.report();
  EXPECT_EQ(r.lost_tokens, 4);
  EXPECT_EQ(r.recomputed_tokens, 4);
  EXPECT_EQ(r.computed_tokens, (3 + 3) + (1 + 5 + 1));
  EXPECT_EQ(r.hit_tokens, 3);
  EXPECT_EQ(r.computed_tokens + r.hit_tokens, 2 * (3 + 3) + r.lost_tokens);
}

TEST(PagingEngine, RejectsTheSamplesOfARejectedParent) {
  const WholeRun run(paged(2, 4), {sampled(3, asks(0, 9, 0)), sampled(2, asks(0, 7, 2))});
  EXPECT_EQ(run.engine.report().refused, 3);
  EXPECT_EQ(run.engine.report().finished, 2);
}

// --- the continuous cache ---------------------------------------------------------------------------------------

TEST(PagingEngine, GivesEachSequenceOneBlockInAContinuousCache) {
  Scenario s = paged(4, 2);
  s.cache.kind = CacheKind::continuous;
  s.cache.max_tokens = 8;
  const std::vector<Request> requests = {asks(0, 6, 3, {{1, 6}}), asks(0, 6, 2, {{1, 6}}), asks(0, 2, 1),
                                         asks(0, 8, 2)};
  const WholeRun run(s, requests);
  EXPECT_THAT(run.batches, ElementsAre("0:0+6 1:0+6", "0:6+1 1:6+1", "0:7+1 2:0+2"));
  EXPECT_EQ(run.engine.report().refused, 1);
  EXPECT_EQ(run.engine.report().hit_tokens, 0);
  const CacheState state = run.engine.state();
  EXPECT_EQ(state.page_size, 0);
  EXPECT_EQ(state.table_columns, 1);
  EXPECT_FALSE(run.engine.report().paged);
  EXPECT_THAT(state.lookup_table, ElementsAre(0, 1));
}

// --- bad input --------------------------------------------------------------------------------------------------

TEST(PagingEngine, NamesEverySizeThatIsNone) {
  Scenario s = paged(0, 0);
  s.scheduler = SchedulerConfig{0, 0, -1, 10, 0};
  s.cache.max_tokens = -1;
  trace::Recorder off;
  const std::vector<Request> requests = {asks(-1, 0, -1), asks(0, 4, 1, {{1, 3}}), asks(0, 4, 1, {{1, 5}, {2, -1}})};
  try {
    PagingEngine engine(s, requests, off);
    FAIL();
  } catch (const GeometryError& e) {
    EXPECT_STREQ(e.what(),
                 "paging engine rejected, 11 faults:\n"
                 "  max_batch: 0; at least 1\n"
                 "  max_step_tokens: 0; at least 1\n"
                 "  blocks: 0; at least 1\n"
                 "  max_tokens: -1; at least 0\n"
                 "  page_size: 0; at least 1\n"
                 "  base_us: -1 is outside [0, 1e12]\n"
                 "  request 0: arrives at -1 us; at least 0\n"
                 "  request 0: 0 prompt tokens, outside [1, 1099511627776]\n"
                 "  request 0: -1 tokens to generate, outside [0, 1099511627776]\n"
                 "  request 1: content spans add up to 3 tokens, the prompt has 4\n"
                 "  request 2: a content span has a negative length");
  }
}

TEST(PagingEngine, NamesEverySampleThatIsOutOfPlace) {
  Scenario s = paged(4, 4);
  s.cache.kind = CacheKind::continuous;
  s.cache.max_tokens = 8;
  const auto sample = [](std::int64_t of, Request r) {
    r.sample_of = of;
    return r;
  };
  const std::vector<Request> requests = {
      sample(1, asks(0, 4, 1)), sampled(2, asks(0, 4, 1)), asks(0, 4, 1), sample(2, asks(0, 4, 1)), asks(0, 4, 1),
      sample(1, asks(0, 5, 1)), sample(-1, asks(0, 4, 1))};
  trace::Recorder off;
  try {
    PagingEngine engine(s, requests, off);
    FAIL();
  } catch (const GeometryError& e) {
    const std::string unshared = "is a sample, and a continuous cache shares nothing";
    const auto misplaced = [](int number, int before) {
      return "sample " + std::to_string(number) + ", but the request before it is neither the parent nor sample " +
             std::to_string(before) + " of the same prompt";
    };
    EXPECT_EQ(std::string(e.what()),
              "paging engine rejected, 9 faults:\n"
              "  request 0: " +
                  misplaced(1, 0) + "\n  request 0: " + unshared +
                  "\n  request 1: asks for 2 samples; expand_samples() makes requests of them"
                  "\n  request 3: " +
                  misplaced(2, 1) + "\n  request 3: " + unshared + "\n  request 5: " + misplaced(1, 0) +
                  "\n  request 5: " + unshared + "\n  request 6: " + misplaced(-1, -2) + "\n  request 6: " + unshared);
  }
}

}  // namespace
}  // namespace kvscope::paging_engine_test
