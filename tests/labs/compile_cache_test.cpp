#include "apps/labs/compile_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::compile_cache_test {
namespace {
namespace fs = std::filesystem;

// A compilation of two files, in folders of its own as compile_cpp() makes them.
struct Compilation {
  TemporaryFolder folder;
  SandboxJob job;
  Compilation() {
    fs::create_directory(folder / "src");
    fs::create_directory(folder / "out");
    write("rows.cpp", "int rows;");
    write("rows.h", "// rows");
    write_file_atomically(folder / "compiler", "a compiler");
    job.command = {"/usr/bin/true", "-O1"};
    job.mounts = {
        {folder / "src", "/lab/src"}, {folder / "out", "/lab/out", true}, {folder / "compiler", "/lab/kvscope"}};
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder / "src" / name, text);
  }
  [[nodiscard]] std::string key(bool trusted = false) const { return CompileCache::key(job, trusted); }
};

TEST(CompileCache, TheSameFilesInOtherFoldersHaveOneKeyAfterTheProductIsWritten) {
  const Compilation first;
  Compilation second;
  second.job.mounts.back() = first.job.mounts.back();  // one compiler
  write_file_atomically(second.folder / "out" / "program", "left by an earlier compilation");
  EXPECT_EQ(first.key(), second.key());
  EXPECT_EQ(first.key().size(), 64U);
}

// Each of these may change the product, so each must change the key.
TEST(CompileCache, EveryInputOfTheCompilerChangesTheKey) {
  Compilation changed;
  std::string last = changed.key();
  const auto expect_change = [&](const char* what) {
    const std::string now = changed.key();
    EXPECT_NE(now, last) << what;
    last = now;
  };
  changed.write("rows.cpp", "int rowz;");
  expect_change("a submitted file of the same size");
  changed.write("rows.h", "// rowz");
  expect_change("a header");
  changed.write("more.h", "");
  expect_change("one file more");
  fs::rename(changed.folder / "src" / "more.h", changed.folder / "src" / "less.h");
  expect_change("another name");
  changed.job.command.back() = "-O2";
  expect_change("an option");
  changed.job.command = {"/usr/bin/true", "-O", "2"};
  expect_change("the same option in two words");
  changed.job.command.front() = "/usr/bin/false";
  expect_change("another compiler");
  write_file_atomically(changed.folder / "compiler", "a compiler, updated");
  expect_change("a new version of a program in the sandbox");
  EXPECT_NE(changed.key(true), last) << "a compiler outside the sandbox";
}

// They decide whether the compiler ends, not what it writes.
TEST(CompileCache, LimitsDoNotChangeTheKey) {
  Compilation compilation;
  const std::string before = compilation.key();
  compilation.job.limits.cpu_seconds = 77;
  compilation.job.limits.wall_seconds = 78;
  compilation.job.limits.memory_bytes = 79;
  EXPECT_EQ(compilation.key(), before);
}

// "ab" + "c" and "a" + "bc" are different files.
TEST(CompileCache, TextThatMovesFromOneFileToTheNextChangesTheKey) {
  const Compilation compilation;
  compilation.write("a.cpp", "ab");
  compilation.write("b.cpp", "c");
  const std::string before = compilation.key();
  compilation.write("a.cpp", "a");
  compilation.write("b.cpp", "bc");
  EXPECT_NE(compilation.key(), before);
}

TEST(CompileCache, FindsWhatWasKeptWithItsMessages) {
  const TemporaryFolder folder;
  const CompileCache cache(folder / "new" / "cache");
  EXPECT_FALSE(cache.find("one").has_value());
  const Compiled compiled{true, "warning: 1\n", std::string("\0binary\nproduct", 15)};
  cache.keep("one", compiled);
  const auto found = CompileCache(folder / "new" / "cache").find("one");
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->ok);
  EXPECT_EQ(found->messages, compiled.messages);
  EXPECT_EQ(found->product, compiled.product);
  EXPECT_FALSE(cache.find("two").has_value());
}

TEST(CompileCache, FailedCompilationsAreNotKept) {
  const TemporaryFolder folder;
  const CompileCache cache(folder / "cache");
  cache.keep("one", {false, "error: 1\n", ""});
  EXPECT_FALSE(fs::exists(folder / "cache"));
  EXPECT_FALSE(cache.find("one").has_value());
}

TEST(CompileCache, WithoutAFolderNothingIsKept) {
  const CompileCache cache{fs::path()};
  cache.keep("one", {true, "", "product"});
  EXPECT_FALSE(cache.find("one").has_value());
  EXPECT_FALSE(fs::exists("one.compiled"));
}

// A changed, a cut and an unrelated file are compiled again: never run.
TEST(CompileCache, ADamagedEntryIsNotUsed) {
  const TemporaryFolder folder;
  const CompileCache cache(folder / "cache");
  cache.keep("one", {true, "warning\n", "product"});
  const fs::path entry = folder / "cache" / "one.compiled";
  const std::string whole = read_file(entry, 1000);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_file_atomically(entry, changed);
    EXPECT_FALSE(cache.find("one").has_value()) << at;
    write_file_atomically(entry, whole.substr(0, at));
    EXPECT_FALSE(cache.find("one").has_value()) << at;
  }
  write_file_atomically(entry, whole);
  EXPECT_TRUE(cache.find("one").has_value());
}

}  // namespace
}  // namespace kvscope::labs::compile_cache_test
