// A changed scenario and files: it is saved as it was when that was asked for, and changes that are not saved are offered
// when another file is opened, and at the next start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <QtCore/QDir>

#include "tests/viz/window/scenario_window.h"

namespace kvscope::viz::scenario_files_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::gallery_path;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::wait_until;

class ScenarioFiles : public testing_support::ScenarioTest {};

// --- files -----------------------------------------------------------------------------------------------------------

TEST_F(ScenarioFiles, IsSavedShortAndOpenFromThere) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{5});
  const QString path = folder.filePath(QStringLiteral("mine.json"));
  save_as(path);
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

TEST_F(ScenarioFiles, AFileThatCannotBeWrittenIsSaidAndTheChangesStay) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  save_as(QStringLiteral("/no/such/folder/mine.json"));
  EXPECT_THAT(message().toStdString(), HasSubstr("mine.json could not be written"));
  EXPECT_TRUE(window->isWindowModified());
}

// A file of requests is found from the folder of the saved scenario, too.
TEST_F(ScenarioFiles, AFileOfRequestsIsNamedFromTheNewFolder) {
  const std::filesystem::path here(folder.path().toStdString());
  std::filesystem::create_directories(here / "a");
  std::filesystem::create_directories(here / "b");
  std::ofstream(here / "a" / "r.csv") << "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.0,40,3\n";
  std::ofstream(here / "a" / "s.json") << R"({"kvscope_scenario": 1, "requests": {"file": {"path": "r.csv"}}})";
  ASSERT_TRUE(open(QString::fromStdString((here / "a" / "s.json").string())));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  const QString path = QString::fromStdString((here / "b" / "t.json").string());
  save_as(path);
  ASSERT_TRUE(wait_until([&] { return document().path() == path; }));
  EXPECT_EQ(load_scenario(path.toStdString()).requests.file->path, "../a/r.csv");
  EXPECT_EQ(document().run().facts().sequences, 1);
}

TEST_F(ScenarioFiles, AnotherFileOffersTheChangesOfTheFirst) {
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

TEST_F(ScenarioFiles, TheSameFileOpenedAgainIsOneChange) {
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

TEST_F(ScenarioFiles, ChangesThatAreNotSavedAreOfferedAtTheNextStart) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{5});
  start_again();
  EXPECT_THAT(message().toStdString(), HasSubstr("The changes of preemption.json were not saved"));
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && page_size() == 8; }));
  ASSERT_TRUE(ran());
  EXPECT_EQ(step(), StepIdx{5});
  EXPECT_TRUE(window->isWindowModified());
  action(Do::undo).trigger();
  ASSERT_TRUE(wait_until([&] { return page_size() == 4; }));
  start_again();
  EXPECT_EQ(message(), QString());
}

// --- the same file ---------------------------------------------------------------------------------------------------

TEST_F(ScenarioFiles, SavedIntoItsOwnFileTheNumbersAreThoseOfTheFile) {
  const QString path = copy_of("preemption");
  ASSERT_TRUE(open(path));
  const int opens = backend.opens;
  set("$.scheduler.max_batch", "3");
  ASSERT_TRUE(ran());
  save_as(path);
  EXPECT_EQ(load_scenario(path.toStdString()).scheduler.max_batch, 3);
  EXPECT_EQ(backend.opens, opens) << "it is open already";
  EXPECT_EQ(document().compared(), nullptr);
  EXPECT_FALSE(window->isWindowModified());
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), HasSubstr("steps\n51\n69\n"));
}

TEST_F(ScenarioFiles, SavedWhileItRunsTheNumbersAreThoseOfThatRun) {
  const QString path = copy_of("preemption");
  ASSERT_TRUE(open(path));
  set("$.scheduler.max_batch", "3");
  save_as(path);
  ASSERT_TRUE(wait_until([&] { return shown().scheduler.max_batch == 3; }));
  const std::vector<float> of_file = document().run().timeline()[Series::utilization];
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  EXPECT_THAT(words(), HasSubstr("steps\n51\n69\n"));
  ASSERT_NE(document().compared_run(), nullptr);
  EXPECT_EQ(document().compared_run()->timeline()[Series::utilization], of_file);
}

TEST_F(ScenarioFiles, SavedWithoutARunItCanStillBeRun) {
  const QString path = copy_of("preemption");
  ASSERT_TRUE(open(path));
  set("$.name", "held");
  ASSERT_TRUE(wait_until([&] { return button(*window, QStringLiteral("Cancel")) != nullptr; }));
  click(button(*window, QStringLiteral("Cancel")));
  ASSERT_TRUE(ran());
  save_as(path);
  EXPECT_THAT(words(), HasSubstr("was not run"));
  show_panel();
  EXPECT_TRUE(button(panel(), QStringLiteral("Run the changed scenario"))->isEnabled());
}

TEST_F(ScenarioFiles, ReloadKeepsTheStepOfAChangedRun) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.scheduler.max_batch", "2");
  ASSERT_TRUE(ran());
  document().seek_step(StepIdx{30});
  action(Do::reload).trigger();
  ASSERT_TRUE(wait_until([&] { return shown().scheduler.max_batch != 2; }));
  EXPECT_EQ(step(), StepIdx{30});
}

// --- while something else happens ------------------------------------------------------------------------------------

TEST_F(ScenarioFiles, ADocumentThatIsClosedDuringARunStaysClosed) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.name", "held");
  ASSERT_TRUE(wait_until([&] { return backend.changes == 1; }));
  action(Do::close).trigger();
  ASSERT_EQ(window->document(), nullptr);
  backend.release = true;
  EXPECT_FALSE(wait_until([&] { return window->document() != nullptr; }, 500));
  EXPECT_THAT(words(), HasSubstr("Open a scenario or a trace."));
}

TEST_F(ScenarioFiles, ARunThatFailedGoesWithItsDocument) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.name", "faulty");
  ASSERT_TRUE(ran());
  action(Do::close).trigger();
  EXPECT_EQ(button(*window, QStringLiteral("Try again")), nullptr);
}

TEST_F(ScenarioFiles, AFileThatFailsToOpenDuringARunLeavesTheRunToBeStarted) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.name", "held");
  ASSERT_TRUE(wait_until([&] { return backend.changes == 1; }));
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("open")); }));
  EXPECT_THAT(words(), HasSubstr("was not run"));
  EXPECT_TRUE(panel().isEnabled());
}

TEST_F(ScenarioFiles, NothingIsChangedWhileAFileOpens) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  window->open(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return backend.opens == 2; }));
  EXPECT_FALSE(panel().isEnabled());
  EXPECT_FALSE(action(Do::undo).isEnabled());
  backend.release = true;
  ASSERT_TRUE(wait_until([&] { return document().path() == made_up("held"); }));
  EXPECT_TRUE(panel().isEnabled());
}

TEST_F(ScenarioFiles, WhatIsSavedIsTheScenarioThatTheDialogWasOpenedFor) {
  for (const QString& other : {made_up("trace"), path_of("first_light")}) {
    ASSERT_TRUE(open(path_of("preemption")));
    set("$.cache.page_size", "8");
    ASSERT_TRUE(ran());
    QFileDialog* dialog = save_dialog();
    ASSERT_NE(dialog, nullptr);
    ASSERT_TRUE(open(other));
    const QString path = folder.filePath(QStringLiteral("mine.json"));
    Q_EMIT dialog->fileSelected(path);
    dialog->close();
    EXPECT_EQ(load_scenario(path.toStdString()).name, "Preemption");
    EXPECT_EQ(load_scenario(path.toStdString()).cache.page_size, 8);
    EXPECT_EQ(document().path(), other);
  }
}

TEST_F(ScenarioFiles, AFaultThatIsTypedAfterwardsIsNotSaved) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  const QString sub = folder.filePath(QStringLiteral("sub"));
  save_as(sub + QStringLiteral("/mine.json"));
  set("$.cache.page_size", "x");
  QDir().mkpath(sub);
  click(button(*window, QStringLiteral("Try again")));
  EXPECT_EQ(load_scenario((sub + QStringLiteral("/mine.json")).toStdString()).cache.page_size, 8);
  EXPECT_EQ(message(), QString());
  EXPECT_EQ(value("$.cache.page_size"), "x") << "the draft is not replaced by what was saved before";
}

TEST_F(ScenarioFiles, WhatIsBeingTypedIsAChange) {
  ASSERT_TRUE(open(path_of("preemption")));
  show_panel();
  type("$.tile.BK", "x");
  EXPECT_EQ(save_dialog(), nullptr) << "the typed value is a fault";
  EXPECT_EQ(value("$.tile.BK"), "x");
  set("$.tile.BK", "8");
  type("$.tile.BK", "4");
  action(Do::close).trigger();
  EXPECT_THAT(message().toStdString(), HasSubstr("The changes of preemption.json were not saved"));
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && shown().tile.BK == 4; }));
  ASSERT_TRUE(ran());
  type("$.tile.BK", "2");
  start_again();
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && shown().tile.BK == 2; }));
  // Destroyed without being closed, as by a signal: nothing is run for a document that is gone.
  type("$.tile.BK", "1");
  window.reset();
}

// --- offers ----------------------------------------------------------------------------------------------------------

TEST_F(ScenarioFiles, EveryFileHasItsOffer) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  ASSERT_TRUE(open(path_of("first_light")));
  set("$.cache.blocks", "40");
  ASSERT_TRUE(ran());
  ASSERT_TRUE(open(path_of("prefix_sharing")));
  start_again();
  const std::string offers = message().toStdString();
  EXPECT_THAT(offers, AllOf(HasSubstr("The changes of preemption.json"), HasSubstr("The changes of first_light.json")));
  ASSERT_TRUE(open(path_of("preemption")));  // without the changes
  EXPECT_THAT(message().toStdString(), HasSubstr("The changes of preemption.json"));
}

TEST_F(ScenarioFiles, AnOfferOutlivesAFileThatIsGone) {
  const QString path = copy_of("preemption");
  ASSERT_TRUE(open(path));
  set("$.cache.page_size", "8");
  ASSERT_TRUE(ran());
  ASSERT_TRUE(QFile::rename(path, path + QStringLiteral(".away")));
  start_again();
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("open")); }));
  EXPECT_THAT(message().toStdString(), HasSubstr("The changes of copy.json were not saved"));
  start_again();
  ASSERT_TRUE(QFile::rename(path + QStringLiteral(".away"), path));
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && page_size() == 8; }));
}

TEST_F(ScenarioFiles, AFaultAloneIsNotOffered) {
  ASSERT_TRUE(open(path_of("preemption")));
  set("$.cache.page_size", "6");
  EXPECT_TRUE(window->isWindowModified());
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_EQ(message(), QString());
}

TEST_F(ScenarioFiles, TheTileOfAChangedRunIsRestored) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->set_view(View::tile);
  document().seek_step(StepIdx{3});
  TileRequest request = document().tile_request();
  request.kv = KOrV::v;
  document().choose_tile_at(request, std::nullopt);
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
  for (const char* blocks : {"33", "34"}) {  // the second before the tile of the first is there
    set("$.cache.blocks", blocks);
    ASSERT_TRUE(wait_until([&] { return document().run().facts().blocks == std::stoll(blocks); }));
  }
  EXPECT_EQ(document().tile_request().kv, KOrV::v);
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
  start_again();
  click(button(*window, QStringLiteral("Open it with the changes")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && document().run().facts().blocks == 34; }));
  EXPECT_EQ(document().tile_request().kv, KOrV::v);
}

TEST_F(ScenarioFiles, LongListsAreChangedInTheirFile) {
  const QString path = folder.filePath(QStringLiteral("long.json"));
  std::ofstream out(path.toStdString());
  out << R"({"kvscope_scenario": 1, "requests": {"list": [{"prompt_tokens": 1})";
  for (std::size_t i = 0; i < ScenarioDraft::kMostItems; ++i) out << R"(, {"prompt_tokens": 1})";
  out << "]}}";
  out.close();
  ASSERT_TRUE(open(path));
  EXPECT_THAT(words(), HasSubstr("lists more than 5,000 requests and spans"));
  EXPECT_EQ(model().draft(), nullptr);
}

}  // namespace
}  // namespace kvscope::viz::scenario_files_test
