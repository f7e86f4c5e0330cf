// Damaged and hostile trace files, with the message for each. Most are made from a valid trace with SQL statements;
// those marked resealed have correct checksums again, as a forged file would.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "core/trace/trace_reader.h"
#include "tests/core/trace/support.h"

namespace kvscope::trace::bad_trace_test {
namespace {

using testing::edit;

class BadTrace : public ::testing::Test {
 protected:
  BadTrace() { testing::write_trace(path_, testing::sample_events(20), {{"scenario", "{}"}}); }

  // The message of opening and reading the whole file, without "<path> rejected".
  std::string rejection() {
    const std::string message = testing::message_of([&] { TraceReader(path_).verify_all(); });
    const std::string prefix = path_ + " rejected";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(message.size(), prefix.size()));
  }
  std::string after(const std::string& sql) {
    edit(path_, sql);
    return rejection();
  }
  std::string after_resealed(const std::string& sql) {
    edit(path_, sql);
    testing::reseal_index(path_);
    return rejection();
  }
  std::string with_bytes(const std::string& bytes) {
    testing::put_bytes(path_, bytes);
    return rejection();
  }
  std::string with_byte(std::size_t at, char byte) {
    std::string bytes = testing::bytes_of(path_);
    bytes.at(at) = byte;
    return with_bytes(bytes);
  }

  // The message of opening the file with other limits; empty if it opens.
  std::string opened(const TraceLimits& limits) {
    try {
      const TraceReader reader(path_, limits);
      return "";
    } catch (const InputError& error) {
      return std::string(error.what()).substr((path_ + " rejected").size());
    }
  }
  TraceLimits exact_limits() {
    const TraceReader reader(path_);
    TraceLimits limits{reader.rows() - 1, reader.events(), 0, 0};
    for (std::int64_t row = 0; row < reader.rows(); ++row) {
      limits.step_events = std::max(limits.step_events, reader.span(row).events);
    }
    for (const auto& [key, value] : reader.meta()) {
      limits.text_bytes += static_cast<std::int64_t>(key.size() + value.size());
    }
    return limits;
  }

  testing::Folder folder_;
  std::string path_ = folder_ / "trace.kvt";
};

// --- the file as bytes -----------------------------------------------------------------------------------------------

TEST_F(BadTrace, MissingFile) {
  std::filesystem::remove(path_);
  EXPECT_EQ(rejection(), ": cannot be read: No such file or directory");
}

TEST_F(BadTrace, Folder) {
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(rejection(), ": is a folder: name the trace file in it");
}

TEST_F(BadTrace, NotADatabase) {
  const std::string message = ": is not a trace: it does not begin as an SQLite database does";
  EXPECT_EQ(with_bytes(""), message);
  EXPECT_EQ(with_bytes("{\"kvscope_scenario\": 1}"), message);
  EXPECT_EQ(with_bytes(std::string(4096, '\0')), message);
  EXPECT_EQ(with_bytes(std::string("SQLite format 3\0", 16) + std::string(83, '\0')), message);  // one byte short
}

TEST_F(BadTrace, DatabaseOfAnotherProgram) {
  EXPECT_EQ(after("PRAGMA application_id = 0"),
            ": is not a trace: its application id is 0x00000000, a trace has 0x6b767472");
}

TEST_F(BadTrace, NewerVersion) {
  EXPECT_EQ(after("PRAGMA user_version = 7"), ": format version 7 is newer than this program's 4: update kvscope");
}

TEST_F(BadTrace, VersionThatNeverWas) {
  EXPECT_EQ(after("PRAGMA user_version = 0"), ": format version 0 does not exist: the first is 1");
  EXPECT_EQ(after("PRAGMA user_version = -3"), ": format version -3 does not exist: the first is 1");
}

TEST_F(BadTrace, CutShortOrGrown) {
  const std::string bytes = testing::bytes_of(path_);
  const auto size = bytes.size();
  EXPECT_EQ(with_bytes(bytes.substr(0, size - 1)),
            fmt::format(": is cut short: {} of {} bytes are there", size - 1, size));
  EXPECT_EQ(with_bytes(bytes.substr(0, 100)), fmt::format(": is cut short: {} of {} bytes are there", 100, size));
  EXPECT_EQ(with_bytes(bytes + "x"), fmt::format(": is damaged: it has {} bytes, its header says {}", size + 1, size));
}

TEST_F(BadTrace, RootOfTheTableListDestroyed) {
  EXPECT_EQ(with_byte(100, 'x'), ": is damaged: database disk image is malformed");
}

TEST_F(BadTrace, SizeOfPagesThatNoDatabaseHas) {
  // 3 * 256 bytes: not a power of two. The lengths then disagree before SQLite opens the file.
  std::string bytes = testing::bytes_of(path_);
  bytes[16] = 3, bytes[17] = 0;
  EXPECT_EQ(with_bytes(bytes),
            fmt::format(": is damaged: it has {} bytes, its header says {}", bytes.size(), bytes.size() / 4 * 3));
}

// Eight bytes of a row of table 'kind', found by trace_fuzz: the row claims 2 GiB. The reader said that memory ran out.
TEST_F(BadTrace, RowThatClaimsMoreThanSQLiteAllocates) {
  const std::string bytes =
      testing::bytes_of(std::filesystem::path(KVSCOPE_SOURCE_DIR) / "tests/fuzz/corpus/trace/row_of_2_GiB.kvt");
  EXPECT_EQ(with_bytes(bytes), ": is damaged: a row claims more bytes than SQLite allocates");
}

// --- the list of tables ----------------------------------------------------------------------------------------------

TEST_F(BadTrace, TablesOfTheIndexMissingAreAllNamed) {
  EXPECT_EQ(after("DROP TABLE meta; DROP TABLE kind; VACUUM"),
            ", 2 faults:\n  table 'meta': is missing\n  table 'kind': is missing");
}

TEST_F(BadTrace, TableOfAKindMissing) {
  EXPECT_EQ(after("DROP TABLE block_copied; VACUUM"), ": table 'block_copied': is missing");
}

TEST_F(BadTrace, ColumnsMissingAreAllNamed) {
  EXPECT_EQ(after("ALTER TABLE block_released DROP COLUMN cached; ALTER TABLE block_released DROP COLUMN page; "
                  "ALTER TABLE step_began RENAME COLUMN time_us TO time"),
            ", 3 faults:\n  table 'step_began': column 'time_us' is missing\n"
            "  table 'block_released': column 'page' is missing\n"
            "  table 'block_released': column 'cached' is missing");
}

TEST_F(BadTrace, ColumnTooMany) {
  EXPECT_EQ(after("ALTER TABLE block_evicted ADD COLUMN seq INTEGER"),
            ": table 'block_evicted': is not made by CREATE TABLE block_evicted (event INTEGER PRIMARY KEY, \"block\" "
            "INTEGER NOT NULL)");
}

// A computed column would execute an expression from the file on every row.
TEST_F(BadTrace, ComputedColumn) {
  EXPECT_EQ(
      after("DROP TABLE block_evicted; CREATE TABLE block_evicted (event INTEGER PRIMARY KEY, \"block\" INTEGER AS "
            "(zeroblob(1000000000)))"),
      ": table 'block_evicted': is not made by CREATE TABLE block_evicted (event INTEGER PRIMARY KEY, \"block\" "
      "INTEGER NOT NULL)");
}

TEST_F(BadTrace, ViewInPlaceOfATable) {
  EXPECT_EQ(after("ALTER TABLE step RENAME TO s; CREATE VIEW step AS SELECT * FROM s"), ": table 'step': is a view");
}

TEST_F(BadTrace, ViewsTriggersIndicesAndTablesOfOthersAreAllNamed) {
  EXPECT_EQ(after("CREATE TABLE extra (x); CREATE VIEW v AS SELECT 1; CREATE INDEX i ON step (step); "
                  "CREATE TRIGGER t AFTER INSERT ON step BEGIN DELETE FROM step; END"),
            ", 4 faults:\n  table 'extra': does not belong to a trace\n  index 'i': does not belong to a trace\n"
            "  trigger 't': does not belong to a trace\n  view 'v': does not belong to a trace");
}

TEST_F(BadTrace, VirtualTable) {
  EXPECT_EQ(after("CREATE VIRTUAL TABLE extra USING fts5(x)").substr(0, 11), ", 6 faults:");
}

TEST_F(BadTrace, TableListThatIsNoSql) {
  EXPECT_EQ(
      after(
          "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE step (oops' WHERE name = 'step'"),
      ": is damaged: malformed database schema (step) - incomplete input");
}

TEST_F(BadTrace, TwoTablesInOnePlace) {
  EXPECT_NE(after("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'step'"), "");
}

// A list of tables without end would be read into memory and be a fault each.
TEST_F(BadTrace, MoreTablesThanAnyTraceHas) {
  std::string tables = "BEGIN;";
  for (int i = 0; i < 1000; ++i) tables += fmt::format("CREATE TABLE extra{} (x);", i);
  EXPECT_EQ(after(tables + "COMMIT"), ": is damaged: its list of tables is not one of a trace");
}

// --- the kinds -------------------------------------------------------------------------------------------------------

TEST_F(BadTrace, KindThatDoesNotExist) {
  EXPECT_EQ(after("INSERT INTO kind VALUES (99, 'block_painted', 0)"),
            ": table 'kind', row 99: 'block_painted' is not a kind of event");
}

TEST_F(BadTrace, KindListedTwice) {
  EXPECT_EQ(after("INSERT INTO kind VALUES (99, 'step_began', 0)"),
            ": table 'kind', row 99: 'step_began' occurs twice");
}

TEST_F(BadTrace, MoreKindsThanAnyTraceHas) {
  const std::string message = after(
      "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2999) "
      "INSERT INTO kind SELECT i, 'block_painted', 0 FROM n");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1000 - static_cast<std::ptrdiff_t>(kKinds)) << "not 2000";
  EXPECT_THAT(message, ::testing::HasSubstr("table 'kind', row 1000: 'block_painted' is not a kind of event\n"));
}

TEST_F(BadTrace, KindOfAnotherType) {
  EXPECT_EQ(after("UPDATE kind SET events = 'many' WHERE kind = 3"),
            ": table 'kind': holds a row that is not integer, text, integer");
}

TEST_F(BadTrace, KindNoLongerListed) {
  EXPECT_EQ(after("DELETE FROM kind WHERE name = 'block_copied'"),
            ": table 'block_copied': does not belong to a trace");
}

TEST_F(BadTrace, KindsThatCountWrongly) {
  EXPECT_EQ(after("UPDATE kind SET events = 1000 WHERE name = 'step_began'"),
            ": table 'kind', row 0: claims 1000 events, but 79 are left in the trace");
  EXPECT_EQ(after("UPDATE kind SET events = -1 WHERE name = 'step_began'"),
            ": table 'kind', row 0: claims -1 events, but 79 are left in the trace");
  EXPECT_EQ(after("UPDATE kind SET events = 19 WHERE name = 'step_began'"),
            ": table 'kind': counts 78 events, but meta says 79");
  EXPECT_EQ(after("UPDATE kind SET events = 0 WHERE name = 'step_began'"),
            ": table 'step_began': holds events, but table 'kind' says 0");
}

TEST_F(BadTrace, KindWithoutTheEventsItClaims) {
  EXPECT_EQ(after("DELETE FROM step_began"), ": table 'step_began': is empty, but table 'kind' says 20 events");
}

// --- meta ------------------------------------------------------------------------------------------------------------

TEST_F(BadTrace, MetaKeysMissing) {
  EXPECT_EQ(after("DELETE FROM meta WHERE key = 'checksum'"), ": meta 'checksum': is missing");
  EXPECT_EQ(after("DELETE FROM meta WHERE key = 'steps'"), ": meta 'steps': is missing");
  EXPECT_EQ(after("DELETE FROM meta WHERE key = 'events'"), ": meta 'events': is missing");
  EXPECT_EQ(after("DELETE FROM meta WHERE key = 'detail'"), ": meta 'detail': is missing");
}

TEST_F(BadTrace, MetaNumbersThatAreNone) {
  for (const std::string text : {"", "x", "12x", "-1", " 76", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(after("UPDATE meta SET value = '" + text + "' WHERE key = 'events'"),
              fmt::format(": meta 'events': '{}' is not a count", text));
  }
}

TEST_F(BadTrace, MetaDetailOutOfItsThree) {
  EXPECT_EQ(after("UPDATE meta SET value = 'off' WHERE key = 'detail'"),
            ": meta 'detail': 'off' is neither 'steps' nor 'full'");
  EXPECT_EQ(after("UPDATE meta SET value = 'all' WHERE key = 'detail'"),
            ": meta 'detail': 'all' is neither 'steps' nor 'full'");
}

TEST_F(BadTrace, MetaThatIsNotText) {
  EXPECT_EQ(after("UPDATE meta SET value = x'00ff' WHERE key = 'scenario'"),
            ": table 'meta': holds a row that is not text");
}

TEST_F(BadTrace, MetaPastItsBoundIsRejectedBeforeItIsHeld) {
  // Two values that fit separately; then one that exceeds SQLite's limit.
  EXPECT_EQ(
      after("INSERT INTO meta VALUES ('a', hex(zeroblob(20000000))), "
            "('b', hex(zeroblob(20000000)))"),
      ": table 'meta': 80000002 bytes of text are more than 67108864: a larger limit: --max-text of kvscope trace");
  EXPECT_EQ(after("DELETE FROM meta WHERE key = 'b'; UPDATE meta SET value = value || value WHERE key = 'a'"),
            ": holds a text of more than 67108864 bytes: a larger limit: --max-text of kvscope trace");
}

// --- limits: the largest legal value of each, and one less ------------------------------------------------------------

TEST_F(BadTrace, EachLimitIsNamedWhenItIsExceeded) {
  const TraceLimits exact = exact_limits();
  EXPECT_EQ(opened(exact), "");
  const auto less = [&](std::int64_t TraceLimits::*limit) {
    TraceLimits limits = exact;
    --(limits.*limit);
    return opened(limits);
  };
  EXPECT_EQ(
      less(&TraceLimits::steps),
      fmt::format(": table 'step', row {0}: {0} steps are more than {1}: a larger limit: --max-steps of kvscope trace",
                  exact.steps, exact.steps - 1));
  EXPECT_EQ(less(&TraceLimits::events),
            fmt::format(": meta 'events': {} events are more than {}: a larger limit: --max-events of kvscope trace",
                        exact.events, exact.events - 1));
  EXPECT_THAT(
      less(&TraceLimits::step_events),
      ::testing::EndsWith(fmt::format(": {} events of one step are more than {}: a larger limit: --max-step-events of "
                                      "kvscope trace",
                                      exact.step_events, exact.step_events - 1)));
  EXPECT_EQ(
      less(&TraceLimits::text_bytes),
      fmt::format(": table 'meta': {} bytes of text are more than {}: a larger limit: --max-text of kvscope trace",
                  exact.text_bytes, exact.text_bytes - 1));
}

// --- the index -------------------------------------------------------------------------------------------------------

TEST_F(BadTrace, IndexChangedWithoutItsChecksum) {
  const std::string now = testing::select(path_, "SELECT value FROM meta WHERE key = 'checksum'")[0][0];
  const std::string message = after("UPDATE meta SET value = '{ }' WHERE key = 'scenario'");
  EXPECT_TRUE(message.starts_with(": index: checksum is ")) << message;
  EXPECT_TRUE(message.ends_with(" instead of " + now + ": the file was changed or damaged")) << message;
}

TEST_F(BadTrace, IndexEmpty) {
  EXPECT_EQ(after_resealed("DELETE FROM step"), ": table 'step': is empty: it always has the prologue");
}

TEST_F(BadTrace, IndexWithAGap) {
  EXPECT_EQ(after_resealed("DELETE FROM step WHERE row = 5"), ": table 'step', row 5: is missing: row 6 follows");
}

TEST_F(BadTrace, IndexRowsThatDoNotFollowEachOther) {
  EXPECT_EQ(after_resealed("UPDATE step SET first_event = first_event + 1 WHERE row = 2"),
            ": table 'step', row 2: begins at event 4 instead of 3");
}

TEST_F(BadTrace, IndexThatClaimsMoreThanThereIs) {
  EXPECT_EQ(after_resealed("UPDATE step SET events = 9223372036854775807 WHERE row = 2"),
            ": table 'step', row 2: claims 9223372036854775807 events, but 76 are left in the trace");
  EXPECT_EQ(after_resealed("UPDATE step SET events = 0 WHERE row = 2"),
            ": table 'step', row 2: claims 0 events, but 76 are left in the trace");
}

TEST_F(BadTrace, IndexThatEndsEarly) {
  EXPECT_EQ(after_resealed("DELETE FROM step WHERE row = 20"), ": table 'step': has 20 rows, but meta says 21");
  EXPECT_EQ(after_resealed("UPDATE meta SET value = 20 WHERE key = 'steps'"),
            ": table 'step': ends at event 73, but meta says 79 events");
}

TEST_F(BadTrace, IndexWhoseFirstRowIsNoPrologue) {
  EXPECT_EQ(after_resealed("UPDATE step SET step = 0 WHERE row = 0"),
            ": table 'step', row 0: is step 0, but the prologue is step -1");
}

TEST_F(BadTrace, IndexChecksumThatHasMoreThan32Bits) {
  EXPECT_EQ(after_resealed("UPDATE step SET crc = 4294967296 WHERE row = 3"),
            ": table 'step', row 3: crc 4294967296 is outside [0, 4294967296)");
}

TEST_F(BadTrace, IndexOfAnotherType) {
  EXPECT_EQ(after("UPDATE step SET events = 'two' WHERE row = 3"),
            ": table 'step', row 3: column 3 holds text, not an integer");
}

// --- the events ------------------------------------------------------------------------------------------------------

TEST_F(BadTrace, EventChanged) {
  const auto crc = testing::select(path_, "SELECT crc FROM step WHERE step = 6")[0][0];
  const std::string message = after("UPDATE step_began SET time_us = time_us + 1 WHERE step = 6");
  EXPECT_TRUE(message.starts_with(": step 6: checksum is ")) << message;
  EXPECT_TRUE(message.ends_with(" instead of " + crc + ": the file was changed or damaged")) << message;
}

TEST_F(BadTrace, EventsOfTwoStepsExchanged) {
  const std::string message = after("UPDATE step_began SET time_us = 1000 - time_us WHERE step IN (3, 4)");
  EXPECT_TRUE(message.starts_with(": step 3: checksum is ")) << message;
}

TEST_F(BadTrace, EventRemoved) {
  EXPECT_EQ(after("DELETE FROM step_began WHERE step = 6"), ": event 23: is in no table");
}

TEST_F(BadTrace, EventInTwoTables) {
  EXPECT_EQ(after("INSERT INTO request_arrived VALUES (23, 1, 2, 3)"),
            ": table 'request_arrived', event 23: occurs twice or is out of order");
}

// The last event of both tables: no later one of either stumbles over it. Reading only its step finds it too.
TEST_F(BadTrace, EventInTwoTablesIsFoundInItsStep) {
  edit(path_, "INSERT INTO request_arrived VALUES (78, 1, 2, 3)");
  const std::string fault = ": table 'block_released', event 78: occurs twice or is out of order";
  EXPECT_EQ(rejection(), fault);
  TraceReader trace(path_);
  const std::int64_t row = trace.row_of_event(78);
  EXPECT_EQ(testing::message_of([&] { (void)trace.events_of_row(row); }), path_ + " rejected" + fault);
  EXPECT_EQ(trace.events_of_row(row - 1).size(), static_cast<std::size_t>(trace.span(row - 1).events));
}

TEST_F(BadTrace, EventOutsideTheTrace) {
  EXPECT_EQ(after("INSERT INTO step_began VALUES (79, 1, 2)"),
            ": table 'step_began', event 79: is outside the trace's [0, 79)");
  EXPECT_EQ(after("UPDATE step_began SET event = -1 WHERE event = 79"),
            ": table 'step_began', event -1: is outside the trace's [0, 79)");
}

// The end of every table is checked on opening, so this fault is found without reading all events.
TEST_F(BadTrace, EventJustPastTheTraceIsFoundWhenItOpens) {
  edit(path_, "UPDATE step_began SET event = 79 WHERE step = 19");
  EXPECT_THROW(TraceReader{path_}, InputError);
}

// The first attempt leaves the tables' cursors in the middle; the second must not continue from there.
TEST_F(BadTrace, StepDamagedInTheMiddleSaysTheSameAgain) {
  edit(path_, "UPDATE block_evicted SET block = 'x'");
  TraceReader trace(path_);
  const std::int64_t event = std::stoll(testing::select(path_, "SELECT min(event) FROM block_evicted")[0][0]);
  const std::int64_t row = trace.row_of_event(event);
  ASSERT_GT(event, trace.span(row).first_event);
  (void)trace.events_of_row(row - 1);  // moves the cursors to the start of the damaged step, so that no seek is needed
  const std::string first = testing::message_of([&] { (void)trace.events_of_row(row); });
  EXPECT_TRUE(first.ends_with("column 'block' holds text, not an integer")) << first;
  EXPECT_EQ(testing::message_of([&] { (void)trace.events_of_row(row); }), first);
  EXPECT_EQ(trace.events_of_row(row - 1).size(), static_cast<std::size_t>(trace.span(row - 1).events));
}

TEST_F(BadTrace, NumberOfAnotherType) {
  EXPECT_EQ(after("UPDATE step_began SET time_us = 'noon' WHERE step = 6"),
            ": table 'step_began', event 23: column 'time_us' holds text, not an integer");
  EXPECT_EQ(after("UPDATE step_began SET time_us = 0.5 WHERE step = 6"),
            ": table 'step_began', event 23: column 'time_us' holds real, not an integer");
  EXPECT_EQ(after("UPDATE step_began SET time_us = x'00' WHERE step = 6"),
            ": table 'step_began', event 23: column 'time_us' holds blob, not an integer");
}

TEST_F(BadTrace, FlagThatIsNeitherZeroNorOne) {
  const std::string event = testing::select(path_, "SELECT min(event) FROM block_released")[0][0];
  EXPECT_EQ(after("UPDATE block_released SET cached = 2 WHERE event = " + event),
            fmt::format(": table 'block_released', event {}: column 'cached' holds 2, which does not fit", event));
}

// All checksums are correct, but the steps of the index are not those of the events: two are one row, and one is two.
TEST_F(BadTrace, IndexThatJoinsOrSplitsStepsIsFoundThoughResealed) {
  const std::string renumber =
      "UPDATE step SET row = -row WHERE row > {0}; UPDATE step SET row = -row {1} 1 WHERE row < 0;";
  const std::string whole = testing::bytes_of(path_);
  edit(path_,
       "UPDATE step SET events = events + (SELECT events FROM step WHERE row = 6) WHERE row = 5;"
       "DELETE FROM step WHERE row = 6;" +
           fmt::format(fmt::runtime(renumber), 6, "-") + "UPDATE meta SET value = 20 WHERE key = 'steps'");
  testing::reseal_row(path_, 5);
  const auto second = testing::select(path_, "SELECT event, time_us FROM step_began WHERE step = 5")[0];
  EXPECT_EQ(rejection(),
            fmt::format(": step 4: event {} is 'step_began step=5 time_us={}', which the index contradicts", second[0],
                        second[1]));

  testing::put_bytes(path_, whole);
  edit(path_, fmt::format(fmt::runtime(renumber), 6, "+") +
                  "INSERT INTO step SELECT 7, 100, first_event + 1, events - 1, 0 FROM step WHERE row = 6;"
                  "UPDATE step SET events = 1 WHERE row = 6; UPDATE meta SET value = 22 WHERE key = 'steps'");
  testing::reseal_row(path_, 6);
  testing::reseal_row(path_, 7);
  const std::int64_t event = std::stoll(testing::select(path_, "SELECT first_event FROM step WHERE row = 7")[0][0]);
  const std::string text = to_text(testing::sample_events(20)[static_cast<std::size_t>(event)]);
  EXPECT_EQ(rejection(), fmt::format(": step 100: event {} is '{}', which the index contradicts", event, text));
}

// All checksums are correct, but the index and the event disagree about the step's number.
TEST_F(BadTrace, IndexThatContradictsTheEventsIsFoundThoughResealed) {
  EXPECT_EQ(after_resealed("UPDATE step SET step = 600 WHERE step = 6"),
            ": step 600: event 23 is 'step_began step=6 time_us=182', which the index contradicts");
}

}  // namespace
}  // namespace kvscope::trace::bad_trace_test
