#include "viz/window/presentation.h"

#include <gmock/gmock.h>

#include <algorithm>

#include <QtWidgets/QDockWidget>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>

#include "tests/viz/window/window_support.h"
#include "viz/playback/happened.h"
#include "viz/window/shortcuts.h"

namespace kvscope::viz::presentation_test {
namespace {

using testing::HasSubstr;

class PresentationTest : public testing_support::WindowTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(open(testing_support::path_of("first_light")));
    document().seek_step(StepIdx{6});
  }
  [[nodiscard]] Caption& caption() const { return *window->findChild<Caption*>(); }
  [[nodiscard]] std::string words() const {
    std::string all;
    for (const QLabel* label : caption().findChildren<QLabel*>()) all += label->text().toStdString() + "|";
    return all;
  }
  [[nodiscard]] QWidget* black() const {
    for (QWidget* child : window->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
      if (child->accessibleName() == QStringLiteral("Black screen")) return child;
    }
    return nullptr;
  }
  [[nodiscard]] int bars() const {
    int shown = (window->menuBar()->isVisible() ? 1 : 0) + (window->statusBar()->isVisible() ? 1 : 0);
    for (const QToolBar* bar : window->findChildren<QToolBar*>()) shown += bar->isVisible() ? 1 : 0;
    for (const QDockWidget* dock : window->findChildren<QDockWidget*>()) shown += dock->isVisible() ? 1 : 0;
    return shown;
  }
};

TEST_F(PresentationTest, ShowsThePictureAloneWithItsCaptionAndComesBackAsItWas) {
  const int before = bars();
  const QByteArray docks = window->saveState();
  EXPECT_GT(before, 3);
  press(Qt::Key_F11);
  EXPECT_TRUE(window->isFullScreen());
  EXPECT_EQ(bars(), 0);
  EXPECT_TRUE(caption().isVisible());
  EXPECT_TRUE(window->canvas().isVisible());
  press(Qt::Key_F11);
  EXPECT_FALSE(window->isFullScreen());
  EXPECT_EQ(bars(), before);
  EXPECT_FALSE(caption().isVisible());
  EXPECT_EQ(window->saveState(), docks);
}

TEST_F(PresentationTest, AClickersKeysStepForwardAndBack) {
  press(Qt::Key_PageDown);
  EXPECT_EQ(step(), StepIdx{6}) << "only in a presentation";
  press(Qt::Key_F11);
  press(Qt::Key_PageDown);
  press(Qt::Key_PageDown);
  EXPECT_EQ(step(), StepIdx{8});
  press(Qt::Key_PageUp);
  EXPECT_EQ(step(), StepIdx{7});
}

TEST_F(PresentationTest, BlacksOutWithTwoKeysAndEscapeLeavesOneThingAtATime) {
  press(Qt::Key_F11);
  for (const Qt::Key key : {Qt::Key_B, Qt::Key_Period}) {
    press(key);
    ASSERT_NE(black(), nullptr);
    EXPECT_EQ(black()->rect(), window->rect());
    EXPECT_EQ(step(), StepIdx{6}) << "outside a presentation the period steps";
    press(key);
    EXPECT_EQ(black(), nullptr);
  }
  press(Qt::Key_B);
  press(Qt::Key_Escape);
  EXPECT_EQ(black(), nullptr);
  EXPECT_TRUE(window->isFullScreen());
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  press(Qt::Key_Escape);
  EXPECT_FALSE(window->isFullScreen());
  EXPECT_FALSE(document().pinned().none()) << "leaving keeps the selection";
  press(Qt::Key_Period);
  EXPECT_EQ(step(), StepIdx{7});
}

TEST_F(PresentationTest, TheCaptionHasTheTitleTheStepAndASentence) {
  press(Qt::Key_F11);
  EXPECT_THAT(words(), HasSubstr("First light|"));
  EXPECT_THAT(words(), HasSubstr("step 6|"));
  EXPECT_THAT(words(), HasSubstr(what_happened(document().cursor())));
  EXPECT_FALSE(what_happened(document().cursor()).empty());
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  EXPECT_THAT(words(), HasSubstr("Sequence 3, token 37: page 2"));
  press(Qt::Key_PageDown);
  EXPECT_THAT(words(), HasSubstr("step 7|"));
}

// The pixels of the selected block keep their brightness, those of another one become darker.
TEST_F(PresentationTest, ASpotlightDimsEverythingButTheSelection) {
  window->set_theme(ThemeSetting::dark);
  document().pin(of_block(BlockIdx{2}));
  press(Qt::Key_F11);
  testing_support::settle();
  Canvas& canvas = window->canvas();
  const auto color_of = [&](std::int64_t block) {
    const Scene scene = canvas.sceneNow();
    const auto place = std::ranges::find(canvas.places(), PanelId::pool, &Place::panel);
    const Lit lit = resolve(scene.state(), scene.facts(), of_block(BlockIdx{block}));
    const QRectF rect =
        canvas.panels()[static_cast<std::size_t>(PanelId::pool)]->anchor(lit, place->body, scene).value();
    const QImage image = canvas.grab(rect.toRect()).toImage();
    double sum = 0;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) sum += image.pixelColor(x, y).lightnessF();
    }
    return sum / (image.width() * image.height());
  };
  const double lit = color_of(2), dimmed = color_of(3);
  EXPECT_GT(lit, 1.5 * dimmed);
  canvas.setSpotlight(false);
  EXPECT_GT(color_of(3), 1.5 * dimmed);
}

// A crash during a presentation must not leave a window without docks.
TEST_F(PresentationTest, TheSessionKeepsTheDocksOfTheUsualWindow) {
  const int before = bars();
  press(Qt::Key_F11);
  window->close();
  start();
  ASSERT_TRUE(open(testing_support::path_of("first_light")));
  EXPECT_FALSE(window->isFullScreen());
  EXPECT_EQ(bars(), before);
}

}  // namespace
}  // namespace kvscope::viz::presentation_test
