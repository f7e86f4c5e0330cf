// The tour from the start page to its end, as a user does it: with the keys that the panel names, and clicks into the
// picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <QtGui/QTextBlock>
#include <QtGui/QTextDocument>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QTextBrowser>

#include "tests/viz/window/scenario_window.h"
#include "viz/playback/tile_selection.h"
#include "viz/window/start_page.h"
#include "viz/window/tour_panel.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz::tour_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

class TourWindowTest : public testing_support::ScenarioTest {
 protected:
  TourWindowTest() { window->resize(1600, 1000); }
  [[nodiscard]] TourPanel& tour() const { return *window->findChild<TourPanel*>(); }
  [[nodiscard]] QDockWidget& dock() const { return *window->findChild<QDockWidget*>(QStringLiteral("tour")); }
  [[nodiscard]] std::string text() const { return tour().text().toStdString(); }
  // Whether the panel's task is this one: a title with a number, or the end.
  [[nodiscard]] bool shows(TourTask task) const {
    const auto number = static_cast<std::size_t>(task) + 1;
    return tour().text().contains(task == TourTask::end ? title_of(task)
                                                        : QStringLiteral("Task %1 of %2").arg(number).arg(kTourTasks));
  }
  [[nodiscard]] bool at(TourTask task) const {
    const bool shown = wait_until([&] { return shows(task); });
    EXPECT_THAT(text(), Not(HasSubstr("%")));  // every place is filled in
    return shown;
  }
  void follow(const char* link) const {
    Q_EMIT tour().findChild<QTextBrowser*>()->anchorClicked(QUrl(QString::fromLatin1(link)));
  }
  void start_tour() {
    action(Do::tour).trigger();
    ASSERT_TRUE(at(TourTask::step));
    ASSERT_TRUE(wait_until([&] { return dock().isVisible(); }));
  }
  void skip_to(TourTask task) {
    while (!shows(task)) follow("tour:skip");
  }
  // Where an object is in the picture.
  [[nodiscard]] QPoint point_of(PanelId id, const Selection& object) const {
    const Canvas& canvas = window->canvas();
    const Scene scene = canvas.sceneNow();
    const auto place = std::ranges::find(canvas.places(), id, &Place::panel);
    if (place == canvas.places().end()) return {};
    const Lit lit = object.of_tile() ? resolve(scene.state(), scene.facts(), scene.tile, object)
                                     : resolve(scene.state(), scene.facts(), object);
    const auto rect = canvas.panels()[static_cast<std::size_t>(id)]->anchor(lit, place->body, scene);
    EXPECT_TRUE(rect) << "not in sight";
    return rect.value_or(QRectF()).center().toPoint();
  }
  void click_object(PanelId id, const Selection& object) {
    settle();
    QTest::mouseClick(&window->canvas(), Qt::LeftButton, Qt::NoModifier, point_of(id, object));
  }
};

TEST_F(TourWindowTest, TheButtonOfTheStartPageOpensTheScenarioAtItsFirstStep) {
  EXPECT_FALSE(dock().isVisible());
  click(button(*window->findChild<StartPage*>(), QStringLiteral("Take the tour")));
  ASSERT_TRUE(at(TourTask::step));
  EXPECT_EQ(document().path(), path_of("first_light"));
  EXPECT_EQ(step(), StepIdx{0});
  EXPECT_TRUE(dock().isVisible());
  EXPECT_THAT(text(), HasSubstr("Task 1 of 13"));
  EXPECT_THAT(tip_of(entry(Do::tour)).toStdString(), HasSubstr(std::to_string(kTourTasks) + " tasks"));
}

TEST_F(TourWindowTest, IsDoneWithTheKeysAndClicksThatItNames) {
  start_tour();
  window->canvas().setFocus();
  for (int n = 0; n < 3; ++n) press(Qt::Key_Period);
  ASSERT_TRUE(at(TourTask::step_back));
  EXPECT_THAT(text(), HasSubstr("Done:"));
  press(Qt::Key_Comma);
  ASSERT_TRUE(at(TourTask::seek));
  document().seek_step(StepIdx{5});
  EXPECT_THAT(text(), HasSubstr("This is step 5."));
  document().seek_step(StepIdx{6});
  ASSERT_TRUE(at(TourTask::select_token));

  const SequenceState& sequence = document().cursor().state().sequences[3];
  click_object(PanelId::sequences, of_token(SeqIdx{3}, TokIdx{0}));
  EXPECT_THAT(text(), HasSubstr("Sequence 3, token 0"));
  click_object(PanelId::sequences, of_token(SeqIdx{3}, TokIdx(sequence.tokens - 1)));
  ASSERT_TRUE(at(TourTask::find_block));
  EXPECT_THAT(text(), Not(HasSubstr("Sequence 3, token 0")));
  click_object(PanelId::pool, of_block(BlockIdx(sequence.pages[(sequence.tokens - 1) / 16])));
  ASSERT_TRUE(at(TourTask::shared_block));
  click_object(PanelId::pool, of_block(BlockIdx{2}));
  ASSERT_TRUE(at(TourTask::find));
  press(Qt::Key_F, Qt::ControlModifier);
  write("0:70");
  press(Qt::Key_Return);
  ASSERT_TRUE(at(TourTask::tile));
  press(Qt::Key_Escape);
  press(Qt::Key_5, Qt::ControlModifier);
  ASSERT_TRUE(at(TourTask::land));
  press(Qt::Key_Home, Qt::ControlModifier);
  for (int n = 0; n < 100 && shows(TourTask::land); ++n) press(Qt::Key_Period);
  ASSERT_TRUE(at(TourTask::select_register));
  click_object(PanelId::registers, of_tile_register({0, 3, 0, 0}));
  ASSERT_TRUE(at(TourTask::run_to_event));

  press(Qt::Key_1, Qt::ControlModifier);
  press(Qt::Key_B, Qt::ControlModifier);
  write("request_finished");
  press(Qt::Key_Return);
  press(Qt::Key_F5);
  ASSERT_TRUE(at(TourTask::change));
  settle();
  EXPECT_FALSE(dock().visibleRegion().isEmpty());  // in front of the breakpoints again
  show_panel();
  type("$.cache.page_size", "32");
  press(Qt::Key_Return);
  ASSERT_TRUE(at(TourTask::compare));
  press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(at(TourTask::end));
  EXPECT_THAT(text(), Not(HasSubstr("Skipped:")));
  EXPECT_THAT(text(), HasSubstr("Start again"));
}

TEST_F(TourWindowTest, TheBlockIsALinkOfWhyThisAddress) {
  start_tour();
  skip_to(TourTask::find_block);
  document().seek_step(StepIdx{6});
  const std::int64_t last = document().cursor().state().sequences[3].tokens - 1;
  document().pin(of_token(SeqIdx{3}, TokIdx(last)));
  auto* const why = window->findChild<WhyPanel*>()->findChild<QTextBrowser*>();
  ASSERT_NE(why, nullptr);
  QString link;
  ASSERT_TRUE(wait_until([&] {
    for (QTextBlock block = why->document()->begin(); block.isValid(); block = block.next()) {
      for (auto part = block.begin(); !part.atEnd(); ++part) {
        if (part.fragment().text() == QStringLiteral("block")) link = part.fragment().charFormat().anchorHref();
      }
    }
    return !link.isEmpty();
  }));
  Q_EMIT why->anchorClicked(QUrl(link));
  EXPECT_TRUE(at(TourTask::shared_block));
}

TEST_F(TourWindowTest, ATaskIsSkippedAndTheTourEnds) {
  start_tour();
  follow("tour:skip");
  EXPECT_TRUE(at(TourTask::step_back));
  EXPECT_THAT(text(), HasSubstr("Skipped:"));
  follow("tour:end");
  EXPECT_THAT(text(), HasSubstr("Start the tour"));
  follow("tour:start");
  EXPECT_TRUE(at(TourTask::step));
}

TEST_F(TourWindowTest, AnotherFileLeavesTheTourUntilItIsOpenAgain) {
  start_tour();
  skip_to(TourTask::seek);
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_THAT(text(), HasSubstr("another scenario"));
  document().seek_step(StepIdx{6});
  const Document* const before = window->document();
  follow("tour:return");
  ASSERT_TRUE(wait_until([&] { return window->document() != before; }));
  EXPECT_EQ(document().path(), path_of("first_light"));
  EXPECT_TRUE(at(TourTask::seek));
}

TEST_F(TourWindowTest, AFileThatIsOpenedBeforeTheTourStartsHasNoTour) {
  action(Do::tour).trigger();
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_FALSE(dock().isVisible());
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_FALSE(dock().isVisible());
}

TEST_F(TourWindowTest, AClosedPanelStaysClosedUntilTheTourStartsAgain) {
  start_tour();
  dock().hide();
  document().seek_step(StepIdx{3});
  EXPECT_FALSE(dock().isVisible());
  start_tour();
}

TEST_F(TourWindowTest, EveryTaskHasATitleAndWordsOfItsOwnInEveryThemeAndTextSize) {
  start_tour();
  for (const double scale : {1.0, 2.0}) {
    window->set_font_scale(scale);
    follow("tour:end");
    follow("tour:start");
    QStringList pages;
    for (std::size_t task = 0; task <= kTourTasks; ++task) {
      ASSERT_TRUE(at(static_cast<TourTask>(task)));
      EXPECT_TRUE(tour().text().contains(title_of(static_cast<TourTask>(task)))) << task;
      EXPECT_FALSE(pages.contains(tour().text()));
      pages += tour().text();
      follow("tour:skip");
    }
  }
}

class EmptyGalleryTest : public TourWindowTest {
 protected:
  EmptyGalleryTest() {
    window.reset();
    backend.empty_gallery = true;
    start();
  }
};

TEST_F(EmptyGalleryTest, WithoutItsScenarioTheTourIsOffAndSaysWhy) {
  EXPECT_FALSE(action(Do::tour).isEnabled());
  EXPECT_TRUE(action(Do::tour).toolTip().contains(QStringLiteral("first_light.json")));
  const QAbstractButton* const tour_button = button(*window->findChild<StartPage*>(), QStringLiteral("Take the tour"));
  ASSERT_NE(tour_button, nullptr);
  EXPECT_FALSE(tour_button->isEnabled());
  EXPECT_EQ(tour_button->toolTip(), action(Do::tour).toolTip());
}

}  // namespace
}  // namespace kvscope::viz::tour_test
