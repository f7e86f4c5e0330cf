// The kernel window over a fake virtual GPU: launches, movements and their order, faults, breakpoints, closing while
// something runs, and kernels that the main window opens.
#include "viz/window/kernel_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <QtCore/QDateTime>
#include <QtCore/QFile>
#include <QtCore/QPointer>
#include <QtCore/QSettings>
#include <QtCore/QTemporaryDir>
#include <QtGui/QAction>
#include <QtGui/QImage>
#include <QtGui/QTextBlock>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QTreeWidget>

#include "tests/viz/window/window_support.h"
#include "viz/view/kernel_code_view.h"
#include "viz/view/kernel_shared_view.h"
#include "viz/window/kernel_help.h"
#include "viz/window/kernel_launch_panel.h"
#include "viz/window/kernel_launches.h"
#include "viz/window/recent_files.h"
#include "viz/window/step_slider.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz::kernel_window_test {
namespace {

using testing::ElementsAre;
using testing_support::fake_position;
using testing_support::kFakeEnd;
using testing_support::settle;
using testing_support::wait_until;

const QString kScale = QStringLiteral("/made/up/scale.ptx");

QString lines_of(const QStringList& lines) {
  return lines.join(QLatin1Char('\n'));
}

class KernelWindowTest : public testing::Test {
 protected:
  KernelWindowTest() { make(); }
  ~KernelWindowTest() override {
    backend.kernels.hold = false;
    window.reset();
  }

  void make() {
    apply_look(theme(ThemeKind::dark), 1);  // the test before may have set another text size
    window = std::make_unique<KernelWindow>(backend, folder.path());
    window->set_look(theme(ThemeKind::dark), 1);
    window->resize(1400, 900);
    window->show();
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  }

  [[nodiscard]] bool rests() const {
    return wait_until([&] { return !window->busy(); });
  }
  void open_and_start(const QString& path = kScale) {
    window->open(path);
    window->start();
    ASSERT_TRUE(rests());
    ASSERT_TRUE(window->started());
    backend.kernels.forget();
  }
  void seek(std::uint64_t step) {
    window->go({.move = KernelMove::seek, .step = step});
    ASSERT_TRUE(rests());
    ASSERT_EQ(window->state().step, step);
    backend.kernels.forget();
  }
  // The movements that the run was asked for since forget().
  [[nodiscard]] std::vector<KernelMove> moves() const {
    std::vector<KernelMove> out;
    for (const KernelWish& wish : backend.kernels.wishes()) out.push_back(wish.move);
    return out;
  }
  [[nodiscard]] std::set<KernelBreakpoint> last_breakpoints() const {
    const std::vector<KernelWish> wishes = backend.kernels.wishes();
    if (wishes.empty()) return {};
    return {wishes.back().breakpoints.begin(), wishes.back().breakpoints.end()};
  }
  // Starts a movement that waits, so that others wait behind it.
  void hold_a_step() {
    backend.kernels.hold = true;
    window->go(KernelMove::step);
    ASSERT_TRUE(wait_until([&] { return backend.kernels.moves_now == 1; }));
  }

  [[nodiscard]] QTableView& table(const char* name) const {
    for (QTableView* t : window->findChildren<QTableView*>()) {
      if (t->accessibleName() == QLatin1String(name)) return *t;
    }
    throw std::runtime_error(name);
  }
  [[nodiscard]] QTableView& warps() const { return table("Lane groups of all CTAs that have started"); }
  [[nodiscard]] QTableView& registers() const { return table("Registers of the lane group"); }
  [[nodiscard]] QTableView& reports() const { return table("Reports of the launch"); }
  [[nodiscard]] QPlainTextEdit& text(const char* name) const {
    for (QPlainTextEdit* t : window->findChildren<QPlainTextEdit*>()) {
      if (t->accessibleName() == QLatin1String(name)) return *t;
    }
    throw std::runtime_error(name);
  }
  [[nodiscard]] KernelCodeView& code(const char* name) const {
    for (KernelCodeView* view : window->findChildren<KernelCodeView*>()) {
      if (view->accessibleName() == QLatin1String(name)) return *view;
    }
    throw std::runtime_error(name);
  }
  [[nodiscard]] StepSlider& slider() const { return *window->findChild<StepSlider*>(); }
  [[nodiscard]] QString position() const {
    return window->findChild<QLabel*>(QStringLiteral("position"))->text().trimmed();
  }
  [[nodiscard]] QLineEdit& field(const char* name) const {
    for (QLineEdit* f : window->launch_panel().findChildren<QLineEdit*>()) {
      if (f->accessibleName() == QLatin1String(name)) return *f;
    }
    throw std::runtime_error(name);
  }
  void show_dock(const char* name) const {
    auto* const dock = window->findChild<QDockWidget*>(QLatin1String(name));
    dock->show();
    dock->raise();
    settle();
  }
  // A click on the middle of a cell.
  static void click_cell(const QTableView& in, int row, int column = 0) {
    const QModelIndex index = in.model()->index(row, column);
    QTest::mouseClick(in.viewport(), Qt::LeftButton, Qt::NoModifier, in.visualRect(index).center());
  }
  static void click_margin(const KernelCodeView& view, int line) {
    QTest::mouseClick(&view.margin(), Qt::LeftButton, Qt::NoModifier, view.margin_of(line).center());
  }

  QTemporaryDir folder;
  testing_support::FakeBackend backend;
  std::unique_ptr<KernelWindow> window;
};

// --- opening and starting --------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, OpeningShowsTheFormAndExecutesNothing) {
  const QSignalSpy opened(window.get(), &KernelWindow::opened);
  window->open(kScale);
  EXPECT_EQ(opened.size(), 1);
  EXPECT_FALSE(window->busy());
  EXPECT_FALSE(window->started());
  EXPECT_THAT(backend.kernels.launches(), testing::IsEmpty());
  EXPECT_EQ(window->windowTitle(), QStringLiteral("scale.ptx - kvscope"));
  EXPECT_FALSE(slider().isEnabled());
  for (const QAction* action : window->findChild<QToolBar*>()->actions()) {
    if (!action->text().isEmpty()) {
      EXPECT_FALSE(action->isEnabled()) << action->text().toStdString();
    }
  }
  window->go(KernelMove::step);
  EXPECT_FALSE(window->busy());
}

TEST_F(KernelWindowTest, StartShowsTheBeginning) {
  window->open(kScale);
  field("data").setText(QStringLiteral("f32[64]"));
  QTest::keyClick(&field("data"), Qt::Key_Return);
  ASSERT_TRUE(rests());
  ASSERT_EQ(backend.kernels.launches().size(), 1U);
  EXPECT_THAT(backend.kernels.launches()[0].arguments, ElementsAre("f32[64]", ""));
  EXPECT_THAT(moves(), ElementsAre(KernelMove::stay));
  EXPECT_EQ(window->windowTitle(), QStringLiteral("scale (grid 1, block 64) - kvscope"));
  EXPECT_EQ(position(), QStringLiteral("step 0 of 40"));
  EXPECT_TRUE(slider().isEnabled());
  EXPECT_EQ(code("scale.cu").place(), 3);
  EXPECT_EQ(code("scale.ptx").place(), 11);
  EXPECT_EQ(warps().model()->rowCount(), 2);
  EXPECT_EQ(registers().model()->rowCount(), 2);
  EXPECT_EQ(reports().model()->rowCount(), 2);
  EXPECT_EQ(text("Output of printf").toPlainText(), QStringLiteral("printed at 0\n"));
  EXPECT_EQ(text("Barriers and copies of the CTA").toPlainText(),
            QStringLiteral("barrier 0: 1 of 2 warps\ncopy 0 in flight\n"));
}

TEST_F(KernelWindowTest, ALaunchThatIsGivenIsStartedAtItsStep) {
  KernelLaunch launch;
  launch.path = kScale.toStdString();
  launch.block = "64";
  launch.arguments = {"f32[64]", "2"};
  const QSignalSpy shown(window.get(), &KernelWindow::shown);
  window->open(kScale, launch, 17);
  ASSERT_TRUE(rests());
  EXPECT_THAT(backend.kernels.launches(), ElementsAre(launch));
  EXPECT_EQ(window->state().step, 17U);
  EXPECT_EQ(shown.size(), 1);
  // The step was that of the first launch only.
  window->start();
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 0U);
}

TEST_F(KernelWindowTest, AFileWithFaultsLeavesTheLaunchBefore) {
  open_and_start();
  const QSignalSpy shown(window.get(), &KernelWindow::shown);
  window->open(QStringLiteral("/made/up/faulty.ptx"));
  EXPECT_EQ(shown.size(), 1);
  const QString faults = lines_of(window->messages().lines(QStringLiteral("open")));
  EXPECT_TRUE(faults.contains(QStringLiteral("unknown opcode"))) << faults.toStdString();
  EXPECT_TRUE(faults.contains(QStringLiteral("no such register"))) << faults.toStdString();
  EXPECT_TRUE(window->started());
  EXPECT_EQ(window->path(), kScale);
  window->open(kScale);
  EXPECT_FALSE(window->messages().showing(QStringLiteral("open")));
}

// Writes the file as if a few seconds later.
void compile_again(const QString& path, const char* words) {
  {
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(words);
  }
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::ReadWrite));
  ASSERT_TRUE(file.setFileTime(QDateTime::currentDateTime().addSecs(5), QFileDevice::FileModificationTime));
}

TEST_F(KernelWindowTest, AFileThatWasCompiledAgainIsReadAtTheNextStart) {
  const QTemporaryDir place;
  const QString path = place.filePath(QStringLiteral("scale.ptx"));
  ASSERT_TRUE(QFile(path).open(QIODevice::WriteOnly));
  open_and_start(path);
  ASSERT_EQ(window->launch_panel().launch().arguments.size(), 2U);
  compile_again(path, "rows columns");
  window->start();
  ASSERT_TRUE(rests());
  EXPECT_TRUE(window->started());
  EXPECT_EQ(window->launch_panel().launch().arguments.size(), 4U);
  EXPECT_EQ(backend.kernels.launches().back().arguments.size(), 4U);
}

// A caller that waits for shown(), such as --render, waited forever.
TEST_F(KernelWindowTest, AFileThatCannotBeReadAgainIsAMessageAndTheLaunchBeforeStays) {
  const QTemporaryDir place;
  const QString path = place.filePath(QStringLiteral("scale.ptx"));
  ASSERT_TRUE(QFile(path).open(QIODevice::WriteOnly));
  open_and_start(path);
  compile_again(path, "faulty");
  const QSignalSpy shown(window.get(), &KernelWindow::shown);
  window->start();
  EXPECT_EQ(shown.size(), 1);
  EXPECT_TRUE(lines_of(window->messages().lines(QStringLiteral("launch"))).contains(QStringLiteral("unknown opcode")));
  EXPECT_TRUE(window->started());
  EXPECT_THAT(backend.kernels.launches(), testing::IsEmpty());
}

TEST_F(KernelWindowTest, ItsPictureIsWrittenOrTheReasonIsShown) {
  open_and_start();
  const QTemporaryDir place;
  const auto write = [&](const QString& path) {
    for (QAction* action : window->findChildren<QAction*>()) {
      if (action->text() == QStringLiteral("&Export picture...")) action->trigger();
    }
    auto* const dialog = window->findChild<QFileDialog*>();
    ASSERT_NE(dialog, nullptr);
    Q_EMIT dialog->fileSelected(path);
    delete dialog;
  };
  const QString path = place.filePath(QStringLiteral("a.png"));
  write(path);
  EXPECT_EQ(QImage(path).size(), window->size() * window->devicePixelRatio());
  write(place.filePath(QStringLiteral("missing/a.png")));
  EXPECT_TRUE(
      lines_of(window->messages().lines(QStringLiteral("write"))).contains(QStringLiteral("cannot be written")));
}

TEST_F(KernelWindowTest, AStepAfterTheEndIsNamed) {
  KernelLaunch launch;
  launch.path = kScale.toStdString();
  window->open(kScale, launch, kFakeEnd + 5);
  ASSERT_TRUE(rests());
  const QString message = window->statusBar()->currentMessage();
  EXPECT_TRUE(message.contains(QStringLiteral("Step %1 is after the end").arg(kFakeEnd + 5))) << message.toStdString();
  window->open(kScale, launch, kFakeEnd);
  ASSERT_TRUE(rests());
  EXPECT_TRUE(window->statusBar()->currentMessage().isEmpty());
}

TEST_F(KernelWindowTest, AStartThatFailsShowsItsFaultsAndTheFormStaysUsable) {
  window->open(kScale);
  field("Grid").setText(QStringLiteral("bad"));
  window->start();
  ASSERT_TRUE(rests());
  EXPECT_FALSE(window->started());
  const QString faults = lines_of(window->messages().lines(QStringLiteral("launch")));
  EXPECT_TRUE(faults.contains(QStringLiteral("'bad' is no number"))) << faults.toStdString();
  EXPECT_TRUE(faults.contains(QStringLiteral("is missing"))) << faults.toStdString();
  field("Grid").setText(QStringLiteral("2"));
  window->start();
  EXPECT_FALSE(window->messages().showing(QStringLiteral("launch")));
  ASSERT_TRUE(rests());
  EXPECT_TRUE(window->started());
  EXPECT_EQ(backend.kernels.launches().back().grid, "2");
}

TEST_F(KernelWindowTest, OptionsThatCannotBeReadAreAMessage) {
  window->open(kScale);
  field("More options").setText(QStringLiteral("--policy 'early"));
  window->start();
  EXPECT_FALSE(window->busy());
  EXPECT_TRUE(window->messages().showing(QStringLiteral("launch")));
  EXPECT_THAT(backend.kernels.launches(), testing::IsEmpty());
}

// --- movements -------------------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, EveryMovementHasItsKeysWhateverHasTheFocus) {
  open_and_start();
  show_dock("shared");
  const std::vector<QWidget*> places{
      &code("scale.ptx"), &code("scale.cu"), &warps(), &registers(), window->findChild<KernelSharedView*>(), &slider()};
  for (QWidget* focus : places) {
    focus->setFocus();
    ASSERT_TRUE(focus->hasFocus()) << focus->accessibleName().toStdString();
    for (const KernelMoveEntry& entry : kernel_moves()) {
      for (const QString& key : QString::fromLatin1(entry.keys).split(QLatin1Char(' '))) {
        seek(20);
        const QKeyCombination keys = QKeySequence(key)[0];
        QTest::keyClick(focus, keys.key(), keys.keyboardModifiers());
        ASSERT_TRUE(rests());
        EXPECT_THAT(moves(), ElementsAre(entry.move))
            << key.toStdString() << " in " << focus->accessibleName().toStdString();
        EXPECT_EQ(window->state().step, fake_position(20, {.move = entry.move}));
      }
    }
  }
}

TEST_F(KernelWindowTest, EveryMovementWithAnIconHasItsButton) {
  open_and_start();
  auto* const bar = window->findChild<QToolBar*>();
  int buttons = 0;
  for (const KernelMoveEntry& entry : kernel_moves()) {
    QString name = QString::fromLatin1(entry.text);
    name.remove(QLatin1Char('&'));
    for (QToolButton* button : bar->findChildren<QToolButton*>()) {
      if (button->defaultAction() == nullptr || button->text() != name) continue;
      seek(20);
      EXPECT_FALSE(button->icon().isNull()) << entry.text;
      QTest::mouseClick(button, Qt::LeftButton);
      ASSERT_TRUE(rests());
      EXPECT_THAT(moves(), ElementsAre(entry.move)) << entry.text;
      ++buttons;
    }
  }
  EXPECT_EQ(buttons, 8);
}

TEST_F(KernelWindowTest, MovementsThatLeadNowhereAreDisabled) {
  open_and_start();
  const auto enabled = [&] {
    std::set<QString> out;
    for (const QMenu* menu : window->menuBar()->findChildren<QMenu*>()) {
      if (menu->title() != QStringLiteral("&Run")) continue;
      for (const QAction* action : menu->actions()) {
        if (action->isEnabled() && !action->isSeparator()) out.insert(action->text().remove(QLatin1Char('&')));
      }
    }
    return out;
  };
  EXPECT_TRUE(enabled().contains(QStringLiteral("Step")));
  EXPECT_FALSE(enabled().contains(QStringLiteral("Step back")));
  seek(20);
  EXPECT_TRUE(enabled().contains(QStringLiteral("Step back")));
  seek(kFakeEnd);
  EXPECT_TRUE(enabled().contains(QStringLiteral("Step back")));
  EXPECT_FALSE(enabled().contains(QStringLiteral("Step")));
  EXPECT_EQ(text("Output of printf").toPlainText(), QStringLiteral("printed at 40\n"));
}

// The last state says that nothing is before it, but the movement that runs leads further.
TEST_F(KernelWindowTest, MovementsPressedWhileOneRunsFollowInTheirOrder) {
  open_and_start();
  code("scale.ptx").setFocus();
  hold_a_step();
  QTest::keyClick(&code("scale.ptx"), Qt::Key_F11);
  QTest::keyClick(&code("scale.ptx"), Qt::Key_F8);
  QTest::keyClick(&code("scale.ptx"), Qt::Key_Comma);
  QTest::keyClick(&code("scale.ptx"), Qt::Key_F5);
  EXPECT_TRUE(window->busy());
  backend.kernels.hold = false;
  ASSERT_TRUE(rests());
  EXPECT_THAT(moves(),
              ElementsAre(KernelMove::step, KernelMove::line, KernelMove::warp, KernelMove::back, KernelMove::run));
  EXPECT_EQ(window->state().step, 13U);
}

TEST_F(KernelWindowTest, PositionsOfASliderThatIsDraggedAreMerged) {
  open_and_start();
  hold_a_step();
  for (const int value : {5, 9, 22, 31}) slider().setValue(value);
  window->go(KernelMove::step);
  for (const int value : {7, 8}) slider().setValue(value);
  backend.kernels.hold = false;
  ASSERT_TRUE(rests());
  EXPECT_THAT(moves(), ElementsAre(KernelMove::step, KernelMove::seek, KernelMove::step, KernelMove::seek));
  EXPECT_EQ(backend.kernels.wishes()[1].step, 31U);
  EXPECT_EQ(window->state().step, 8U);
  EXPECT_EQ(slider().value(), 8);
}

// Regression: a state that arrived while the handle was held moved the handle back under the pointer.
TEST_F(KernelWindowTest, AStateDoesNotMoveTheHandleThatIsHeld) {
  open_and_start();
  hold_a_step();
  slider().setSliderDown(true);
  slider().setSliderPosition(30);
  slider().set_position(1, kFakeEnd);
  EXPECT_EQ(slider().sliderPosition(), 30);
  slider().setSliderDown(false);
  backend.kernels.hold = false;
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 30U);
  EXPECT_EQ(slider().value(), 30);
}

TEST_F(KernelWindowTest, CancelEndsAMovementWhereItIsAndDropsThoseThatWait) {
  open_and_start();
  seek(6);
  hold_a_step();
  window->go(KernelMove::line);
  window->go(KernelMove::run);
  QPushButton* cancel = nullptr;
  ASSERT_TRUE(wait_until([&] {
    for (QPushButton* b : window->findChildren<QPushButton*>()) {
      if (b->isVisible() && b->text() == QStringLiteral("Cancel")) cancel = b;
    }
    return cancel != nullptr;
  }));
  QTest::mouseClick(cancel, Qt::LeftButton);
  ASSERT_TRUE(rests());
  EXPECT_THAT(moves(), ElementsAre(KernelMove::step));
  EXPECT_EQ(window->state().step, 6U);
  EXPECT_EQ(window->state().arrived, "Interrupted");
  EXPECT_FALSE(cancel->isVisible());
  backend.kernels.hold = false;
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 7U);
}

TEST_F(KernelWindowTest, AStartThatIsCancelledCanBeSteppedButItsEndIsNotKnown) {
  window->open(kScale);
  backend.kernels.hold = true;
  window->start();
  ASSERT_TRUE(wait_until([&] { return backend.kernels.starts_now == 1; }));
  for (QPushButton* b : window->findChildren<QPushButton*>()) {
    if (b->text() == QStringLiteral("Cancel")) b->click();
  }
  ASSERT_TRUE(rests());
  backend.kernels.hold = false;
  ASSERT_TRUE(window->started());
  EXPECT_EQ(position(), QStringLiteral("step 0"));
  EXPECT_FALSE(slider().isEnabled());
  window->go(KernelMove::end);
  ASSERT_TRUE(rests());
  EXPECT_EQ(position(), QStringLiteral("step 40 of 40"));
  EXPECT_TRUE(slider().isEnabled());
}

TEST_F(KernelWindowTest, AMovementThatFailsIsAMessageAndKeepsTheState) {
  open_and_start();
  seek(6);
  backend.kernels.fault_of_move = "the virtual GPU has run out of memory";
  window->go(KernelMove::step);
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  EXPECT_THAT(moves(), ElementsAre(KernelMove::step));
  const QString faults = lines_of(window->messages().lines(QStringLiteral("launch")));
  EXPECT_TRUE(faults.contains(QStringLiteral("run out of memory"))) << faults.toStdString();
  EXPECT_EQ(window->state().step, 6U);
  backend.kernels.fault_of_move.clear();
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 7U);
  EXPECT_FALSE(window->messages().showing(QStringLiteral("launch"))) << "its cause is gone";
}

// --- what is shown ---------------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, AWarpThatIsChosenIsShownUntilTheNextMovement) {
  open_and_start();
  show_dock("warps");
  click_cell(warps(), 1);
  ASSERT_TRUE(rests());
  EXPECT_THAT(moves(), ElementsAre(KernelMove::stay));
  EXPECT_EQ(window->state().shown, 1);
  EXPECT_EQ(registers().model()->index(0, KernelRegisterModel::kFirstLane).data().toString(), QStringLiteral("1000"));
  EXPECT_EQ(warps().currentIndex().row(), 1);
  EXPECT_EQ(code("scale.ptx").place(), 12);
  // The slider compares positions of the same warp.
  slider().setValue(20);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().shown, 1);
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().shown, 0);
  EXPECT_EQ(backend.kernels.wishes().back().warp, -1);
}

TEST_F(KernelWindowTest, AWarpIsChosenByTheKeyboardToo) {
  open_and_start();
  show_dock("warps");
  warps().setFocus();
  QTest::keyClick(&warps(), Qt::Key_Down);
  QTest::keyClick(&warps(), Qt::Key_Return);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().shown, 1);
}

TEST_F(KernelWindowTest, AReportLeadsToItsStep) {
  open_and_start();
  show_dock("reports");
  click_cell(reports(), 1, KernelReportModel::kWhat);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 21U);
  EXPECT_EQ(text("The selected report").toPlainText(), QStringLiteral("BANKS\n  another report"));
  // Regression: the row was not the current one any more when its state was shown.
  EXPECT_EQ(reports().currentIndex().row(), 1);
  reports().setFocus();
  QTest::keyClick(&reports(), Qt::Key_Up);
  QTest::keyClick(&reports(), Qt::Key_Return);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 9U);
  EXPECT_EQ(text("The selected report").toPlainText(), QStringLiteral("RACE_WR\n  the whole report"));
}

TEST_F(KernelWindowTest, ATableStaysWhereItIsScrolledTo) {
  open_and_start();
  QScrollBar& bar = *registers().horizontalScrollBar();
  ASSERT_GT(bar.maximum(), 100);
  bar.setValue(100);
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  settle();
  EXPECT_EQ(bar.value(), 100);
}

TEST_F(KernelWindowTest, HexadecimalIsForTheRegistersOfEveryState) {
  open_and_start();
  const QModelIndex first = registers().model()->index(1, KernelRegisterModel::kFirstLane);
  EXPECT_EQ(first.data().toString(), QStringLiteral("7"));
  const int narrow = registers().columnWidth(first.column());
  window->findChild<QCheckBox*>()->click();
  settle();
  EXPECT_GT(registers().columnWidth(first.column()), narrow) << "the column is as wide as its text";
  EXPECT_EQ(registers().model()->index(1, KernelRegisterModel::kFirstLane).data().toString(), QStringLiteral("bits 7"));
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  EXPECT_EQ(registers().model()->index(1, KernelRegisterModel::kFirstLane).data().toString(), QStringLiteral("bits 7"));
}

// Regression: another text size showed the state again, compared with itself: no register counted as changed.
TEST_F(KernelWindowTest, AnotherLookChangesNoMarkAndNoCursor) {
  open_and_start();
  window->go(KernelMove::step);
  ASSERT_TRUE(rests());
  const auto changed = [&] {
    const QModelIndex first = registers().model()->index(0, KernelRegisterModel::kFirstLane);
    return first.data(KernelRegisterModel::kChangedRole).toBool();
  };
  ASSERT_TRUE(changed());
  KernelCodeView& view = code("scale.ptx");
  view.setTextCursor(QTextCursor(view.document()->findBlockByNumber(20)));
  window->set_look(theme(ThemeKind::light), 1.6);
  EXPECT_TRUE(changed());
  EXPECT_EQ(view.current_line(), 21);
}

TEST_F(KernelWindowTest, ALineOfTheSourceShowsItsPtxAndTheReverse) {
  open_and_start();
  KernelCodeView& source = code("scale.cu");
  KernelCodeView& ptx = code("scale.ptx");
  source.setTextCursor(QTextCursor(source.document()->findBlockByNumber(6)));
  EXPECT_THAT(ptx.related(), ElementsAre(15, 16));
  ptx.setTextCursor(QTextCursor(ptx.document()->findBlockByNumber(12)));
  EXPECT_THAT(source.related(), ElementsAre(4));
  EXPECT_THAT(ptx.related(), ElementsAre(13));
  ptx.setTextCursor(QTextCursor(ptx.document()->findBlockByNumber(17)));  // without line information
  EXPECT_THAT(source.related(), testing::IsEmpty());
}

TEST_F(KernelWindowTest, AWordLeadsToBeforeItsWrite) {
  open_and_start();
  seek(20);
  show_dock("shared");
  auto* const shared = window->findChild<KernelSharedView*>();
  const QPoint at = shared->layout_now().word(5).center().toPoint();
  QTest::mouseDClick(shared->viewport(), Qt::LeftButton, Qt::NoModifier, at);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 5U);
}

// The warp and its CTA stay shown: the next instruction may be one of another CTA.
TEST_F(KernelWindowTest, AWordLeadsToAfterItsNextWrite) {
  open_and_start();
  seek(20);
  show_dock("shared");
  auto* const shared = window->findChild<KernelSharedView*>();
  const QPoint at = shared->layout_now().word(5).center().toPoint();
  QTest::mouseDClick(shared->viewport(), Qt::LeftButton, Qt::ShiftModifier, at);
  ASSERT_TRUE(rests());
  EXPECT_EQ(window->state().step, 29U);
  const KernelWish wish = backend.kernels.wishes().back();
  EXPECT_EQ(wish.move, KernelMove::write);
  EXPECT_EQ(wish.word, (KernelWord{0, 0x400 + 20, 4}));
  EXPECT_EQ(std::pair(wish.cta, wish.warp), std::pair(0, 0));
  EXPECT_EQ(wish.lanes, "all lanes");
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, BreakpointsOfMarginAndKeyReachTheMovementAndOutliveARestart) {
  open_and_start();
  click_margin(code("scale.cu"), 4);
  KernelCodeView& ptx = code("scale.ptx");
  ptx.setFocus();
  ptx.setTextCursor(QTextCursor(ptx.document()->findBlockByNumber(11)));
  QTest::keyClick(&ptx, Qt::Key_F9);
  const std::set<KernelBreakpoint> both{{0, 4}, {2, 12}};
  window->go(KernelMove::run);
  ASSERT_TRUE(rests());
  EXPECT_EQ(last_breakpoints(), both);
  window->start();
  ASSERT_TRUE(rests());
  EXPECT_EQ(last_breakpoints(), both);
  click_margin(code("scale.cu"), 4);
  window->go(KernelMove::run);
  ASSERT_TRUE(rests());
  EXPECT_EQ(last_breakpoints(), (std::set<KernelBreakpoint>{{2, 12}}));
}

TEST_F(KernelWindowTest, ALineWithoutCodeTakesNoBreakpointAndNamesTheNext) {
  open_and_start();
  click_margin(code("scale.cu"), 5);
  EXPECT_TRUE(window->statusBar()->currentMessage().contains(QStringLiteral("next line with one is 7")));
  click_margin(code("scale.cu"), 8);
  EXPECT_TRUE(window->statusBar()->currentMessage().contains(QStringLiteral("nor does any line after it")));
  window->go(KernelMove::run);
  ASSERT_TRUE(rests());
  EXPECT_THAT(last_breakpoints(), testing::IsEmpty());
  window->toggle_breakpoint(-1, 4);
  window->toggle_breakpoint(99, 4);
}

// Regression: the breakpoints of a file stopped the launch of another one, at the same line numbers.
TEST_F(KernelWindowTest, AnotherFileHasNoBreakpointsOfTheFirst) {
  open_and_start();
  click_margin(code("scale.cu"), 4);
  open_and_start(QStringLiteral("/made/up/other.ptx"));
  window->go(KernelMove::run);
  ASSERT_TRUE(rests());
  EXPECT_THAT(last_breakpoints(), testing::IsEmpty());
}

// --- while something runs --------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, ClosesAndIsDeletedWhileSomethingRunsWithoutHangingOrCrashing) {
  for (const bool close : {false, true}) {
    for (const bool of_start : {false, true}) {
      make();
      window->open(kScale);
      if (!of_start) {
        open_and_start();
        hold_a_step();
        window->go(KernelMove::line);
      } else {
        backend.kernels.hold = true;
        window->start();
        ASSERT_TRUE(wait_until([&] { return backend.kernels.starts_now == 1; }));
      }
      if (close) {
        window->close();
        ASSERT_TRUE(rests());
      }
      window.reset();
      EXPECT_EQ(backend.kernels.starts_now + backend.kernels.moves_now, 0);
      backend.kernels.hold = false;
      settle();
    }
  }
}

// Regression: the second start only cancelled the movement, and the launch had to be started once more.
TEST_F(KernelWindowTest, AStartWhileAMovementRunsFollowsAtOnce) {
  open_and_start();
  seek(6);
  hold_a_step();
  window->go(KernelMove::run);
  window->start();
  window->start();
  EXPECT_TRUE(window->busy());
  ASSERT_TRUE(wait_until([&] { return backend.kernels.starts_now == 1; }));
  backend.kernels.hold = false;
  ASSERT_TRUE(rests());
  EXPECT_EQ(backend.kernels.launches().size(), 1U);
  EXPECT_THAT(moves(), ElementsAre(KernelMove::step, KernelMove::stay));
  EXPECT_EQ(window->state().step, 0U);
  EXPECT_TRUE(window->state().arrived.empty());
}

// Regression: the launch of the first file was executed to its end, and a launch of the second was not started.
TEST_F(KernelWindowTest, AnotherFileWhileAMovementRunsEndsIt) {
  open_and_start();
  seek(6);
  hold_a_step();
  const QString other = QStringLiteral("/made/up/other.ptx");
  window->open(other);
  EXPECT_FALSE(window->started());
  ASSERT_TRUE(rests()) << "the movement of the first file is not cancelled";
  EXPECT_FALSE(window->started());
  EXPECT_EQ(window->path(), other);
  backend.kernels.hold = false;
  open_and_start();
  hold_a_step();
  KernelLaunch launch;
  launch.path = other.toStdString();
  window->open(other, launch, 3);
  backend.kernels.hold = false;
  ASSERT_TRUE(rests());
  ASSERT_TRUE(window->started());
  EXPECT_EQ(window->state().step, 3U);
  EXPECT_EQ(window->code().sources.back().path, other.toStdString());
}

TEST_F(KernelWindowTest, NothingOfAnEarlierLaunchIsLeftWhenTheNextFails) {
  open_and_start();
  seek(20);
  click_cell(reports(), 0);
  ASSERT_TRUE(rests());
  field("Grid").setText(QStringLiteral("bad"));
  window->start();
  ASSERT_TRUE(rests());
  EXPECT_FALSE(window->started());
  EXPECT_EQ(window->windowTitle(), QStringLiteral("scale.ptx - kvscope"));
  EXPECT_EQ(position(), QString());
  EXPECT_EQ(warps().model()->rowCount(), 0);
  EXPECT_EQ(registers().model()->rowCount(), 0);
  EXPECT_EQ(reports().model()->rowCount(), 0);
  EXPECT_EQ(text("The selected report").toPlainText(), QString());
  EXPECT_EQ(text("Output of printf").toPlainText(), QString());
  EXPECT_FALSE(slider().isEnabled());
  EXPECT_EQ(window->findChild<QTabWidget*>()->count(), 0);
}

// --- words, keys, sizes ----------------------------------------------------------------------------------------------

// As EverythingThatTakesTheFocusHasAName of the main window.
TEST_F(KernelWindowTest, EverythingThatTakesTheFocusHasAName) {
  open_and_start();
  window->open(QStringLiteral("/made/up/faulty.ptx"));
  for (const QWidget* widget : window->findChildren<QWidget*>()) {
    const QString class_name = QString::fromLatin1(widget->metaObject()->className());
    if (widget->focusPolicy() == Qt::NoFocus || !widget->accessibleName().isEmpty()) continue;
    if (widget->objectName().startsWith(QLatin1String("qt_"))) continue;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if (button != nullptr && !button->text().isEmpty()) continue;
    const auto* label = qobject_cast<const QLabel*>(widget);
    if (label != nullptr && !label->text().isEmpty()) continue;
    if (class_name == QStringLiteral("QComboBoxListView") || class_name == QStringLiteral("QTabBar")) continue;
    ADD_FAILURE() << class_name.toStdString() << ' ' << widget->objectName().toStdString();
  }
}

TEST_F(KernelWindowTest, NoKeyIsUsedTwiceAndEveryActionHasATip) {
  std::map<QString, QString> owner;
  int keys = 0;
  for (const QAction* action : window->findChildren<QAction*>()) {
    if (action->shortcutContext() == Qt::WidgetShortcut || action->objectName().startsWith(QLatin1String("edit-")))
      continue;
    for (const QKeySequence& key : action->shortcuts()) {
      ++keys;
      EXPECT_FALSE(key.isEmpty()) << action->text().toStdString();
      EXPECT_NE(key[0].key(), Qt::Key_unknown) << action->text().toStdString();
      const auto [there, added] = owner.emplace(key.toString(), action->text());
      EXPECT_TRUE(added) << key.toString().toStdString() << " is " << action->text().toStdString() << " and "
                         << there->second.toStdString();
      EXPECT_FALSE(action->statusTip().isEmpty()) << action->text().toStdString();
    }
  }
  EXPECT_GT(keys, 15);
}

TEST_F(KernelWindowTest, NoMnemonicIsTwiceInAMenu) {
  for (const QMenu* menu : window->menuBar()->findChildren<QMenu*>()) {
    std::map<QChar, QString> owner;
    for (const QAction* action : menu->actions()) {
      const qsizetype at = action->text().indexOf(QLatin1Char('&'));
      if (at < 0) continue;
      const auto [there, added] = owner.emplace(action->text().at(at + 1).toLower(), action->text());
      EXPECT_TRUE(added) << action->text().toStdString() << " and " << there->second.toStdString();
    }
  }
}

TEST_F(KernelWindowTest, TheHelpListsEveryKey) {
  window->activateWindow();
  QTest::keyClick(window.get(), Qt::Key_F1);
  const auto* const help = window->findChild<KernelHelp*>();
  ASSERT_NE(help, nullptr);
  const auto* const rows = help->findChild<QTreeWidget*>();
  QStringList all;
  for (int row = 0; row < rows->topLevelItemCount(); ++row) all.push_back(rows->topLevelItem(row)->text(1));
  const QString text = lines_of(all);
  for (const KernelMoveEntry& entry : kernel_moves()) {
    for (const QString& key : QString::fromLatin1(entry.keys).split(QLatin1Char(' '))) {
      EXPECT_TRUE(text.contains(QKeySequence(key).toString(QKeySequence::NativeText))) << key.toStdString();
    }
  }
}

// Regression: the launch form was as wide as the window at this text size, and docks covered one another.
TEST_F(KernelWindowTest, LargeTextInASmallWindowCoversNothing) {
  open_and_start();
  apply_look(theme(ThemeKind::dark), 2.5);
  window->set_look(theme(ThemeKind::dark), 2.5);
  window->resize(720, 480);
  settle();
  EXPECT_EQ(window->size(), QSize(720, 480));
  std::vector<const QWidget*> parts{window->centralWidget(), window->statusBar(), window->findChild<QToolBar*>()};
  for (const QDockWidget* dock : window->findChildren<QDockWidget*>()) {
    // A dock behind the front tab is outside the window.
    if (dock->geometry().intersects(window->rect())) parts.push_back(dock);
  }
  EXPECT_EQ(parts.size(), 7U);
  for (std::size_t n = 0; n < parts.size(); ++n) {
    EXPECT_TRUE(window->rect().contains(parts[n]->geometry())) << parts[n]->accessibleName().toStdString();
    for (std::size_t m = 0; m < n; ++m) {
      EXPECT_FALSE(parts[n]->geometry().intersects(parts[m]->geometry()))
          << parts[n]->accessibleName().toStdString() << " over " << parts[m]->accessibleName().toStdString();
    }
  }
  apply_look(theme(ThemeKind::dark), 1);
}

// --- launches that are kept ------------------------------------------------------------------------------------------

TEST_F(KernelWindowTest, TheLastLaunchOfAFileIsInTheFormAgain) {
  window->open(QStringLiteral("/made/up/two.ptx"));
  KernelLaunch launch;
  launch.path = "/made/up/two.ptx";
  launch.entry = "_Z4copy6Params";
  launch.grid = "4,2";
  launch.block = "128";
  launch.shared = "1024";
  launch.arguments = {"@params.json"};
  launch.others = {"--arg", "params.n=6 4", "--policy", "seed:7"};
  window->open(QStringLiteral("/made/up/two.ptx"), launch);
  ASSERT_TRUE(rests());
  make();
  window->open(QStringLiteral("/made/up/two.ptx"));
  EXPECT_EQ(window->launch_panel().launch(), launch);
  window->open(kScale);
  EXPECT_EQ(window->launch_panel().launch().grid, "1");
}

// --- the main window -------------------------------------------------------------------------------------------------

class KernelsOfMainWindow : public testing_support::WindowTest {
 protected:
  [[nodiscard]] static std::vector<KernelWindow*> kernels() {
    std::vector<KernelWindow*> out;
    for (QWidget* widget : QApplication::topLevelWidgets()) {
      if (auto* const kernel = qobject_cast<KernelWindow*>(widget)) out.push_back(kernel);
    }
    return out;
  }
  [[nodiscard]] QStringList recent() const {
    return QSettings(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat)
        .value(QStringLiteral("recent/files"))
        .toStringList();
  }
};

TEST_F(KernelsOfMainWindow, APtxFileIsOpenedInAWindowOfItsOwnOnce) {
  window->open(kScale);
  ASSERT_EQ(kernels().size(), 1U);
  EXPECT_TRUE(kernels()[0]->isVisible());
  EXPECT_EQ(kernels()[0]->path(), kScale);
  EXPECT_EQ(window->document(), nullptr);
  EXPECT_EQ(recent(), QStringList{kScale});
  window->activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  kernels()[0]->showMinimized();
  window->open(QStringLiteral("/made/up/../up/scale.ptx"));
  ASSERT_EQ(kernels().size(), 1U) << "the same file by another path";
  EXPECT_TRUE(wait_until([&] { return kernels()[0]->isActiveWindow(); }));
  EXPECT_FALSE(kernels()[0]->isMinimized());
  window->open(QStringLiteral("/made/up/two.ptx"));
  EXPECT_EQ(kernels().size(), 2U);
}

// Regression: a file with faults opened another window each time.
TEST_F(KernelsOfMainWindow, AFileWithFaultsHasOneWindowToo) {
  window->open(QStringLiteral("/made/up/faulty.ptx"));
  window->open(QStringLiteral("/made/up/faulty.ptx"));
  ASSERT_EQ(kernels().size(), 1U);
  EXPECT_TRUE(kernels()[0]->messages().showing(QStringLiteral("open")));
  EXPECT_THAT(recent(), testing::IsEmpty());
}

TEST_F(KernelsOfMainWindow, AWindowThatWasClosedIsOpenedAgain) {
  window->open(kScale);
  const QPointer<KernelWindow> first = kernels()[0];
  first->close();
  ASSERT_TRUE(wait_until([&] { return first.isNull(); }));
  window->actions()[Do::theme_light]->trigger();  // reaches no window that is gone
  window->open(kScale);
  ASSERT_EQ(kernels().size(), 1U);
  EXPECT_TRUE(kernels()[0]->isVisible());
}

TEST_F(KernelsOfMainWindow, ThemeAndTextSizeReachTheKernels) {
  window->open(kScale);
  window->actions()[Do::theme_dark]->trigger();
  const QString before = kernels()[0]->styleSheet();
  window->actions()[Do::theme_light]->trigger();
  const QString light = kernels()[0]->styleSheet();
  EXPECT_NE(light, before);
  window->actions()[Do::font_larger]->trigger();
  EXPECT_NE(kernels()[0]->styleSheet(), light);
  // A kernel that is opened later has the same look.
  window->open(QStringLiteral("/made/up/two.ptx"));
  ASSERT_EQ(kernels().size(), 2U);
  EXPECT_EQ(kernels()[0]->styleSheet(), kernels()[1]->styleSheet());
}

TEST_F(KernelsOfMainWindow, TheMainWindowTakesItsKernelsWithIt) {
  window->open(kScale);
  const QPointer<KernelWindow> kernel = kernels()[0];
  kernel->start();
  backend.kernels.hold = true;
  window.reset();
  EXPECT_TRUE(kernel.isNull());
}

// A key of both windows acts in that with the focus.
TEST_F(KernelsOfMainWindow, KeysOfAKernelDoNotReachTheMainWindow) {
  ASSERT_TRUE(open(testing_support::path_of("first_light")));
  const Position before = document().cursor().position();
  window->open(kScale);
  KernelWindow& kernel = *kernels()[0];
  kernel.start();
  ASSERT_TRUE(wait_until([&] { return !kernel.busy(); }));
  kernel.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&kernel));
  QTest::keyClick(&kernel, Qt::Key_Period);
  ASSERT_TRUE(wait_until([&] { return !kernel.busy(); }));
  EXPECT_EQ(kernel.state().step, 1U);
  EXPECT_EQ(document().cursor().position(), before);
}

}  // namespace
}  // namespace kvscope::viz::kernel_window_test
