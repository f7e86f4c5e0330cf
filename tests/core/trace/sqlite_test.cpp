#include "core/trace/detail/sqlite.h"

#include <gtest/gtest.h>

#include "tests/core/trace/support.h"

namespace kvscope::trace::sqlite_test {
namespace {

class UntrustedDatabase : public ::testing::Test {
 protected:
  UntrustedDatabase() {
    testing::edit(path_, "CREATE TABLE t (a, b, c, d, e); INSERT INTO t VALUES (7, 'x', 0.5, NULL, x'00')");
  }
  std::string message_of(const std::string& sql) {
    return testing::message_of([&] { Database::open_untrusted(path_, "t.db", 1000).run(sql); });
  }
  testing::Folder folder_;
  std::string path_ = folder_ / "t.db";
};

TEST_F(UntrustedDatabase, IsNotWrittenTo) {
  const std::string before = testing::bytes_of(path_);
  EXPECT_EQ(message_of("INSERT INTO t VALUES (1, 2, 3, 4, 5)"),
            "t.db rejected: is damaged: attempt to write a readonly database");
  EXPECT_EQ(message_of("ATTACH ':memory:' AS other"), "t.db rejected: is damaged: too many attached databases - max 0");
  EXPECT_EQ(testing::bytes_of(path_), before);
}

TEST_F(UntrustedDatabase, HandsOutNoValuePastItsBound) {
  EXPECT_EQ(message_of("SELECT zeroblob(1000)"), "");
  EXPECT_EQ(message_of("SELECT zeroblob(1001)"),
            "t.db rejected: holds a text of more than 1000 bytes: a larger limit: --max-text of kvscope trace");
}

// Simulates a tree of pages that contains itself.
TEST_F(UntrustedDatabase, StopsWorkThatDoesNotEnd) {
  Database db = Database::open_untrusted(path_, "t.db", 1000);
  const std::string endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
  db.limit_work(100'000);
  EXPECT_EQ(testing::message_of([&] { db.run(endless); }), "t.db rejected: is damaged: it takes too long to read");
  db.limit_work(0);
  EXPECT_EQ(testing::message_of(
                [&] { db.run(endless.substr(0, endless.find("SELECT count")) + "SELECT x FROM n LIMIT 200000"); }),
            "");
}

TEST_F(UntrustedDatabase, TellsEveryTypeFromAnInteger) {
  Database db = Database::open_untrusted(path_, "t.db", 1000);
  Statement row = db.prepare("SELECT * FROM t");
  ASSERT_TRUE(row.step());
  ASSERT_EQ(row.columns(), 5);
  const std::vector<std::string_view> types{"integer", "text", "real", "null", "blob"};
  for (int column = 0; column < 5; ++column) {
    EXPECT_EQ(row.type(column), types[static_cast<std::size_t>(column)]);
    EXPECT_EQ(row.integer(column).has_value(), column == 0);
    EXPECT_EQ(row.text(column).has_value(), column == 1);
  }
  EXPECT_EQ(row.integer(0), 7);
  EXPECT_EQ(row.text(1), "x");
  EXPECT_FALSE(row.step());
}

}  // namespace
}  // namespace kvscope::trace::sqlite_test
