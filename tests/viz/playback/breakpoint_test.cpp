#include "viz/playback/breakpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <limits>

#include "core/base/errors.h"
#include "core/trace/event_text.h"

namespace kvscope::viz::breakpoint_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> faults_of(std::string_view text) {
  try {
    static_cast<void>(parse_breakpoint(text));
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "breakpoint");
    return fault_lines(error);
  }
  return {};
}

TEST(Breakpoint, ExamplesOfTheHeaderParse) {
  EXPECT_EQ(parse_breakpoint("block_evicted"), (Breakpoint{11, {}, true}));
  EXPECT_EQ(parse_breakpoint("block_allocated block=7"), (Breakpoint{7, {{0, Compare::equal, 7}}, true}));
  EXPECT_EQ(parse_breakpoint("step_ended free_blocks<4 running>=2"),
            (Breakpoint{1, {{6, Compare::less, 4}, {3, Compare::greater_equal, 2}}, true}));
  EXPECT_EQ(parse_breakpoint("tokens_written seq=3 decode=1"),
            (Breakpoint{12, {{0, Compare::equal, 3}, {5, Compare::equal, 1}}, true}));
}

TEST(Breakpoint, BlanksAndADoubleEqualsSignDoNotMatter) {
  const Breakpoint expected = parse_breakpoint("block_allocated block=7 seq!=-1");
  EXPECT_EQ(parse_breakpoint("  block_allocated\t block = 7\n seq != -1 "), expected);
  EXPECT_EQ(parse_breakpoint("block_allocated block==7 seq!= -1"), expected);
}

TEST(Breakpoint, WordOffDisablesIt) {
  const Breakpoint off = parse_breakpoint("off block_evicted");
  EXPECT_FALSE(off.enabled);
  EXPECT_EQ(to_text(off), "off block_evicted");
}

TEST(Breakpoint, EveryOneParsesBackFromItsText) {
  ASSERT_TRUE(rc::check([] {
    Breakpoint breakpoint;
    breakpoint.kind = *rc::gen::inRange<std::size_t>(0, trace::kKinds);
    breakpoint.enabled = *rc::gen::arbitrary<bool>();
    const int conditions = *rc::gen::inRange(0, 4);
    for (int i = 0; i < conditions; ++i) {
      Condition condition;
      condition.field = *rc::gen::inRange<std::size_t>(0, trace::field_names(breakpoint.kind).size());
      condition.compare = static_cast<Compare>(*rc::gen::inRange(0, 6));
      condition.value = *rc::gen::arbitrary<std::int64_t>();
      breakpoint.conditions.push_back(condition);
    }
    RC_ASSERT(parse_breakpoint(to_text(breakpoint)) == breakpoint);
  }));
}

TEST(Breakpoint, UnknownNamesComeWithTheNearestOne) {
  EXPECT_THAT(faults_of("block_evict"),
              ElementsAre("breakpoint: 'block_evict': is not a kind of event: did you mean \"block_evicted\"?"));
  EXPECT_THAT(faults_of("block_allocated blok=7"),
              ElementsAre("breakpoint: 'blok': is not a field of block_allocated: did you mean \"block\"?"));
  EXPECT_THAT(faults_of("block_allocated size=7"),
              ElementsAre("breakpoint: 'size': is not a field of block_allocated: choose one of block, seq, page"));
}

TEST(Breakpoint, MissingPartsAreNamed) {
  EXPECT_THAT(faults_of(""),
              ElementsAre("breakpoint: must begin with the kind of event to stop at, such as block_evicted "
                          "or step_ended free_blocks<4"));
  EXPECT_EQ(faults_of("off"), faults_of(" "));
  EXPECT_THAT(faults_of("block_evicted block"),
              ElementsAre("breakpoint: 'block': must be followed by an operator (= != < <= > >=) and a number"));
  EXPECT_THAT(faults_of("block_evicted block=>7"),
              ElementsAre("breakpoint: 'block=>': must be followed by an operator (= != < <= > >=) and a number"));
  EXPECT_THAT(faults_of("block_evicted block="), ElementsAre("breakpoint: 'block=': has no number after the operator"));
  EXPECT_THAT(faults_of("block_evicted =7"), ElementsAre("breakpoint: '=': has no field name before it"));
}

TEST(Breakpoint, NumbersAreWholeAndFit) {
  EXPECT_THAT(faults_of("block_evicted block=x7"),
              ElementsAre("breakpoint: 'block=x7': x7 is not a whole number of 64 bits"));
  EXPECT_THAT(faults_of("block_evicted block=1.5"),
              ElementsAre("breakpoint: 'block=1.5': 1.5 is not a whole number of 64 bits"));
  EXPECT_THAT(faults_of("block_evicted block=9223372036854775808"),
              ElementsAre("breakpoint: 'block=9223372036854775808': 9223372036854775808 is not a whole number of 64 "
                          "bits"));
  EXPECT_EQ(parse_breakpoint("block_evicted block=-9223372036854775808").conditions[0].value,
            std::numeric_limits<std::int64_t>::min());
}

// All faults are reported at once, so that the line can be corrected in one edit.
TEST(Breakpoint, EveryFaultIsReported) {
  EXPECT_THAT(
      faults_of("step_ended fre_blocks<4 running 2 waiting>x"),
      ElementsAre("breakpoint: 'fre_blocks': is not a field of step_ended: did you mean \"free_blocks\"?",
                  "breakpoint: 'running': must be followed by an operator (= != < <= > >=) and a number",
                  "breakpoint: '2': is not a field of step_ended: choose one of step, time_us, waiting, running, "
                  "used_blocks, cached_blocks, free_blocks, slots_filled, prefill_tokens, decode_tokens, "
                  "hit_tokens, query_tokens, preemptions, finished",
                  "breakpoint: '2': must be followed by an operator (= != < <= > >=) and a number",
                  "breakpoint: 'waiting>x': x is not a whole number of 64 bits"));
  EXPECT_THAT(
      faults_of("nothing block=x"),
      ElementsAre(testing::StartsWith("breakpoint: 'nothing': is not a kind of event: choose one of step_began, "),
                  "breakpoint: 'block=x': x is not a whole number of 64 bits"));
}

TEST(Breakpoint, ComparesWithEachOperator) {
  const auto holds = [](const std::string& condition, std::int64_t block) {
    return matches(parse_breakpoint("block_evicted block" + condition), trace::BlockEvicted{BlockIdx{block}});
  };
  const std::array<std::pair<const char*, std::array<bool, 3>>, 6> table{{
      {"=5", {false, true, false}},
      {"!=5", {true, false, true}},
      {"<5", {true, false, false}},
      {"<=5", {true, true, false}},
      {">5", {false, false, true}},
      {">=5", {false, true, true}},
  }};
  for (const auto& [condition, expected] : table) {
    for (std::int64_t block = 4; block <= 6; ++block) {
      EXPECT_EQ(holds(condition, block), expected[static_cast<std::size_t>(block - 4)]) << condition << " " << block;
    }
  }
}

// A breakpoint matches if it is enabled, the event is of its kind, and every condition holds.
TEST(Breakpoint, MatchesItsKindWhenAllConditionsHold) {
  Breakpoint breakpoint = parse_breakpoint("block_allocated block=7 page>0");
  const trace::Event event = trace::BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{1}};
  EXPECT_TRUE(matches(breakpoint, event));
  EXPECT_FALSE(matches(breakpoint, trace::BlockAllocated{BlockIdx{7}, SeqIdx{1}, PageIdx{0}}));
  EXPECT_FALSE(matches(breakpoint, trace::BlockAllocated{BlockIdx{6}, SeqIdx{0}, PageIdx{1}}));
  EXPECT_FALSE(matches(breakpoint, trace::BlockEvicted{BlockIdx{7}}));
  EXPECT_FALSE(matches(parse_breakpoint("block_evicted"), event));
  breakpoint.enabled = false;
  EXPECT_FALSE(matches(breakpoint, event));
}

}  // namespace
}  // namespace kvscope::viz::breakpoint_test
