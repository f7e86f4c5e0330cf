// A second run beside the open one: opening, failing and closing it, changed scenarios, sessions, keys and pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <QtWidgets/QFileDialog>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>

#include "tests/viz/window/scenario_window.h"
#include "viz/playback/run_difference.h"
#include "viz/view/paint_board.h"
#include "viz/window/busy_bar.h"
#include "viz/window/compare_bar.h"
#include "viz/window/export.h"

namespace kvscope::viz::compare_test {
namespace {

using testing::HasSubstr;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

class CompareTest : public testing_support::ScenarioTest {
 protected:
  [[nodiscard]] Canvas& other() const {
    for (Canvas* canvas : window->findChildren<Canvas*>()) {
      if (canvas != &window->canvas()) return *canvas;
    }
    return window->canvas();
  }
  [[nodiscard]] CompareBar& bar() const { return *window->findChild<CompareBar*>(); }
  [[nodiscard]] std::string bar_words() const {
    std::string words;
    for (const QLabel* label : bar().findChildren<QLabel*>()) words += label->text().toStdString() + "|";
    return words;
  }
  [[nodiscard]] QString status() const { return window->statusBar()->currentMessage(); }
  [[nodiscard]] bool is_beside() const {
    return other().isVisible() && other().document() == window->document() && document().beside();
  }
  // By the command line, a session or a link.
  [[nodiscard]] bool open_two(const char* file, const QString& compared) {
    OpenWish wish;
    wish.compared = compared;
    window->open(path_of(file), wish);
    return wait_until([&] { return window->document() != nullptr && is_beside(); });
  }
  void choose(const QString& path) {
    action(Do::compare).trigger();
    QFileDialog* dialog = window->findChildren<QFileDialog*>().back();
    Q_EMIT dialog->fileSelected(path);
    dialog->close();
    settle();
  }
  [[nodiscard]] bool compare_with(const QString& path) {
    choose(path);
    return wait_until([&] { return document().compared_run() != nullptr && is_beside(); });
  }
  [[nodiscard]] std::string name_of_other() const { return document().compared_run()->facts().name; }
  [[nodiscard]] std::set<std::string> texts() const {
    std::set<std::string> found;
    for (const QLabel* label : window->messages().findChildren<QLabel*>()) found.insert(label->text().toStdString());
    return found;
  }
  [[nodiscard]] std::string reason(Do id) const { return action(id).toolTip().toStdString(); }
};

// --- opening ---------------------------------------------------------------------------------------------------------

TEST_F(CompareTest, ActionsOfAComparisonNeedARunAndSaySo) {
  for (const Do id : {Do::compare, Do::beside, Do::next_difference, Do::previous_difference}) {
    EXPECT_FALSE(action(id).isEnabled());
  }
  EXPECT_THAT(reason(Do::next_difference), HasSubstr("no file is open"));
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_TRUE(action(Do::compare).isEnabled());
  for (const Do id : {Do::beside, Do::next_difference, Do::previous_difference}) {
    EXPECT_FALSE(action(id).isEnabled());
    EXPECT_THAT(reason(id), HasSubstr("no run to compare with: use \"Compare with\", or change the scenario"));
  }
  ASSERT_TRUE(compare_with(path_of("first_light")));
  for (const Do id : {Do::beside, Do::next_difference, Do::previous_difference}) EXPECT_TRUE(action(id).isEnabled());
  action(Do::close).trigger();
  for (const Do id : {Do::compare, Do::beside, Do::next_difference, Do::previous_difference}) {
    EXPECT_FALSE(action(id).isEnabled());
  }
  EXPECT_FALSE(other().isVisible());
  EXPECT_FALSE(bar().isVisible());
}

TEST_F(CompareTest, AWishOpensBothAndTheBarNamesTheOther) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  EXPECT_TRUE(action(Do::beside).isChecked());
  EXPECT_TRUE(bar().isVisible());
  EXPECT_THAT(bar_words(), HasSubstr("Compared with first_light.json|"));
  EXPECT_THAT(bar_words(), HasSubstr("Blocks are not compared:|pages of 4 and of 16 tokens"));
  EXPECT_EQ(backend.opens, 2);
}

TEST_F(CompareTest, TheBarCountsWhatDiffers) {
  const QString copy = copy_of("preemption");
  ASSERT_TRUE(open_two("preemption", copy));
  EXPECT_THAT(bar_words(), HasSubstr("Both caches store the same at this step"));
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_FALSE(is_beside()) << "of another file";
  ASSERT_TRUE(open_two("preemption", copy));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{12});
  const StateDifference found = difference(document().cursor().state(), document().compared()->state());
  EXPECT_GT(found.blocks, 1);
  EXPECT_THAT(bar_words(), HasSubstr("Different at this step:|" + std::to_string(found.blocks) + " blocks, " +
                                     std::to_string(found.sequences) + " sequences"));
}

TEST_F(CompareTest, AFileThatFailsIsSaidAndTriedAgain) {
  ASSERT_TRUE(open(path_of("preemption")));
  const Document* before = window->document();
  choose(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  EXPECT_THAT(texts(), testing::Contains(HasSubstr("faulty.json could not be opened to compare with")));
  EXPECT_FALSE(window->messages().lines(QStringLiteral("compare")).isEmpty());
  EXPECT_EQ(window->document(), before);
  EXPECT_EQ(document().compared_run(), nullptr);
  const int opens = backend.opens;
  click(button(window->messages(), QStringLiteral("Try again")));
  EXPECT_TRUE(wait_until([&] { return backend.opens == opens + 1; }));
  EXPECT_TRUE(wait_until([&] { return !window->messages().lines(QStringLiteral("compare")).isEmpty(); }));
  ASSERT_TRUE(compare_with(path_of("first_light")));
  EXPECT_TRUE(window->messages().lines(QStringLiteral("compare")).isEmpty());
}

TEST_F(CompareTest, CancelledNothingIsCompared) {
  ASSERT_TRUE(open(path_of("preemption")));
  choose(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return button(*window, QStringLiteral("Cancel")) != nullptr; }));
  click(button(*window, QStringLiteral("Cancel")));
  EXPECT_TRUE(wait_until([&] {
    return status() == QStringLiteral("held.json was not opened to compare with: cancelled");
  })) << status().toStdString();
  EXPECT_EQ(document().compared_run(), nullptr);
  EXPECT_TRUE(panel().isEnabled());
  EXPECT_FALSE(other().isVisible());
}

TEST_F(CompareTest, AnotherFileOpenedMeanwhileIsOpenedAlone) {
  ASSERT_TRUE(open(path_of("preemption")));
  choose(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
  ASSERT_TRUE(open(path_of("first_light")));
  settle();
  EXPECT_EQ(document().path(), path_of("first_light"));
  EXPECT_EQ(document().compared_run(), nullptr);
  EXPECT_FALSE(other().isVisible());
}

TEST_F(CompareTest, ClosedMeanwhileNothingIsShown) {
  ASSERT_TRUE(open(path_of("preemption")));
  choose(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
  action(Do::close).trigger();
  backend.release = true;
  EXPECT_TRUE(wait_until([&] { return backend.opens_now == 0; }));
  settle();
  EXPECT_EQ(window->document(), nullptr);
  EXPECT_FALSE(bar().isVisible());
}

TEST_F(CompareTest, WhileAFileIsBeingOpenedComparingWaits) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->open(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
  choose(path_of("first_light"));
  EXPECT_THAT(status().toStdString(), HasSubstr("compare when it is open"));
}

// --- changed scenarios -----------------------------------------------------------------------------------------------

TEST_F(CompareTest, TheRunOfTheFileIsBesideAChangedScenarioUntilItIsUndoneOrSaved) {
  const QString copy = copy_of("preemption");
  ASSERT_TRUE(open(copy));
  const auto of_file = document().run().timeline()[Series::utilization];
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_FALSE(other().isVisible());
  action(Do::beside).trigger();
  ASSERT_TRUE(is_beside());
  EXPECT_EQ(document().compared_run()->timeline()[Series::utilization], of_file);
  EXPECT_THAT(bar_words(), HasSubstr("Compared with the run of the file|"));
  set("$.scheduler.max_batch", "3");
  ASSERT_TRUE(ran());
  EXPECT_TRUE(is_beside());
  EXPECT_EQ(document().compared_run()->timeline()[Series::utilization], of_file);
  action(Do::undo).trigger();
  action(Do::undo).trigger();
  ASSERT_TRUE(ran());
  EXPECT_EQ(document().compared_run(), nullptr);
  EXPECT_FALSE(other().isVisible());
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_NE(document().compared_run(), nullptr);
  action(Do::save_scenario).trigger();
  save_as(copy);
  EXPECT_TRUE(wait_until([&] { return document().compared_run() == nullptr; }));
  EXPECT_FALSE(other().isVisible());
}

TEST_F(CompareTest, AComparedFileStaysWhenTheScenarioIsChanged) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_TRUE(is_beside());
  EXPECT_THAT(bar_words(), HasSubstr("Compared with first_light.json|"));
  EXPECT_EQ(name_of_other(), "First light");
  EXPECT_EQ(backend.opens, 2) << "it is open already";
}

// The second change found the first one running, and not the file: the file was not opened any more.
TEST_F(CompareTest, AFileThatIsBeingOpenedComesAfterTheChangesOfTheScenario) {
  ASSERT_TRUE(open(path_of("preemption")));
  choose(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
  set("$.name", "held");
  ASSERT_TRUE(wait_until([&] { return backend.changes == 1; }));
  set("$.name", "changed");
  ASSERT_TRUE(wait_until([&] { return backend.changes == 2; }));
  backend.release = true;
  ASSERT_TRUE(ran());
  EXPECT_TRUE(wait_until([&] { return is_beside(); }));
  EXPECT_THAT(bar_words(), HasSubstr("Compared with held.json|"));
}

// --- reloading -------------------------------------------------------------------------------------------------------

TEST_F(CompareTest, ReloadKeepsTheComparison) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  const Document* before = window->document();
  action(Do::reload).trigger();
  ASSERT_TRUE(wait_until([&] { return window->document() != before && window->document() != nullptr && is_beside(); }));
  EXPECT_EQ(name_of_other(), "First light");
}

TEST_F(CompareTest, ReloadDoesNotShowARunThatIsHidden) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  action(Do::beside).trigger();
  ASSERT_FALSE(is_beside());
  const Document* before = window->document();
  const int opens = backend.opens;
  action(Do::reload).trigger();
  ASSERT_TRUE(wait_until([&] { return window->document() != before && window->document() != nullptr; }));
  settle();
  EXPECT_EQ(backend.opens, opens + 1);
  EXPECT_FALSE(other().isVisible());
}

// A reload is no wish for another view.
TEST_F(CompareTest, ReloadInTheTileViewStaysThere) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  window->set_view(View::tile);
  EXPECT_FALSE(other().isVisible());
  const Document* before = window->document();
  action(Do::reload).trigger();
  ASSERT_TRUE(wait_until([&] { return window->document() != before && document().compared_run() != nullptr; }));
  settle();
  EXPECT_EQ(window->canvas().view(), View::tile);
  window->set_view(View::overview);
  EXPECT_TRUE(is_beside());
}

// --- views and layout ------------------------------------------------------------------------------------------------

TEST_F(CompareTest, TileAndAttentionShowOneRunAndTheOtherComesBack) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  for (const View view : {View::tile, View::attention}) {
    window->set_view(view);
    EXPECT_FALSE(other().isVisible());
    EXPECT_FALSE(bar().isVisible());
    window->set_view(View::pool);
    EXPECT_TRUE(is_beside());
    EXPECT_EQ(other().view(), View::pool);
  }
  window->set_view(View::tile);
  action(Do::beside).trigger();  // checked: it hides
  action(Do::beside).trigger();
  EXPECT_TRUE(is_beside());
  EXPECT_EQ(window->canvas().view(), View::overview);
}

// By wheel, by key and by dragging, in either picture; and the second run has the zoom that the first one had.
TEST_F(CompareTest, BothPicturesHaveOneZoom) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  Canvas& canvas = window->canvas();
  const auto zoom_of = [](const Canvas& of) { return of.viewport(PanelId::pool); };
  const auto middle = [](const Canvas& of) {
    return std::ranges::find(of.places(), PanelId::pool, &Place::panel)->body.center().toPoint();
  };
  const auto wheel = [&](Canvas& on, Qt::KeyboardModifiers with) {
    QWheelEvent event(middle(on), on.mapToGlobal(middle(on)), {}, {0, 120}, Qt::NoButton, with, Qt::NoScrollPhase,
                      false);
    QCoreApplication::sendEvent(&on, &event);
  };
  window->set_view(View::pool);
  for (Canvas* const on : {&canvas, &other()}) {
    const Viewport before = zoom_of(canvas);
    wheel(*on, {});
    wheel(*on, {});
    EXPECT_GT(zoom_of(*on).zoom, before.zoom);
    EXPECT_EQ(zoom_of(canvas), zoom_of(other()));
    const Viewport zoomed = zoom_of(canvas);
    wheel(*on, Qt::ShiftModifier);
    EXPECT_NE(zoom_of(*on), zoomed);
    EXPECT_EQ(zoom_of(canvas), zoom_of(other()));
  }
  action(Do::beside).trigger();
  wheel(canvas, {});
  action(Do::beside).trigger();
  ASSERT_TRUE(is_beside());
  EXPECT_EQ(zoom_of(canvas), zoom_of(other()));
  EXPECT_GT(zoom_of(canvas).zoom, 0);
  action(Do::zoom_fit).trigger();
  EXPECT_EQ(zoom_of(canvas), Viewport{});
  EXPECT_EQ(zoom_of(other()), Viewport{});
}

TEST_F(CompareTest, ASmallWindowHasTheRunsOneAboveTheOther) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  const QWidget* at = &other();
  while (qobject_cast<const QSplitter*>(at) == nullptr) at = at->parentWidget();
  const auto& boards = *qobject_cast<const QSplitter*>(at);
  window->resize(2400, 1200);
  settle();
  EXPECT_EQ(boards.orientation(), Qt::Horizontal);
  EXPECT_GT(other().mapToGlobal(QPoint(0, 0)).x(), window->canvas().mapToGlobal(QPoint(0, 0)).x());
  window->resize(1024, 640);
  settle();
  EXPECT_EQ(boards.orientation(), Qt::Vertical);
  EXPECT_GT(other().mapToGlobal(QPoint(0, 0)).y(), window->canvas().mapToGlobal(QPoint(0, 0)).y());
}

TEST_F(CompareTest, TheBarIsWholeAtEverySizeOfText) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  for (const double font : {1.0, 1.5, 2.0}) {
    window->set_font_scale(font);
    for (const QSize size : {QSize(1024, 640), QSize(1600, 1000)}) {
      window->resize(size);
      settle();
      int parts = 0;
      for (const QWidget* part : bar().findChildren<QWidget*>()) {
        if (!part->isVisible()) continue;
        ++parts;
        EXPECT_GE(part->width(), part->minimumSizeHint().width()) << size.width() << " at " << font;
        EXPECT_TRUE(bar().rect().contains(part->geometry())) << size.width() << " at " << font;
      }
      EXPECT_EQ(parts, 6);
    }
  }
}

TEST_F(CompareTest, PresentationShowsBothWithoutTheBar) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  action(Do::present).trigger();
  settle();
  EXPECT_TRUE(is_beside());
  EXPECT_FALSE(bar().isVisible());
  action(Do::present).trigger();
  settle();
  EXPECT_TRUE(bar().isVisible());
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST_F(CompareTest, F6ReachesBothPicturesAndTheBar) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  window->canvas().setFocus();
  std::set<const QWidget*> reached;
  for (int i = 0; i < 12; ++i) {
    press(Qt::Key_F6);
    for (const QWidget* part : std::initializer_list<const QWidget*>{&window->canvas(), &other(), &bar()}) {
      const QWidget* focus = QApplication::focusWidget();
      if (focus == part || part->isAncestorOf(focus)) reached.insert(part);
    }
  }
  EXPECT_EQ(reached.size(), 3u);
}

TEST_F(CompareTest, ZoomByAMenuActsOnBothPicturesWhicheverHasTheFocus) {
  ASSERT_TRUE(open_two("preemption", path_of("prefix_sharing")));
  window->resize(2400, 1200);
  window->set_view(View::pool);
  settle();
  other().setFocus();
  other().focusPanel(PanelId::pool);
  ASSERT_TRUE(action(Do::zoom_in).isEnabled());
  action(Do::zoom_in).trigger();
  const Viewport once = other().viewport(PanelId::pool);
  EXPECT_NE(once, Viewport{});
  EXPECT_EQ(window->canvas().viewport(PanelId::pool), once);
  window->canvas().setFocus();
  window->canvas().focusPanel(PanelId::pool);
  action(Do::zoom_in).trigger();
  EXPECT_GT(window->canvas().viewport(PanelId::pool).zoom, once.zoom);
  EXPECT_EQ(other().viewport(PanelId::pool), window->canvas().viewport(PanelId::pool));
  action(Do::zoom_fit).trigger();
  EXPECT_EQ(window->canvas().viewport(PanelId::pool), Viewport{});
  EXPECT_EQ(other().viewport(PanelId::pool), Viewport{});
}

TEST_F(CompareTest, F8GoesToTheNextDifferenceAndBack) {
  const QString copy = copy_of("preemption");
  ASSERT_TRUE(open(copy));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  document().to_start();
  window->canvas().setFocus();
  press(Qt::Key_F8);
  std::int64_t row = 1;
  while (!step_differs(document().run(), row, *document().compared_run())) ++row;
  EXPECT_EQ(document().cursor().row(), row);
  EXPECT_EQ(status(), QStringLiteral("the runs differ in step %1").arg(row - 1));
  press(Qt::Key_F8, Qt::ShiftModifier);
  EXPECT_EQ(document().cursor().row(), row);
  EXPECT_EQ(status(), QStringLiteral("no step before this one differs"));
  action(Do::beside).trigger();
  click(button(bar(), QStringLiteral("Next difference")));
  EXPECT_GT(document().cursor().row(), row);
}

// --- pictures --------------------------------------------------------------------------------------------------------

// The exported picture is the two boards of the window, also where one of them is zoomed.
TEST_F(CompareTest, ThePictureBesideIsTwoBoards) {
  const QString copy = copy_of("preemption");
  ASSERT_TRUE(open(copy));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{12});
  document().pin(of_block(BlockIdx{5}));
  Picture picture;
  picture.size = {1409, 700};
  picture.theme = window->canvas().sceneNow().theme->kind;
  picture.position = document().cursor().position();
  picture.selection = document().pinned();
  picture.compared = document().compared_run();
  picture.beside = true;
  picture.beside_viewport[static_cast<std::size_t>(PanelId::pool)] = Viewport{200, {10, 20}};
  action(Do::beside).trigger();
  ASSERT_TRUE(is_beside());
  for (const double scale : {1.0, 2.0}) {
    picture.scale = scale;
    const QString file = folder.filePath(QStringLiteral("two.png"));
    write_picture(file, std::shared_ptr<const viz::Run>(std::shared_ptr<void>(), &document().run()), picture);
    const QImage written = QImage(file).convertToFormat(QImage::Format_RGB32);
    const auto board_of = [&](Canvas& canvas, const std::array<Viewport, kPanels>& viewport) {
      Scene scene = canvas.sceneNow();
      scene.viewport = viewport;
      scene.hovered = {};
      return board_image({700, 700}, scale, make_panels(), scene);
    };
    const auto half = [&](double x) { return written.copy(QRectF(x * scale, 0, 700 * scale, 700 * scale).toRect()); };
    const auto equal = [](QImage a, QImage b) {
      a.setDevicePixelRatio(1), b.setDevicePixelRatio(1);
      a.setDotsPerMeterX(b.dotsPerMeterX()), a.setDotsPerMeterY(b.dotsPerMeterY());
      return a == b;
    };
    EXPECT_TRUE(equal(half(0), board_of(window->canvas(), picture.viewport))) << scale;
    EXPECT_TRUE(equal(half(708), board_of(other(), picture.beside_viewport))) << scale;
  }
}

// Of both runs: at 0 the step before, at 1 the step, and neither halfway.
TEST_F(CompareTest, ThePictureOfAMotionHasTheMotionsOfBothRuns) {
  ASSERT_TRUE(open_two("preemption", path_of("first_light")));
  const std::shared_ptr<const viz::Run> run(std::shared_ptr<void>(), &document().run());
  Picture picture;
  picture.size = {1408, 700};
  picture.compared = document().compared_run();
  picture.beside = true;
  const auto written = [&](const Picture& of) {
    const QString file = folder.filePath(QStringLiteral("moving.png"));
    write_picture(file, run, of);
    return QImage(file).convertToFormat(QImage::Format_RGB32);
  };
  const auto equal = [&](const QImage& a, const QImage& b, int from) {
    const QRect half = QRectF(from * picture.scale, 0, 700 * picture.scale, 700 * picture.scale).toRect();
    return a.copy(half) == b.copy(half);
  };
  for (const double scale : {1.0, 2.0}) {
    picture.scale = scale;
    std::array<QImage, 2> stills;
    for (const int step : {2, 3}) {
      picture.position = document().run().end_of_row(step + 1);
      stills[static_cast<std::size_t>(step - 2)] = written(picture);
    }
    Picture moving = picture;
    for (const double t : {0.0, 0.5, 1.0}) {
      moving.between = t;
      const QImage image = written(moving);
      for (const int from : {0, 708}) {
        EXPECT_EQ(equal(image, stills[0], from), t == 0) << t << ' ' << from;
        EXPECT_EQ(equal(image, stills[1], from), t == 1) << t << ' ' << from;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::compare_test
