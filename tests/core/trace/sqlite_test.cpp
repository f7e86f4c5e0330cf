#include "core/trace/detail/sqlite.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/core/base/as_user.h"
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

// Any of these characters, taken for a part of a URI, would open another file, or none.
TEST(Databases, OfPathsThatAreSpecialInAUriAreOpened) {
  const testing::Folder folder;
  for (const char* name : {"a b", "a?mode=rwc", "a#b", "a%62", "a~b", "a@b", "a:b", "a[b]", "a\xc3\xa9", "A.-_9"}) {
    const std::string path = folder / name;
    testing::edit(path, fmt::format("CREATE TABLE t (a); INSERT INTO t VALUES ('{}')", name));
    Database db = Database::open_untrusted(path, "t.db", 1000);
    Statement row = db.prepare("SELECT a FROM t");
    ASSERT_TRUE(row.step()) << name;
    EXPECT_EQ(row.text(0), name);
  }
}

// The system's words where the system is the cause, SQLite's otherwise.
TEST(Databases, SayWhyTheyCannotBeReadOrWritten) {
  const testing::Folder folder;
  const std::string path = folder / "t.db";
  const auto created = [&] { return Database::create(path, "t.db"); };
  EXPECT_EQ(testing::message_of([&] { created(); }), "t.db rejected: cannot be written: No such file or directory");
  EXPECT_EQ(testing::message_of([&] { (void)Database::open_untrusted(path, "t.db", 1000); }),
            "t.db rejected: cannot be read: No such file or directory");
  testing::put_bytes(path, "");
  EXPECT_EQ(testing::message_of([&] { created().run("INSERT INTO t VALUES (1)"); }),
            "t.db rejected: cannot be written: no such table: t");
  EXPECT_EQ(testing::message_of([&] { static_cast<void>(created().prepare("SELECT * FROM t")); }),
            "t.db rejected: cannot be written: no such table: t");
  EXPECT_EQ(testing::message_of([&] {
              Database db = created();
              db.run("CREATE TABLE t (a); PRAGMA max_page_count = 3");
              db.run("INSERT INTO t VALUES (zeroblob(100000))");
            }),
            "t.db rejected: cannot be written: No space left on device");
  EXPECT_EQ(testing::message_of([&] {
              Database db = Database::open_untrusted(path, "t.db", 1000);
              db.prepare("SELECT ?1").bind(1, std::string(1001, 'x'));
            }),
            "t.db rejected: holds a text of more than 1000 bytes: a larger limit: --max-text of kvscope trace");
  EXPECT_EQ(testing::message_of([&] {
              Database db = created();
              db.prepare("SELECT ?1").bind(2, std::int64_t{1});
            }),
            "t.db rejected: cannot be written: column index out of range");
  EXPECT_EQ(testing::message_of([&] {
              Database db = created();
              const Statement open = db.prepare("SELECT 1");
              db.close();
            }),
            "t.db rejected: cannot be written: unable to close due to unfinalized statements or unfinished backups");
}

// SQLite opens such a file for reading only, without an error.
TEST(Databases, OfAFileThatMayNotBeWrittenAreRejected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may act as another user";
  const testing::Folder folder;
  const std::string path = folder / "t.db";
  testing::put_bytes(path, "");
  ASSERT_EQ(::chmod(std::filesystem::path(path).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const test::AsUser user(1234);
  EXPECT_EQ(testing::message_of([&] { (void)Database::create(path, "t.db"); }),
            "t.db rejected: cannot be written: Permission denied");
}

}  // namespace
}  // namespace kvscope::trace::sqlite_test
