// A document and the run that it is compared with: the compared run is at the same step after every move, and the
// search for differences finds the rows that a loop over all rows finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <optional>

#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/viz/model/support.h"
#include "viz/playback/run_difference.h"

namespace kvscope::viz::document_compared_test {
namespace {

using testing_support::preemption_run;
using testing_support::run_of_steps;

std::shared_ptr<const Run> changed_run(const std::function<void(Scenario&)>& change) {
  Scenario scenario = load_scenario(testing_support::gallery_folder() / "preemption.json");
  change(scenario);
  trace::MemoryRecorder recorder;
  static_cast<void>(run_engine(scenario, make_requests(scenario, testing_support::gallery_folder()), recorder));
  return Run::open(from_memory(recorder.events(), {{"scenario", json::dump(to_json(scenario))}}, trace::Detail::full),
                   "changed");
}

// 69 steps instead of 47; step 2 is the first that differs.
const std::shared_ptr<const Run>& small_batch() {
  static const std::shared_ptr<const Run> kRun = changed_run([](Scenario& s) { s.scheduler.max_batch = 2; });
  return kRun;
}
// 20 blocks instead of 24.
const std::shared_ptr<const Run>& small_pool() {
  static const std::shared_ptr<const Run> kRun = changed_run([](Scenario& s) { s.cache.blocks = 20; });
  return kRun;
}
const std::shared_ptr<const Run>& other_pages() {
  static const std::shared_ptr<const Run> kRun = changed_run([](Scenario& s) { s.cache.page_size = 5; });
  return kRun;
}

// Steps without blocks; in each of the rows `odd` a request waits, which is not so in run_of_steps().
std::shared_ptr<const Run> steps_with(std::int64_t first, std::int64_t end, const std::vector<std::int64_t>& odd) {
  std::vector<trace::Event> events;
  for (std::int64_t k = first; k < end; ++k) {
    events.emplace_back(trace::StepBegan{StepIdx(k), 10 * k});
    trace::StepEnded ended;
    ended.step = StepIdx(k);
    ended.time_us = 10 * k + 9;
    ended.waiting = std::ranges::find(odd, k) != odd.end() ? 1 : 0;
    events.emplace_back(ended);
  }
  return Run::open(from_memory(std::move(events), {}, trace::Detail::steps), "steps");
}

void expect_together(const Document& document) {
  ASSERT_NE(document.compared(), nullptr);
  ASSERT_TRUE(document.beside());
  Cursor fresh(document.compared_run());
  fresh.seek(counterpart(document.cursor(), *document.compared_run()));
  ASSERT_EQ(document.compared()->position(), fresh.position());
  EXPECT_EQ(document.compared()->state(), fresh.state());
  EXPECT_EQ(document.compared()->marks(), fresh.marks());
  const auto lit = [&](const Selection& object) {
    return resolve(fresh.state(), fresh.run().facts(), object);
  };
  EXPECT_EQ(document.compared_pinned_lit(), lit(document.pinned()));
  EXPECT_EQ(document.compared_hovered_lit(), lit(document.hovered()));
}

// --- which run, and whether it is beside -----------------------------------------------------------------------------

TEST(DocumentCompared, IsWithoutARunAtFirst) {
  Document document(preemption_run(), {});
  QSignalSpy compared(&document, &Document::compared_changed), stopped(&document, &Document::stopped);
  EXPECT_EQ(document.compared(), nullptr);
  EXPECT_EQ(document.compared_run(), nullptr);
  document.show_beside(true);
  document.set_compared(nullptr);
  document.next_difference();
  document.previous_difference();
  EXPECT_FALSE(document.beside());
  EXPECT_FALSE(document.marks_differences());
  EXPECT_EQ(compared.count(), 0);
  EXPECT_EQ(stopped.count(), 0);
  EXPECT_FALSE(document.playing());
}

TEST(DocumentCompared, SignalsEachChangeOnceAndIsThereWhenItIsTold) {
  Document document(preemption_run(), {});
  document.seek_step(StepIdx{20});
  document.pin(of_block(BlockIdx{5}));
  int told = 0;
  QObject::connect(&document, &Document::compared_changed, [&] {
    ++told;
    if (document.beside()) expect_together(document);
  });
  document.set_compared(small_batch());
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(document.beside());
  EXPECT_FALSE(document.marks_differences());
  document.set_compared(small_batch());
  EXPECT_EQ(told, 1);
  document.show_beside(true);
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(document.marks_differences());
  document.show_beside(true);
  EXPECT_EQ(told, 2);
  document.set_compared(small_pool());  // stays beside
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(document.beside());
  EXPECT_EQ(document.compared_run(), small_pool());
  document.show_beside(false);
  EXPECT_EQ(told, 4);
  EXPECT_NE(document.compared(), nullptr);
  document.show_beside(true);
  document.set_compared(nullptr);
  EXPECT_EQ(told, 6);
  EXPECT_FALSE(document.beside());
  EXPECT_EQ(document.compared(), nullptr);
}

TEST(DocumentCompared, MarksNothingWherePagesHaveAnotherSize) {
  Document document(preemption_run(), {});
  document.set_compared(other_pages());
  document.show_beside(true);
  EXPECT_TRUE(document.beside());
  EXPECT_FALSE(document.marks_differences());
  document.set_compared(run_of_steps(50));
  EXPECT_FALSE(document.marks_differences());
  document.set_compared(small_pool());
  EXPECT_TRUE(document.marks_differences());
}

// --- the same step ---------------------------------------------------------------------------------------------------

// Observers look at the compared run when they are told of a move: it must have moved before.
RC_GTEST_PROP(DocumentComparedProperty, AfterAnyWalkItIsAtTheSameStep, ()) {
  Document document(preemption_run(), {});
  document.set_compared(*rc::gen::element(small_batch(), small_pool(), other_pages()));
  document.show_beside(true);
  QObject::connect(&document, &Document::position_changed, [&] {
    if (document.beside()) expect_together(document);
  });
  const std::int64_t events = preemption_run()->facts().events;
  for (const int move : *rc::gen::container<std::vector<int>>(12, rc::gen::inRange(0, 11))) {
    switch (move) {
      case 0:
        document.step();
        break;
      case 1:
        document.step_back();
        break;
      case 2:
      case 3:
        document.next_event();
        break;
      case 4:
        document.previous_event();
        break;
      case 5:
        document.seek(Position(*rc::gen::inRange<std::int64_t>(-3, events + 4)));
        break;
      case 6:
        document.pin(of_step(StepIdx(*rc::gen::inRange(-2, 50))));
        break;
      case 7:
        document.hover(of_block(BlockIdx(*rc::gen::inRange(0, 25))));
        break;
      case 8:
        document.pin(of_page(SeqIdx(*rc::gen::inRange(0, 6)), PageIdx(*rc::gen::inRange(0, 9))));
        break;
      case 9:
        document.next_difference();
        break;
      default:  // hidden meanwhile: it may be anywhere
        document.show_beside(false);
        document.step();
        document.show_beside(true);
        break;
    }
    expect_together(document);
  }
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(DocumentCompared, FollowsWhileItPlaysAndStopsAtABreakpoint) {
  Document document(preemption_run(), {});
  document.set_compared(small_batch());
  document.show_beside(true);
  document.to_start();
  document.set_speed(4096);
  int told = 0;
  QObject::connect(&document, &Document::position_changed, [&] {
    ++told;
    expect_together(document);
  });
  QSignalSpy stopped(&document, &Document::stopped);
  document.set_breakpoints({parse_breakpoint("request_preempted")});
  document.play();
  ASSERT_TRUE(stopped.wait(10'000));
  EXPECT_GT(told, 0);
  EXPECT_LT(document.cursor().position(), document.run().end_of_row(document.cursor().row()));
  document.set_breakpoints({});
  document.play();
  ASSERT_TRUE(stopped.wait(10'000));
  EXPECT_TRUE(document.cursor().at_end());
  EXPECT_EQ(document.compared()->state().step, StepIdx{46});
  EXPECT_FALSE(document.compared()->at_end()) << "the compared run goes on to step 68";
}

TEST(DocumentCompared, TheEndOfAShorterRunIsShownAfterIt) {
  Document document(small_batch(), {});
  document.set_compared(preemption_run());
  document.show_beside(true);
  document.to_end();
  EXPECT_TRUE(document.compared()->at_end());
  document.step_back();
  EXPECT_TRUE(document.compared()->at_end());
  document.seek_step(StepIdx{45});
  EXPECT_FALSE(document.compared()->at_end());
}

// --- objects that one of the runs has --------------------------------------------------------------------------------

TEST(DocumentCompared, AnObjectOfOneRunIsLitInThatOne) {
  Document document(preemption_run(), {});
  document.set_compared(small_pool());
  document.show_beside(true);
  document.pin(of_block(BlockIdx{22}));  // the compared pool ends at 19
  EXPECT_FALSE(document.pinned_lit() == Lit{});
  expect_together(document);
  EXPECT_TRUE(document.compared_pinned_lit().places.empty());
  // Sequence 5 of the compared run: it arrives, but is admitted in another step.
  document.set_compared(small_batch());
  bool apart = false;
  for (std::int64_t step = 0; step < 47; ++step) {
    document.seek_step(StepIdx{step});
    document.pin(of_page(SeqIdx{4}, PageIdx{0}));
    expect_together(document);
    apart = apart || document.pinned_lit() != document.compared_pinned_lit();
  }
  EXPECT_TRUE(apart);
}

// --- differences -----------------------------------------------------------------------------------------------------

struct Found {
  std::optional<std::int64_t> row;
  QString words;
};

Found expected_from(const Document& document, bool back) {
  const Run& run = document.run();
  const Run& other = *document.compared_run();
  const std::int64_t here = document.cursor().row(), rows = run.facts().rows;
  const bool inside = document.cursor().position() != run.end_of_row(here);
  const std::int64_t by = back ? -1 : 1;
  for (std::int64_t row = back ? here - 1 : inside ? here : here + 1; row >= 0 && row < rows; row += by) {
    if (!step_differs(run, row, other)) continue;
    return {row, row == 0 ? QStringLiteral("the runs differ before their first step")
                          : QStringLiteral("the runs differ in step %1").arg(run.span(row).step.value)};
  }
  if (back) return {{}, QStringLiteral("no step before this one differs")};
  const std::int64_t last = other.facts().rows > 1 ? other.span(other.facts().rows - 1).step.value : -1;
  const std::int64_t our_last = rows > 1 ? run.span(rows - 1).step.value : -1;
  if (last <= our_last) return {{}, QStringLiteral("no step after this one differs")};
  return {{}, QStringLiteral("no step after this one differs; the other run goes on to step %1").arg(last)};
}

void expect_search(Document& document, bool back) {
  const Position from = document.cursor().position();
  const Found expected = expected_from(document, back);
  QSignalSpy stopped(&document, &Document::stopped);
  back ? document.previous_difference() : document.next_difference();
  EXPECT_FALSE(document.playing());
  ASSERT_EQ(stopped.count(), 1);
  EXPECT_EQ(stopped[0][0].toString().toStdString(), expected.words.toStdString()) << from.value;
  EXPECT_EQ(document.cursor().position(), expected.row ? document.run().end_of_row(*expected.row) : from);
}

TEST(DocumentCompared, NextAndPreviousDifferenceAreThoseOfALoopOverAllSteps) {
  const auto late = steps_with(0, 50, {3, 4, 17, 49});
  const std::vector<std::pair<std::shared_ptr<const viz::Run>, std::shared_ptr<const viz::Run>>> pairs{
      {preemption_run(), small_batch()},
      {small_batch(), preemption_run()},
      {preemption_run(), small_pool()},
      {preemption_run(), preemption_run()},
      {preemption_run(), other_pages()},
      {run_of_steps(50), late},
      {late, run_of_steps(50)},
      {run_of_steps(50), steps_with(10, 30, {12})},
      {steps_with(10, 30, {12}), run_of_steps(50)},
      {steps_with(10, 30, {12}), steps_with(20, 40, {})},
      {run_of_steps(5), run_of_steps(9)},
      {run_of_steps(9), run_of_steps(5)}};
  for (const auto& [run, other] : pairs) {
    Document document(run, {});
    document.set_compared(other);
    for (std::int64_t position = 0; position <= run->facts().events; ++position) {
      for (const bool back : {false, true}) {
        document.seek(Position{position});
        ASSERT_NO_FATAL_FAILURE(expect_search(document, back));
      }
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// The numbers of steps, which a search by rows would report wrongly.
TEST(DocumentCompared, ReportsStepsByTheirNumbers) {
  Document document(steps_with(40, 60, {}), {});
  document.set_compared(steps_with(40, 70, {44, 51}));
  QSignalSpy stopped(&document, &Document::stopped);
  for (int n = 0; n < 3; ++n) document.next_difference();
  document.previous_difference();
  document.previous_difference();
  QStringList words;
  for (const QList<QVariant>& one : stopped) words << one[0].toString();
  EXPECT_EQ(
      words,
      QStringList({QStringLiteral("the runs differ in step 44"), QStringLiteral("the runs differ in step 51"),
                   QStringLiteral("no step after this one differs; the other run goes on to step 69"),
                   QStringLiteral("the runs differ in step 44"), QStringLiteral("no step before this one differs")}));
  EXPECT_EQ(document.cursor().state().step, StepIdx{44});
}

TEST(DocumentCompared, ASearchStopsPlaying) {
  Document document(preemption_run(), {});
  document.set_compared(small_batch());
  document.set_speed(0.25);
  document.play();
  document.next_difference();
  EXPECT_FALSE(document.playing());
}

// --- long searches ---------------------------------------------------------------------------------------------------

constexpr std::int64_t kLong = 100'000;

class LongSearch : public testing::Test {
 protected:
  LongSearch() { document.set_compared(odd()); }
  static const std::shared_ptr<const viz::Run>& even() {
    static const std::shared_ptr<const viz::Run> kRun = run_of_steps(kLong);
    return kRun;
  }
  static const std::shared_ptr<const viz::Run>& odd() {
    static const std::shared_ptr<const viz::Run> kRun = steps_with(0, kLong, {0, kLong - 1});
    return kRun;
  }
  Document document{even(), {}};
  QSignalSpy stopped{&document, &Document::stopped};
  QSignalSpy moved{&document, &Document::position_changed};
};

TEST_F(LongSearch, GoesOnInSlicesAndCountsAsPlaying) {
  document.next_difference();
  EXPECT_TRUE(document.playing()) << "one slice was enough: the run is too short for this test";
  EXPECT_EQ(stopped.count(), 0);
  QTRY_VERIFY_WITH_TIMEOUT(!document.playing(), 60'000);
  ASSERT_EQ(stopped.count(), 1);
  EXPECT_EQ(stopped[0][0].toString(), QStringLiteral("the runs differ in step %1").arg(kLong - 1));
  EXPECT_EQ(moved.count(), 1);
  EXPECT_TRUE(document.cursor().at_end());
  document.previous_difference();
  QTRY_VERIFY_WITH_TIMEOUT(!document.playing(), 60'000);
  EXPECT_EQ(document.cursor().state().step, StepIdx{0});
}

TEST_F(LongSearch, EndsWhereItBeganWhenItIsPaused) {
  document.next_difference();
  ASSERT_TRUE(document.playing());
  QCoreApplication::processEvents();
  document.pause();
  EXPECT_FALSE(document.playing());
  QTest::qWait(1);
  EXPECT_EQ(document.cursor().state().step, StepIdx{0});
  EXPECT_EQ(stopped.count(), 0);
  EXPECT_EQ(moved.count(), 0);
  // What follows is not a search for differences any more.
  document.set_breakpoints({parse_breakpoint("step_began step=7")});
  document.run_to_breakpoint();
  EXPECT_EQ(document.cursor().state().step, StepIdx{7});
}

// The search reads the compared run: it must not go on with another one, or with none.
TEST_F(LongSearch, EndsWhenItIsComparedWithAnotherRunOrNone) {
  for (const std::shared_ptr<const viz::Run>& next : {steps_with(0, 10, {}), std::shared_ptr<const viz::Run>()}) {
    document.set_compared(odd());
    document.next_difference();
    ASSERT_TRUE(document.playing());
    document.set_compared(next);
    EXPECT_FALSE(document.playing());
    QCoreApplication::processEvents();
    EXPECT_EQ(document.cursor().state().step, StepIdx{0});
    EXPECT_EQ(stopped.count(), 0);
  }
}

TEST_F(LongSearch, GoesOnWhenTheRunIsShownBesideOrHidden) {
  document.next_difference();
  document.show_beside(true);
  document.show_beside(false);
  document.show_beside(true);
  EXPECT_TRUE(document.playing());
  QTRY_VERIFY_WITH_TIMEOUT(!document.playing(), 60'000);
  EXPECT_TRUE(document.cursor().at_end());
  expect_together(document);
}

}  // namespace
}  // namespace kvscope::viz::document_compared_test
