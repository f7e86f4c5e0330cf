#include "core/trace/diff.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/trace/event_text.h"
#include "tests/core/trace/support.h"
#include "tests/property.h"

namespace kvscope::trace::diff_test {
namespace {

using testing::Folder;

// Four events before step 4, five in it; every number occurs only once.
std::vector<Event> short_run() {
  return {RequestArrived{SeqIdx{0}, 40, 2},
          StepBegan{StepIdx{3}, 10},
          BlockAllocated{BlockIdx{3}, SeqIdx{0}, PageIdx{0}},
          TokensWritten{SeqIdx{0}, TokIdx{0}, 16, BlockIdx{3}, 0, false},
          StepBegan{StepIdx{4}, 20},
          BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{1}},
          TokensWritten{SeqIdx{0}, TokIdx{16}, 15, BlockIdx{7}, 0, false},
          BlockEvicted{BlockIdx{1}},
          RequestFinished{SeqIdx{0}, 42}};
}

class TwoTraces : public ::testing::Test {
 protected:
  TraceDiff diff(const std::vector<Event>& left, const std::vector<Event>& right, std::int64_t context = kDiffContext,
                 const Meta& left_meta = {}, const Meta& right_meta = {}) {
    testing::write_trace(folder_ / "a.kvt", left, left_meta);
    testing::write_trace(folder_ / "b.kvt", right, right_meta);
    TraceReader a(folder_ / "a.kvt");
    TraceReader b(folder_ / "b.kvt");
    return diff_traces(a, b, {.context = context});
  }
  Folder folder_;
};

TEST_F(TwoTraces, OfOneRunAreTheSame) {
  const TraceDiff same = diff(short_run(), short_run());
  EXPECT_TRUE(same.meta.empty() && same.same_events());
  EXPECT_EQ(same.equal_events, 9);
  EXPECT_EQ(to_text(same, "a.kvt", "b.kvt"), "the 9 events are the same\n");
  EXPECT_EQ(to_text(diff({}, {}), "a.kvt", "b.kvt"), "the 0 events are the same\n");
}

TEST_F(TwoTraces, PartAtAFieldThatIsNamedWithBothValuesAndWhatStandsAround) {
  std::vector<Event> other = short_run();
  other[6] = TokensWritten{SeqIdx{0}, TokIdx{16}, 16, BlockIdx{7}, 0, true};
  const TraceDiff found = diff(short_run(), other, 1);
  EXPECT_EQ(to_text(found, "a.kvt", "b.kvt"),
            "first divergence at event 6, step 4: tokens_written\n"
            "  tokens: 15 | 16\n"
            "  decode: 0 | 1\n"
            "both, before:\n"
            "  5  block_allocated block=7 seq=0 page=1\n"
            "a.kvt:\n"
            "  6  tokens_written seq=0 first_token=16 tokens=15 block=7 slot=0 decode=0\n"
            "  7  block_evicted block=1\n"
            "b.kvt:\n"
            "  6  tokens_written seq=0 first_token=16 tokens=16 block=7 slot=0 decode=1\n"
            "  7  block_evicted block=1\n");
  EXPECT_FALSE(found.meta.empty() && found.same_events());
  EXPECT_EQ(found.equal_events, 6);
}

TEST_F(TwoTraces, PartAtTheKindBeforeTheFirstStep) {
  std::vector<Event> other = short_run();
  other[0] = RequestRefused{SeqIdx{0}, 40, 2};  // same numbers under other names
  EXPECT_EQ(to_text(diff(short_run(), other, 0), "a.kvt", "b.kvt"),
            "first divergence at event 0, before the first step: request_arrived | request_refused\n"
            "a.kvt:\n"
            "  0  request_arrived seq=0 prompt_tokens=40 generate_tokens=2\n"
            "b.kvt:\n"
            "  0  request_refused seq=0 tokens=40 limit=2\n");
}

// The first event of the step differs: the difference is in that step, although the last common step_began is the
// previous one.
TEST_F(TwoTraces, PartAtTheTimeAStepBeganInThatStep) {
  std::vector<Event> other = short_run();
  other[4] = StepBegan{StepIdx{4}, 21};
  EXPECT_EQ(diff(short_run(), other).first->step, StepIdx{4});
  // Two different steps: the message names the last common one.
  other[4] = StepBegan{StepIdx{5}, 20};
  EXPECT_EQ(diff(short_run(), other).first->step, StepIdx{3});
}

TEST_F(TwoTraces, OneThatEndsEarlyIsToldFromOneThatDiffers) {
  std::vector<Event> shorter = short_run();
  shorter.pop_back();
  EXPECT_EQ(to_text(diff(short_run(), shorter, 1), "a.kvt", "b.kvt"),
            "first divergence at event 8, step 4: b.kvt ends, a.kvt continues\n"
            "both, before:\n"
            "  7  block_evicted block=1\n"
            "a.kvt:\n"
            "  8  request_finished seq=0 tokens=42\n");
  EXPECT_EQ(to_text(diff(shorter, short_run(), 0), "a.kvt", "b.kvt"),
            "first divergence at event 8, step 4: a.kvt ends, b.kvt continues\n"
            "b.kvt:\n"
            "  8  request_finished seq=0 tokens=42\n");
}

TEST_F(TwoTraces, DifferInMetaThoughTheirEventsAreTheSame) {
  const std::string text(100, 'x');
  const TraceDiff found =
      diff(short_run(), short_run(), 0, {{"producer", "one"}, {"note", "n\nn"}, {"scenario", text + "16" + text}},
           {{"producer", "two"}, {"other", ""}, {"scenario", text + "32" + text}});
  EXPECT_TRUE(found.same_events());
  EXPECT_FALSE(found.meta.empty() && found.same_events());
  const std::string dots = "..." + std::string(20, 'x');
  EXPECT_EQ(to_text(found, "a.kvt", "b.kvt"),
            "meta 'note': only in a.kvt\n"
            "meta 'other': only in b.kvt\n"
            "meta 'producer': one | two\n"
            "meta 'scenario': differs from character 100 on: " +
                dots + "16" + std::string(18, 'x') + "... | " + dots + "32" + std::string(18, 'x') +
                "...\n"
                "the 9 events are the same\n");
}

// Long texts, such as scenarios, are shown around their first difference.
TEST_F(TwoTraces, OfLongTextsShowWhereTheyDiffer) {
  const std::string same(100, 's'), tail(50, 't');
  const auto text = [&](const std::string& left, const std::string& right) {
    return to_text(diff(short_run(), short_run(), 1, {{"scenario", left}}, {{"scenario", right}}), "a.kvt", "b.kvt");
  };
  EXPECT_NE(text(same + "x" + tail, same + "y" + tail)
                .find("meta 'scenario': differs from character 100 on: ..." + same.substr(0, 20) + "x" +
                      tail.substr(0, 19) + "... | ..." + same.substr(0, 20) + "y" + tail.substr(0, 19) + "...\n"),
            std::string::npos);
  EXPECT_NE(text("y", "x" + tail).find("differs from character 0 on: y | x" + tail.substr(0, 39) + "...\n"),
            std::string::npos);
  EXPECT_NE(text("x" + tail, "y").find("differs from character 0 on: x" + tail.substr(0, 39) + "... | y\n"),
            std::string::npos);
}

TEST_F(TwoTraces, OfAnotherDetailSaySo) {
  testing::write_trace(folder_ / "a.kvt", short_run(), {}, Detail::steps);
  testing::write_trace(folder_ / "b.kvt", short_run(), {}, Detail::full);
  TraceReader a(folder_ / "a.kvt");
  TraceReader b(folder_ / "b.kvt");
  const TraceDiff found = diff_traces(a, b);
  EXPECT_EQ(found.meta, (std::vector<MetaDifference>{{"detail", "steps", "full"}}));
  EXPECT_EQ(found.first->event, 2);
}

// --- traces with different content ---

// A run of the model (steps, then two tiles), and a kernel's trace of the second tile only.
std::vector<Event> tile_of(std::int64_t row) {
  TileOpened opened;
  opened.tma = true;
  opened.rows = row;
  BoxCopied box;
  box.row = row;
  return {opened, BarrierExpects{0, 64}, box, BarrierCompleted{0}};
}
std::vector<Event> with_tiles(std::vector<Event> events, const std::vector<std::vector<Event>>& tiles) {
  for (const auto& tile : tiles) events.insert(events.end(), tile.begin(), tile.end());
  return events;
}

class Tiles : public TwoTraces {
 protected:
  TraceDiff part(const std::vector<Event>& left, const std::vector<Event>& right, const DiffOptions& options) {
    testing::write_trace(folder_ / "a.kvt", left, {{"producer", "one"}});
    testing::write_trace(folder_ / "b.kvt", right, {{"producer", "two"}});
    TraceReader a(folder_ / "a.kvt");
    TraceReader b(folder_ / "b.kvt");
    return diff_traces(a, b, options);
  }
};

// Events after a tile that belong to no tile, the next tile, and the meta of the two producers are not compared.
TEST_F(Tiles, OneTileOfEachIsComparedAndNothingAroundIt) {
  std::vector<Event> model = with_tiles(short_run(), {tile_of(5), tile_of(7)});
  model.push_back(BlockEvicted{BlockIdx{2}});
  const std::vector<Event> kernel = with_tiles({}, {tile_of(7), tile_of(9)});
  const TraceDiff same = part(model, kernel, {.left_tile = 1, .right_tile = 0});
  EXPECT_TRUE(same.meta.empty() && same.same_events());
  EXPECT_EQ(to_text(same, "a.kvt", "b.kvt"), "the 4 events compared are the same\n");
  EXPECT_FALSE(part(model, kernel, {.left_tile = 0, .right_tile = 0}).same_events());
  EXPECT_FALSE(part(model, kernel, {.left_tile = 1, .right_tile = 1}).same_events());
}

TEST_F(Tiles, TheFirstDifferenceHasTheNumberOfItsTraceOnEachSide) {
  std::vector<Event> other = tile_of(7);
  std::get<BoxCopied>(other[2]).row = 8;
  const TraceDiff found = part(with_tiles(short_run(), {tile_of(5), tile_of(7)}), with_tiles({}, {other}),
                               {.context = 1, .left_tile = 1, .right_tile = 0});
  EXPECT_EQ(to_text(found, "a.kvt", "b.kvt"),
            "first divergence at event 15 | 2: box_copied\n"
            "  row: 7 | 8\n"
            "both, before:\n"
            "  14  barrier_expects phase=0 bytes=64\n"
            "a.kvt:\n"
            "  15  box_copied copy=0 sub_tile=0 column=0 row=7 shared=0 bytes=0 filled=0\n"
            "  16  barrier_completed phase=0\n"
            "b.kvt:\n"
            "  2  box_copied copy=0 sub_tile=0 column=0 row=8 shared=0 bytes=0 filled=0\n"
            "  3  barrier_completed phase=0\n");
  std::vector<Event> shorter = tile_of(7);
  shorter.pop_back();
  EXPECT_EQ(to_text(part(tile_of(7), shorter, {.context = 0, .left_tile = 0, .right_tile = 0}), "a.kvt", "b.kvt"),
            "first divergence at event 3 | the end: b.kvt ends, a.kvt continues\n"
            "a.kvt:\n"
            "  3  barrier_completed phase=0\n");
}

TEST_F(Tiles, OnlyTheKindsThatAreAskedForAreCompared) {
  std::vector<Event> other = tile_of(7);
  std::get<BarrierExpects>(other[1]).bytes = 65;
  const std::vector<std::size_t> boxes = {*find_kind("tile_opened"), *find_kind("box_copied")};
  EXPECT_TRUE(part(tile_of(7), other, {.kinds = boxes}).same_events());
  EXPECT_EQ(part(tile_of(7), other, {.kinds = boxes}).equal_events, 2);
  EXPECT_EQ(part(tile_of(7), other, {.kinds = {*find_kind("barrier_expects")}}).first->left_numbers.front(), 1);
  // Kinds and tile together: both options apply at once.
  EXPECT_TRUE(part(with_tiles({}, {tile_of(1), tile_of(7)}), other, {.kinds = boxes, .left_tile = 1, .right_tile = 0})
                  .same_events());
}

// A kernel's trace has those kinds of geometry that its instructions determine, and numbers registers otherwise than the
// model: registers are compared only between two kernels or two runs of the model, bank passes always.
TEST_F(Tiles, GeometryIsComparedWhereBothHaveItAndRegistersOnlyOfAlikeProducers) {
  struct Tile {
    std::int64_t memory, bank, register_of;
    bool has_memory = true;
  };
  const std::size_t memory = *find_kind("tile_memory"), bank = *find_kind("bank_phase"),
                    fragments = *find_kind("tile_fragments");
  const auto events = [&](const Tile& tile) {
    std::vector<Event> made = tile_of(7);
    if (tile.has_memory) made.push_back(testing::event_of(memory, {tile.memory}));
    made.push_back(testing::event_of(fragments, {tile.register_of}));
    made.push_back(testing::event_of(bank, {tile.bank}));
    return made;
  };
  const auto same = [&](const Tile& model, const Tile& other, bool is_kernel) {
    testing::write_trace(folder_ / "a.kvt", events(model));
    testing::write_trace(folder_ / "b.kvt", events(other), is_kernel ? Meta{{"kernel", "decode"}} : Meta{});
    TraceReader a(folder_ / "a.kvt"), b(folder_ / "b.kvt");
    return diff_traces(a, b, {.left_tile = 0, .right_tile = 0}).same_events();
  };
  EXPECT_TRUE(same({1, 1, 1}, {1, 1, 1}, false));
  EXPECT_FALSE(same({1, 1, 1}, {0, 1, 1}, false)) << "both have the kind";
  EXPECT_FALSE(same({1, 1, 1}, {0, 1, 1}, true));
  EXPECT_TRUE(same({1, 1, 1}, {1, 1, 1, false}, true)) << "only one has the kind";
  EXPECT_TRUE(same({1, 1, 1, false}, {1, 1, 1}, true));
  EXPECT_FALSE(same({1, 1, 1}, {1, 1, 0}, false)) << "registers of two runs of the model";
  EXPECT_TRUE(same({1, 1, 1}, {1, 1, 0}, true)) << "registers of the model and a kernel";
  EXPECT_FALSE(same({1, 1, 1}, {1, 0, 1}, true)) << "bank passes";
}

TEST_F(Tiles, OneThatIsNotThereIsRejected) {
  const auto message = [&](const std::vector<Event>& events, std::int64_t tile) {
    try {
      static_cast<void>(part(events, tile_of(1), {.left_tile = tile, .right_tile = 0}));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(message(with_tiles({}, {tile_of(1), tile_of(2)}), 2).find("tile 2 is outside [0, 2)"), std::string::npos);
  EXPECT_NE(message(tile_of(1), -1).find("tile -1 is outside [0, 1)"), std::string::npos);
  EXPECT_NE(message(short_run(), 0).find("has no tile"), std::string::npos);
}

// Against a comparison of whole vectors, for a change, a removal or a duplication anywhere, including contexts
// cut at either end.
TEST_F(TwoTraces, PartWhereTheWholeSequencesPart) {
  EXPECT_TRUE(prop::check("first divergence", [&] {
    const std::vector<Event> left = testing::sample_events(prop::in_range(1, 30));
    const auto size = static_cast<std::int64_t>(left.size());
    std::vector<Event> right = left;
    const auto at = prop::in_range<std::int64_t>(0, size);
    switch (prop::in_range(0, 4)) {
      case 0:
        right[static_cast<std::size_t>(at)] = BlockEvicted{BlockIdx{-7}};
        break;
      case 1:
        right.erase(right.begin() + at);
        break;
      case 2:
        right.insert(right.begin() + at, right[static_cast<std::size_t>(at)]);
        break;
      default:
        right.resize(static_cast<std::size_t>(at));
    }
    const std::int64_t context = prop::in_range<std::int64_t>(0, 6);
    std::int64_t expected = 0;
    while (expected < std::min(size, static_cast<std::int64_t>(right.size())) &&
           to_text(left[static_cast<std::size_t>(expected)]) == to_text(right[static_cast<std::size_t>(expected)])) {
      ++expected;
    }
    const auto found = first_divergence(left, right, context);
    RC_ASSERT(found.has_value());
    RC_ASSERT(found->event == expected);
    const auto slice = [](const std::vector<Event>& events, std::int64_t first, std::int64_t count) {
      const auto length = static_cast<std::int64_t>(events.size());
      return std::vector<Event>(events.begin() + std::min(std::max<std::int64_t>(first, 0), length),
                                events.begin() + std::min(first + count, length));
    };
    RC_ASSERT(testing::equal(found->before, slice(left, expected - context, context)));
    RC_ASSERT(testing::equal(found->left, slice(left, expected, context + 1)));
    RC_ASSERT(testing::equal(found->right, slice(right, expected, context + 1)));
    // The files differ at the same place as the vectors.
    const TraceDiff files = diff(left, right, context);
    RC_ASSERT(files.first.has_value());
    RC_ASSERT(files.first->event == expected);
    RC_ASSERT(files.first->step == found->step);
    RC_ASSERT(files.first->fields == found->fields);
    RC_ASSERT(testing::equal(files.first->right, found->right));
  }));
}

TEST(FirstDivergence, OfEqualSequencesIsNone) {
  EXPECT_FALSE(first_divergence(short_run(), short_run()).has_value());
  EXPECT_FALSE(first_divergence({}, {}).has_value());
}

}  // namespace
}  // namespace kvscope::trace::diff_test
