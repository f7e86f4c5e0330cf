#include "viz/playback/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::find_test {
namespace {

// 8 blocks of 4 tokens, 5 sequences of up to 6 pages, 20 steps, 300 events.
Facts facts() {
  Facts facts = testing_support::small_facts();
  facts.rows = 21;
  facts.end_step = 20;
  facts.events = 300;
  return facts;
}

Target found(std::string_view text) {
  return parse_find(text, facts());
}

std::string rejected(std::string_view text, const Facts& of = facts()) {
  try {
    static_cast<void>(parse_find(text, of));
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "find");
    return fault_lines(error).front();
  }
  return "found";
}

TEST(Find, FormsOfTheHeaderHaveTheirTargets) {
  EXPECT_EQ(found("7"), Target(of_block(BlockIdx{7})));
  EXPECT_EQ(found("block 7"), Target(of_block(BlockIdx{7})));
  for (const char* text : {"3:20", "token 3:20", "seq 3 token 20", "sequence 3 token 20"}) {
    EXPECT_EQ(found(text), Target(of_token(SeqIdx{3}, TokIdx{20}))) << text;
  }
  EXPECT_EQ(found("seq 3"), Target(of_sequence(SeqIdx{3})));
  EXPECT_EQ(found("sequence 3"), Target(of_sequence(SeqIdx{3})));
  EXPECT_EQ(found("page 3:2"), Target(of_page(SeqIdx{3}, PageIdx{2})));
  EXPECT_EQ(found("seq 3 page 2"), Target(of_page(SeqIdx{3}, PageIdx{2})));
  EXPECT_EQ(found("step 12"), Target(of_step(StepIdx{12})));
  EXPECT_EQ(found("event 250"), Target(FindPosition{Position{251}}));
  EXPECT_EQ(found("evicted"), Target(FindEvent{*trace::find_kind("block_evicted")}));
  EXPECT_EQ(found("byte 0x1f40"), Target(FindByte{8000}));
  EXPECT_EQ(found("byte 8000"), Target(FindByte{8000}));
}

TEST(Find, ObjectsOfATileHaveTheirTargets) {
  EXPECT_EQ(found("row 6"), Target(of_tile_row(6)));
  EXPECT_EQ(found("lane 26"), Target(of_tile_lane(0, 26)));
  EXPECT_EQ(found("lane 3:26"), Target(of_tile_lane(3, 26)));
  EXPECT_EQ(found("register 26:5"), Target(of_tile_register({0, 26, 5, 0})));
  EXPECT_EQ(found("register 3:26:5"), Target(of_tile_register({3, 26, 5, 0})));
  EXPECT_EQ(found("scale 6:1"), Target(of_tile_scale(6, 1)));
  EXPECT_EQ(found("bytes 6:527"), Target(of_tile_bytes(6, 512)));  // the chunk that has the byte
  EXPECT_EQ(found("axis 2"), Target(of_tile_axis(2)));
}

// A chunk is 16 bytes: 8 elements of a trace without a scenario, 4 of f32, 16 of fp8.
TEST(Find, AChunkBeginsAtTheElementThatTheTypeGives) {
  EXPECT_EQ(found("chunk 6:3"), Target(of_tile_chunk({6, 24})));
  Facts of = facts();
  of.scenario.emplace();
  for (const auto& [dtype, column] :
       {std::pair{DType::f32, 12}, std::pair{DType::bf16, 24}, std::pair{DType::e4m3, 48}}) {
    of.scenario->cache.dtype = dtype;
    EXPECT_EQ(parse_find("chunk 6:3", of), Target(of_tile_chunk({6, column}))) << name(dtype);
  }
  // The product with 16 overflowed: the last number that has a first byte, and the first one that has none.
  EXPECT_EQ(found("chunk 6:576460752303423486"), Target(of_tile_chunk({6, 4611686018427387888})));
  EXPECT_EQ(rejected("chunk 6:576460752303423487"),
            "find: 'chunk 6:576460752303423487': chunk 576460752303423487 is outside [0, 576460752303423487)");
}

TEST(Find, CaseAndExtraBlanksAreIgnored) {
  EXPECT_EQ(found("  SEQ\t3   Token 20 "), found("3:20"));
  EXPECT_EQ(found("seq\r\n3"), found("seq 3"));
  EXPECT_EQ(found("Byte 0X1F40"), found("byte 8000"));
  EXPECT_EQ(found("EVICTED"), found("evicted"));
}

// The first kind whose name contains the word, in the order of the kinds.
TEST(Find, AnyPartOfAKindsNameLeadsToIt) {
  EXPECT_EQ(found("preempt"), Target(FindEvent{*trace::find_kind("request_preempted")}));
  EXPECT_EQ(found("tokens_written"), Target(FindEvent{*trace::find_kind("tokens_written")}));
  EXPECT_EQ(found("request"), Target(FindEvent{*trace::find_kind("request_arrived")}));
}

// For every range: the last valid index and the first invalid one.
TEST(Find, IndicesOutsideTheRunAreRejectedWithTheirRange) {
  EXPECT_EQ(found("8"), Target(of_block(BlockIdx{8})));  // the null page
  EXPECT_EQ(rejected("9"), "find: '9': block 9 is outside [0, 9)");
  EXPECT_EQ(found("seq 4"), Target(of_sequence(SeqIdx{4})));
  EXPECT_EQ(rejected("seq 5"), "find: 'seq 5': sequence 5 is outside [0, 5)");
  EXPECT_EQ(rejected("5:0"), "find: '5:0': sequence 5 is outside [0, 5)");
  EXPECT_EQ(found("0:23"), Target(of_token(SeqIdx{0}, TokIdx{23})));
  EXPECT_EQ(rejected("0:24"), "find: '0:24': token 24 is outside [0, 24)");
  EXPECT_EQ(found("page 0:5"), Target(of_page(SeqIdx{0}, PageIdx{5})));
  EXPECT_EQ(rejected("page 0:6"), "find: 'page 0:6': page 6 is outside [0, 6)");
  EXPECT_EQ(found("step 19"), Target(of_step(StepIdx{19})));
  EXPECT_EQ(rejected("step 20"), "find: 'step 20': step 20 is outside [0, 20)");
  EXPECT_EQ(found("event 0"), Target(FindPosition{Position{1}}));
  EXPECT_EQ(found("event 299"), Target(FindPosition{Position{300}}));
  EXPECT_EQ(rejected("event 300"), "find: 'event 300': event 300 is outside [0, 300)");
}

// A trace may begin at any step.
TEST(Find, StepsAreThoseOfTheRun) {
  Facts late = facts();
  late.first_step = 100, late.end_step = 120;
  for (const std::int64_t step : {100, 105, 119}) {
    EXPECT_EQ(parse_find("step " + std::to_string(step), late), Target(of_step(StepIdx{step})));
  }
  EXPECT_EQ(rejected("step 99", late), "find: 'step 99': step 99 is outside [100, 120)");
  EXPECT_EQ(rejected("step 3", late), "find: 'step 3': step 3 is outside [100, 120)");
  EXPECT_EQ(rejected("step 120", late), "find: 'step 120': step 120 is outside [100, 120)");
}

TEST(Find, RunWithoutSequencesOrStepsIsReported) {
  Facts none;
  none.rows = 1;
  EXPECT_EQ(rejected("seq 0", none), "find: 'seq 0': the run has no sequence");
  EXPECT_EQ(rejected("step 0", none), "find: 'step 0': the run has no step");
  EXPECT_EQ(rejected("event 0", none), "find: 'event 0': the run has no event");
  EXPECT_EQ(rejected("0", none), "found");  // the null page of a pool without blocks
}

TEST(Find, UnknownTextListsTheForms) {
  const std::string forms =
      "is not understood: type one of 7 or block 7, 3:70 or token 3:70, seq 3, page 3:2, step 12, event 5000, a kind "
      "of event such as evicted, byte 0x1f40, in a tile row 6, chunk 6:3, lane 26, register 26:0, scale 6:1, bytes "
      "6:512, axis 2";
  for (const std::string text : {"nonsense",
                                 "block",
                                 "seq",
                                 "step",
                                 "page",
                                 "token",
                                 "event",
                                 "byte",
                                 "block x",
                                 "block 7 8",
                                 "3:",
                                 ":3",
                                 "3:4:5",
                                 "page 3",
                                 "token 3",
                                 "seq 3 block 4",
                                 "seq 3 token",
                                 "-1",
                                 "block -1",
                                 "1.5",
                                 "+7",
                                 "0x",
                                 "0x-1",
                                 "e",
                                 "ed",
                                 "block 9223372036854775808",
                                 "Block Seven",
                                 "lane 1:2:3",
                                 "lane 1:",
                                 "register 26",
                                 "register 1:2:3:4",
                                 "register :1",
                                 "chunk 6",
                                 "scale 6",
                                 "bytes :1",
                                 "axis x",
                                 "row",
                                 "page 3 token 4"}) {
    EXPECT_EQ(rejected(text), "find: '" + text + "': " + forms);
  }
  EXPECT_EQ(rejected(" \t"), "find: " + forms.substr(19));
}

}  // namespace
}  // namespace kvscope::viz::find_test
