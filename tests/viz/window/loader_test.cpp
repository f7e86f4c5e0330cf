// Work on other threads: one task at a time, the newest request wins, every exception becomes a message, and all waits
// are short.
#include "viz/window/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QtTest/QSignalSpy>

#include "tests/viz/window/window_support.h"
#include "viz/window/asker.h"
#include "viz/window/job.h"

namespace kvscope::viz::loader_test {
namespace {

using testing_support::FakeBackend;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::wait_until;

struct Outcomes {
  explicit Outcomes(Loader& loader)
      : opened(&loader, &Loader::opened), failed(&loader, &Loader::failed), cancelled(&loader, &Loader::cancelled) {}
  QSignalSpy opened, failed, cancelled;
  [[nodiscard]] qsizetype all() const { return opened.count() + failed.count() + cancelled.count(); }
};

TEST(Loader, OpensAndReportsThePath) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  loader.open(path_of("preemption"));
  EXPECT_TRUE(loader.loading());
  ASSERT_TRUE(wait_until([&] { return outcomes.all() == 1; }));
  ASSERT_EQ(outcomes.opened.count(), 1);
  EXPECT_FALSE(loader.loading());
  const auto run = outcomes.opened[0][0].value<std::shared_ptr<const viz::Run>>();
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->facts().name, "Preemption");
  EXPECT_EQ(outcomes.opened[0][1].toString(), path_of("preemption"));
}

// The messages are those of the command line, without the program's name.
TEST(Loader, PutsWhateverIsThrownIntoWords) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  const std::vector<std::pair<const char*, QStringList>> cases{
      {"faulty",
       {QStringLiteral("/made/up/faulty.json: $.cache.blocks: 0 is below 1"),
        QStringLiteral("/made/up/faulty.json: $.seed: missing")}},
      {"out_of_memory", {QStringLiteral("out of memory: ask for fewer tokens, layers or heads at a time")}},
      {"runtime_error", {QStringLiteral("the disk is on fire")}},
      {"no_exception", {QStringLiteral("an error without a message: please report it")}}};
  for (const auto& [name, words] : cases) {
    loader.open(made_up(name));
    ASSERT_TRUE(wait_until([&] { return !loader.loading(); }));
    ASSERT_EQ(outcomes.failed.count(), 1) << name;
    EXPECT_EQ(outcomes.failed.takeFirst()[1].toStringList(), words) << name;
  }
  EXPECT_EQ(outcomes.opened.count(), 0);
}

// The file opens without a fault, but its events contradict each other, which is found after the backend has returned.
TEST(Loader, ReportsAFaultFoundWhileTheEventsAreRead) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  loader.open(made_up("contradiction"));
  ASSERT_TRUE(wait_until([&] { return outcomes.all() == 1; }));
  ASSERT_EQ(outcomes.failed.count(), 1);
  EXPECT_THAT(outcomes.failed[0][1].toStringList().join(QLatin1Char('\n')).toStdString(),
              testing::StartsWith("contradiction.json: event 1: "));
}

TEST(Loader, ReportsProgressAndStopsWhenCancelled) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  QSignalSpy progress(&loader, &Loader::progress);
  loader.open(made_up("held"));
  ASSERT_TRUE(wait_until([&] { return progress.count() >= 2 && progress.back()[0].toLongLong() > 0; }));
  EXPECT_EQ(progress.back()[1].toLongLong(), 64);
  EXPECT_THAT(progress.back()[2].toString().toStdString(),
              testing::MatchesRegex("running the scenario: [0-9]+ of 64 requests"));
  loader.cancel();
  ASSERT_TRUE(wait_until([&] { return outcomes.all() == 1; }));
  EXPECT_EQ(outcomes.cancelled.count(), 1);
  EXPECT_FALSE(loader.loading());
}

// Backend::open must not be called by two threads at once.
TEST(Loader, StartsTheNextOnlyWhenTheOneBeforeHasStopped) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  loader.open(made_up("held"));
  loader.open(made_up("deaf"));
  loader.open(path_of("first_light"));
  ASSERT_TRUE(wait_until([&] { return outcomes.all() == 1; }));
  ASSERT_EQ(outcomes.opened.count(), 1);
  EXPECT_EQ(outcomes.opened[0][1].toString(), path_of("first_light"));
  EXPECT_EQ(backend.most_opens_now, 1);
  EXPECT_EQ(backend.opens, 2);  // the middle one was never begun
}

// Cancelled while the backend does not report progress: its result must be ignored.
TEST(Loader, AResultAfterCancelIsIgnored) {
  FakeBackend backend;
  Loader loader(backend);
  Outcomes outcomes(loader);
  loader.open(made_up("deaf"));
  loader.cancel();
  ASSERT_TRUE(wait_until([&] { return outcomes.all() == 1; }));
  EXPECT_EQ(outcomes.cancelled.count(), 1);
}

TEST(Loader, CanBeDestroyedWhileItLoads) {
  FakeBackend backend;
  for (const char* name : {"held", "deaf"}) {
    auto loader = std::make_unique<Loader>(backend);
    loader->open(made_up(name));
    ASSERT_TRUE(wait_until([&] { return backend.opens_now == 1; }));
    loader.reset();
    EXPECT_EQ(backend.opens_now, 0) << name;
  }
}

TEST(Job, IsOverBeforeItsSignals) {
  Job job;
  bool running = true;
  QObject::connect(&job, &Job::done, &job, [&] {
    running = job.running();
    job.start([](const Job::Tell&) { throw Cancelled(); });  // another job may be started in the slot
  });
  QSignalSpy cancelled(&job, &Job::cancelled);
  job.start([](const Job::Tell& tell) { static_cast<void>(tell(0, 1, 1)); });
  ASSERT_TRUE(wait_until([&] { return cancelled.count() == 1; }));
  EXPECT_FALSE(running);
}

// --- questions -------------------------------------------------------------------------------------------------------

struct Asked {
  FakeBackend backend;
  std::shared_ptr<const Facts> facts;
  trace::Question question;
  Asked() {
    const auto source = backend.open(testing_support::gallery_path("first_light"), {});
    Facts f;
    f.scenario = load_scenario(testing_support::gallery_path("first_light"));
    facts = std::make_shared<const Facts>(std::move(f));
    question.step = StepIdx{6};
  }
};

TEST(Asker, AnswersTheNewestQuestionAndSkipsThoseInBetween) {
  Asked asked;
  asked.backend.explain_ms = 30;
  Asker asker(asked.backend);
  QSignalSpy explained(&asker, &Asker::explained);
  for (std::int64_t token = 0; token < 50; ++token) {
    asked.question.token = TokIdx(token);
    asker.explain(asked.facts, {}, asked.question);
  }
  ASSERT_TRUE(wait_until([&] { return explained.count() > 0; }));
  QTest::qWait(100);
  ASSERT_EQ(explained.count(), 1);
  EXPECT_EQ(explained[0][0].value<trace::Question>().token, TokIdx{49});
  EXPECT_LE(asked.backend.explains, 2);
}

TEST(Asker, StagesATileAndPutsTheReasonWhyAPathCannotTakeItIntoWords) {
  Asked asked;
  Asker asker(asked.backend);
  QSignalSpy staged(&asker, &Asker::staged), not_staged(&asker, &Asker::not_staged);
  TileRequest request;
  request.step = StepIdx{6};
  asker.stage(asked.facts, {}, request);
  ASSERT_TRUE(wait_until([&] { return staged.count() == 1; }));
  const auto tile = staged[0][0].value<std::shared_ptr<const Tile>>();
  EXPECT_EQ(tile->opened.step, StepIdx{6});
  EXPECT_FALSE(tile->chunks.empty());
  request.path = TilePath::lds;
  asker.stage(asked.facts, {}, request);
  ASSERT_TRUE(wait_until([&] { return not_staged.count() == 1; }));
  EXPECT_TRUE(
      not_staged[0][0].toStringList().join(QLatin1Char(' ')).contains(QStringLiteral("do not divide a page of 16")));
}

TEST(Asker, PutsFaultsIntoWords) {
  Asked asked;
  Asker asker(asked.backend);
  QSignalSpy faults(&asker, &Asker::not_explained), nowhere(&asker, &Asker::not_located);
  asked.question.token = TokIdx{500};
  asker.explain(asked.facts, {}, asked.question);
  ASSERT_TRUE(wait_until([&] { return faults.count() == 1; }));
  EXPECT_EQ(faults[0][0].toStringList(),
            QStringList{
                QStringLiteral("sequence 0: token 500 is outside [0, 102): it has 90 prompt and 12 generated tokens")});
  asker.locate(asked.facts, {}, 5000, StepIdx{6});
  ASSERT_TRUE(wait_until([&] { return nowhere.count() == 1; }));
  EXPECT_EQ(nowhere[0][0].toStringList(),
            QStringList{QStringLiteral("byte 5000 is outside [0, 1000): the pool ends there")});
}

// A byte is located while the pointer keeps asking about blocks: neither question may replace the other.
TEST(Asker, KeepsAQuestionOfEachKind) {
  Asked asked;
  asked.backend.explain_ms = 20;
  Asker asker(asked.backend);
  QSignalSpy explained(&asker, &Asker::explained), located(&asker, &Asker::located);
  asker.explain(asked.facts, {}, asked.question);
  asker.locate(asked.facts, {}, 64, StepIdx{6});
  asker.explain(asked.facts, {}, asked.question);
  EXPECT_TRUE(wait_until([&] { return explained.count() == 1 && located.count() == 1; }));
}

TEST(Asker, ForgetsWhatWasAskedAboutAnotherFile) {
  Asked asked;
  asked.backend.explain_ms = 30;
  Asker asker(asked.backend);
  QSignalSpy explained(&asker, &Asker::explained);
  asker.explain(asked.facts, {}, asked.question);
  asker.forget();
  ASSERT_TRUE(wait_until([&] { return asked.backend.explains <= 1; }));
  QTest::qWait(100);
  EXPECT_EQ(explained.count(), 0);
}

}  // namespace
}  // namespace kvscope::viz::loader_test
