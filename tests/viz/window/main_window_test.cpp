// The window, used by click, key and drop: its functions, and that after any failure the open document is unchanged.
#include "viz/window/main_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <QtCore/QFile>
#include <QtCore/QMimeData>
#include <QtCore/QUrl>
#include <QtGui/QClipboard>
#include <QtGui/QDropEvent>
#include <QtGui/QScreen>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStatusBar>

#include "tests/viz/window/window_support.h"
#include "viz/window/attention_bar.h"
#include "viz/window/busy_bar.h"
#include "viz/window/status_line.h"
#include "viz/window/tile_bar.h"

namespace kvscope::viz::main_window_test {
namespace {

using testing_support::made_up;
using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

using MainWindowTest = testing_support::WindowTest;

// --- opening ---------------------------------------------------------------------------------------------------------

TEST_F(MainWindowTest, StartsWithTheGalleryAndOpensWhatIsClicked) {
  EXPECT_EQ(window->document(), nullptr);
  auto* gallery = window->findChild<QListView*>(QStringLiteral("gallery"));
  ASSERT_TRUE(gallery->isVisible());
  ASSERT_EQ(gallery->model()->rowCount(), 4);
  QTest::mouseClick(gallery->viewport(), Qt::LeftButton, Qt::NoModifier,
                    gallery->visualRect(gallery->model()->index(1, 0)).center());
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->windowTitle(), QStringLiteral("Preemption[*] - kvscope"));
  EXPECT_TRUE(window->canvas().isVisible());
  EXPECT_FALSE(gallery->isVisible());
  EXPECT_EQ(backend.opens, 1);
}

TEST_F(MainWindowTest, OpensFromTheGalleryByKeyboardAndByMenu) {
  auto* gallery = window->findChild<QListView*>(QStringLiteral("gallery"));
  gallery->setFocus();
  gallery->setCurrentIndex(gallery->model()->index(0, 0));
  press(Qt::Key_Down);
  press(Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), path_of("preemption"));
  for (QAction* action : window->findChildren<QAction*>()) {
    if (action->text() == QLatin1String("First light")) action->trigger();
  }
  EXPECT_TRUE(wait_until([&] { return window->document()->path() == path_of("first_light"); }));
}

TEST_F(MainWindowTest, StartsAtThePositionOfTheCommandLine) {
  OpenWish wish;
  wish.step = StepIdx{6};
  wish.view = View::pool;
  window->open(path_of("first_light"), wish);
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(step(), StepIdx{6});
  EXPECT_EQ(window->view(), View::pool);
  EXPECT_EQ(window->canvas().view(), View::pool);
  EXPECT_TRUE(window->actions()[Do::view_pool]->isChecked());
}

// Files load on a thread: the open document stays open at its position, and the window stays responsive.
TEST_F(MainWindowTest, KeepsTheOldRunWhateverOpeningThrows) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{5});
  document().pin(of_block(BlockIdx{2}));
  const Document* before = window->document();
  const Position position = document().cursor().position();
  const std::vector<std::pair<const char*, QString>> cases{
      {"faulty",
       QStringLiteral("/made/up/faulty.json: $.cache.blocks: 0 is below 1\n/made/up/faulty.json: $.seed: missing")},
      {"out_of_memory", QStringLiteral("out of memory: ask for fewer tokens, layers or heads at a time")},
      {"runtime_error", QStringLiteral("the disk is on fire")},
      {"no_exception", QStringLiteral("an error without a message: please report it")}};
  for (const auto& [name, words] : cases) {
    window->open(made_up(name));
    ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("open")); })) << name;
    EXPECT_EQ(window->messages().lines(QStringLiteral("open")).join(QLatin1Char('\n')), words) << name;
    EXPECT_EQ(window->document(), before) << name;
    EXPECT_EQ(document().cursor().position(), position) << name;
    EXPECT_EQ(document().pinned(), of_block(BlockIdx{2})) << name;
    window->canvas().setFocus();
    press(Qt::Key_Period);
    EXPECT_EQ(step(), StepIdx{6}) << name;
    press(Qt::Key_Comma);
    EXPECT_EQ(document().cursor().position(), position) << name;
    window->messages().dismiss(QStringLiteral("open"));
  }
  EXPECT_TRUE(open(path_of("preemption")));
}

// A receiver of the new position has no memory, twice: for the step, and when the window shows the position after the
// fault.
TEST_F(MainWindowTest, AStepThatFailsShowsWhyAndKeepsTheDocument) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{5});
  document().pin(of_block(BlockIdx{2}));
  const Document* before = window->document();
  int failures = 2;
  QObject::connect(before, &Document::position_changed, window.get(), [&failures] {
    if (failures-- > 0) throw std::bad_alloc();
  });
  window->canvas().setFocus();
  press(Qt::Key_Period);
  EXPECT_EQ(failures, 0);
  ASSERT_TRUE(window->messages().showing(QStringLiteral("trace")));
  EXPECT_EQ(window->messages().lines(QStringLiteral("trace")).size(), 1);
  EXPECT_EQ(window->document(), before);
  EXPECT_EQ(step(), StepIdx{6});
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{2}));
  press(Qt::Key_Period);
  EXPECT_EQ(step(), StepIdx{7});
  press(Qt::Key_Comma);
  EXPECT_EQ(step(), StepIdx{6});
}

TEST_F(MainWindowTest, FaultsCanBeCopiedAndDismissed) {
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  click(button(window->messages(), QStringLiteral("Copy")));
  EXPECT_EQ(QGuiApplication::clipboard()->text(),
            window->messages().lines(QStringLiteral("open")).join(QLatin1Char('\n')));
  click(button(window->messages(), QStringLiteral("Dismiss")));
  EXPECT_FALSE(window->messages().isVisible());
  EXPECT_FALSE(window->messages().showing(QStringLiteral("open")));
}

// The file is corrected in an editor: it can be opened again without choosing it again.
TEST_F(MainWindowTest, AFileThatDidNotOpenIsTriedAgainByTheMessageOrByReload) {
  const QString path = folder.filePath(QStringLiteral("mended.json"));
  const auto write = [&](const QString& from) {
    QFile::remove(path);
    ASSERT_TRUE(QFile::copy(from, path));
  };
  const auto failed = [&] { return wait_until([&] { return window->messages().showing(QStringLiteral("open")); }); };
  OpenWish wish;
  wish.step = StepIdx{6};
  window->open(path, wish);
  ASSERT_TRUE(failed());
  EXPECT_FALSE(window->actions()[Do::save_trace]->isEnabled());
  press(Qt::Key_R, Qt::ControlModifier);
  EXPECT_FALSE(window->messages().showing(QStringLiteral("open")));
  ASSERT_TRUE(failed());
  write(path_of("first_light"));
  press(Qt::Key_R, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(document().path(), path);
  EXPECT_EQ(step(), StepIdx{6});
  EXPECT_FALSE(window->messages().isVisible());

  // With an open run, the message opens the failed file again, and Reload opens the open file again.
  window->open(made_up("faulty"));
  ASSERT_TRUE(failed());
  const Document* before = window->document();
  press(Qt::Key_R, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return window->document() != before; }));
  EXPECT_EQ(document().path(), path);
  EXPECT_EQ(step(), StepIdx{6});
  QFile::remove(path);
  window->open(path);
  ASSERT_TRUE(failed());
  write(path_of("preemption"));
  before = window->document();
  click(button(window->messages(), QStringLiteral("Try again")));
  ASSERT_TRUE(wait_until([&] { return window->document() != before; }));
  EXPECT_EQ(document().run().facts().name, "Preemption");
}

TEST_F(MainWindowTest, AFaultGoesWhenTheNextFileIsOpened) {
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_FALSE(window->messages().isVisible());
}

TEST_F(MainWindowTest, StaysUsableWhileAFileLoadsAndCancelLeavesAllAsItWas) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->open(made_up("held"));
  BusyBar* bar = nullptr;
  ASSERT_TRUE(wait_until([&] {
    for (BusyBar* b : window->findChildren<BusyBar*>()) bar = b->isVisible() ? b : bar;
    return bar != nullptr && bar->words().contains(QLatin1String("64 of 64"));
  }));
  EXPECT_EQ(bar->words(), QStringLiteral("Opening held.json: running the scenario: 64 of 64 requests"));
  window->canvas().setFocus();
  press(Qt::Key_Period);
  EXPECT_EQ(step(), StepIdx{1});
  click(button(*bar, QStringLiteral("Cancel")));
  ASSERT_TRUE(wait_until([&] { return !bar->isVisible(); }));
  EXPECT_EQ(window->document()->path(), path_of("first_light"));
  EXPECT_EQ(step(), StepIdx{1});
  EXPECT_EQ(window->statusBar()->currentMessage(), QStringLiteral("held.json was not opened: cancelled"));
  EXPECT_FALSE(window->messages().isVisible());
}

TEST_F(MainWindowTest, TheNewestFileWinsWhileOneIsLoading) {
  window->open(made_up("held"));
  window->open(path_of("preemption"));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), path_of("preemption"));
  EXPECT_EQ(backend.most_opens_now, 1);
}

TEST_F(MainWindowTest, ClosesDuringALoadWithoutHangingOrCrashing) {
  for (const char* name : {"held", "deaf"}) {
    window->open(made_up(name));
    ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
    EXPECT_TRUE(window->close());
    EXPECT_FALSE(window->isVisible());
    window.reset();
    EXPECT_EQ(backend.opens_now, 0);
    start();
  }
}

TEST_F(MainWindowTest, ReloadsAtTheSamePlaceWithTheSameSelection) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{20});
  document().previous_event();
  document().pin(of_page(SeqIdx{1}, PageIdx{3}));
  const Position position = document().cursor().position();
  const Document* before = window->document();
  window->canvas().setFocus();
  press(Qt::Key_R, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return window->document() != before; }));
  EXPECT_EQ(document().cursor().position(), position);
  EXPECT_EQ(document().pinned(), of_page(SeqIdx{1}, PageIdx{3}));
  EXPECT_EQ(backend.opens, 2);
}

TEST_F(MainWindowTest, ClosingTheFileShowsTheStartPageAndSwitchesOffWhatNeedsARun) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_EQ(window->document(), nullptr);
  EXPECT_TRUE(window->findChild<QListView*>(QStringLiteral("gallery"))->isVisible());
  for (const Do id :
       {Do::reload, Do::save_trace, Do::export_picture, Do::close, Do::play, Do::step, Do::find, Do::show_why})
    EXPECT_FALSE(window->actions()[id]->isEnabled()) << entry(id).text;
  for (const Do id : {Do::open, Do::quit, Do::help, Do::theme_dark, Do::faster})
    EXPECT_TRUE(window->actions()[id]->isEnabled()) << entry(id).text;
  press(Qt::Key_Period);  // nothing to step, nothing to crash
}

// 1600 x 1000 exceeds many laptop screens: parts of the window would be outside the screen.
TEST_F(MainWindowTest, AtFirstIsNoLargerThanTheScreen) {
  const QTemporaryDir fresh;
  const MainWindow first(backend, fresh.path());
  const QSize screen = first.screen()->availableSize();
  ASSERT_LT(screen.width(), 1600);
  EXPECT_EQ(first.size(), screen.boundedTo(QSize(1600, 1000)));
}

TEST_F(MainWindowTest, TextGrowsEverywhereAndStopsAtItsLimits) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  const int before = window->menuBar()->fontMetrics().height();
  // Menus, labels and popups have the embedded font from the start, not only after the size was changed.
  for (const QWidget* w : window->findChildren<QWidget*>()) {
    const auto* button = qobject_cast<const QAbstractButton*>(w);  // the corner button of a table has no text
    if (qobject_cast<const QMenu*>(w) || qobject_cast<const QMenuBar*>(w) || (button && !button->text().isEmpty())) {
      EXPECT_EQ(w->font().family(), ui_font(1).family()) << w->metaObject()->className();
    }
  }
  press(Qt::Key_Plus, Qt::ControlModifier | Qt::AltModifier);
  EXPECT_GT(window->menuBar()->fontMetrics().height(), before);
  EXPECT_DOUBLE_EQ(window->canvas().sceneNow().font_scale, kFontStep);
  for (int i = 0; i < 40; ++i) press(Qt::Key_Plus, Qt::ControlModifier | Qt::AltModifier);
  EXPECT_DOUBLE_EQ(window->canvas().sceneNow().font_scale, kLargestFont);
  press(Qt::Key_0, Qt::ControlModifier | Qt::AltModifier);
  EXPECT_EQ(window->menuBar()->fontMetrics().height(), before);
}

// --- dropping --------------------------------------------------------------------------------------------------------

bool drop(MainWindow& window, const QList<QUrl>& urls) {
  QMimeData data;
  data.setUrls(urls);
  const QPoint at = window.rect().center();
  QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  enter.ignore();
  QApplication::sendEvent(&window, &enter);
  if (!enter.isAccepted()) return false;
  QDropEvent event(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &event);
  return true;
}

TEST_F(MainWindowTest, OpensAFileThatIsDropped) {
  EXPECT_TRUE(drop(*window, {QUrl::fromLocalFile(path_of("preemption"))}));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), path_of("preemption"));
  EXPECT_FALSE(window->messages().isVisible());
}

TEST_F(MainWindowTest, OpensTheFirstOfSeveralAndShowsAMessage) {
  EXPECT_TRUE(drop(*window, {QUrl::fromLocalFile(path_of("first_light")), QUrl::fromLocalFile(path_of("preemption"))}));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), path_of("first_light"));
  ASSERT_TRUE(window->messages().showing(QStringLiteral("drop")));
  EXPECT_NE(window->messages().findChild<QFrame*>()->accessibleName().indexOf(
                QLatin1String("2 files were dropped, but only one can be open: first_light.json is opened.")),
            -1);
}

// Of two bundles either may be the golden: a file manager sorts them by name.
TEST_F(MainWindowTest, TwoBundlesAreAGoldenAndACandidateInEitherOrder) {
  const QList<QUrl> files{QUrl::fromLocalFile(QStringLiteral("/mine.npz")),
                          QUrl::fromLocalFile(QStringLiteral("/golden.npz"))};
  EXPECT_TRUE(drop(*window, files));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), QStringLiteral("/golden.npz"));
  EXPECT_EQ(window->document()->attention().candidate(), QStringLiteral("/mine.npz"));
  EXPECT_EQ(window->view(), View::attention);
  ASSERT_TRUE(wait_until([&] { return window->document()->attention().errors() != nullptr; }));
  EXPECT_EQ(backend.last_candidate, "/mine.npz");
  EXPECT_FALSE(window->messages().isVisible());
}

TEST_F(MainWindowTest, TwoBundlesWithoutAGoldenShowTheFaultsOfTheFirst) {
  const QList<QUrl> files{QUrl::fromLocalFile(QStringLiteral("/mine.npz")),
                          QUrl::fromLocalFile(QStringLiteral("/yours.npz"))};
  EXPECT_TRUE(drop(*window, files));
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("open")); }));
  EXPECT_EQ(backend.opens, 2);
  EXPECT_NE(
      window->messages().findChild<QFrame*>()->accessibleName().indexOf(QLatin1String("mine.npz could not be opened")),
      -1);
}

// --- files of older versions -----------------------------------------------------------------------------------------

TEST_F(MainWindowTest, AFileWithARemarkIsShownAndTheRemarkGoesWithIt) {
  window->open(QStringLiteral("/old.npz"));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->messages().lines(QStringLiteral("bundle")),
            QStringList{QStringLiteral("/old.npz: bundle version 1 has no checksum")});
  EXPECT_NE(window->messages().findChild<QFrame*>()->accessibleName().indexOf(
                QLatin1String("old.npz was opened, but not all of it could be checked")),
            -1);
  window->open(QStringLiteral("/golden.npz"));
  ASSERT_TRUE(wait_until([&] { return window->document()->path() == QStringLiteral("/golden.npz"); }));
  EXPECT_FALSE(window->messages().showing(QStringLiteral("bundle")));
  window->open(QStringLiteral("/old.npz"));
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("bundle")); }));
  window->close_document();
  EXPECT_FALSE(window->messages().showing(QStringLiteral("bundle")));
}

// A dismissed remark does not return at the next step, which compares the candidate again.
TEST_F(MainWindowTest, ARemarkOfACandidateIsShownOnceForEachCandidate) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->set_view(View::attention);
  AttentionModel& attention = window->document()->attention();
  attention.set_candidate(QStringLiteral("old.npz"));
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("candidate")); }));
  EXPECT_EQ(window->messages().lines(QStringLiteral("candidate")),
            QStringList{QStringLiteral("old.npz: bundle version 1")});
  window->messages().dismiss(QStringLiteral("candidate"));
  const int compared = backend.compares;
  window->document()->seek_step(StepIdx{step().value + 1});
  ASSERT_TRUE(wait_until([&] { return backend.compares > compared && attention.errors() != nullptr; }));
  EXPECT_FALSE(window->messages().showing(QStringLiteral("candidate")));
  attention.set_candidate(QStringLiteral("mine.npz"));
  attention.set_candidate(QStringLiteral("old.npz"));
  ASSERT_TRUE(wait_until([&] { return attention.errors()->candidate_name == "old.npz"; }));
  attention.set_candidate({});
  ASSERT_TRUE(wait_until([&] { return attention.errors()->of_flow; }));
  EXPECT_FALSE(window->messages().showing(QStringLiteral("candidate")));
}

// --- the attention view ----------------------------------------------------------------------------------------------

// Regression: after Ctrl+W the start page itself had the focus, and the arrow keys did nothing.
TEST_F(MainWindowTest, AfterCloseTheKeysChooseAScenario) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  press(Qt::Key_W, Qt::ControlModifier);
  ASSERT_EQ(window->document(), nullptr);
  press(Qt::Key_Home);
  press(Qt::Key_Down);
  press(Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->run().facts().name, "Preemption");
}

// Regression: after Ctrl+W in the view of a tile or of the attention, its bar stayed above the start page.
TEST_F(MainWindowTest, TheStartPageHasNoBarOfAView) {
  for (const View view : {View::tile, View::attention}) {
    ASSERT_TRUE(open(path_of("first_light")));
    window->set_view(view);
    EXPECT_EQ(window->findChild<TileBar*>()->isVisible(), view == View::tile);
    EXPECT_EQ(window->findChild<AttentionBar*>()->isVisible(), view == View::attention);
    window->close_document();
    EXPECT_FALSE(window->findChild<TileBar*>()->isVisible());
    EXPECT_FALSE(window->findChild<AttentionBar*>()->isVisible());
    EXPECT_EQ(window->view(), view) << "the next run opens in the same view";
  }
}

TEST_F(MainWindowTest, TheAttentionViewIsWalkedThroughTileByTileWithKeys) {
  ASSERT_TRUE(open(path_of("preemption")));
  const StepIdx before = step();
  window->canvas().setFocus();
  press(Qt::Key_6, Qt::ControlModifier);
  EXPECT_EQ(window->view(), View::attention);
  AttentionModel& attention = window->document()->attention();
  ASSERT_TRUE(wait_until([&] { return attention.flow() != nullptr && attention.errors() != nullptr; }));
  EXPECT_EQ(attention.tiles_done(), 2);
  press(Qt::Key_Comma);
  EXPECT_EQ(attention.tiles_done(), 1);
  EXPECT_EQ(window->document()->pinned().kind, Selection::Kind::flow_tile);
  press(Qt::Key_Period);
  EXPECT_EQ(attention.tiles_done(), 2);
  press(Qt::Key_Home, Qt::ControlModifier);
  EXPECT_EQ(attention.tiles_done(), 0);
  EXPECT_EQ(step(), before) << "the run stays at its step";
  press(Qt::Key_1, Qt::ControlModifier);
  press(Qt::Key_Period);
  EXPECT_NE(step(), before);
}

// Regression: after a click on a tile, the pointer stays on it; the status line kept that tile's text when keys went to
// another one.
TEST_F(MainWindowTest, TheStatusLineFollowsTheKeysWhileThePointerRests) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->canvas().setFocus();
  press(Qt::Key_6, Qt::ControlModifier);
  AttentionModel& attention = document().attention();
  ASSERT_TRUE(wait_until([&] { return attention.flow() != nullptr; }));
  auto* const line = window->findChild<StatusLine*>();
  const auto described = [&](const Selection& of) {
    return describe_attention(of, attention.flow(), attention.errors());
  };
  const SeqIdx seq = attention.flow()->request.seq;
  const Selection first = of_flow_tile(seq, 0, TokIdx{0}, TokIdx{1}, 16);
  const Selection second = of_flow_tile(seq, 1, TokIdx{1}, TokIdx{2}, 16);
  const Selection cell = of_error_cell(seq, HeadIdx{0}, TokIdx{-1}, DimIdx{-1}, PageIdx{-1});
  ASSERT_NE(described(first), described(second));
  document().hover(second);
  document().pin(second);
  EXPECT_EQ(line->text().toStdString(), described(second));
  press(Qt::Key_Comma);
  EXPECT_EQ(document().pinned(), first);
  EXPECT_EQ(line->text().toStdString(), described(first));
  press(Qt::Key_Period);
  EXPECT_EQ(line->text().toStdString(), described(second));
  press(Qt::Key_Comma);
  document().hover(cell);
  EXPECT_EQ(line->text().toStdString(), described(cell)) << "the pointer has moved on";
  press(Qt::Key_Comma);
  EXPECT_EQ(attention.tiles_done(), 0);
  EXPECT_EQ(line->text().toStdString(), described(cell)) << "nothing is pinned";
}

TEST_F(MainWindowTest, ACandidateThatCannotBeComparedShowsWhyInItsPanel) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->set_view(View::attention);
  AttentionModel& attention = window->document()->attention();
  ASSERT_TRUE(wait_until([&] { return attention.errors() != nullptr; }));
  attention.set_candidate(QStringLiteral("faulty.npz"));
  ASSERT_TRUE(wait_until([&] { return attention.errors() == nullptr; }));
  EXPECT_EQ(attention.errors_instead(), QStringLiteral("faulty.npz: candidate 'o': is missing"));
  attention.set_candidate({});
  ASSERT_TRUE(wait_until([&] { return attention.errors() != nullptr; }));
}

TEST_F(MainWindowTest, TakesNoDropWithoutAFile) {
  EXPECT_FALSE(drop(*window, {QUrl(QStringLiteral("https://example.org/first_light.json"))}));
  EXPECT_FALSE(drop(*window, {}));
  EXPECT_EQ(backend.opens, 0);
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST_F(MainWindowTest, IsWalkedThroughWithKeys) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->canvas().setFocus();
  press(Qt::Key_Period);
  EXPECT_EQ(step(), StepIdx{1});
  press(Qt::Key_Right, Qt::ControlModifier);
  EXPECT_EQ(step(), StepIdx{2});
  press(Qt::Key_Comma);
  EXPECT_EQ(step(), StepIdx{1});
  const Position position = document().cursor().position();
  press(Qt::Key_Period, Qt::ShiftModifier);
  EXPECT_EQ(document().cursor().position(), position + 1);
  press(Qt::Key_Comma, Qt::ShiftModifier);
  EXPECT_EQ(document().cursor().position(), position);
  press(Qt::Key_End, Qt::ControlModifier);
  EXPECT_TRUE(document().cursor().at_end());
  press(Qt::Key_Home, Qt::ControlModifier);
  EXPECT_TRUE(document().cursor().at_start());
}

TEST_F(MainWindowTest, SpacePlaysAndPausesButPressesAButtonThatHasTheFocus) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->canvas().setFocus();
  press(Qt::Key_Space);
  EXPECT_TRUE(document().playing());
  EXPECT_EQ(window->actions()[Do::play]->text(), QStringLiteral("&Pause"));
  press(Qt::Key_Space);
  EXPECT_FALSE(document().playing());
  EXPECT_EQ(window->actions()[Do::play]->text(), QStringLiteral("&Play"));
  QAbstractButton* next = button(*window, QStringLiteral("Step"));
  ASSERT_NE(next, nullptr);
  next->setFocus();
  const StepIdx before = step();
  press(Qt::Key_Space);
  EXPECT_FALSE(document().playing());
  EXPECT_EQ(step(), before + 1);
}

// Regression: the zoom keys did nothing in most panels of the tile view and in the attention view, and nothing showed why.
TEST_F(MainWindowTest, ZoomIsForThePanelWithTheFocusOrOffWithTheReason) {
  ASSERT_TRUE(open(path_of("first_light")));
  Canvas& canvas = window->canvas();
  canvas.setFocus();
  QAction* const in = window->actions()[Do::zoom_in];
  QAction* const out = window->actions()[Do::zoom_out];
  press(Qt::Key_5, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
  canvas.focusPanel(PanelId::shared);
  EXPECT_TRUE(in->isEnabled());
  press(Qt::Key_Equal, Qt::ControlModifier);
  EXPECT_NE(canvas.viewport(PanelId::shared), Viewport{});
  canvas.setViewport(PanelId::shared, {});
  const QString of_tile =
      QStringLiteral("Registers cannot be zoomed: point at Shared memory, or give it the keyboard focus");
  for (const auto& [key, modifiers] : {std::pair{Qt::Key_Equal, Qt::KeyboardModifiers(Qt::ControlModifier)},
                                       {Qt::Key_Minus, Qt::ControlModifier},
                                       {Qt::Key_Plus, Qt::NoModifier}}) {
    canvas.focusPanel(PanelId::registers);
    window->statusBar()->clearMessage();
    press(key, modifiers);
    EXPECT_EQ(window->statusBar()->currentMessage(), of_tile) << key;
    EXPECT_EQ(canvas.viewport(PanelId::shared), Viewport{});
  }
  for (const QAction* action : {in, out}) {
    EXPECT_FALSE(action->isEnabled());
    EXPECT_TRUE(action->toolTip().endsWith(of_tile)) << action->toolTip().toStdString();
    EXPECT_TRUE(action->statusTip().endsWith(of_tile)) << action->statusTip().toStdString();
  }
  // Every view: on exactly where the key changes something.
  for (const auto view : {View::overview, View::sequences, View::pool, View::timeline, View::tile, View::attention}) {
    window->set_view(view);
    for (const Place& place : canvas.places()) {
      canvas.focusPanel(place.panel);
      press(Qt::Key_0);
      press(Qt::Key_Plus);
      press(Qt::Key_Plus);
      EXPECT_EQ(in->isEnabled(), canvas.viewport(place.panel) != Viewport{})
          << name(view) << ": " << canvas.panels()[static_cast<std::size_t>(place.panel)]->title().toStdString();
      EXPECT_EQ(in->toolTip().contains(QLatin1Char('\n')), !in->isEnabled()) << in->toolTip().toStdString();
      press(Qt::Key_0);
    }
  }
  EXPECT_FALSE(in->isEnabled()) << "the last panel of the attention view";
  EXPECT_TRUE(in->toolTip().endsWith(
      QStringLiteral(" cannot be zoomed: point at Sequences or Block pool, or give it the keyboard focus")))
      << in->toolTip().toStdString();
  press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_FALSE(in->isEnabled());
  EXPECT_FALSE(in->toolTip().contains(QLatin1Char('\n')));
}

TEST_F(MainWindowTest, RunsToABreakpointAndBackWithF5) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().set_breakpoints({parse_breakpoint("request_preempted")});
  window->canvas().setFocus();
  press(Qt::Key_F5);
  EXPECT_EQ(step(), StepIdx{3});
  EXPECT_THAT(window->statusBar()->currentMessage().toStdString(),
              testing::StartsWith("breakpoint 1: request_preempted at event "));
  press(Qt::Key_F5);
  EXPECT_EQ(step(), StepIdx{6});
  press(Qt::Key_F5, Qt::ShiftModifier);
  EXPECT_EQ(step(), StepIdx{3});
  press(Qt::Key_Period);
  EXPECT_TRUE(window->statusBar()->currentMessage().isEmpty());
}

TEST_F(MainWindowTest, SpeedDoublesAndHalvesWithinItsLimits) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  press(Qt::Key_BracketRight);
  EXPECT_EQ(document().speed(), 8);
  for (int i = 0; i < 20; ++i) press(Qt::Key_BracketRight);
  EXPECT_EQ(document().speed(), Player::kFastest);
  for (int i = 0; i < 20; ++i) press(Qt::Key_BracketLeft);
  EXPECT_EQ(document().speed(), Player::kSlowest);
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_EQ(document().speed(), Player::kSlowest);  // the next run is played at the same speed
}

TEST_F(MainWindowTest, EscapeClosesTheBarWithTheFocusThenClearsTheSelection) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().pin(of_block(BlockIdx{1}));
  window->canvas().setFocus();
  press(Qt::Key_F, Qt::ControlModifier);
  auto* field = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(field, nullptr);
  press(Qt::Key_Escape);
  EXPECT_FALSE(field->isVisible());
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{1}));
  EXPECT_TRUE(window->canvas().hasFocus());
  press(Qt::Key_Escape);
  EXPECT_TRUE(document().pinned().none());
}

TEST_F(MainWindowTest, EscapeDismissesAMessageThatHasTheFocus) {
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  button(window->messages(), QStringLiteral("Copy"))->setFocus();
  press(Qt::Key_Escape);
  EXPECT_FALSE(window->messages().isVisible());
}

// --- views and docks -------------------------------------------------------------------------------------------------

TEST_F(MainWindowTest, ChangesTheViewByKeyAndFollowsTheCanvas) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  const std::array<std::pair<Qt::Key, View>, 4> views{{{Qt::Key_2, View::sequences},
                                                       {Qt::Key_3, View::pool},
                                                       {Qt::Key_4, View::timeline},
                                                       {Qt::Key_1, View::overview}}};
  for (const auto& [key, view] : views) {
    press(key, Qt::ControlModifier);
    EXPECT_EQ(window->view(), view);
    EXPECT_EQ(window->canvas().view(), view);
  }
  window->canvas().setView(View::timeline);  // as a double click on its title does
  EXPECT_EQ(window->view(), View::timeline);
  EXPECT_TRUE(window->actions()[Do::view_timeline]->isChecked());
  EXPECT_FALSE(window->actions()[Do::view_overview]->isChecked());
}

TEST_F(MainWindowTest, ADockBehindATabComesToTheFrontAndFromTheFrontGoes) {
  ASSERT_TRUE(open(path_of("first_light")));
  auto* events = window->findChild<QDockWidget*>(QStringLiteral("events"));
  window->canvas().setFocus();
  ASSERT_FALSE(events->isHidden());
  press(Qt::Key_2, Qt::AltModifier);
  ASSERT_TRUE(wait_until([&] { return !events->visibleRegion().isEmpty(); }));
  EXPECT_TRUE(window->actions()[Do::show_events]->isChecked());
  press(Qt::Key_2, Qt::AltModifier);
  EXPECT_TRUE(events->isHidden());
  EXPECT_FALSE(window->actions()[Do::show_events]->isChecked());
}

TEST_F(MainWindowTest, DocksThatWereClosedStayClosedInTheNextRun) {
  ASSERT_TRUE(open(path_of("first_light")));
  auto* why = window->findChild<QDockWidget*>(QStringLiteral("why"));
  auto* notes = window->findChild<QDockWidget*>(QStringLiteral("notes"));
  why->close();
  window->close_document();
  EXPECT_TRUE(notes->isHidden());  // the start page is shown without docks
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_TRUE(why->isHidden());
  EXPECT_FALSE(notes->isHidden());
  EXPECT_FALSE(window->actions()[Do::show_why]->isChecked());
  EXPECT_TRUE(window->actions()[Do::show_notes]->isChecked());
}

TEST_F(MainWindowTest, ShowsTheHoveredElseThePinnedObject) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  QLabel* what = nullptr;
  for (QLabel* label : window->statusBar()->findChildren<QLabel*>()) {
    if (label->objectName() == QLatin1String("selection")) what = label;
  }
  ASSERT_NE(what, nullptr);
  const auto described = [&](const Selection& s) {
    return QString::fromStdString(describe(document().cursor().state(), document().run().facts(), s));
  };
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  EXPECT_EQ(what->text(), QStringLiteral("Sequence 3, token 37: page 2, slot 5 of block 2, shared by 5 sequences"));
  document().hover(of_block(BlockIdx{4}));
  EXPECT_EQ(what->text(), described(of_block(BlockIdx{4})));
  document().hover({});
  EXPECT_EQ(what->text(), described(of_token(SeqIdx{3}, TokIdx{37})));
}

// --- theme and text --------------------------------------------------------------------------------------------------

TEST_F(MainWindowTest, ChangesThemeByKeyForCanvasAndWidgetsAlike) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  for (const auto& [key, kind] : std::initializer_list<std::pair<Qt::Key, ThemeKind>>{{Qt::Key_L, ThemeKind::light},
                                                                                      {Qt::Key_D, ThemeKind::dark}}) {
    press(key, Qt::ControlModifier | Qt::AltModifier);
    EXPECT_EQ(window->theme_now(), kind);
    EXPECT_EQ(window->canvas().sceneNow().theme->kind, kind);
    EXPECT_EQ(window->palette().color(QPalette::Window), theme(kind).surface);
    EXPECT_EQ(window->grab().toImage().pixelColor(3, window->height() / 2), theme(kind).surface);
  }
  EXPECT_TRUE(window->actions()[Do::theme_dark]->isChecked());
  EXPECT_FALSE(window->actions()[Do::theme_light]->isChecked());
}

TEST_F(MainWindowTest, FollowsTheDesktopWhenItChangesAndIsToldTo) {
  window->set_theme(ThemeSetting::system);
  const ThemeKind desktop = theme_kind(ThemeSetting::system, desktop_palette());
  EXPECT_EQ(window->theme_now(), desktop);
  apply_look(theme(desktop == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark), 1);
  QEvent changed(QEvent::ThemeChange);
  QApplication::sendEvent(window.get(), &changed);
  EXPECT_EQ(window->theme_now(), desktop);
  EXPECT_EQ(QApplication::palette().color(QPalette::Window), theme(desktop).surface);
}

TEST_F(MainWindowTest, GoesToTheFullScreenAndBackWithF11) {
  press(Qt::Key_F11);
  EXPECT_TRUE(window->isFullScreen());
  press(Qt::Key_F11);
  EXPECT_FALSE(window->isFullScreen());
}

// Regression: at larger text the timeline and the legends disappeared in a small window, without a way to reach them.
TEST_F(MainWindowTest, ALowWindowScrollsOverAllPanels) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->resize(1366, 768);
  window->set_font_scale(1.6);
  settle();
  const Canvas& canvas = window->canvas();
  EXPECT_EQ(canvas.places().size(), 5u);
  const QScrollArea* scroll = nullptr;
  for (const QScrollArea* area : window->findChildren<QScrollArea*>()) {
    if (area->widget() == &canvas) scroll = area;
  }
  ASSERT_NE(scroll, nullptr);
  EXPECT_GT(canvas.height(), scroll->viewport()->height());
  EXPECT_EQ(scroll->verticalScrollBar()->value(), 0);
  // Tab leads to the timeline, which scrolls into view.
  window->canvas().focusPanel(PanelId::timeline);
  EXPECT_GT(scroll->verticalScrollBar()->value(), 0);
  window->set_font_scale(1);
  window->resize(1366, 900);
  settle();
  EXPECT_EQ(canvas.height(), scroll->viewport()->height());
}

// --- names -----------------------------------------------------------------------------------------------------------

// Screen readers read every focusable widget: it needs an accessible name or a text.
TEST_F(MainWindowTest, EverythingThatTakesTheFocusHasAName) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  window->actions()[Do::find]->trigger();
  window->actions()[Do::export_picture]->trigger();
  const auto nameless = [this] {
    QStringList found;
    for (const QWidget* widget : window->findChildren<QWidget*>()) {
      const bool inner =
          qobject_cast<const QLineEdit*>(widget) != nullptr && widget->objectName().startsWith(QLatin1String("qt_"));
      if (widget->focusPolicy() == Qt::NoFocus || inner || !widget->accessibleName().isEmpty()) continue;
      const auto* button = qobject_cast<const QAbstractButton*>(widget);
      if (button != nullptr && !button->text().isEmpty()) continue;
      const auto* label = qobject_cast<const QLabel*>(widget);
      if (label != nullptr && !label->text().isEmpty()) continue;
      if (widget->metaObject()->className() == QByteArrayLiteral("QComboBoxListView")) continue;  // its field has one
      if (widget->metaObject()->className() == QByteArrayLiteral("QTabBar")) continue;            // its tabs have names
      if (widget->parentWidget() != nullptr && widget->objectName().startsWith(QLatin1String("qt_"))) continue;
      found.push_back(QString::fromLatin1(widget->metaObject()->className()) + QLatin1Char(' ') + widget->objectName());
    }
    return found;
  };
  EXPECT_EQ(nameless().join(QStringLiteral(", ")).toStdString(), "");
}

// Tab leaves every part of the window: no widget keeps the focus.
TEST_F(MainWindowTest, TabGoesRoundTheWholeWindow) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  std::set<const QWidget*> seen;
  int back_in_canvas = 0;
  const QWidget* last = &window->canvas();
  for (int i = 0; i < 120; ++i) {
    press(Qt::Key_Tab);
    const QWidget* focus = QApplication::focusWidget();
    ASSERT_NE(focus, nullptr);
    seen.insert(focus);
    back_in_canvas += focus == &window->canvas() && last != focus ? 1 : 0;
    last = focus;
  }
  EXPECT_GT(seen.size(), 12U);
  EXPECT_GE(back_in_canvas, 1);
}

}  // namespace
}  // namespace kvscope::viz::main_window_test
