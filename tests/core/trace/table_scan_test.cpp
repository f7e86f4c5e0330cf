// Rows read from the pages of a file, against the same rows read by SQLite.
#include "core/trace/detail/table_scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/random.h"
#include "core/trace/trace_reader.h"
#include "tests/core/trace/support.h"

namespace kvscope::trace::table_scan_test {
namespace {

using Row = std::vector<std::int64_t>;  // the primary key first
using Result = TableScan::Result;

// One table `t` of three columns after the primary key, by plain SQL.
class Table {
 public:
  Table(int page_bytes, const std::string& sql, int reserved_bytes = 0) : path_((folder_ / "t.db").string()) {
    if (reserved_bytes > 0) {
      sqlite3* db = nullptr;
      sqlite3_open(path_.c_str(), &db);
      sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved_bytes);
      sqlite3_exec(db, fmt::format("PRAGMA page_size = {}; VACUUM", page_bytes).c_str(), nullptr, nullptr, nullptr);
      sqlite3_close(db);
    }
    testing::edit(path_, fmt::format("PRAGMA page_size = {}; CREATE TABLE t (event INTEGER PRIMARY KEY, a INTEGER, "
                                     "b INTEGER, c INTEGER); {}",
                                     page_bytes, sql));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] std::vector<Row> by_sql(std::int64_t first) const {
    std::vector<Row> rows;
    sqlite3* db = nullptr;
    sqlite3_open(path_.c_str(), &db);
    sqlite3_stmt* query = nullptr;
    sqlite3_prepare_v2(db, "SELECT * FROM t WHERE event >= ?1 ORDER BY event", -1, &query, nullptr);
    sqlite3_bind_int64(query, 1, first);
    while (sqlite3_step(query) == SQLITE_ROW) {
      rows.emplace_back();
      for (int column = 0; column < 4; ++column) rows.back().push_back(sqlite3_column_int64(query, column));
    }
    sqlite3_finalize(query);
    sqlite3_close(db);
    return rows;
  }

  // The rows up to the end, or up to a page that is odd.
  [[nodiscard]] std::pair<std::vector<Row>, Result> by_pages(std::int64_t first, std::size_t columns = 4) const {
    const PageFile file(path_);
    TableScan scan(file, 2, columns);
    std::vector<Row> rows;
    Result result = scan.seek(first);
    for (; result == Result::row; result = scan.next()) {
      rows.push_back({scan.row()});
      rows.back().insert(rows.back().end(), scan.values().begin(), scan.values().end());
    }
    return {rows, result};
  }

 private:
  testing::Folder folder_;
  std::string path_;
};

// Numbers of every length in a file, both signs and both ends; gaps between the row numbers. The second table is three
// levels deep with pages of 512 bytes.
std::string many_rows(int count) {
  return fmt::format(
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
      "INSERT INTO t SELECT i * 3 + (i > 50) * 1000000, CASE i % 5 WHEN 0 THEN -9223372036854775807 - 1 WHEN 1 THEN "
      "9223372036854775807 WHEN 2 THEN i % 2 ELSE (1 << (i % 63)) - 1 END, -(1 << (i % 62)), i * 7919 FROM n;",
      count - 1);
}

TEST(TableScan, ReadsTheRowsThatSqliteReadsFromAnyRowOn) {
  for (const int page_bytes : {512, 1024, 4096, 65536}) {
    for (const int count : {1, 2, 60, 5000}) {
      const Table table(page_bytes, many_rows(count));
      const std::vector<Row> all = table.by_sql(std::numeric_limits<std::int64_t>::min());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(count));
      const CounterRng random(11, static_cast<std::uint64_t>(count));
      std::vector<std::int64_t> firsts{0, 1, all.back()[0], all.back()[0] + 1};
      for (std::uint64_t n = 0; n < 20; ++n) firsts.push_back(random.integer(n, 0, all.back()[0]));
      for (const std::int64_t first : firsts) {
        const auto [rows, result] = table.by_pages(first);
        EXPECT_EQ(result, Result::end) << page_bytes << " " << count << " " << first;
        EXPECT_EQ(rows, table.by_sql(first)) << page_bytes << " " << count << " " << first;
      }
    }
  }
}

// Each is a row that the caller's SQL rejects with a message, or reads by a rule that the scan does not have.
TEST(TableScan, EndsAsOddAtARowThatIsNotOnlyIntegers) {
  for (const std::string& value : {std::string("NULL"), std::string("2.5"), std::string("'x'"), std::string("x'00'"),
                                   "'" + std::string(3000, 'x') + "'"}) {
    const Table table(1024, "INSERT INTO t VALUES (0, 5, 6, 7), (1, 8, " + value + ", 9), (2, 1, 2, 3);");
    const auto [rows, result] = table.by_pages(0);
    EXPECT_EQ(result, Result::odd) << value.substr(0, 8);
    EXPECT_EQ(rows, (std::vector<Row>{{0, 5, 6, 7}})) << value.substr(0, 8);
  }
  const Table table(1024, "INSERT INTO t VALUES (0, 5, 6, 7);");
  EXPECT_EQ(table.by_pages(0, 3).second, Result::odd);
  EXPECT_EQ(table.by_pages(0, 5).second, Result::odd);
}

TEST(TableScan, EndsAsOddOnAMissingPageAnEmptyRootOrNoFile) {
  const Table empty(1024, "");
  EXPECT_EQ(empty.by_pages(0).second, Result::odd);
  const Table table(1024, many_rows(60));
  const PageFile file(table.path());
  for (const std::uint32_t root : {0U, 1U, 99U, ~0U}) EXPECT_EQ(TableScan(file, root, 4).seek(0), Result::odd) << root;
  const PageFile none(table.path() + ".missing");
  EXPECT_EQ(TableScan(none, 2, 4).seek(0), Result::odd);
}

// Headers that no SQLite writes: a file that ends in its header, sizes of pages below 512 bytes or not a power of two,
// and less than 480 usable bytes (sqlite.org/fileformat.html, section 1.3). The page after the change would still be read.
TEST(TableScan, EndsAsOddForAHeaderThatNoDatabaseHas) {
  const Table table(1024, many_rows(60));
  const std::string bytes = testing::bytes_of(table.path());
  const auto result_of = [&](const std::string& changed) {
    testing::put_bytes(table.path(), changed);
    return table.by_pages(0).second;
  };
  const auto with = [&](std::size_t at, std::initializer_list<int> values) {
    std::string changed = bytes;
    for (const int value : values) changed[at++] = static_cast<char>(value);
    return changed;
  };
  EXPECT_EQ(result_of(bytes), Result::end);
  EXPECT_EQ(result_of(bytes.substr(0, 99)), Result::odd);
  EXPECT_EQ(result_of(with(16, {1, 0})), Result::odd) << "256 bytes";
  EXPECT_EQ(result_of(with(16, {6, 0})), Result::odd) << "1536 bytes";
  const Table small(512, many_rows(60), 32);
  EXPECT_EQ(small.by_pages(0), std::pair(small.by_sql(0), Result::end)) << "480 usable bytes are enough";
  std::string reserved = testing::bytes_of(small.path());
  ASSERT_EQ(reserved[20], 32);
  reserved[20] = 33;
  testing::put_bytes(small.path(), reserved);
  EXPECT_EQ(small.by_pages(0), std::pair(std::vector<Row>{}, Result::odd));
}

// A cell whose length or row number does not end on the page.
TEST(TableScan, EndsAsOddAtANumberThatThePageCutsOff) {
  const Table table(1024, "INSERT INTO t VALUES (0, 5, 6, 7);");
  const std::string bytes = testing::bytes_of(table.path());
  for (const int tail : {1, 2}) {  // bytes of the cell that are on the page
    std::string changed = bytes;
    const int cell = 1024 - tail;
    changed[1024 + 8] = static_cast<char>(cell >> 8);
    changed[1024 + 9] = static_cast<char>(cell & 0xFF);
    changed[2048 - 2] = 7;                        // the length, when two bytes are there
    changed[2048 - 1] = static_cast<char>(0x81);  // continues
    testing::put_bytes(table.path(), changed);
    EXPECT_EQ(table.by_pages(0), (std::pair{std::vector<Row>{}, Result::odd})) << tail;
  }
}

// Any byte of any page: the scan ends, and rows ascend up to its end. Address checks are the sanitizers' part.
TEST(TableScan, EndsForEveryDamagedByte) {
  const Table table(512, many_rows(120));
  const std::string bytes = testing::bytes_of(table.path());
  int odd = 0;
  for (std::size_t at = 512; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (at % 3 == 0 ? 0xFF : 1 << at % 8));
    testing::put_bytes(table.path(), changed);
    const auto [rows, result] = table.by_pages(0);
    EXPECT_LE(rows.size(), 5000U) << at;
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end())) << at;
    odd += result == Result::odd ? 1 : 0;
  }
  EXPECT_GT(odd, 300);
}

// A page that is its own child must not be followed forever.
TEST(TableScan, EndsAsOddOnAPageThatIsItsOwnChild) {
  const Table table(512, many_rows(120));
  std::string bytes = testing::bytes_of(table.path());
  ASSERT_EQ(bytes[512], 0x05) << "page 2 is an interior page";
  bytes[512 + 8] = 0, bytes[512 + 11] = 2;
  testing::put_bytes(table.path(), bytes);
  EXPECT_EQ(table.by_pages(0).second, Result::odd);
}

// The trace reader uses the pages: the same events, whatever the size of the pages and the order of the rows.
TEST(TableScan, TraceReaderReadsPagesOfAnySize) {
  const testing::Folder folder;
  const std::string path = folder / "a.kvt";
  const std::vector<Event> events = testing::sample_events(2000);
  testing::write_trace(path, events);
  for (const int page_bytes : {512, 2048, 65536}) {
    testing::edit(path, fmt::format("PRAGMA page_size = {}; VACUUM", page_bytes));
    TraceReader trace(path);
    trace.verify_all();
    EXPECT_TRUE(testing::equal(trace.events_in(0, trace.events()), events));
    for (std::int64_t row = trace.rows() - 1; row >= 0; row -= 7) {
      const StepSpan span = trace.span(row);
      EXPECT_TRUE(testing::equal(trace.events_of_row(row),
                                 {events.begin() + span.first_event, events.begin() + span.end_event()}));
    }
  }
}

}  // namespace
}  // namespace kvscope::trace::table_scan_test
