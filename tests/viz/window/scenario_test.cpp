// The scenario of the open run is changed in the window: a change that can run is run, one that cannot shows why, and
// nothing that is not saved is lost without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QTreeView>

#include "tests/viz/window/scenario_window.h"

namespace kvscope::viz::scenario_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::gallery_path;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::wait_until;

using ScenarioTest = testing_support::ScenarioTest;

// --- running ---------------------------------------------------------------------------------------------------------

TEST_F(ScenarioTest, AChangeIsRunAndTheSameStepIsShown) {
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_EQ(value("$.cache.page_size"), "4");
  document().seek_step(StepIdx{3});
  document().pin(of_token(SeqIdx{1}, TokIdx{2}));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  EXPECT_EQ(backend.changes, 1);
  EXPECT_EQ(page_size(), 8);
  EXPECT_EQ(step(), StepIdx{3});
  EXPECT_EQ(document().pinned(), of_token(SeqIdx{1}, TokIdx{2}));
  EXPECT_EQ(document().path(), path_of("preemption"));
  EXPECT_TRUE(window->isWindowModified());
}

// The notes of this scenario state the numbers: one preemption and 51 steps with a batch of 3, none and 69 with 2.
TEST_F(ScenarioTest, TheNumbersOfBothRunsStandSideBySide) {
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_THAT(words(), AllOf(HasSubstr("steps\n47\n"), HasSubstr("preemptions\n5\n")));
  set("$.scheduler.max_batch", "3");
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), AllOf(HasSubstr("steps\n47\n51\n"), HasSubstr("preemptions\n5\n1\n")));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), AllOf(HasSubstr("steps\n47\n69\n"), HasSubstr("preemptions\n5\n0\n")));
  action(Do::undo).trigger();
  action(Do::undo).trigger();
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), AllOf(HasSubstr("steps\n47\n"), Not(HasSubstr("69")), Not(HasSubstr("not saved"))));
  EXPECT_EQ(shown(), load_scenario(gallery_path("preemption")));
  EXPECT_FALSE(window->isWindowModified());
}

TEST_F(ScenarioTest, TheTimelineShowsTheUtilizationOfTheFilesRun) {
  ASSERT_TRUE(open(path_of("preemption")));
  const std::vector<float> of_file = document().run().timeline()[Series::utilization];
  EXPECT_EQ(document().compared(), nullptr);
  for (const char* batch : {"3", "2"}) {
    set("$.scheduler.max_batch", batch);
    ASSERT_TRUE(ran());
    ASSERT_NE(document().compared_run(), nullptr);
    EXPECT_EQ(document().compared_run()->timeline()[Series::utilization], of_file);
    EXPECT_EQ(window->canvas().sceneNow().compared_run, document().compared_run());
  }
  action(Do::undo).trigger();
  action(Do::undo).trigger();
  ASSERT_TRUE(ran());
  EXPECT_EQ(document().compared(), nullptr);
}

TEST_F(ScenarioTest, AFaultIsShownAtItsFieldAndTheRunStays) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  set("$.cache.page_size", "6");
  EXPECT_EQ(backend.changes, 0);
  EXPECT_EQ(page_size(), 4);
  EXPECT_THAT(words(), AllOf(HasSubstr("cannot run"), HasSubstr("tile.BN: 16 tokens are not a whole number of 6-token "
                                                                "pages: choose 12 or 18")));
  EXPECT_TRUE(field("$.tile").data(ScenarioModel::kFaultInsideRole).toBool());
  EXPECT_TRUE(field("$.tile.BN").data(ScenarioModel::kFaultInsideRole).toBool());
  EXPECT_FALSE(field("$.tile.BK").data(ScenarioModel::kFaultInsideRole).toBool());
  EXPECT_THAT(field("$.tile.BN").data(Qt::ToolTipRole).toString().toStdString(), HasSubstr("16 tokens are not"));
  EXPECT_FALSE(action(Do::save_scenario).isEnabled());
  // The link leads to the field, where the word in gray says that the default follows.
  Q_EMIT panel().findChild<QTextBrowser*>()->anchorClicked(QUrl(QStringLiteral("field:%24.tile.BN")));
  EXPECT_EQ(tree().currentIndex(), field("$.tile.BN"));
  model().remove(tree().currentIndex());
  ASSERT_TRUE(ran());
  EXPECT_EQ(shown().tile.BN, 60);
  EXPECT_EQ(page_size(), 6);
  EXPECT_TRUE(action(Do::save_scenario).isEnabled());
}

TEST_F(ScenarioTest, OnlyTheLastOfManyChangesIsShown) {
  ASSERT_TRUE(open(path_of("preemption")));
  for (const char* blocks : {"30", "31", "32", "33", "34"}) set("$.cache.blocks", blocks);
  ASSERT_TRUE(wait_until([&] { return document().run().facts().blocks == 34; }));
  EXPECT_EQ(backend.most_opens_now, 1);
}

TEST_F(ScenarioTest, ARunThatIsCancelledCanBeStartedAgain) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.name", "held");  // FakeBackend waits
  ASSERT_TRUE(wait_until([&] { return backend.changes == 1; }));
  EXPECT_THAT(words(), HasSubstr("Running the changed scenario"));
  ASSERT_TRUE(wait_until([&] { return button(*window, QStringLiteral("Cancel")) != nullptr; }));
  click(button(*window, QStringLiteral("Cancel")));
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), HasSubstr("was not run"));
  EXPECT_EQ(document().run().facts().name, "Preemption");
  backend.release = true;
  show_panel();
  click(button(panel(), QStringLiteral("Run the changed scenario")));
  ASSERT_TRUE(wait_until([&] { return document().run().facts().name == "held"; }));
}

TEST_F(ScenarioTest, ARunThatFailsShowsWhyAndKeepsTheRun) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.name", "faulty");
  ASSERT_TRUE(ran());
  EXPECT_THAT(message().toStdString(), AllOf(HasSubstr("The changed scenario could not be run"),
                                             HasSubstr("$.requests.file.path: cannot be read")));
  EXPECT_EQ(document().run().facts().name, "Preemption");
  click(button(*window, QStringLiteral("Try again")));
  ASSERT_TRUE(wait_until([&] { return backend.changes == 2; }));
  ASSERT_TRUE(ran());
  action(Do::undo).trigger();
  ASSERT_TRUE(ran());
  EXPECT_EQ(message(), QString());
}

// Objects that the changed run does not have any more.
TEST_F(ScenarioTest, ASelectionThatIsGoneIsKeptAndNotShown) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{40});
  for (const Selection& selection : {of_block(BlockIdx{23}), of_token(SeqIdx{5}, TokIdx{9}),
                                     of_page(SeqIdx{5}, PageIdx{2}), of_sequence(SeqIdx{5})}) {
    for (const View view : kViews) {
      window->set_view(view);
      document().pin(selection);
      model().remove(field("$.requests.list[5]").siblingAtColumn(0));
      set("$.cache.blocks", "12");
      ASSERT_TRUE(wait_until([&] { return document().run().facts().blocks == 12; }));
      ASSERT_TRUE(ran());
      static_cast<void>(window->grab());
      action(Do::undo).trigger();
      action(Do::undo).trigger();
      ASSERT_TRUE(wait_until([&] { return document().run().facts().blocks == 24; }));
      ASSERT_TRUE(ran());
    }
  }
}

// --- editing ---------------------------------------------------------------------------------------------------------

TEST_F(ScenarioTest, IsEditedWithTheKeyboardAlone) {
  ASSERT_TRUE(open(path_of("preemption")));
  press(Qt::Key_7, Qt::AltModifier);
  ASSERT_TRUE(tree().hasFocus());
  tree().setCurrentIndex(field("$.cache.page_size"));
  press(Qt::Key_F2);
  ASSERT_NE(qobject_cast<QLineEdit*>(QApplication::focusWidget()), nullptr);
  write("8");
  press(Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return page_size() == 8; }));
  EXPECT_TRUE(tree().hasFocus()) << "the run that opened took the focus";
  press(Qt::Key_Z, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return page_size() == 4; }));
  press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(wait_until([&] { return page_size() == 8; }));
}

TEST_F(ScenarioTest, AWordIsChosenFromTheLegalOnes) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  tree().setCurrentIndex(field("$.cache.dtype"));
  tree().edit(field("$.cache.dtype"));
  auto* box = tree().findChild<QComboBox*>();
  ASSERT_NE(box, nullptr);
  EXPECT_EQ(box->currentText(), QStringLiteral("bf16"));
  EXPECT_EQ(box->count(), 5);
  box->setCurrentIndex(box->findText(QStringLiteral("f32")));
  Q_EMIT box->activated(box->currentIndex());
  ASSERT_TRUE(ran());
  EXPECT_EQ(shown().cache.dtype, DType::f32);
  tree().setCurrentIndex(field("$.model.preset"));
  set("$.model.preset", "llama-3.1-8b");
  ASSERT_TRUE(ran());
  EXPECT_EQ(shown().model.kv_heads, 8);
}

TEST_F(ScenarioTest, RequestsAreAddedAndRemoved) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  tree().setCurrentIndex(field("$.requests.list"));
  click(button(panel(), QStringLiteral("Add an item to the list, or the section")));
  ASSERT_TRUE(ran());
  EXPECT_EQ(tree().currentIndex(), field("$.requests.list[6]").siblingAtColumn(0));
  EXPECT_TRUE(tree().isExpanded(tree().currentIndex()));
  EXPECT_EQ(document().run().facts().sequences, 7);
  EXPECT_EQ(value("$.requests.list[6]"), "prompt_tokens 1");
  click(button(panel(), QStringLiteral("Remove the item or the section; of a value: its default")));
  ASSERT_TRUE(wait_until([&] { return document().run().facts().sequences == 6; }));
  EXPECT_EQ(tree().currentIndex(), field("$.requests.list").siblingAtColumn(0));
  EXPECT_EQ(button(panel(), QStringLiteral("Remove the item or the section; of a value: its default"))->isEnabled(),
            false);
}

// A view keeps what is expanded while values change.
TEST_F(ScenarioTest, TheTreeKeepsItsPlace) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  tree().setCurrentIndex(field("$.tile.BK"));
  set("$.tile.BK", "4");
  ASSERT_TRUE(ran());
  EXPECT_EQ(tree().currentIndex(), field("$.tile.BK"));
  EXPECT_TRUE(tree().isExpanded(field("$.tile").siblingAtColumn(0)));
}

TEST_F(ScenarioTest, TheTreeStaysOpenWhenAnItemComesAndGoes) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  tree().setCurrentIndex(field("$.requests.list"));
  click(button(panel(), QStringLiteral("Add an item to the list, or the section")));
  EXPECT_TRUE(tree().isExpanded(field("$.cache").siblingAtColumn(0)));
  action(Do::undo).trigger();
  EXPECT_TRUE(tree().currentIndex().isValid());
  EXPECT_TRUE(tree().isExpanded(field("$.requests").siblingAtColumn(0)));
}

// In a text field Ctrl+Z undoes what is typed.
TEST_F(ScenarioTest, UndoOfATextFieldIsItsOwn) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  type("$.tile.BK", "123");
  press(Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(value("$.cache.page_size"), "8");
  press(Qt::Key_Escape);
  press(Qt::Key_F, Qt::ControlModifier);
  ASSERT_NE(qobject_cast<QLineEdit*>(QApplication::focusWidget()), nullptr);
  write("blk");
  press(Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(value("$.cache.page_size"), "8");
}

TEST_F(ScenarioTest, TheTipOfUndoNamesTheChange) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  EXPECT_THAT(action(Do::undo).statusTip().toStdString(), HasSubstr("cache.page_size: 4 -> 8"));
  EXPECT_THAT(action(Do::redo).statusTip().toStdString(), HasSubstr("nothing was undone"));
}

// The trial of the bank conflict: the swizzle of the first read through LDS.
TEST_F(ScenarioTest, TheTileIsStagedAgainWithTheChange) {
  ASSERT_TRUE(open(path_of("swizzle_off")));
  window->set_view(View::tile);
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
  const auto wavefronts = [&] { return document().tile()->reads.front().cycles; };
  ASSERT_EQ(document().tile_request().path, TilePath::lds);
  EXPECT_EQ(wavefronts(), 16);
  for (const int back : {0, 1}) {
    back == 1 ? action(Do::undo).trigger() : set("$.lds.swizzle", "(3,0,4)");
    ASSERT_TRUE(ran());
    ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
    EXPECT_EQ(document().tile_request().path, TilePath::lds);
    EXPECT_EQ(wavefronts(), back == 1 ? 16 : 4);
  }
}

TEST_F(ScenarioTest, RunIsForWhatWasNotRun) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  const QAbstractButton& run = *button(panel(), QStringLiteral("Run the changed scenario"));
  EXPECT_FALSE(run.isEnabled());
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  EXPECT_FALSE(run.isEnabled());
}

TEST_F(ScenarioTest, FilesWithoutAScenarioSayWhy) {
  EXPECT_THAT(words(), HasSubstr("Open a scenario or a trace."));
  ASSERT_TRUE(open(made_up("trace")));
  EXPECT_THAT(words(), HasSubstr("This file has no scenario"));
  EXPECT_FALSE(action(Do::save_scenario).isEnabled());
  EXPECT_FALSE(action(Do::undo).isEnabled());
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_THAT(words(), HasSubstr("Double-click a value"));
}

}  // namespace
}  // namespace kvscope::viz::scenario_test
