#include "viz/playback/facts_scan.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/errors.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::facts_scan_test {
namespace {

using namespace testing_support;

Facts facts_of(const std::vector<trace::Event>& events, const trace::Meta& meta = {},
               trace::Detail detail = trace::Detail::full) {
  const auto source = from_memory(events, meta, detail);
  FactsScan scan(*source, "shown");
  for (const trace::Event& event : events) scan.add(event);
  return scan.finish();
}

std::string rejected(const std::vector<trace::Event>& events, const trace::Meta& meta = {}) {
  try {
    static_cast<void>(facts_of(events, meta));
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(FactsScan, PoolComesFromTheScenarioAndCountsFromTheEvents) {
  const Recorded recorded = gallery("parallel_samples");
  const Facts facts = facts_of(recorded.events, recorded.meta());
  EXPECT_EQ(facts.name, recorded.scenario.name);
  EXPECT_EQ(facts.description, recorded.scenario.description);
  EXPECT_EQ(facts.scenario, recorded.scenario);
  EXPECT_EQ(facts.cache, CacheKind::paged);
  EXPECT_EQ(facts.blocks, recorded.scenario.cache.blocks);
  EXPECT_EQ(facts.page_size, recorded.scenario.cache.page_size);
  EXPECT_EQ(facts.sequences, std::ssize(recorded.requests));
  EXPECT_EQ(facts.events, std::ssize(recorded.events));
  std::int64_t longest = 0;
  for (const Request& r : recorded.requests) {
    longest = std::max(longest, r.prompt_tokens + std::max<std::int64_t>(r.generate_tokens - 1, 0));
  }
  EXPECT_EQ(facts.table_columns, (longest + facts.page_size - 1) / facts.page_size);
}

TEST(FactsScan, ContinuousCacheHasOneBlockOfTheLongestSequenceEach) {
  const Recorded recorded = gallery("continuous");
  const Facts facts = facts_of(recorded.events, recorded.meta());
  EXPECT_EQ(facts.cache, CacheKind::continuous);
  EXPECT_EQ(facts.page_size, recorded.scenario.cache.max_tokens);
  EXPECT_EQ(facts.table_columns, 1);
}

// Without the scenario the facts are computed from the events: they equal the scenario's if the run used the whole
// pool.
class Measured : public testing::TestWithParam<std::string> {};
TEST_P(Measured, RunWithoutItsScenarioHasTheSamePages) {
  const Recorded recorded = gallery(GetParam());
  const Facts told = facts_of(recorded.events, recorded.meta());
  const Facts measured = facts_of(recorded.events);
  EXPECT_EQ(measured.name, "shown");
  EXPECT_FALSE(measured.scenario);
  EXPECT_EQ(measured.blocks, told.blocks);  // step_ended counts the free ones too
  EXPECT_EQ(measured.sequences, told.sequences);
  EXPECT_EQ(measured.table_columns, told.table_columns);
  if (told.table_columns > 1) {
    EXPECT_EQ(measured.page_size, told.page_size);
  } else {
    EXPECT_LE(measured.page_size, told.page_size);  // no sequence has a second page
  }
  // The run can be played with these facts.
  const auto run = Run::open(from_memory(recorded.events, {}, trace::Detail::full), "shown");
  EXPECT_EQ(run->facts().blocks, told.blocks);
}
INSTANTIATE_TEST_SUITE_P(All, Measured, testing::ValuesIn(gallery_names()),
                         [](const auto& scenario) { return scenario.param; });

// A scenario of a newer version, or invalid JSON: the facts are computed from the events.
TEST(FactsScan, UnreadableScenarioCountsAsMissing) {
  for (const char* text : {"{\"kvscope_scenario\": 99}", "no json", "", "{\"kvscope_scenario\": 1, \"cache\": 3}"}) {
    const Facts facts = facts_of({trace::BlockAllocated{BlockIdx{3}, SeqIdx{0}, PageIdx{0}}}, {{"scenario", text}});
    EXPECT_FALSE(facts.scenario) << text;
    EXPECT_EQ(facts.blocks, 4);
  }
}

// Pages of 4: one sequence writes token 8 at slot 0, another token 13 at slot 1; 8 and 12 leave 4.
TEST(FactsScan, PageSizeDividesEveryTokenWithoutItsSlot) {
  EXPECT_EQ(facts_of({trace::TokensWritten{SeqIdx{0}, TokIdx{8}, 1, BlockIdx{0}, 0, false},
                      trace::TokensWritten{SeqIdx{0}, TokIdx{13}, 2, BlockIdx{0}, 1, false}})
                .page_size,
            4);
  EXPECT_EQ(facts_of({trace::TokensWritten{SeqIdx{0}, TokIdx{2}, 3, BlockIdx{0}, 2, false}}).page_size, 5);
  EXPECT_EQ(facts_of({}).page_size, 1);
}

TEST(FactsScan, EveryEventThatNamesABlockOrASequenceCounts) {
  const auto blocks = [](const trace::Event& event) { return facts_of({event}).blocks; };
  EXPECT_EQ(blocks(trace::BlockCopied{BlockIdx{9}, BlockIdx{2}, SeqIdx{0}, PageIdx{0}, 0}), 10);
  EXPECT_EQ(blocks(trace::BlockCopied{BlockIdx{2}, BlockIdx{9}, SeqIdx{0}, PageIdx{0}, 0}), 10);
  EXPECT_EQ(blocks(trace::BlockEvicted{BlockIdx{9}}), 10);
  EXPECT_EQ(blocks(trace::RequestArrived{SeqIdx{9}, 1, 1}), 0);
  EXPECT_EQ(facts_of({trace::RequestFinished{SeqIdx{9}, 1}}).sequences, 10);
  EXPECT_EQ(facts_of({}).sequences, 0);
  EXPECT_EQ(facts_of({}).table_columns, 1);
}

TEST(FactsScan, StepsAloneCountThePool) {
  trace::StepEnded ended{StepIdx{0}, 0};
  ended.used_blocks = 5;
  ended.cached_blocks = 2;
  ended.free_blocks = 57;
  EXPECT_EQ(facts_of({trace::StepBegan{StepIdx{0}, 0}, ended}, {}, trace::Detail::steps).blocks, 64);
}

// A trace with sizes beyond the limits is rejected before memory is allocated. Invalid numbers are rejected by apply(),
// which names the event.
TEST(FactsScan, PoolsBeyondTheLimitsAreRejected) {
  EXPECT_EQ(rejected({trace::BlockEvicted{BlockIdx{kMostBlocks - 1}}}), "taken");
  EXPECT_EQ(rejected({trace::BlockEvicted{BlockIdx{kMostBlocks}}}),
            "shown rejected: blocks: 134217729 are more than the 134217728 that can be shown");
  EXPECT_EQ(rejected({trace::BlockEvicted{BlockIdx{std::int64_t{1} << 60}}}),
            "shown rejected: blocks: 1152921504606846977 are more than the 134217728 that can be shown");
  EXPECT_EQ(rejected({trace::RequestArrived{SeqIdx{kMostSequences}, 1, 1}}),
            "shown rejected: sequences: 16777217 are more than the 16777216 that can be shown");
  EXPECT_EQ(rejected({trace::TokensWritten{SeqIdx{0}, TokIdx{std::int64_t{1} << 40}, 1, BlockIdx{0}, 0, false}}),
            "shown rejected: tokens of a block: 1099511627776 are more than the 2147483647 that can be shown");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t hostile : {most, least, std::int64_t{-1}}) {
    EXPECT_EQ(
        rejected({trace::TokensWritten{SeqIdx{hostile}, TokIdx{hostile}, hostile, BlockIdx{hostile}, hostile, false},
                  trace::BlockShared{BlockIdx{hostile}, SeqIdx{hostile}, PageIdx{hostile}, hostile}}),
        "taken");
  }
  Scenario scenario = gallery("first_light").scenario;
  scenario.cache.blocks = kMostBlocks + 1;
  scenario.cache.page_size = 1;
  scenario.model.layers = 1;
  EXPECT_EQ(rejected({}, {{"scenario", json::dump(to_json(scenario))}}),
            "shown rejected: blocks: 134217729 are more than the 134217728 that can be shown");
}

}  // namespace
}  // namespace kvscope::viz::facts_scan_test
