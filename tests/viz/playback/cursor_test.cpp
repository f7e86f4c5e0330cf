#include "viz/playback/cursor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/errors.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::cursor_test {
namespace {

using namespace testing_support;

// The positions at which steps end, in order; 0 first.
std::vector<std::int64_t> stops(const Run& run) {
  std::vector<std::int64_t> all{0};
  for (std::int64_t row = 0; row < run.facts().rows; ++row) all.push_back(run.end_of_row(row).value);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// A second implementation of all moves, over the plain list of events.
class Walker {
 public:
  Walker(const Recorded& recorded, const Run& run) : events_(recorded.events), stops_(stops(run)) {}
  std::int64_t at = 0;

  bool step() { return go(*std::lower_bound(stops_.begin(), stops_.end(), std::min(at + 1, end()))); }
  bool step_back() {
    const auto here = std::lower_bound(stops_.begin(), stops_.end(), at);
    if (here == stops_.begin()) return false;
    return go(*std::prev(here));
  }
  bool go(std::int64_t to) {
    const bool moves = to != at;
    at = to;
    return moves;
  }
  std::optional<std::size_t> run_to(const std::vector<Breakpoint>& breakpoints) {
    for (std::int64_t i = at; i < end(); ++i) {
      if (const auto which = first_match(breakpoints, i)) return at = i + 1, which;
    }
    at = end();
    return std::nullopt;
  }
  std::optional<std::size_t> run_back_to(const std::vector<Breakpoint>& breakpoints) {
    for (std::int64_t i = at - 2; i >= 0; --i) {
      if (const auto which = first_match(breakpoints, i)) return at = i + 1, which;
    }
    at = 0;
    return std::nullopt;
  }
  [[nodiscard]] std::int64_t end() const { return std::ssize(events_); }

 private:
  [[nodiscard]] std::optional<std::size_t> first_match(const std::vector<Breakpoint>& all, std::int64_t i) const {
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (matches(all[b], events_[static_cast<std::size_t>(i)])) return b;
    }
    return std::nullopt;
  }

  const std::vector<trace::Event>& events_;
  std::vector<std::int64_t> stops_;
};

std::vector<Breakpoint> some_breakpoints() {
  std::vector<Breakpoint> all;
  for (const char* text : {"block_evicted", "block_allocated block=3", "request_preempted", "off step_began",
                           "step_ended free_blocks<2 running>=2", "tokens_written seq=1 decode=1"}) {
    if (*rc::gen::arbitrary<bool>()) all.push_back(parse_breakpoint(text));
  }
  return all;
}

// One move, made by both; their return values must be equal.
void move(Cursor& cursor, Walker& walker) {
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      RC_ASSERT(cursor.step() == walker.step());
      break;
    case 1:
      RC_ASSERT(cursor.step_back() == walker.step_back());
      break;
    case 2:
      RC_ASSERT(cursor.event() == walker.go(std::min(walker.at + 1, walker.end())));
      break;
    case 3:
      RC_ASSERT(cursor.event_back() == walker.go(std::max<std::int64_t>(walker.at - 1, 0)));
      break;
    case 4: {
      const auto to = *rc::gen::inRange<std::int64_t>(0, walker.end() + 1);
      RC_ASSERT(cursor.seek(Position{to}) == walker.go(to));
      break;
    }
    case 5: {
      const auto row = *rc::gen::inRange<std::int64_t>(0, cursor.run().facts().rows);
      RC_ASSERT(cursor.seek_row(row) == walker.go(cursor.run().end_of_row(row).value));
      break;
    }
    case 6: {
      const auto breakpoints = some_breakpoints();
      RC_ASSERT(cursor.run_to(breakpoints) == walker.run_to(breakpoints));
      break;
    }
    default: {
      const auto breakpoints = some_breakpoints();
      RC_ASSERT(cursor.run_back_to(breakpoints) == walker.run_back_to(breakpoints));
    }
  }
}

void expect_shown(const Cursor& cursor, const Recorded& recorded, Position at) {
  RC_ASSERT(cursor.position() == at);
  RC_ASSERT(cursor.state() == fresh_fold(recorded, cursor.run().facts(), at));
  RC_ASSERT(cursor.marks() == fresh_marks(recorded, at));
  RC_ASSERT(cursor.at_start() == (at.value == 0));
  RC_ASSERT(cursor.at_end() == (at.value == std::ssize(recorded.events)));
  const auto last = last_event(cursor);
  RC_ASSERT(last.has_value() == (at.value > 0));
  if (last) RC_ASSERT(trace::same_event(*last, recorded.events[static_cast<std::size_t>(at.value - 1)]));
  const trace::StepSpan& span = cursor.run().span(cursor.row());
  const bool in_row = span.first_event < at.value && at.value <= span.end_event();
  RC_ASSERT((at.value == 0 ? cursor.row() == 0 : in_row));
}

// After any moves the state equals the one computed from the first event. Finds a step_back that keeps a mark, a seek
// that continues from a later state, and a wrong step over an empty prologue.
TEST(Cursor, AnyWalkEndsWhereAFreshFoldEnds) {
  ASSERT_TRUE(rc::check([] {
    const Recorded recorded = *crowded_runs();
    Cursor cursor(recorded.open());
    Walker walker(recorded, cursor.run());
    const int moves = *rc::gen::inRange(1, 40);
    for (int i = 0; i < moves; ++i) {
      move(cursor, walker);
      expect_shown(cursor, recorded, Position{walker.at});
    }
  }));
}

// The same over a run of many checkpoints: a seek starts at a checkpoint in the middle, and continues from the current
// state only if no checkpoint is nearer.
TEST(Cursor, AnyWalkOverManyCheckpointsEndsWhereAFreshFoldEnds) {
  Scenario scenario = gallery("real_traffic_slice").scenario;
  scenario.requests.generator->count = 900;
  const Recorded recorded = record(scenario, make_requests(scenario, "."));
  const auto run = recorded.open();
  ASSERT_GE(run->checkpoint_before(Position{run->facts().events}).value, 4 * Run::kCheckpointEvents);
  ASSERT_TRUE(rc::check([&] {
    Cursor cursor(run);
    Walker walker(recorded, cursor.run());
    for (int i = 0; i < 6; ++i) move(cursor, walker);
    expect_shown(cursor, recorded, Position{walker.at});
  }));
}

// Stepping back continues from states that the cursor has kept, also when it turns around or jumps in between.
TEST(Cursor, SteppingBackThroughManyCheckpointsEndsWhereTheRunsStateIs) {
  Scenario scenario = gallery("real_traffic_slice").scenario;
  scenario.requests.generator->count = 400;
  const auto run = record(scenario, make_requests(scenario, ".")).open();
  ASSERT_GT(run->facts().events, 2 * Run::kCheckpointEvents);
  Cursor cursor(run);
  cursor.seek(Position{run->facts().events});
  for (int i = 0; cursor.step_back(); ++i) {
    if (i % 7 == 0) cursor.event_back();
    if (i % 50 == 20) cursor.step();
    if (i % 300 == 150) cursor.seek(Position{std::max<std::int64_t>(cursor.position().value - 9'000, 0)});
    if (i % 10 > 0) continue;
    ASSERT_TRUE(cursor.state() == run->state_at(cursor.position())) << cursor.position().value;
  }
  EXPECT_TRUE(cursor.state() == run->state_at(Position{0}));
}

// Three steps of two events, with a prologue of one event: every position from which and to which a step can move.
Recorded hand_made(bool with_prologue) {
  Recorded recorded;
  if (with_prologue) recorded.events.push_back(trace::RequestArrived{SeqIdx{0}, 5, 2});
  for (std::int64_t step = 0; step < 3; ++step) {
    recorded.events.push_back(trace::StepBegan{StepIdx{step}, step * 10});
    recorded.events.push_back(trace::StepEnded{StepIdx{step}, step * 10 + 9});
  }
  return recorded;
}

std::shared_ptr<const Run> open(const Recorded& recorded) {
  return Run::open(from_memory(recorded.events, {}, trace::Detail::full), "hand made");
}

TEST(Cursor, StepsLeadFromEndOfStepToEndOfStep) {
  Cursor cursor(open(hand_made(false)));
  std::vector<std::int64_t> places;
  while (cursor.step()) places.push_back(cursor.position().value);
  EXPECT_EQ(places, (std::vector<std::int64_t>{2, 4, 6}));
  places.clear();
  while (cursor.step_back()) places.push_back(cursor.position().value);
  EXPECT_EQ(places, (std::vector<std::int64_t>{4, 2, 0}));
}

TEST(Cursor, FromInsideAStepItsEndIsNextAndTheEndBeforeItIsLast) {
  Cursor cursor(open(hand_made(false)));
  cursor.seek(Position{3});
  EXPECT_TRUE(cursor.step());
  EXPECT_EQ(cursor.position().value, 4);
  cursor.seek(Position{3});
  EXPECT_TRUE(cursor.step_back());
  EXPECT_EQ(cursor.position().value, 2);
}

// The events before the first step are a row like any other.
TEST(Cursor, PrologueIsSteppedOverByItself) {
  Cursor cursor(open(hand_made(true)));
  EXPECT_TRUE(cursor.step());
  EXPECT_EQ(cursor.position().value, 1);
  EXPECT_EQ(cursor.row(), 0);
  EXPECT_TRUE(cursor.step());
  EXPECT_EQ(cursor.position().value, 3);
  EXPECT_EQ(cursor.row(), 1);
  cursor.seek_row(0);
  EXPECT_EQ(cursor.position().value, 1);
  EXPECT_TRUE(cursor.step_back());
  EXPECT_TRUE(cursor.at_start());
}

TEST(Cursor, NothingMovesPastTheEndsOfARun) {
  Cursor cursor(open(hand_made(true)));
  EXPECT_FALSE(cursor.step_back());
  EXPECT_FALSE(cursor.event_back());
  EXPECT_FALSE(cursor.seek(Position{0}));
  EXPECT_FALSE(last_event(cursor));
  cursor.seek(Position{7});
  EXPECT_FALSE(cursor.step());
  EXPECT_FALSE(cursor.event());
  EXPECT_EQ(cursor.run_to({}), std::nullopt);
  EXPECT_EQ(cursor.position().value, 7);
}

TEST(Cursor, RunOfNothingHasOnePlace) {
  Cursor cursor(open({}));
  EXPECT_TRUE(cursor.at_start());
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(cursor.row(), 0);
  EXPECT_FALSE(cursor.step() || cursor.step_back() || cursor.event() || cursor.event_back());
  EXPECT_EQ(cursor.run_to({}), std::nullopt);
  EXPECT_EQ(cursor.run_back_to({}), std::nullopt);
}

std::string message_of_seek(Cursor& cursor, std::int64_t position) {
  try {
    cursor.seek(Position{position});
  } catch (const IndexError& error) {
    return error.what();
  }
  return "moved";
}

TEST(Cursor, PositionsOutsideTheRunAreRejectedAndNothingMoves) {
  Cursor cursor(open(hand_made(true)));
  cursor.seek(Position{3});
  EXPECT_EQ(message_of_seek(cursor, 8), "position 8 is outside [0, 8)");
  EXPECT_EQ(message_of_seek(cursor, -1), "position -1 is outside [0, 8)");
  EXPECT_THROW(cursor.seek_row(4), IndexError);
  EXPECT_EQ(cursor.position().value, 3);
}

// A long run whose only event of the kind is far away: frames without this kind are skipped, and keep_going is still
// called.
Recorded long_run(std::int64_t steps) {
  Recorded recorded;
  for (std::int64_t step = 0; step < steps; ++step) {
    recorded.events.push_back(trace::StepBegan{StepIdx{step}, step});
    if (step == steps / 2) recorded.events.push_back(trace::RequestArrived{SeqIdx{0}, 5, 2});
    recorded.events.push_back(trace::StepEnded{StepIdx{step}, step});
  }
  return recorded;
}

TEST(Cursor, RunsToARareEventFromBothSides) {
  const std::vector<Breakpoint> rare{parse_breakpoint("request_arrived")};
  Cursor cursor(open(long_run(40'000)));
  EXPECT_EQ(cursor.run_to(rare), 0u);
  EXPECT_EQ(cursor.position().value, 40'002);
  EXPECT_EQ(cursor.state().live, std::vector<SeqIdx>{SeqIdx{0}});
  EXPECT_EQ(cursor.run_to(rare), std::nullopt);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(cursor.run_back_to(rare), 0u);
  EXPECT_EQ(cursor.position().value, 40'002);
  EXPECT_EQ(cursor.run_back_to(rare), std::nullopt);
  EXPECT_TRUE(cursor.at_start());
}

TEST(Cursor, StopsWhereItIsToldNotToGoOn) {
  const std::vector<Breakpoint> rare{parse_breakpoint("request_arrived")};
  Cursor cursor(open(long_run(40'000)));
  std::vector<std::int64_t> asked;
  const auto twice = [&](Position position) { return asked.push_back(position.value), asked.size() < 2; };
  EXPECT_EQ(cursor.run_to(rare, twice), std::nullopt);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_LT(asked[0], asked[1]);
  EXPECT_EQ(cursor.position().value, asked[1]);
  EXPECT_EQ(cursor.state().step.value, (asked[1] - 1) / 2);

  cursor.seek(Position{80'001});
  asked.clear();
  EXPECT_EQ(cursor.run_back_to({}, twice), std::nullopt);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_GT(asked[0], asked[1]);
  EXPECT_EQ(cursor.position().value, asked[1]);
}

TEST(Cursor, SeveralBreakpointsAtOneEventGiveTheFirst) {
  const std::vector<Breakpoint> all{parse_breakpoint("off step_ended"), parse_breakpoint("step_ended step>5"),
                                    parse_breakpoint("step_ended step=6"), parse_breakpoint("step_ended")};
  Cursor cursor(open(long_run(20)));
  EXPECT_EQ(cursor.run_to(all), 3u);
  EXPECT_EQ(cursor.position().value, 2);
  cursor.seek_row(6);
  EXPECT_EQ(cursor.run_to(all), 1u);
}

}  // namespace
}  // namespace kvscope::viz::cursor_test
