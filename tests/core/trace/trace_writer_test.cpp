#include "core/trace/trace_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "core/trace/trace_reader.h"
#include "tests/core/trace/support.h"

namespace kvscope::trace::trace_writer_test {
namespace {

using testing::Folder;
using testing::message_of;

TEST(TraceWriter, TwoRunsWriteTheSameBytes) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(300);
  testing::write_trace(folder / "a.kvt", events, {{"producer", "x"}});
  testing::write_trace(folder / "b.kvt", events, {{"producer", "x"}});
  const std::string bytes = testing::bytes_of(folder / "a.kvt");
  EXPECT_EQ(bytes.size() % 1024, 0U);
  EXPECT_TRUE(bytes == testing::bytes_of(folder / "b.kvt"));
}

TEST(TraceWriter, OffMakesNoFile) {
  const Folder folder;
  TraceWriter writer(folder / "a.kvt", Detail::off, {{"producer", "x"}});
  testing::record_all(writer, testing::sample_events(20));
  EXPECT_TRUE(folder.names().empty());
  writer.finish();
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(writer.events(), 0);
}

TEST(TraceWriter, StepsKeepsOnlyWhatStepsAsksFor) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(30);
  testing::write_trace(folder / "a.kvt", events, {}, Detail::steps);
  std::vector<Event> expected;
  for (const Event& event : events) {
    if (kind_detail(event.index()) == Detail::steps) expected.push_back(event);
  }
  TraceReader trace(folder / "a.kvt");
  EXPECT_EQ(trace.detail(), Detail::steps);
  EXPECT_TRUE(testing::equal(trace.events_in(0, trace.events()), expected));
}

TEST(TraceWriter, DestroyedBeforeFinishLeavesNothingBehindAndAnOldFileAlone) {
  const Folder folder;
  testing::put_bytes(folder / "a.kvt", "old");
  {
    TraceWriter writer(folder / "a.kvt", Detail::full);
    testing::record_all(writer, testing::sample_events(500));
    EXPECT_EQ(folder.names().size(), 2U);  // the old file and the temporary one
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.kvt"});
  EXPECT_EQ(testing::bytes_of(folder / "a.kvt"), "old");
}

TEST(TraceWriter, FinishedReplacesAnOldFileAndLeavesNothingElse) {
  const Folder folder;
  testing::put_bytes(folder / "a.kvt", "old");
  testing::write_trace(folder / "a.kvt", testing::sample_events(5));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.kvt"});
  EXPECT_NO_THROW(TraceReader(folder / "a.kvt").verify_all());
}

TEST(TraceWriter, MissingFolderIsNamed) {
  const Folder folder;
  const std::string path = folder / "no/a.kvt";
  EXPECT_EQ(message_of([&] { TraceWriter(path, Detail::full); }),
            path + " rejected: cannot be written: No such file or directory");
  EXPECT_TRUE(folder.names().empty());
}

TEST(TraceWriter, FolderInPlaceOfAFileIsNamed) {
  const Folder folder;
  std::filesystem::create_directory(folder / "a.kvt");
  EXPECT_NE(message_of([&] { TraceWriter(folder / "a.kvt", Detail::full); }), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.kvt"});
}

// A limit on the size of files simulates a full disk.
TEST(TraceWriter, FullDiskIsReportedAndLeavesNothingBehind) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(2000);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64 * 1024, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string path = folder / "a.kvt";
  const std::string message = message_of([&] { testing::write_trace(path, events); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(message.starts_with(path + " rejected: cannot be written: ")) << message;
  EXPECT_TRUE(folder.names().empty());
}

// After one failure rows may be missing in the middle: the writer repeats the fault and writes nothing any more.
TEST(TraceWriter, AfterAFullDiskItSaysTheSameAgainAndFinishesNothing) {
  const Folder folder;
  std::size_t widest = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (field_names(kind).size() > field_names(widest).size()) widest = kind;
  }
  const Event event = testing::event_of(widest, std::vector<std::int64_t>(kMaxFields, INT64_MAX));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const std::string path = folder / "a.kvt";
  TraceWriter writer(path, Detail::full);
  const rlimit small{64 * 1024, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  for (int round = 0; round < 1000 && message.empty(); ++round) {  // more than the database keeps in memory
    message = message_of([&] { testing::record_all(writer, std::vector<Event>(1000, event)); });
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(message.starts_with(path + " rejected: cannot be written: ")) << message;
  const std::int64_t written = writer.events();
  EXPECT_EQ(message_of([&] { writer.record(BlockEvicted{BlockIdx{1}}); }), message) << "though the disk has room again";
  EXPECT_EQ(writer.events(), written);
  EXPECT_EQ(message_of([&] { writer.finish(); }), message);
  EXPECT_TRUE(folder.names().empty());
}

TEST(TraceWriter, CountsItsEventsBeforeAndAfterItFinishes) {
  const Folder folder;
  TraceWriter writer(folder / "a.kvt", Detail::full);
  EXPECT_EQ(writer.events(), 0);
  const std::vector<Event> events = testing::sample_events(5);
  testing::record_all(writer, events);
  EXPECT_EQ(writer.events(), static_cast<std::int64_t>(events.size()));
  writer.finish();
  EXPECT_EQ(writer.events(), static_cast<std::int64_t>(events.size()));
}

TEST(TraceWriter, MetaPastTheBoundIsRejectedAndLeavesNothingBehind) {
  const Folder folder;
  const std::string path = folder / "a.kvt";
  TraceWriter writer(path, Detail::full);
  writer.set_meta("scenario", std::string(static_cast<std::size_t>(kMaxMetaBytes), 'x'));
  const std::string message = message_of([&] { writer.finish(); });
  EXPECT_TRUE(message.ends_with(" at most 67108864 fit: leave the requests in a separate file")) << message;
  EXPECT_TRUE(folder.names().empty());
}

TEST(TraceWriter, MetaSetLaterReplacesMetaGivenAtTheStart) {
  const Folder folder;
  TraceWriter writer(folder / "a.kvt", Detail::full, {{"producer", "x"}, {"note", "early"}});
  writer.set_meta("note", "late");
  writer.set_meta("tokens", "12");
  writer.finish();
  const TraceReader trace(folder / "a.kvt");
  EXPECT_EQ(trace.meta().find("note")->second, "late");
  EXPECT_EQ(trace.meta().find("tokens")->second, "12");
  EXPECT_EQ(trace.meta().find("producer")->second, "x");
}

TEST(TraceWriterDeathTest, ReservedKeyIsOurOwnMistake) {
  const Folder folder;
  EXPECT_DEATH(TraceWriter(folder / "a.kvt", Detail::full, {{"checksum", "1"}}), "is_reserved_meta_key");
}

// Rows go to a table in batches of 32: one short of a batch, a batch, one more, and the same for two.
TEST(TraceWriter, EveryCountAroundABatchIsWhole) {
  for (const std::int64_t count : {0, 1, 31, 32, 33, 63, 64, 65}) {
    const Folder folder;
    std::vector<Event> events;
    for (std::int64_t i = 0; i < count; ++i) events.emplace_back(BlockEvicted{BlockIdx{i * 3}});
    testing::write_trace(folder / "a.kvt", events);
    TraceReader trace(folder / "a.kvt");
    EXPECT_TRUE(testing::equal(trace.events_of_row(0), events)) << count;
    EXPECT_EQ(trace.rows(), 1);
    trace.verify_all();
  }
}

}  // namespace
}  // namespace kvscope::trace::trace_writer_test
