#include "core/base/pending_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "core/base/errors.h"
#include "tests/core/base/as_user.h"

namespace kvscope::pending_folder_test {
namespace {

namespace fs = std::filesystem;
using test::AsUser;
using ::testing::HasSubstr;
using Files = std::map<std::string, std::string>;

class PendingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kvscope-set-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Files files_of(const fs::path& folder) {
    Files out;
    for (const auto& entry : fs::directory_iterator(folder)) {
      out[entry.path().filename().string()] = entry.is_directory() ? "<folder>" : read_file(entry.path(), 1 << 20);
    }
    return out;
  }
  static void write_set(const fs::path& folder, const std::string& mark, bool has_trace = true) {
    PendingFolder set(folder, {"a.txt", "b.txt", "trace"});
    write_file_atomically(set / "a.txt", "a " + mark);
    write_file_atomically(set / "b.txt", "b " + mark);
    if (has_trace) write_file_atomically(set / "trace", "trace " + mark);
    set.commit();
  }
  static Files set_of(const std::string& mark) {
    return {{"a.txt", "a " + mark}, {"b.txt", "b " + mark}, {"trace", "trace " + mark}};
  }
  template <class F>
  static std::string message(F f) {
    try {
      f();
    } catch (const InputError& e) {
      return e.what();
    }
    return "no InputError";
  }

  fs::path folder_;
};

TEST_F(PendingFolderTest, AppearsOnCommitAndVanishesWithoutOne) {
  {
    PendingFolder set(folder_ / "deep" / "er" / "out", {"a.txt"});
    write_file_atomically(set / "a.txt", "a");
    EXPECT_FALSE(fs::exists(folder_ / "deep" / "er" / "out"));
  }
  EXPECT_EQ(files_of(folder_), Files{}) << "the parent folders that it created are removed too";
  write_set(folder_ / "deep" / "er" / "out", "1");
  EXPECT_EQ(files_of(folder_ / "deep" / "er" / "out"), set_of("1"));
  EXPECT_EQ(files_of(folder_ / "deep" / "er"), (Files{{"out", "<folder>"}}));
}

TEST_F(PendingFolderTest, ReplacesTheOldSetWholeAndRemovesWhatTheNewOneLacks) {
  const fs::path out = folder_ / "out";
  write_set(out, "1");
  {
    PendingFolder abandoned(out, {"a.txt", "b.txt", "trace"});
    write_file_atomically(abandoned / "a.txt", "half");
  }
  EXPECT_EQ(files_of(out), set_of("1"));
  write_set(fs::path(out.string() + "/"), "2", false);
  EXPECT_EQ(files_of(out), (Files{{"a.txt", "a 2"}, {"b.txt", "b 2"}}))
      << "a trace of run 1 would be taken for that of 2";
  EXPECT_EQ(files_of(folder_), (Files{{"out", "<folder>"}}));
}

// The exchange would take the user's files out of the folder.
TEST_F(PendingFolderTest, OtherFilesOfTheFolderStay) {
  const fs::path out = folder_ / "out";
  write_set(out, "1");
  std::ofstream(out / "notes.md") << "notes";
  fs::create_directory(out / "sub");
  write_set(out, "2", false);
  EXPECT_EQ(files_of(out), (Files{{"a.txt", "a 2"}, {"b.txt", "b 2"}, {"notes.md", "notes"}, {"sub", "<folder>"}}));
  EXPECT_EQ(files_of(folder_), (Files{{"out", "<folder>"}}));
}

// A file of the set that neither the old nor the new set has is no fault.
TEST_F(PendingFolderTest, AFileThatNoSetHasIsLeftOutAmongOtherFiles) {
  const fs::path out = folder_ / "out";
  fs::create_directory(out);
  std::ofstream(out / "notes.md") << "notes";
  for (const char* mark : {"1", "2"}) {
    write_set(out, mark, false);
    const std::string text = mark;
    EXPECT_EQ(files_of(out), (Files{{"a.txt", "a " + text}, {"b.txt", "b " + text}, {"notes.md", "notes"}}));
  }
}

// A library may leave a file of its own beside the one that it was asked to write. Among other files the set is moved
// file by file, and the temporary folder cannot be removed while such a file is in it.
TEST_F(PendingFolderTest, AFileBesideTheSetIsKeptUnlessItsNameIsTaken) {
  const fs::path out = folder_ / "out";
  fs::create_directory(out);
  std::ofstream(out / "notes.md") << "notes";
  PendingFolder set(out, {"a.txt"});
  write_file_atomically(set / "a.txt", "a 1");
  const fs::path temporary = (set / "a.txt").file.parent_path();
  std::ofstream(temporary / "a.txt-journal") << "journal";
  set.commit();
  EXPECT_EQ(files_of(out), (Files{{"a.txt", "a 1"}, {"a.txt-journal", "journal"}, {"notes.md", "notes"}}));
  EXPECT_EQ(files_of(folder_), (Files{{"out", "<folder>"}}));
}

// The root of a file system cannot be exchanged, and neither can a folder whose parent folder may not be written, or
// whose names may not be read: the files are moved one by one.
TEST_F(PendingFolderTest, AFolderThatCannotBeExchangedTakesTheSetFileByFile) {
  const auto same_folder_holds = [](const fs::path& out, const std::string& name) {
    struct stat before = {}, after = {};
    EXPECT_EQ(::stat(out.c_str(), &before), 0);
    for (const char* mark : {"1", "2"}) {
      PendingFolder set(out, {name});
      write_file_atomically(set / name, mark);
      set.commit();
      EXPECT_EQ(read_file(out / name, 10), mark);
    }
    EXPECT_EQ(::stat(out.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
  };
  if (struct stat root = {}, shared = {}; ::stat("/dev", &root) == 0 && ::stat("/dev/shm", &shared) == 0 &&
                                          root.st_dev != shared.st_dev && ::access("/dev/shm", W_OK | X_OK) == 0) {
    const std::string name = folder_.filename().string();
    same_folder_holds("/dev/shm", name);
    EXPECT_TRUE(fs::remove(fs::path("/dev/shm") / name));
  } else {
    std::cout << "not tested: /dev/shm is not the root of a file system here\n";
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root may act as another user";
  const fs::path fixed = folder_ / "fixed" / "out", unread = folder_ / "open" / "out";
  for (const fs::path& out : {fixed, unread}) {
    fs::create_directories(out);
    ASSERT_EQ(::chmod(out.c_str(), 0777), 0);
  }
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(unread.parent_path().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(unread.c_str(), 0733), 0);
  const AsUser user(1234);
  same_folder_holds(fixed, "a.txt");
  same_folder_holds(unread, "a.txt");
}

// A program in the folder would otherwise be left in a folder without a name.
TEST_F(PendingFolderTest, TheCurrentFolderIsNotExchanged) {
  const fs::path before = fs::current_path();
  const fs::path out = folder_ / "out";
  write_set(out, "1");
  fs::current_path(out);
  struct stat old = {}, now = {};
  ASSERT_EQ(::stat(".", &old), 0);
  write_set(".", "2");
  ASSERT_EQ(::stat(out.c_str(), &now), 0);
  fs::current_path(before);
  EXPECT_EQ(old.st_ino, now.st_ino);
  EXPECT_EQ(files_of(out), set_of("2"));
}

// Moving it away would remove what is in it. A move that fails is tested with injected faults (tests/attack).
TEST_F(PendingFolderTest, AFolderInPlaceOfAFileIsRejectedAndTheOldSetStays) {
  const fs::path out = folder_ / "out";
  write_set(out, "1", false);
  fs::create_directories(out / "trace" / "inside");
  EXPECT_EQ(message([&] { write_set(out, "2"); }), out.string() + " rejected: cannot be written: Is a directory");
  EXPECT_EQ(files_of(out), (Files{{"a.txt", "a 1"}, {"b.txt", "b 1"}, {"trace", "<folder>"}}));
  EXPECT_TRUE(fs::exists(out / "trace" / "inside"));
  EXPECT_EQ(files_of(folder_), (Files{{"out", "<folder>"}}));
}

TEST_F(PendingFolderTest, KeepsTheModeOfTheFolderAndOfItsFiles) {
  const fs::path out = folder_ / "out";
  write_set(out, "1");
  ASSERT_EQ(::chmod(out.c_str(), 0751), 0);
  ASSERT_EQ(::chmod((out / "a.txt").c_str(), 0604), 0);
  write_set(out, "2");
  struct stat folder = {}, file = {};
  ASSERT_EQ(::stat(out.c_str(), &folder), 0);
  ASSERT_EQ(::stat((out / "a.txt").c_str(), &file), 0);
  EXPECT_EQ(folder.st_mode & 07777U, 0751u);
  EXPECT_EQ(file.st_mode & 07777U, 0604u);
}

TEST_F(PendingFolderTest, ALinkToTheFolderIsFollowedAndStays) {
  write_set(folder_ / "real", "1");
  fs::create_directory_symlink("real", folder_ / "link");
  write_set(folder_ / "link", "2");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(files_of(folder_ / "real"), set_of("2"));
}

TEST_F(PendingFolderTest, MessagesNameTheFinalFolder) {
  std::ofstream(folder_ / "file") << "x";
  const std::string file = (folder_ / "file").string();
  EXPECT_EQ(message([&] { PendingFolder set(file, {"a"}); }), file + " rejected: cannot be written: Not a directory");
  EXPECT_EQ(message([&] { PendingFolder set(file + "/deeper", {"a"}); }),
            file + "/deeper rejected: cannot be written: Not a directory");
  PendingFolder set(folder_ / "out", {"a"});
  fs::create_directory((set / "a").file);
  EXPECT_EQ(message([&] { write_file_atomically(set / "a", "x"); }),
            (folder_ / "out" / "a").string() + " rejected: is a folder: name a file in it");
}

// Each reader sees one set; at the end one of the sets is there, whole.
TEST_F(PendingFolderTest, SetsWrittenAtTheSameTimeDoNotMix) {
  for (const bool has_other_files : {false, true}) {
    const fs::path out = folder_ / (has_other_files ? "shared" : "own");
    write_set(out, "0");
    if (has_other_files) std::ofstream(out / "notes.md") << "notes";
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer) {
      writers.emplace_back([&out, writer] {
        for (int i = 0; i < 25; ++i) write_set(out, std::to_string(writer) + "." + std::to_string(i));
      });
    }
    for (std::thread& writer : writers) writer.join();
    Files found = files_of(out);
    found.erase("notes.md");
    EXPECT_EQ(found, set_of(found["a.txt"].substr(2)));
  }
  EXPECT_EQ(files_of(folder_), (Files{{"own", "<folder>"}, {"shared", "<folder>"}}));
}

std::atomic<int> signals_handled = 0;

// The wait for another program's set goes on after a signal. When it ends, the folder may have been removed.
TEST_F(PendingFolderTest, ASetWaitsForTheLockThroughSignalsAndForAFolderThatIsGone) {
  using namespace std::chrono_literals;
  const fs::path out = folder_ / "out";
  write_set(out, "1");
  const int lock = ::open(out.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  struct sigaction before = {}, interrupting = {};  // without SA_RESTART
  interrupting.sa_handler = [](int) { ++signals_handled; };
  ASSERT_EQ(::sigaction(SIGUSR1, &interrupting, &before), 0);
  std::atomic<bool> is_written = false;
  std::thread writer([&] {
    write_set(out, "2");
    is_written = true;
  });
  for (int i = 0; i < 200; ++i) {  // it waits after the first few of these milliseconds
    EXPECT_EQ(::pthread_kill(writer.native_handle(), SIGUSR1), 0);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(is_written);
  EXPECT_GT(signals_handled, 0);
  EXPECT_EQ(files_of(out), set_of("1"));
  fs::remove_all(out);
  ::close(lock);
  writer.join();
  EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(files_of(out), set_of("2"));
  EXPECT_EQ(files_of(folder_), (Files{{"out", "<folder>"}}));
}

TEST_F(PendingFolderTest, ASignalHandlerRemovesTheTemporaryFolderWithItsFiles) {
  PendingFolder set(folder_ / "out", {"a.txt", "b.txt"});
  write_file_atomically(set / "a.txt", "a");
  const PendingFile half(set / "b.txt");
  const TemporaryFolder work;
  std::ofstream(work / "run.kvt") << "x";
  remove_pending_files();
  EXPECT_EQ(files_of(folder_), Files{});
  EXPECT_FALSE(fs::exists(work / "run.kvt"));
  EXPECT_FALSE(fs::exists((work / "run.kvt").parent_path()));
}

TEST_F(PendingFolderTest, ATemporaryFolderThatCannotBeMadeIsRejectedInWords) {
  const char* const set = std::getenv("TMPDIR");
  const std::string before = set != nullptr ? set : "";
  const auto within = [](const fs::path& parent) {
    ::setenv("TMPDIR", parent.c_str(), 1);
    return message([] { const TemporaryFolder work; });
  };
  EXPECT_EQ(within(folder_ / "none"),
            "temporary folder rejected: No such file or directory: set TMPDIR to a folder that can be written");
  EXPECT_EQ(within("/dev/null"),
            "temporary folder rejected: Not a directory: set TMPDIR to a folder that can be written");
  EXPECT_EQ(within("/proc"), "/proc rejected: no temporary folder can be made: No such file or directory");
  set != nullptr ? ::setenv("TMPDIR", before.c_str(), 1) : ::unsetenv("TMPDIR");
}

TEST_F(PendingFolderTest, ATemporaryFolderIsPrivateAndRemovedWithAllInIt) {
  fs::path path;
  {
    const TemporaryFolder work;
    path = (work / "x").parent_path();
    struct stat status = {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700u);
    fs::create_directories(work / "sub" / "sub");
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace kvscope::pending_folder_test
