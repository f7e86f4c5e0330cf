// The line that says what just happened, against the events of the runs: its numbers are counted here from the events.
#include "viz/playback/happened.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <variant>

#include "core/trace/event_text.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::happened_test {
namespace {

using testing::HasSubstr;

template <class E>
std::vector<E> events_of(const std::vector<trace::Event>& events) {
  std::vector<E> found;
  for (const trace::Event& event : events) {
    if (const E* const e = std::get_if<E>(&event)) found.push_back(*e);
  }
  return found;
}

TEST(Happened, NothingBeforeTheFirstEvent) {
  const Cursor cursor(gallery_run("first_light"));
  EXPECT_EQ(what_happened(cursor), "");
}

TEST(Happened, AStepNamesWhatItsEventsHaveChanged) {
  std::int64_t found = 0, preempted = 0, copied = 0, evicted = 0;
  for (const std::string name : {"first_light", "preemption", "prefix_sharing", "parallel_samples"}) {
    Cursor cursor(gallery_run(name));
    for (std::int64_t row = 1; row < cursor.run().facts().rows; ++row) {
      cursor.seek_row(row);
      const std::string line = what_happened(cursor);
      SCOPED_TRACE(name + " row " + std::to_string(row) + ": " + line);
      const auto& events = *cursor.run().events_of_row(row);
      if (const auto e = events_of<trace::RequestPreempted>(events); !e.empty()) {
        EXPECT_THAT(line, HasSubstr(fmt::format("equence {} preempted", e[0].seq.value)));
        ++preempted;
      }
      const auto admitted = events_of<trace::RequestAdmitted>(events);
      if (admitted.size() == 1) {
        EXPECT_THAT(line, HasSubstr(fmt::format("equence {} admitted", admitted[0].seq.value)));
        std::int64_t shared = 0;
        for (const auto& e : events_of<trace::BlockShared>(events)) shared += e.seq == admitted[0].seq ? 1 : 0;
        if (shared > 0) {
          EXPECT_THAT(line, HasSubstr(fmt::format("{} found in the cache", shared)));
        }
        found += shared;
      }
      const auto copies = events_of<trace::BlockCopied>(events);
      if (copies.size() == 1) {
        EXPECT_THAT(line, HasSubstr(fmt::format("copied to block {}", copies[0].to.value)));
      }
      copied += std::ssize(copies);
      const auto evictions = events_of<trace::BlockEvicted>(events);
      if (evictions.size() == 1) {
        EXPECT_THAT(line, HasSubstr(fmt::format("lock {} evicted", evictions[0].block.value)));
      }
      if (evictions.size() > 1) {
        EXPECT_THAT(line, HasSubstr(fmt::format("{} blocks evicted", evictions.size())));
      }
      evicted += std::ssize(evictions);
      if (!events_of<trace::TokensWritten>(events).empty()) {
        EXPECT_FALSE(line.empty());
      }
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(preempted, 0);
  EXPECT_GT(copied, 0);
  EXPECT_GT(evicted, 0);
}

// Regression: after a breakpoint the header, and the caption of a presentation, read "request_preempted seq=5
// tokens_lost=9".
TEST(Happened, InsideAStepItIsTheLastEventInWords) {
  Cursor cursor(gallery_run("preemption"));
  const auto after = [&](std::int64_t event) {
    cursor.seek(Position{event + 1});
    return what_happened(cursor);
  };
  EXPECT_EQ(after(98), "Step 6 begins");
  EXPECT_EQ(after(71), "Sequence 5 preempted: 9 tokens lost");
  EXPECT_EQ(after(100), "Block 20, page 3 of sequence 4, released: now free");
  EXPECT_EQ(after(104), "Block 20 taken for page 5 of sequence 3");
  EXPECT_EQ(after(105), "Token 19 of sequence 0 computed and stored in block 23");
}

// Each kind of event of a run has words, and they have the numbers of its sequence and its blocks.
TEST(Happened, EveryEventOfARunHasWords) {
  std::set<std::size_t> kinds;
  for (const std::string name : {"first_light", "preemption", "prefix_sharing", "parallel_samples"}) {
    Cursor cursor(gallery_run(name));
    for (std::int64_t row = 1; row < cursor.run().facts().rows; ++row) {
      const auto& events = *cursor.run().events_of_row(row);
      for (std::size_t n = 0; n + 1 < events.size(); ++n) {
        cursor.seek(Position{cursor.run().span(row).first_event + static_cast<std::int64_t>(n) + 1});
        const std::string line = what_happened(cursor);
        SCOPED_TRACE(trace::to_text(events[n]) + " -> " + line);
        EXPECT_THAT(line, testing::Not(testing::ContainsRegex("[=_]")));
        for (const trace::NamedNumber& field : trace::named_fields(events[n])) {
          if (field.name != "seq" && field.name != "block" && field.name != "from" && field.name != "to") continue;
          EXPECT_THAT(line, testing::ContainsRegex(fmt::format("(equence|lock) {}", field.value)));
        }
        kinds.insert(events[n].index());
      }
    }
  }
  EXPECT_GE(kinds.size(), 10U);
}

TEST(Happened, OfATileItIsTheActionThatTheLastEventBelongsTo) {
  const Tile tile = testing_support::staged_tile({}).value();
  EXPECT_EQ(what_happened(tile, tile_state(tile, 0)), "");
  std::int64_t boxes = 0, reads = 0;
  for (const TileAction& action : tile.actions) {
    const std::string line = what_happened(tile, tile_state(tile, action.end));
    if (action.kind == TileAction::Kind::read) {
      const TileRead& read = tile.reads[static_cast<std::size_t>(action.index)];
      EXPECT_THAT(line, HasSubstr(fmt::format("Read {}: {} wavefront", read.number, read.cycles)));
      EXPECT_THAT(line, HasSubstr("filled"));
      ++reads;
    }
    if (action.kind == TileAction::Kind::copy) {
      EXPECT_THAT(line, HasSubstr(fmt::format("Box {}", boxes++)));
      EXPECT_THAT(line, HasSubstr(" B"));
    }
  }
  EXPECT_EQ(boxes, std::ssize(tile.copies));
  EXPECT_EQ(reads, std::ssize(tile.reads));
}

TEST(Happened, TheObjectOfAnEventIsItsBlockThenItsSequence) {
  EXPECT_EQ(object_of(trace::BlockAllocated{BlockIdx{7}, SeqIdx{3}, PageIdx{0}}), of_block(BlockIdx{7}));
  trace::BlockCopied copied;
  copied.from = BlockIdx{2};
  copied.to = BlockIdx{9};
  EXPECT_EQ(object_of(copied), of_block(BlockIdx{9}));
  EXPECT_EQ(object_of(trace::RequestPreempted{SeqIdx{4}, 3}), of_sequence(SeqIdx{4}));
  EXPECT_EQ(object_of(trace::StepBegan{StepIdx{5}, 0}), of_step(StepIdx{5}));
}

}  // namespace
}  // namespace kvscope::viz::happened_test
