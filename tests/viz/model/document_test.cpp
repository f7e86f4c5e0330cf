// The open document: its position after each kind of move, its signals and their texts.
#include "viz/model/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "core/trace/event_text.h"
#include "tests/viz/model/support.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::document_test {
namespace {

using testing_support::preemption_run;
using testing_support::run_of_steps;

Breakpoint breakpoint(const char* text) {
  return parse_breakpoint(text);
}

// Compares with a new cursor at the document's position: finds a document that does not update its highlights or state.
void expect_fresh(const Document& document) {
  Cursor fresh(preemption_run());
  fresh.seek(document.cursor().position());
  EXPECT_EQ(document.cursor().state(), fresh.state());
  EXPECT_EQ(document.cursor().marks(), fresh.marks());
  EXPECT_EQ(document.pinned_lit(), resolve(fresh.state(), fresh.run().facts(), document.pinned()));
  EXPECT_EQ(document.hovered_lit(), resolve(fresh.state(), fresh.run().facts(), document.hovered()));
}

TEST(Document, OpensAtTheEndOfStepZero) {
  const Document document(preemption_run(), QStringLiteral("a.json"));
  EXPECT_EQ(document.cursor().position(), preemption_run()->end_of_row(1));
  EXPECT_EQ(document.cursor().state().step, StepIdx{0});
  EXPECT_FALSE(document.cursor().state().in_step);
  EXPECT_EQ(document.path(), QStringLiteral("a.json"));
}

// A trace of a run that never began a step has only the prologue's row: seeking to row 1 would throw.
TEST(Document, OfARunWithoutStepsStandsAtItsStart) {
  const std::shared_ptr<const viz::Run> run = viz::Run::open(from_memory({}, {}, trace::Detail::full), "empty");
  Document document(run, {});
  EXPECT_EQ(document.cursor().position(), Position{0});
  QSignalSpy stopped(&document, &Document::stopped);
  document.play();
  ASSERT_TRUE(stopped.wait(1000));
  EXPECT_FALSE(document.playing());
}

TEST(Document, SignalsEachMoveOnceAndNoneAtTheEnds) {
  Document document(preemption_run(), {});
  QSignalSpy moved(&document, &Document::position_changed);
  document.step();
  EXPECT_EQ(moved.count(), 1);
  document.to_start();
  EXPECT_EQ(moved.count(), 2);
  document.step_back();
  document.previous_event();
  document.to_start();
  EXPECT_EQ(moved.count(), 2);
  document.to_end();
  document.step();
  document.next_event();
  EXPECT_EQ(moved.count(), 3);
}

TEST(Document, CutsASeekToTheRun) {
  Document document(preemption_run(), {});
  document.seek(Position{-5});
  EXPECT_EQ(document.cursor().position(), Position{0});
  document.seek(Position{1'000'000'000});
  EXPECT_EQ(document.cursor().position().value, preemption_run()->facts().events);
  document.seek_step(StepIdx{-7});
  EXPECT_EQ(document.cursor().position(), preemption_run()->end_of_row(0));
  document.seek_step(StepIdx{9});
  EXPECT_EQ(document.cursor().position(), preemption_run()->end_of_row(10));
  document.seek_step(StepIdx{1'000'000});
  EXPECT_TRUE(document.cursor().at_end());
}

trace::StepEnded ended(std::int64_t step) {
  trace::StepEnded event;
  event.step = StepIdx(step);
  return event;
}

// A trace may be a piece of a run: row 1 is not step 0 then.
TEST(Document, SeeksAStepByItsNumberWhereTheTraceBeginsLater) {
  const std::shared_ptr<const viz::Run> run =
      Run::open(from_memory({trace::StepBegan{StepIdx{40}, 0}, ended(40), trace::StepBegan{StepIdx{42}, 0}, ended(42)},
                            {}, trace::Detail::steps),
                "late");
  Document document(run, {});
  document.seek_step(StepIdx{42});
  EXPECT_EQ(document.cursor().state().step, StepIdx{42});
  document.seek_step(StepIdx{41});
  EXPECT_EQ(document.cursor().state().step, StepIdx{40});
  document.seek_step(StepIdx{3});
  EXPECT_EQ(document.cursor().state().step, StepIdx{-1});
}

// The main property of the viewer, checked on the object that every panel observes.
RC_GTEST_PROP(DocumentProperty, AnyWalkShowsWhatAFreshFoldShows, ()) {
  Document document(preemption_run(), {});
  document.pin(of_page(SeqIdx(*rc::gen::inRange(0, 6)), PageIdx(*rc::gen::inRange(0, 9))));
  document.hover(of_block(BlockIdx(*rc::gen::inRange(0, 25))));
  const std::int64_t events = preemption_run()->facts().events;
  for (const int move : *rc::gen::container<std::vector<int>>(12, rc::gen::inRange(0, 7))) {
    switch (move) {
      case 0:
        document.step();
        break;
      case 1:
        document.step_back();
        break;
      case 2:
        document.next_event();
        break;
      case 3:
        document.previous_event();
        break;
      case 4:
        document.seek(Position(*rc::gen::inRange<std::int64_t>(-3, events + 4)));
        break;
      case 5:
        document.seek_step(StepIdx(*rc::gen::inRange(-2, 50)));
        break;
      default:
        document.pin(of_token(SeqIdx(*rc::gen::inRange(0, 6)), TokIdx(*rc::gen::inRange(0, 40))));
        break;
    }
    expect_fresh(document);
  }
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

TEST(Document, RunsToABreakpointAndReportsEventAndStep) {
  Document document(preemption_run(), {});
  document.set_breakpoints({breakpoint("block_copied"), breakpoint("request_preempted")});
  QSignalSpy stopped(&document, &Document::stopped);
  document.run_to_breakpoint();
  const trace::Event event = last_event(document.cursor()).value();
  EXPECT_EQ(trace::kind_name(event.index()), "request_preempted");
  EXPECT_EQ(document.cursor().state().step, StepIdx{3});
  EXPECT_TRUE(document.cursor().state().in_step);
  ASSERT_EQ(stopped.count(), 1);
  EXPECT_EQ(stopped[0][0].toString(), QStringLiteral("breakpoint 2: request_preempted at event %1, step 3")
                                          .arg(document.cursor().position().value - 1));
  expect_fresh(document);
}

TEST(Document, RunsBackToTheBreakpointBeforeAndThenToTheStart) {
  Document document(preemption_run(), {});
  document.set_breakpoints({breakpoint("request_preempted")});
  document.run_to_breakpoint();
  const Position first = document.cursor().position();
  document.run_to_breakpoint();
  ASSERT_GT(document.cursor().position(), first);
  document.run_back_to_breakpoint();
  EXPECT_EQ(document.cursor().position(), first);
  QSignalSpy stopped(&document, &Document::stopped);
  document.run_back_to_breakpoint();
  EXPECT_TRUE(document.cursor().at_start());
  EXPECT_EQ(stopped.takeFirst()[0].toString(), QStringLiteral("start of the run"));
  expect_fresh(document);
}

TEST(Document, WithoutAnEnabledBreakpointRunsToTheEnd) {
  Document document(preemption_run(), {});
  Breakpoint off = breakpoint("request_preempted");
  off.enabled = false;
  document.set_breakpoints({off});
  QSignalSpy stopped(&document, &Document::stopped);
  document.run_to_breakpoint();
  EXPECT_TRUE(document.cursor().at_end());
  EXPECT_EQ(stopped.takeFirst()[0].toString(), QStringLiteral("end of the run"));
}

// A million steps are searched in slices: meanwhile the document counts as playing, and pause() ends the search.
TEST(Document, ALongSearchGoesOnInSlicesAndCanBePaused) {
  static const std::shared_ptr<const viz::Run> kLong = run_of_steps(600'000);
  Document document(kLong, {});
  document.set_breakpoints({breakpoint("step_ended step=999999999")});
  QSignalSpy stopped(&document, &Document::stopped);
  document.run_to_breakpoint();
  while (document.playing() && !document.cursor().at_end()) QTest::qWait(1);
  QTRY_VERIFY_WITH_TIMEOUT(document.cursor().at_end(), 20'000);
  EXPECT_FALSE(document.playing());
  EXPECT_EQ(stopped.count(), 1);
  EXPECT_EQ(stopped[0][0].toString(), QStringLiteral("end of the run"));
}

// --- playing ---------------------------------------------------------------------------------------------------------

TEST(Document, PlaysToTheEndAndFromTheEndStartsAgain) {
  Document document(preemption_run(), {});
  document.set_speed(4096);
  QSignalSpy stopped(&document, &Document::stopped), playing(&document, &Document::playing_changed);
  document.play();
  EXPECT_TRUE(document.playing());
  ASSERT_TRUE(stopped.wait(5000));
  EXPECT_EQ(stopped.takeFirst()[0].toString(), QStringLiteral("end of the run"));
  EXPECT_TRUE(document.cursor().at_end());
  EXPECT_EQ(playing.count(), 2);
  document.set_speed(0.25);
  document.play();
  EXPECT_TRUE(document.cursor().at_start());
  document.toggle_playing();
  EXPECT_FALSE(document.playing());
  expect_fresh(document);
}

// Playing moves step by step; a breakpoint inside a step must stop it there and not at the step's end.
TEST(Document, PlayingStopsRightAfterTheEventOfABreakpoint) {
  Document document(preemption_run(), {});
  document.set_breakpoints({breakpoint("request_preempted seq=5")});
  document.set_speed(4096);
  QSignalSpy stopped(&document, &Document::stopped);
  document.play();
  ASSERT_TRUE(stopped.wait(5000));
  EXPECT_FALSE(document.playing());
  EXPECT_TRUE(document.cursor().state().in_step);
  EXPECT_EQ(document.cursor().state().step, StepIdx{3});
  EXPECT_THAT(stopped[0][0].toString().toStdString(),
              testing::StartsWith("breakpoint 1: request_preempted seq=5 at event"));
  expect_fresh(document);
}

TEST(Document, EveryMoveStopsPlayingFirst) {
  Document document(preemption_run(), {});
  for (void (Document::*move)() : {&Document::step, &Document::step_back, &Document::next_event,
                                   &Document::previous_event, &Document::to_start, &Document::run_to_breakpoint}) {
    document.seek_step(StepIdx{5});
    document.set_speed(0.25);
    document.play();
    ASSERT_TRUE(document.playing());
    (document.*move)();
    EXPECT_FALSE(document.playing());
  }
}

TEST(Document, SpeedIsCutAndToldOnlyWhenItChanges) {
  Document document(preemption_run(), {});
  QSignalSpy told(&document, &Document::speed_changed);
  document.set_speed(1e9);
  EXPECT_EQ(document.speed(), Player::kFastest);
  document.set_speed(1e8);
  EXPECT_EQ(told.count(), 1);
}

// --- selection -------------------------------------------------------------------------------------------------------

TEST(Document, PinningAStepGoesThere) {
  Document document(preemption_run(), {});
  document.pin(of_step(StepIdx{7}));
  EXPECT_EQ(document.cursor().position(), preemption_run()->end_of_row(8));
  EXPECT_EQ(document.pinned(), of_step(StepIdx{7}));
}

TEST(Document, HoverAndPinAreToldOnceAndKeptApart) {
  Document document(preemption_run(), {});
  QSignalSpy hovered(&document, &Document::hovered_changed), pinned(&document, &Document::pinned_changed);
  document.hover(of_block(BlockIdx{3}));
  document.hover(of_block(BlockIdx{3}));
  EXPECT_EQ(hovered.count(), 1);
  EXPECT_EQ(pinned.count(), 0);
  document.pin(of_token(SeqIdx{0}, TokIdx{2}));
  EXPECT_EQ(pinned.count(), 1);
  EXPECT_EQ(hovered.count(), 1);
  expect_fresh(document);
}

// --- find ------------------------------------------------------------------------------------------------------------

TEST(Document, GoesToEachKindOfTarget) {
  Document document(preemption_run(), {});
  QSignalSpy bytes(&document, &Document::byte_wanted);
  document.go_to(of_block(BlockIdx{4}));
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{4}));
  document.go_to(FindPosition{Position{17}});
  EXPECT_EQ(document.cursor().position(), Position{17});
  document.go_to(FindByte{64});
  ASSERT_EQ(bytes.count(), 1);
  EXPECT_EQ(bytes[0][0].toLongLong(), 64);
  document.go_to(FindEvent{trace::find_kind("request_preempted").value()});
  EXPECT_EQ(trace::kind_name(last_event(document.cursor())->index()), "request_preempted");
}

// If nothing is found, the document must not move to the end.
TEST(Document, StaysWhereItIsWhenNoSuchEventFollows) {
  Document document(preemption_run(), {});
  document.seek_step(StepIdx{5});
  const Position before = document.cursor().position();
  QSignalSpy stopped(&document, &Document::stopped), moved(&document, &Document::position_changed);
  document.go_to(FindEvent{trace::find_kind("request_refused").value()});
  EXPECT_EQ(document.cursor().position(), before);
  EXPECT_EQ(stopped.takeFirst()[0].toString(), QStringLiteral("no such event after this"));
  EXPECT_EQ(moved.count(), 0);
  expect_fresh(document);
}

// --- the tile --------------------------------------------------------------------------------------------------------

// Boxes of 2 x 16 bytes, then one read: 12 events in 6 actions.
std::shared_ptr<const Tile> small_tile(SeqIdx seq, TokIdx first) {
  trace::TileOpened opened;
  opened.seq = seq;
  opened.first_token = first;
  opened.tma = true;
  opened.rows = opened.tokens = 4;
  opened.columns = 8;
  opened.bytes = 64;
  std::vector<trace::Event> events{opened, trace::BarrierExpects{0, 64}};
  for (std::int64_t box = 0; box < 2; ++box) {
    events.emplace_back(trace::BoxCopied{box, box, 0, 2 * box, 32 * box, 32, 0});
    for (std::int64_t row = 2 * box; row < 2 * box + 2; ++row) {
      events.emplace_back(trace::ChunkLanded{box, row, 0, 16 * row, 16 * row});
    }
  }
  events.insert(events.end(), {trace::BarrierCompleted{0}, trace::FragmentRead{0, 0, 0, 1, 1, 0},
                               trace::LaneRead{0, 0, 0}, trace::LaneRead{0, 1, 16}});
  return std::make_shared<const Tile>(fold_tile(events));
}

// At the end of the run no sequence is in the cache any more, but the last step's kernels read one.
TEST(DocumentTile, AfterTheRunsEndTheCacheIsTheOneThatTheLastStepRead) {
  Document document(preemption_run(), {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  document.to_end();
  EXPECT_TRUE(document.cursor().state().live.empty());
  EXPECT_EQ(&document.shown_state(), &document.cursor().state());
  document.pin(of_token(SeqIdx{5}, TokIdx{9}));
  EXPECT_TRUE(document.pinned_lit().blocks.empty()) << "the sequence has ended";
  document.follow_tile(true);
  const State& shown = document.shown_state();
  EXPECT_EQ(shown.step, document.cursor().state().step);
  ASSERT_FALSE(shown.live.empty());
  const SeqIdx last = shown.live.back();
  EXPECT_GT(shown.sequences[last.value].tokens, 9);
  document.pin(of_token(last, TokIdx{9}));
  EXPECT_EQ(document.pinned_lit().token, TokIdx{9});
  EXPECT_EQ(document.pinned_lit().block, BlockIdx{shown.sequences[last.value].pages[2]});
  ASSERT_GE(wanted.count(), 1);
  const TileRequest asked = wanted.back()[0].value<TileRequest>();
  EXPECT_EQ(asked.seq, last);
  EXPECT_EQ(asked.step, shown.step);
  EXPECT_EQ(document.cursor().position().value, document.run().facts().events) << "the cursor stays";
  document.follow_tile(false);
  EXPECT_TRUE(document.shown_state().live.empty());
  EXPECT_FALSE(document.pinned_lit().token);
}

// In every step: all sequences whose tokens it wrote, those that end in it included.
TEST(DocumentTile, TheShownCacheHasEverySequenceThatTheStepComputed) {
  Document document(preemption_run(), {});
  document.follow_tile(true);
  for (std::int64_t row = 1; row < document.run().facts().rows; ++row) {
    document.seek(document.run().end_of_row(row));
    for (const trace::Event& event : *document.run().events_of_row(row)) {
      const auto* written = std::get_if<trace::TokensWritten>(&event);
      if (written == nullptr) continue;
      EXPECT_TRUE(std::ranges::binary_search(document.shown_state().live, written->seq)) << row;
      EXPECT_GT(document.shown_state().sequences[written->seq.value].tokens, written->first_token.value) << row;
    }
  }
}

TEST(DocumentTile, ChosenWithAnEventIsShownThere) {
  Document document(preemption_run(), {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  TileRequest request;
  request.seq = SeqIdx{1};
  request.kv = KOrV::v;
  document.choose_tile_at(request, 5);
  EXPECT_EQ(wanted.count(), 0) << "the tile view is not shown";
  document.follow_tile(true);
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted[0][0].value<TileRequest>().kv, KOrV::v);
  document.show_tile(small_tile(SeqIdx{1}, TokIdx{0}));
  EXPECT_EQ(document.tile_now().event, 5);
  document.show_tile(small_tile(SeqIdx{1}, TokIdx{4}));
  EXPECT_EQ(document.tile_now().event, 5) << "the playhead stays";
  document.choose_tile_at(request, 99);
  EXPECT_EQ(wanted.count(), 2) << "asked again, although it is the same tile";
  document.show_tile(small_tile(SeqIdx{1}, TokIdx{0}));
  EXPECT_EQ(document.tile_now().event, 12) << "clamped to the tile";
}

TEST(DocumentTile, IsAskedForWhenTheViewFollowsAndAgainWhenTheTokenOrTheStepChanges) {
  Document document(preemption_run(), {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  document.pin(of_token(SeqIdx{0}, TokIdx{1}));
  document.step();
  EXPECT_EQ(wanted.count(), 0) << "the tile view is not shown";
  document.follow_tile(true);
  ASSERT_EQ(wanted.count(), 1);
  const auto asked = [&](int n) { return wanted[n][0].value<TileRequest>(); };
  EXPECT_EQ(asked(0).seq, SeqIdx{0});
  EXPECT_EQ(asked(0).token, TokIdx{1});
  EXPECT_EQ(asked(0).step, document.cursor().state().step);
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  document.pin(of_token(SeqIdx{0}, TokIdx{3}));
  EXPECT_EQ(wanted.count(), 1) << "the tile that is shown holds the token";
  document.pin(of_token(SeqIdx{0}, TokIdx{4}));
  EXPECT_EQ(wanted.count(), 2);
  document.step();
  ASSERT_EQ(wanted.count(), 3);
  EXPECT_EQ(asked(2).step, document.cursor().state().step);
  TileRequest request = document.tile_request();
  request.kv = KOrV::v;
  document.choose_tile(request);
  ASSERT_EQ(wanted.count(), 4);
  EXPECT_EQ(asked(3).kv, KOrV::v);
  EXPECT_EQ(asked(3).token, TokIdx{4});
  document.to_start();
  EXPECT_EQ(wanted.count(), 4);
  EXPECT_EQ(document.tile(), nullptr);
  EXPECT_TRUE(document.tile_instead().startsWith(QStringLiteral("Before the first step")));
}

TEST(DocumentTile, StepsActionByActionAndEventByEventAndBack) {
  Document document(preemption_run(), {});
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  EXPECT_EQ(document.tile_now().event, 9) << "everything has landed, nothing is read";
  QSignalSpy changed(&document, &Document::tile_changed);
  document.tile_to_start();
  std::vector<std::int64_t> at;
  for (int n = 0; n < 6; ++n) document.tile_step(), at.push_back(document.tile_now().event);
  EXPECT_THAT(at, testing::ElementsAre(1, 2, 5, 8, 9, 12));
  EXPECT_EQ(changed.count(), 7);
  document.tile_step();
  EXPECT_EQ(changed.count(), 7) << "the end";
  document.tile_event_back();
  EXPECT_EQ(document.tile_now().event, 11);
  document.tile_step_back();
  EXPECT_EQ(document.tile_now().event, 9) << "the beginning of the read";
  document.tile_step_back();
  EXPECT_EQ(document.tile_now().event, 8);
  document.tile_event();
  EXPECT_EQ(document.tile_now().event, 9);
  document.seek_tile(-5);
  EXPECT_EQ(document.tile_now().event, 0);
  document.seek_tile(1'000'000);
  EXPECT_EQ(document.tile_now(), tile_state(*document.tile(), 12));
  document.pin(of_tile_event(3));
  EXPECT_EQ(document.tile_now().event, 3);
  EXPECT_TRUE(document.pinned().none()) << "a place in time is gone to, not kept";
}

// A layout is a choice: it keeps what is pinned, is told once, and ends with the tile.
TEST(DocumentTile, ALayoutIsChosenByAClickUntilAnotherTileIsShown) {
  Document document(preemption_run(), {});
  document.pin(of_tile_layout(1));
  EXPECT_FALSE(document.tile_layout()) << "there is no tile";
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  document.pin(of_tile_row(1));
  QSignalSpy changed(&document, &Document::tile_changed);
  document.pin(of_tile_layout(1));
  document.pin(of_tile_layout(1));
  EXPECT_EQ(document.tile_layout(), 1U);
  EXPECT_EQ(changed.count(), 1);
  EXPECT_EQ(document.pinned(), of_tile_row(1));
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{1}));
  EXPECT_FALSE(document.tile_layout());
}

// Where one path cannot take the tile, another is one click away.
TEST(DocumentTile, AnOfferOfAnotherPathAsksForTheTileByThatPath) {
  Document document(preemption_run(), {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  document.follow_tile(true);
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(document.tile_source(), nullptr);
  TileSource source;
  source.path = TilePath::tma;
  source.offers = {{TilePath::lds, 0, ""}};
  document.show_no_tile(QStringLiteral("box[0]: too wide"), source);
  ASSERT_NE(document.tile_source(), nullptr);
  EXPECT_EQ(*document.tile_source(), source);
  document.pin(of_tile_path(TilePath::lds));
  ASSERT_EQ(wanted.count(), 2);
  EXPECT_EQ(wanted[1][0].value<TileRequest>().path, TilePath::lds);
  EXPECT_TRUE(document.pinned().none()) << "an offer is no object";
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  EXPECT_EQ(document.tile_source(), nullptr) << "nothing is known of this tile's origin";
  document.pin(of_tile_path(TilePath::gather4));
  ASSERT_EQ(wanted.count(), 3);
  EXPECT_EQ(wanted[2][0].value<TileRequest>().path, TilePath::gather4);
}

TEST(DocumentTile, PlaysToTheEndAndStops) {
  Document document(preemption_run(), {});
  document.set_speed(4096);
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  document.tile_to_end();
  QSignalSpy playing(&document, &Document::tile_playing_changed);
  document.toggle_tile_playing();
  EXPECT_TRUE(document.tile_playing());
  EXPECT_EQ(document.tile_now().event, 0) << "from the end: from the start";
  ASSERT_TRUE(QTest::qWaitFor([&] { return !document.tile_playing(); }, 5000));
  EXPECT_EQ(document.tile_now().event, 12);
  EXPECT_EQ(playing.count(), 2);
  document.toggle_tile_playing();
  document.show_no_tile(QStringLiteral("why"));
  EXPECT_FALSE(document.tile_playing());
  EXPECT_EQ(document.tile_instead(), QStringLiteral("why"));
}

TEST(DocumentTile, LightsItsRowsAndGoesWithTheTile) {
  Document document(preemption_run(), {});
  document.pin(of_token(SeqIdx{0}, TokIdx{2}));
  EXPECT_TRUE(document.pinned_lit().tile.rows.empty());
  document.show_tile(small_tile(SeqIdx{0}, TokIdx{0}));
  EXPECT_EQ(document.pinned_lit().tile.row, 2);
  document.hover(of_tile_row(1));
  EXPECT_EQ(document.hovered_lit().token, TokIdx{1});
  document.show_no_tile({});
  EXPECT_TRUE(document.pinned_lit().tile.rows.empty());
  EXPECT_EQ(document.hovered_lit(), Lit{});
}

// Both were by TMA until a path was chosen.
TEST(DocumentTile, OfAScenarioAboutLdsIsThroughLds) {
  const std::shared_ptr<const viz::Run> run = testing_support::simulate("tile_through_lds").run;
  Document document(run, {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  document.follow_tile(true);
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted[0][0].value<TileRequest>().path, TilePath::lds);
  document.seek_step(StepIdx{8});
  EXPECT_EQ(document.tile_request().path, TilePath::lds);
}

// A kernel's trace, or one of focus.staging: its own tiles come first, and the request's on choice.
TEST(DocumentTile, OfATraceThatHoldsTilesIsTheFirstOfThem) {
  std::vector<trace::Event> events;
  for (const std::int64_t first : {0, 4}) {
    trace::TileOpened opened;
    opened.tma = true;
    opened.first_token = TokIdx{first};
    opened.rows = opened.tokens = opened.columns = 4;
    events.insert(events.end(), {opened, trace::BoxCopied{}});
  }
  const std::shared_ptr<const viz::Run> run = viz::Run::open(from_memory(events, {}, trace::Detail::full), "tiles");
  Document document(run, {});
  QSignalSpy wanted(&document, &Document::tile_wanted);
  document.follow_tile(true);
  ASSERT_EQ(document.recorded().size(), 2u);
  EXPECT_EQ(document.recorded_tile(), 0u);
  ASSERT_NE(document.tile(), nullptr);
  EXPECT_EQ(document.tile()->events, 2);
  document.choose_recorded_tile(1);
  EXPECT_EQ(document.tile()->opened.first_token, TokIdx{4});
  EXPECT_EQ(wanted.count(), 0);
  document.choose_recorded_tile(-1);
  EXPECT_EQ(document.recorded_tile(), std::nullopt);
  EXPECT_EQ(document.tile(), nullptr) << "a run without steps has no step to stage at";
}

}  // namespace
}  // namespace kvscope::viz::document_test
