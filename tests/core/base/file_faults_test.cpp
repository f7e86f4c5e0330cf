// Files and folders of files whose system calls fail: each call of each operation fails once with each error. The fault is reported with
// the file and the system's words and leaves the old content or the new one, or it has no effect. No temporary file is left.
// The same for each allocation, which ends in std::bad_alloc.
//
// The operation runs in a process of its own, this program again, into which tests/attack/faults_inject.cpp is preloaded.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::file_faults_test {
namespace {

namespace fs = std::filesystem;
using Content = std::map<std::string, std::string>;  // by path below the folder; folders are left out

constexpr std::int64_t kLongest = 1 << 20;  // [bytes] of a file here
const std::string kLarge(100'000, 'x');     // more than the buffer of a PendingFile

// --- the operations, in the child ---------------------------------------------------------------------------------------

void write_set(const fs::path& folder) {
  PendingFolder set(folder, {"a", "b"});
  write_file_atomically(set / "a", "new a");
  write_file_atomically(set / "b", "new b");
  set.commit();
}

void write_parts(const fs::path& path) {
  PendingFile file(path);
  file.write("a part, ");
  file.write(kLarge);
  file.commit();
}

void require(bool is_right) {
  if (!is_right) std::exit(3);
}

// The pipe's other end is opened by a call that is not counted, so that no fault meets it.
void write_pipe(const fs::path& pipe) {
  const auto other_end = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, pipe.c_str(), O_RDWR | O_CLOEXEC));
  require(other_end >= 0);
  write_file_atomically(pipe, "new");
  char bytes[8] = {};
  require(::read(other_end, bytes, sizeof bytes) == 3 && std::string_view(bytes) == "new");
}

const std::map<std::string, void (*)(const fs::path&)> kOperations{
    {"write", [](const fs::path& folder) { write_file_atomically(folder / "f", "new"); }},
    {"write in parts", [](const fs::path& folder) { write_parts(folder / "f"); }},
    {"write to a pipe", [](const fs::path& folder) { write_pipe(folder / "pipe"); }},
    {"read", [](const fs::path& folder) { require(read_file(folder / "f", kLongest) == "old"); }},
    {"read the start", [](const fs::path& folder) { require(read_file_start(folder / "f", 2) == "ol"); }},
    {"new folder", [](const fs::path& folder) { write_set(folder / "made" / "here" / "set"); }},
    {"replaced folder", [](const fs::path& folder) { write_set(folder / "set"); }},
    {"folder of others", [](const fs::path& folder) { write_set(folder / "others"); }},
};

constexpr int kOutOfMemory = 4;

// Runs only in the child. Without an operation it does nothing: the allocations of the program itself are counted.
TEST(FileFaultsChild, DISABLED_Operation) {
  const char* const operation = std::getenv("KVSCOPE_OPERATION");
  try {
    if (*operation != '\0') kOperations.at(operation)(std::getenv("KVSCOPE_FOLDER"));
  } catch (const std::bad_alloc&) {
    std::exit(kOutOfMemory);
  } catch (const InputError& error) {
    std::cerr << error.what() << std::flush;
    std::exit(2);
  }
  std::exit(0);
}

// --- the faults, in the parent ------------------------------------------------------------------------------------------

struct Ended {
  int code;
  std::string message;
};

// The errors that a call may report (Linux manual pages); the first ones must be reported, the others have no effect.
struct Errors {
  const char* call;
  std::vector<std::pair<const char*, int>> reported;
  std::vector<const char*> harmless;
};
const std::vector<Errors> kErrors{{"open", {{"EIO", EIO}, {"EACCES", EACCES}}, {"EINTR"}},
                                  {"read", {{"EIO", EIO}}, {"EINTR", "SHORT"}},
                                  {"write", {{"ENOSPC", ENOSPC}, {"EIO", EIO}}, {"EINTR", "SHORT"}},
                                  {"fsync", {{"EIO", EIO}, {"ENOSPC", ENOSPC}}, {"EINTR", "EINVAL", "EROFS"}},
                                  {"close", {{"EIO", EIO}}, {"EINTR"}},
                                  {"rename",
                                   {{"EIO", EIO},
                                    {"ENOSPC", ENOSPC},
                                    {"EINVAL", EINVAL},
                                    {"ENOSYS", ENOSYS},
                                    {"EOPNOTSUPP", EOPNOTSUPP},
                                    {"EBUSY", EBUSY}},
                                   {}},
                                  {"mkdir", {{"ENOSPC", ENOSPC}, {"EACCES", EACCES}}, {}}};

class FileFaults : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifndef KVSCOPE_FAULTS_INJECT
    GTEST_SKIP() << "the allocator of the sanitizers cannot be replaced, so no call can be made to fail";
#endif
    std::string pattern = (fs::temp_directory_path() / "kvscope-faults-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    work_ = pattern;
  }
  void TearDown() override {
    if (!work_.empty()) fs::remove_all(work_);
  }

  [[nodiscard]] fs::path folder() const {
    return work_ / "files";
  }
  static void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  [[nodiscard]] static std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Content reset() const {
    fs::remove_all(folder());
    for (const char* made : {"set", "others"}) fs::create_directories(folder() / made);
    put(folder() / "f", "old");
    put(folder() / "set" / "a", "old a");
    put(folder() / "set" / "b", "old b");
    put(folder() / "others" / "a", "old a");
    put(folder() / "others" / "notes", "mine");
    EXPECT_EQ(::mkfifo((folder() / "pipe").c_str(), 0600), 0);
    return content();
  }
  [[nodiscard]] Content content() const {
    Content found;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      if (entry.is_regular_file()) found[fs::relative(entry.path(), folder()).string()] = content_of(entry.path());
    }
    return found;
  }

  [[nodiscard]] Ended run(const std::string& fault) const {
    return run(fault, GetParam());
  }
  [[nodiscard]] Ended run(const std::string& fault, const std::string& operation) const {
#ifdef KVSCOPE_FAULTS_INJECT
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("LD_PRELOAD", KVSCOPE_FAULTS_INJECT, 1);
      ::setenv("FAULTS_UNDER", folder().c_str(), 1);
      if (fault.empty()) {
        ::setenv("FAULTS_COUNTS", (work_ / "counts").c_str(), 1);
      } else {
        ::setenv("FAULTS_AT", fault.c_str(), 1);
      }
      ::setenv("KVSCOPE_OPERATION", operation.c_str(), 1);
      ::setenv("KVSCOPE_FOLDER", folder().c_str(), 1);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(97);
      if (std::freopen((work_ / "message").c_str(), "w", stderr) == nullptr) ::_exit(97);
      ::execl("/proc/self/exe", "base_test", "--gtest_brief=1", "--gtest_also_run_disabled_tests",
              "--gtest_filter=FileFaultsChild.*", nullptr);
      ::_exit(98);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(work_ / "message")};
#else
    return {98, fault + operation};
#endif
  }

  [[nodiscard]] std::map<std::string, int> counts() const {
    std::map<std::string, int> found;
    std::ifstream in(work_ / "counts");
    std::string call;
    for (int number = 0; in >> call >> number;) found[call] = number;
    return found;
  }

  fs::path work_;
};

// A folder that cannot be opened is not locked and keeps its access rights; a descriptor that was only read may be
// closed with an error; a file system that cannot exchange two names (EINVAL, ENOSYS, EOPNOTSUPP), or a folder that is
// in use (EBUSY), takes the files one by one. Of a folder with other files, each file is the old or the new one.
TEST_P(FileFaults, AreReportedAndLeaveTheOldOrTheNewContent) {
  const Content old = reset();
  const Ended good = run("");
  ASSERT_EQ(good.code, 0) << good.message;
  const Content whole = content();
  int reported = 0;
  for (const auto& counted : counts()) {
    const std::string& call = counted.first;
    const int number = counted.second;
    const auto errors = std::find_if(kErrors.begin(), kErrors.end(), [&](const Errors& e) { return call == e.call; });
    if (errors == kErrors.end()) continue;
    for (int at = 1; at <= number; ++at) {
      for (const auto& [name, error] : errors->reported) {
        SCOPED_TRACE(fmt::format("{}:{}:{}", call, name, at));
        static_cast<void>(reset());
        const Ended ended = run(fmt::format("{}:{}:{}", call, name, at));
        const Content left = content();
        for (const auto& [path, bytes] : left) {
          EXPECT_TRUE((old.contains(path) && old.at(path) == bytes) ||
                      (whole.contains(path) && whole.at(path) == bytes))
              << path;
        }
        if (ended.code == 0) {
          EXPECT_TRUE(call == "open" || call == "close" || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ||
                      error == EBUSY);
          EXPECT_EQ(left, whole);
          continue;
        }
        ++reported;
        EXPECT_EQ(ended.code, 2);
        EXPECT_THAT(ended.message, testing::HasSubstr(folder().string()));
        EXPECT_THAT(ended.message, testing::EndsWith(system_message(error)));
        EXPECT_THAT(ended.message, testing::Not(testing::HasSubstr(".kvscope-")));
        if (GetParam() != "folder of others") {
          EXPECT_TRUE(left == old || left == whole);
        }
      }
      for (const char* name : errors->harmless) {
        SCOPED_TRACE(fmt::format("{}:{}:{}", call, name, at));
        static_cast<void>(reset());
        const Ended ended = run(fmt::format("{}:{}:{}", call, name, at));
        EXPECT_EQ(ended.code, 0) << ended.message;
        EXPECT_EQ(content(), whole);
      }
    }
  }
  EXPECT_GT(reported, 0);
}

// A path whose replace_filename runs out of memory, in libstdc++ 12, ends the program when it is destroyed.
TEST_P(FileFaults, AFailedAllocationIsAnExceptionAndLeavesTheOldOrTheNewContent) {
  const Content old = reset();
  ASSERT_EQ(run("", "").code, 0);
  const int before = counts().at("malloc");
  ASSERT_EQ(run("").code, 0);
  const int number = counts().at("malloc");
  const Content whole = content();
  int failed = 0;
  for (int at = before + 1; at <= number; ++at) {
    for (const char* later : {"", "+"}) {
      SCOPED_TRACE(fmt::format("malloc:ENOMEM:{}{}", at, later));
      static_cast<void>(reset());
      const Ended ended = run(fmt::format("malloc:ENOMEM:{}{}", at, later));
      const Content left = content();
      EXPECT_THAT(ended.code, testing::AnyOf(0, 2, kOutOfMemory)) << ended.message;
      if (ended.code == 0) {
        EXPECT_EQ(left, whole);
      } else if (GetParam() != "folder of others") {
        EXPECT_TRUE(left == old || left == whole);
      }
      failed += ended.code == kOutOfMemory ? 1 : 0;
    }
  }
  EXPECT_GT(failed, 0);
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : kOperations) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Operations, FileFaults, testing::ValuesIn(operations()), [](const auto& of) {
  std::string name = of.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace kvscope::file_faults_test
