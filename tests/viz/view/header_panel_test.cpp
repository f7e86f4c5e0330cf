#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/happened.h"
#include "viz/view/panel.h"

namespace kvscope::viz::header_panel_test {
namespace {

using namespace trace;

const QRectF kBody(20, 0, 1560, 52);
constexpr QSize kSize(1600, 60);

class HeaderPanelTest : public testing::Test {
 protected:
  std::unique_ptr<Panel> panel_ = make_header_panel();

  [[nodiscard]] std::string words(const Scene& scene) const { return panel_->subtitle(scene).toStdString(); }
  [[nodiscard]] QRectF grip(const Scene& scene) const { return panel_->cells(kBody, scene, 1).at(0).rect; }
};

// --- words -----------------------------------------------------------------------------------------------------------

TEST_F(HeaderPanelTest, ShowsThePositionAndTheFactsOfTheRun) {
  Staged staged(gallery_run("first_light"));
  EXPECT_EQ(words(staged.scene), "step 24 of 24 · 127 ms · page size 16 · tiny · bf16");
  EXPECT_EQ(panel_->summary(staged.scene).toStdString(),
            "First light: step 24 of 24 · 127 ms · page size 16 · tiny · bf16. Sequence 3 finished.");
  staged.cursor.seek(Position{0});
  EXPECT_EQ(words(staged.scene), "before step 0 of 24 · page size 16 · tiny · bf16");
}

// After stepping by events the position may be inside a step: the picture is not yet that of the step's end.
TEST_F(HeaderPanelTest, ShowsThePositionInsideAStep) {
  Staged staged(run_of(10, one_of_each()));
  staged.cursor.seek_row(1);
  EXPECT_EQ(words(staged.scene), "step 0 of 2 · 10 µs · page size 16 · tiny · f32");
  staged.cursor.event();
  EXPECT_EQ(words(staged.scene), "step 1 of 2, 1 of 4 events · 10 µs · page size 16 · tiny · f32");
  staged.cursor.step();
  EXPECT_EQ(words(staged.scene), "step 1 of 2 · 20 µs · page size 16 · tiny · f32");
}

// The counter at the right has the step too, so that what happened in it has the room; inside a step the number of
// events stays.
TEST_F(HeaderPanelTest, WhatHappenedComesBeforeThePositionWhereBothDoNotFit) {
  Staged staged(gallery_run("preemption"));
  staged.cursor.seek_row(4);
  const auto drawn = [&](double width) {
    TextDevice device({2000, 60});
    QPainter painter(&device);
    panel_->paint_base(painter, {0, 0, width, 40}, staged.scene);
    painter.end();
    std::vector<std::string> texts;
    for (const DrawnText& text : device.texts()) texts.push_back(text.text.toStdString());
    return texts;
  };
  const std::string happened = what_happened(staged.cursor);
  const auto whole = testing::Contains(happened);
  const auto place = testing::Contains(testing::StartsWith("step 3 of 46"));
  EXPECT_THAT(drawn(1900), testing::AllOf(whole, place));
  bool alone = false;
  for (double width = 1900; width > 500; width -= 10) {
    const std::vector<std::string> texts = drawn(width);
    if (testing::Matches(whole)(texts)) {
      alone = alone || !testing::Matches(place)(texts);
    } else {
      EXPECT_THAT(texts, testing::Not(place)) << width << ": the position is shown and what happened is cut";
    }
  }
  EXPECT_TRUE(alone);
  staged.cursor.event();
  EXPECT_THAT(drawn(1000), testing::Contains(testing::HasSubstr("1 of ")));
}

TEST_F(HeaderPanelTest, AContinuousCacheReservesTokensAndHasNoPages) {
  const Staged staged(gallery_run("continuous"));
  EXPECT_THAT(words(staged.scene), testing::HasSubstr("512 tokens reserved a sequence"));
  EXPECT_THAT(words(staged.scene), testing::Not(testing::HasSubstr("page size")));
}

TEST_F(HeaderPanelTest, ATraceWithoutAScenarioShowsTheKnownFacts) {
  const Staged staged(run_of_steps(5));
  EXPECT_EQ(words(staged.scene), "step 4 of 4 · 5 ms");
}

// --- the bar ---------------------------------------------------------------------------------------------------------

// Dragging along the bar visits every step once and in order, from the first step at its left end to the last.
TEST_F(HeaderPanelTest, DraggingAlongTheBarVisitsEveryStepInOrder) {
  const Staged staged(run_of_steps(50, 7));
  const QRectF bar = grip(staged.scene);
  std::int64_t last = 6;
  for (double x = bar.left() + 0.5; x < bar.right(); ++x) {
    const Selection at = panel_->hit({x, bar.center().y()}, kBody, staged.scene);
    ASSERT_EQ(at.kind, Selection::Kind::step);
    ASSERT_TRUE(at.step.value == last || at.step.value == last + 1) << x;
    last = at.step.value;
  }
  EXPECT_EQ(last, 56);
  EXPECT_EQ(panel_->hit({bar.left() + 1, bar.center().y()}, kBody, staged.scene), of_step(StepIdx{7}));
}

TEST_F(HeaderPanelTest, BesideTheBarIsNothing) {
  const Staged staged(run_of_steps(50));
  const QRectF bar = grip(staged.scene);
  EXPECT_EQ(panel_->hit({bar.left() - 2, bar.center().y()}, kBody, staged.scene), Selection{});
  EXPECT_EQ(panel_->hit({bar.center().x(), bar.top() - 2}, kBody, staged.scene), Selection{});
  EXPECT_EQ(panel_->hit({30, 26}, kBody, staged.scene), Selection{});
}

// A click on the handle must select the current step: the position must not change.
TEST_F(HeaderPanelTest, TheHandleStandsAtTheStepThatAClickThereLeadsTo) {
  Staged staged(run_of_steps(11));
  const QColor handle = staged.scene.theme->text;
  for (std::int64_t row = 1; row <= 11; ++row) {
    staged.cursor.seek_row(row);
    const QImage image = painted(*panel_, kBody, staged.scene, kSize);
    const QRect bar = grip(staged.scene).toAlignedRect();
    double sum = 0;
    int count = 0;
    for (int y = bar.top(); y <= bar.bottom(); ++y) {
      for (int x = bar.left(); x <= bar.right(); ++x) {
        if (image.pixelColor(x, y) == handle) sum += x + 0.5, ++count;
      }
    }
    ASSERT_GT(count, 20);
    const Selection there = panel_->hit({sum / count, grip(staged.scene).center().y()}, kBody, staged.scene);
    EXPECT_EQ(there, of_step(StepIdx{row - 1}));
  }
}

TEST_F(HeaderPanelTest, KeysMoveStepByStepAndStopAtTheEnds) {
  Staged staged(run_of_steps(5, 3));
  staged.cursor.seek_row(2);
  const auto moved = [&](const Selection& from, Move move) { return panel_->moved(from, move, kBody, staged.scene); };
  EXPECT_EQ(moved({}, Move::right), of_step(StepIdx{5})) << "starts at the current step";
  EXPECT_EQ(moved({}, Move::left), of_step(StepIdx{3}));
  EXPECT_EQ(moved(of_step(StepIdx{3}), Move::left), of_step(StepIdx{3}));
  EXPECT_EQ(moved(of_step(StepIdx{6}), Move::right), of_step(StepIdx{7}));
  EXPECT_EQ(moved(of_step(StepIdx{7}), Move::right), of_step(StepIdx{7}));
  EXPECT_EQ(moved({}, Move::first), of_step(StepIdx{3}));
  EXPECT_EQ(moved({}, Move::last), of_step(StepIdx{7}));
  staged.cursor.seek(Position{0});
  EXPECT_EQ(moved({}, Move::right), of_step(StepIdx{3}));
}

// A trace of a kernel has no steps: the bar must not divide by 0.
TEST_F(HeaderPanelTest, ARunWithoutStepsHasNoBar) {
  const Staged staged(run_of(10, {RequestArrived{SeqIdx{0}, 20, 4}}));
  EXPECT_EQ(words(staged.scene), "no steps · page size 16 · tiny · f32");
  EXPECT_TRUE(panel_->cells(kBody, staged.scene, 5).empty());
  EXPECT_EQ(panel_->moved({}, Move::right, kBody, staged.scene), Selection{});
  for (double x = 0; x < 1600; x += 7) EXPECT_EQ(panel_->hit({x, 26}, kBody, staged.scene), Selection{});
  EXPECT_FALSE(painted(*panel_, kBody, staged.scene, kSize).isNull());
}

TEST_F(HeaderPanelTest, TheBarIsOneCellWithItsValueInWords) {
  Staged staged(run_of_steps(5));
  staged.cursor.seek_row(3);
  const std::vector<PanelCell> cells = panel_->cells(kBody, staged.scene, 5);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].name.toStdString(), "step 2 of 4");
  EXPECT_EQ(cells[0].object, of_step(StepIdx{2}));
}

// --- paint -----------------------------------------------------------------------------------------------------------

TEST_F(HeaderPanelTest, PaintsNothingOutsideItsBody) {
  Staged staged(gallery_run("preemption"));
  staged.hover(of_step(StepIdx{3}));
  for (const double font_scale : {1.0, 1.5, 2.0}) {
    staged.scene.font_scale = font_scale;
    for (const QRect& body :
         {QRect(20, 4, 1560, qRound(52 * font_scale)), QRect(20, 4, 440, qRound(52 * font_scale))}) {
      const QImage image = painted(*panel_, body, staged.scene, {1600, 140});
      EXPECT_EQ(spilled(image, body), 0) << font_scale << ' ' << body.width();
    }
  }
}

// Preemptions are ticks under the bar; a run without preemptions has no ticks.
TEST_F(HeaderPanelTest, PreemptionsAreTicksUnderTheBar) {
  const auto ticks = [&](const Scene& scene) {
    const QImage image = painted(*panel_, kBody, scene, kSize);
    int count = 0;
    for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, 32) == scene.theme->warning ? 1 : 0;
    return count;
  };
  EXPECT_EQ(ticks(Staged(gallery_run("first_light")).scene), 0);
  const Staged staged(gallery_run("preemption"));
  int steps = 0;
  for (const std::int32_t count : staged.run->timeline()[Mark::preemption]) steps += count > 0 ? 1 : 0;
  EXPECT_GT(steps, 2);
  EXPECT_EQ(ticks(staged.scene), steps);
}

}  // namespace
}  // namespace kvscope::viz::header_panel_test
