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

#include "tests/viz/window/window_support.h"
#include "viz/window/scenario_panel.h"

namespace kvscope::viz::scenario_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::gallery_path;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::wait_until;

class ScenarioTest : public testing_support::WindowTest {
 protected:
  [[nodiscard]] ScenarioPanel& panel() const { return *window->findChild<ScenarioPanel*>(); }
  [[nodiscard]] QTreeView& tree() const { return *panel().findChild<QTreeView*>(); }
  [[nodiscard]] ScenarioModel& model() const { return panel().model(); }
  [[nodiscard]] std::string words() const { return panel().findChild<QTextBrowser*>()->toPlainText().toStdString(); }
  [[nodiscard]] QAction& action(Do id) const { return *window->actions()[id]; }
  [[nodiscard]] QModelIndex field(const char* path) const {
    return model().index_of(QString::fromLatin1(path), ScenarioModel::kValue);
  }
  [[nodiscard]] std::string value(const char* path) const { return field(path).data().toString().toStdString(); }
  [[nodiscard]] std::int64_t page_size() const { return document().run().facts().page_size; }
  [[nodiscard]] Scenario shown() const { return *document().run().facts().scenario; }
  // All messages: titles and lines.
  [[nodiscard]] QString message() const {
    QStringList texts;
    for (const char* topic : {"open", "write", "changes", "session"}) {
      if (!window->messages().showing(QString::fromLatin1(topic))) continue;
      texts += window->messages().lines(QString::fromLatin1(topic));
      for (const QLabel* label : window->messages().findChildren<QLabel*>()) texts += label->text();
    }
    return texts.join(QLatin1Char('\n'));
  }

  void set(const char* path, const char* text) { model().setData(field(path), QString::fromLatin1(text)); }
  [[nodiscard]] bool ran() const {  // no run is awaited
    return wait_until([&] { return words().find("Running the changed scenario") == std::string::npos; });
  }
  // What is drawn of a field: its row, while the tree shows it.
  void show_panel() {
    action(Do::show_scenario).trigger();
    ASSERT_TRUE(tree().isVisible());
    tree().expandAll();
  }
};

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
    ASSERT_NE(document().compared(), nullptr);
    EXPECT_EQ(*document().compared(), of_file);
    EXPECT_EQ(window->canvas().sceneNow().compared_utilization, document().compared());
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

// --- files -----------------------------------------------------------------------------------------------------------

TEST_F(ScenarioTest, IsSavedShortAndOpenFromThere) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{5});
  const QString path = folder.filePath(QStringLiteral("mine.json"));
  action(Do::save_scenario).trigger();
  auto* dialog = window->findChild<QFileDialog*>();
  ASSERT_NE(dialog, nullptr);
  Q_EMIT dialog->fileSelected(path);
  dialog->close();
  ASSERT_TRUE(wait_until([&] { return document().path() == path; }));
  Scenario expected = load_scenario(gallery_path("preemption"));
  expected.cache.page_size = 8;
  EXPECT_EQ(load_scenario(path.toStdString()), expected);
  EXPECT_EQ(shown(), expected);
  EXPECT_EQ(step(), StepIdx{5});
  EXPECT_FALSE(window->isWindowModified());
  EXPECT_TRUE(action(Do::undo).isEnabled()) << "what was changed can still be undone";
  EXPECT_EQ(message(), QString());
  std::ifstream file(path.toStdString());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, AllOf(HasSubstr("\"page_size\": 8"), Not(HasSubstr("query_heads"))));
}

TEST_F(ScenarioTest, AFileThatCannotBeWrittenIsSaidAndTheChangesStay) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  action(Do::save_scenario).trigger();
  auto* dialog = window->findChild<QFileDialog*>();
  ASSERT_NE(dialog, nullptr);
  Q_EMIT dialog->fileSelected(QStringLiteral("/no/such/folder/mine.json"));
  dialog->close();
  EXPECT_THAT(message().toStdString(), HasSubstr("mine.json could not be written"));
  EXPECT_TRUE(window->isWindowModified());
}

// A file of requests is found from the folder of the saved scenario, too.
TEST_F(ScenarioTest, AFileOfRequestsIsNamedFromTheNewFolder) {
  const std::filesystem::path here(folder.path().toStdString());
  std::filesystem::create_directories(here / "a");
  std::filesystem::create_directories(here / "b");
  std::ofstream(here / "a" / "r.csv") << "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.0,40,3\n";
  std::ofstream(here / "a" / "s.json") << R"({"kvscope_scenario": 1, "requests": {"file": {"path": "r.csv"}}})";
  ASSERT_TRUE(open(QString::fromStdString((here / "a" / "s.json").string())));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  action(Do::save_scenario).trigger();
  auto* dialog = window->findChild<QFileDialog*>();
  ASSERT_NE(dialog, nullptr);
  const QString path = QString::fromStdString((here / "b" / "t.json").string());
  Q_EMIT dialog->fileSelected(path);
  dialog->close();
  ASSERT_TRUE(wait_until([&] { return document().path() == path; }));
  EXPECT_EQ(load_scenario(path.toStdString()).requests.file->path, "../a/r.csv");
  EXPECT_EQ(document().run().facts().sequences, 1);
}

TEST_F(ScenarioTest, AnotherFileOffersTheChangesOfTheFirst) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_THAT(message().toStdString(), HasSubstr("The changes of preemption.json were not saved"));
  EXPECT_FALSE(action(Do::undo).isEnabled());
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return document().path() == path_of("preemption") && page_size() == 8; }));
  EXPECT_TRUE(window->isWindowModified());
  action(Do::undo).trigger();
  ASSERT_TRUE(wait_until([&] { return page_size() == 4; }));
  EXPECT_FALSE(window->isWindowModified());
  action(Do::close).trigger();
  EXPECT_EQ(message(), QString()) << "nothing was changed";
}

TEST_F(ScenarioTest, TheSameFileOpenedAgainIsOneChange) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  action(Do::reload).trigger();
  ASSERT_TRUE(wait_until([&] { return page_size() == 4; }));
  EXPECT_FALSE(window->isWindowModified());
  action(Do::undo).trigger();
  ASSERT_TRUE(wait_until([&] { return page_size() == 8; }));
  EXPECT_TRUE(window->isWindowModified());
}

TEST_F(ScenarioTest, ChangesThatAreNotSavedAreOfferedAtTheNextStart) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{5});
  window->close();
  window.reset();
  start();
  EXPECT_THAT(message().toStdString(), AllOf(HasSubstr("The changes of"), HasSubstr("preemption.json were not saved")));
  click(button(*window, QStringLiteral("Restore")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && page_size() == 8; }));
  ASSERT_TRUE(ran());
  EXPECT_EQ(step(), StepIdx{5});
  EXPECT_TRUE(window->isWindowModified());
  action(Do::undo).trigger();
  ASSERT_TRUE(wait_until([&] { return page_size() == 4; }));
  window->close();
  window.reset();
  start();
  EXPECT_EQ(message(), QString());
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
