#include "core/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/core/base/as_user.h"

namespace kvscope::file_test {
namespace {

namespace fs = std::filesystem;
using test::AsUser;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kvscope-file-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const fs::path& path, std::string_view bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.insert(entry.path().filename().string());
    return out;
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

TEST_F(FileTest, ReadsEveryByteUpToTheBoundAndRejectsOneMore) {
  const fs::path path = folder_ / "a.bin";
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 100000u}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    put(path, bytes);
    const auto bound = static_cast<std::int64_t>(size);
    EXPECT_EQ(read_file(path, bound), bytes) << size;
    EXPECT_EQ(read_file(path, bound + 1), bytes) << size;
    if (size > 0) {
      EXPECT_EQ(message([&] { (void)read_file(path, bound - 1); }),
                path.string() + " rejected: " + std::to_string(size) + " bytes, but at most " +
                    std::to_string(bound - 1) + " are read: split it or give a smaller one");
    }
  }
}

// The start of a file shorter than what is asked for is the whole file: formats are told apart by their first bytes.
TEST_F(FileTest, TheStartIsAtMostTheFile) {
  const fs::path path = folder_ / "a.bin";
  put(path, "PK");
  EXPECT_EQ(read_file_start(path, 0), "");
  EXPECT_EQ(read_file_start(path, 1), "P");
  EXPECT_EQ(read_file_start(path, 2), "PK");
  EXPECT_EQ(read_file_start(path, 8), "PK");
  EXPECT_EQ(message([&] { (void)read_file_start(folder_ / "none", 8); }),
            (folder_ / "none").string() + " rejected: cannot be read: No such file or directory");
}

TEST_F(FileTest, AMissingFileAndAFolderAreRejectedInWords) {
  EXPECT_EQ(message([&] { (void)read_file(folder_ / "none", 10); }),
            (folder_ / "none").string() + " rejected: cannot be read: No such file or directory");
  EXPECT_EQ(message([&] { (void)read_file(folder_, 10); }),
            folder_.string() + " rejected: is a folder: name a file in it");
}

// A pipe and a device have no size to check beforehand: the limit must hold while reading.
TEST_F(FileTest, TheBoundHoldsForPipesAndEndlessDevices) {
  EXPECT_THAT(message([] { (void)read_file("/dev/zero", 100000); }),
              HasSubstr("more than 100000 bytes, but at most 100000"));
  EXPECT_EQ(read_file("/dev/null", 0), "");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { put(pipe, std::string(70000, 'x')); });
  EXPECT_EQ(read_file(pipe, 70000).size(), 70000u);
  writer.join();
}

TEST_F(FileTest, WritingReplacesTheWholeFileAndLeavesNothingBeside) {
  const fs::path path = folder_ / "out.json";
  write_file_atomically(path, "a longer first version");
  write_file_atomically(path, "short");
  EXPECT_EQ(read_file(path, 100), "short");
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path, 100), "");
  EXPECT_EQ(names(), (std::set<std::string>{"out.json"}));
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFileAndLeavesNothingBeside) {
  EXPECT_EQ(message([&] { write_file_atomically(folder_ / "no" / "such" / "f", "x"); }),
            (folder_ / "no" / "such" / "f").string() + " rejected: cannot be written: No such file or directory");
  EXPECT_EQ(message([&] { write_file_atomically(folder_, "x"); }),
            folder_.string() + " rejected: is a folder: name a file in it");
  EXPECT_THAT(message([&] { write_file_atomically(folder_ / "", "x"); }), HasSubstr("add one after the folder"));
  EXPECT_TRUE(names().empty());
}

// When the program runs as root, renaming over a device would replace the device for all users of the machine.
TEST_F(FileTest, ADeviceIsNotReplacedByAFile) {
  write_file_atomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(message([] { write_file_atomically("/dev/full", "x"); }), HasSubstr("No space left on device"));
  EXPECT_THAT(message([] { PendingFile pending("/dev/null"); }), HasSubstr("is a device or a pipe"));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message([&] { PendingFile pending(pipe); }), HasSubstr("is a device or a pipe"));
}

TEST_F(FileTest, APendingFileAppearsOnCommitAndVanishesWithoutOne) {
  const fs::path path = folder_ / "trace.db";
  put(path, "old");
  {
    const PendingFile pending(path);
    EXPECT_EQ(pending.temporary().parent_path(), folder_) << "a rename across file systems would not be atomic";
    put(pending.temporary(), "half");
  }
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(names(), (std::set<std::string>{"trace.db"}));
  {
    PendingFile pending(path);
    put(pending.temporary(), "new");
    pending.commit();
  }
  EXPECT_EQ(read_file(path, 100), "new");
  EXPECT_EQ(names(), (std::set<std::string>{"trace.db"}));
}

TEST_F(FileTest, TwoPendingFilesOfOneNameDoNotMeet) {
  const fs::path path = folder_ / "f";
  PendingFile a(path), b(path);
  EXPECT_NE(a.temporary(), b.temporary());
  put(a.temporary(), "a");
  put(b.temporary(), "b");
  b.commit();
  a.commit();
  EXPECT_EQ(read_file(path, 10), "a") << "the last to commit";
}

TEST_F(FileTest, CommittingAFileThatIsGoneIsRejected) {
  EXPECT_THAT(message([&] {
                PendingFile pending(folder_ / "f");
                fs::remove(pending.temporary());
                pending.commit();
              }),
              HasSubstr("cannot be written: No such file"));
  EXPECT_TRUE(names().empty());
}

// `--out /dev/stdout | program` and `--out >(program)`: the bytes go through, and the pipe stays a pipe.
TEST_F(FileTest, APipeReceivesTheBytes) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_file(pipe, 1 << 20); });
  write_file_atomically(pipe, std::string(200000, 'p'));
  reader.join();
  EXPECT_EQ(received, std::string(200000, 'p'));
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// `--out /dev/stdout >file`, and a file that is standard output under another name: a rename would leave the shell's
// file without the bytes. With standard output closed, a file is a file.
TEST_F(FileTest, StandardOutputReceivesTheBytesAfterWhatItHolds) {
  const fs::path path = folder_ / "f";
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO), file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(file, STDOUT_FILENO), STDOUT_FILENO);
  EXPECT_EQ(::write(STDOUT_FILENO, "head, ", 6), 6);
  write_file_atomically("/dev/stdout", "middle, ");
  write_file_atomically(path, "end");
  ::close(file);
  ::close(STDOUT_FILENO);
  const std::string redirected = read_file(path, 100);
  write_file_atomically(path, "new");
  ASSERT_EQ(::dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
  ::close(kept);
  EXPECT_EQ(redirected, "head, middle, end");
  EXPECT_EQ(read_file(path, 100), "new");
  EXPECT_EQ(names(), std::set<std::string>{"f"});
}

// Processes of different containers that share a volume may have the same process number. A name of process number and
// counter would be the same in both, and each would remove the other's file.
TEST_F(FileTest, TemporaryNamesDoNotDependOnTheProcess) {
  std::set<std::string> chosen;
  for (int i = 0; i < 100; ++i) {
    const PendingFile pending(folder_ / "f");
    const std::string name = pending.temporary().filename().string();
    EXPECT_THAT(name, ::testing::MatchesRegex("\\.kvscope-[0-9a-f]{32}\\.tmp"));
    for (std::size_t at = 9; at + 8 <= 41; at += 8) chosen.insert(name.substr(at, 8));
  }
  EXPECT_GT(chosen.size(), 395u);  // each quarter of each name is random: none is a process number or a counter
}

// The temporary file is created by the constructor, so that no other program can put a file or a link in its place.
TEST_F(FileTest, TheTemporaryFileExistsFromTheBeginningAndIsARegularFile) {
  const PendingFile pending(folder_ / "f");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(pending.temporary())));
  EXPECT_EQ(fs::file_size(pending.temporary()), 0u);
}

TEST_F(FileTest, PartsOfAFileAreWrittenInOrderWhateverTheirSize) {
  const fs::path path = folder_ / "parts";
  std::string all;
  {
    PendingFile pending(path);
    for (const std::size_t size : {0u, 1u, 65535u, 65536u, 65537u, 3u, 200000u, 1u}) {
      const std::string part(size, static_cast<char>('a' + all.size() % 26));
      all += part;
      pending.write(part);
    }
    pending.commit();
  }
  EXPECT_EQ(read_file(path, 1 << 20), all);
}

// 255 bytes is the longest name of Linux: a temporary name that contains it would be too long.
TEST_F(FileTest, NamesOfUpTo255BytesAreWritten) {
  for (const std::size_t length : {1u, 200u, 254u, 255u}) {
    const fs::path path = folder_ / std::string(length, 'n');
    write_file_atomically(path, "x");
    write_file_atomically(path, "longest");
    EXPECT_EQ(read_file(path, 100), "longest") << length;
  }
  EXPECT_THAT(message([&] { write_file_atomically(folder_ / std::string(256, 'n'), "x"); }),
              HasSubstr("cannot be written: File name too long"));
  EXPECT_EQ(names().size(), 4u);
}

// The temporary file's path may be longer than the final one: 4095 bytes is the longest path of Linux. Of such a path
// nothing may be kept in the list of 4096 bytes that the signal handler reads.
TEST_F(FileTest, APathWhoseTemporaryNameIsTooLongIsRejectedByItsOwnName) {
  fs::path folder = folder_;
  while (folder.native().size() + 2 < 4090) {
    folder /= std::string(std::min<std::size_t>(200, 4090 - 1 - folder.native().size()), 'd');
  }
  const fs::path path = folder / "f";
  ASSERT_LT(path.native().size(), 4096u);
  EXPECT_EQ(message([&] { write_file_atomically(path, "x"); }),
            path.string() + " rejected: cannot be written: File name too long");
}

TEST_F(FileTest, ALinkIsFollowedAndStays) {
  fs::create_directory(folder_ / "data");
  put(folder_ / "data" / "real.txt", "old");
  fs::create_symlink("data/real.txt", folder_ / "link");
  fs::create_symlink("link", folder_ / "link_of_link");
  write_file_atomically(folder_ / "link_of_link", "new");
  EXPECT_EQ(read_file(folder_ / "data" / "real.txt", 100), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link_of_link"));

  fs::create_symlink("data/not_yet.txt", folder_ / "dangling");
  write_file_atomically(folder_ / "dangling", "made");
  EXPECT_EQ(read_file(folder_ / "data" / "not_yet.txt", 100), "made");
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));

  fs::create_symlink(folder_ / "data" / "real.txt", folder_ / "absolute");
  write_file_atomically(folder_ / "absolute", "newer");
  EXPECT_EQ(read_file(folder_ / "data" / "real.txt", 100), "newer");
  EXPECT_TRUE(fs::is_symlink(folder_ / "absolute"));

  fs::create_symlink("round", folder_ / "about");
  fs::create_symlink("about", folder_ / "round");
  EXPECT_THAT(message([&] { write_file_atomically(folder_ / "round", "x"); }),
              HasSubstr("cannot be written: Too many levels of symbolic links"));
}

TEST_F(FileTest, ANameWithoutAFolderIsWrittenInTheCurrentOne) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("plain", "here");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "plain", 100), "here");
  EXPECT_EQ(names(), std::set<std::string>{"plain"});
}

// A signal removes at most 64 temporary files. More may be written at the same time.
TEST_F(FileTest, AnyNumberOfFilesIsPendingAtOnce) {
  std::vector<std::unique_ptr<PendingFile>> files;
  for (int i = 0; i < 70; ++i) {
    files.push_back(std::make_unique<PendingFile>(folder_ / std::to_string(i)));
    files.back()->write(std::to_string(i));
  }
  for (const auto& file : files) file->commit();
  files.clear();
  EXPECT_EQ(names().size(), 70u);
  for (int i = 0; i < 70; ++i) EXPECT_EQ(read_file(folder_ / std::to_string(i), 100), std::to_string(i));
}

unsigned mode_of(const fs::path& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777U;
}

TEST_F(FileTest, AReplacedFileKeepsItsModeAndANewOneHasThatOfTheUmask) {
  const fs::path path = folder_ / "f";
  const mode_t umask_before = ::umask(027);
  write_file_atomically(path, "new");
  EXPECT_EQ(mode_of(path), 0640u);
  for (const unsigned mode : {0600u, 0644u, 0666u, 0755u, 0400u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    write_file_atomically(path, "replaced");
    EXPECT_EQ(mode_of(path), mode);
  }
  ::umask(umask_before);
}

// A private file must not be readable under its temporary name either.
TEST_F(FileTest, TheTemporaryFileOfAPrivateFileIsPrivate) {
  const fs::path path = folder_ / "f";
  put(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const PendingFile pending(path);
  EXPECT_EQ(mode_of(pending.temporary()), 0600u);
}

TEST_F(FileTest, AReplacedFileKeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
  const fs::path path = folder_ / "f";
  put(path, "old");
  ASSERT_EQ(::chown(path.c_str(), 1234, 2345), 0);
  ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
  write_file_atomically(path, "new");
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 2345u);
  EXPECT_EQ(status.st_mode & 07777U, 06755u);
}

// A group of its own, such as that of a folder shared in a team.
TEST_F(FileTest, AReplacedFileKeepsItsGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another group";
  const fs::path path = folder_ / "f";
  put(path, "old");
  ASSERT_EQ(::chown(path.c_str(), ::geteuid(), 2345), 0);
  write_file_atomically(path, "new");
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_EQ(status.st_gid, 2345u);
}

// In a folder that all may write, another user's program is replaced by a file of the writer. With the set-user-ID bit
// it would run as the writer for everyone.
TEST_F(FileTest, AFileOfAnotherUserIsReplacedWithoutItsSetIdBits) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may act as another user";
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const fs::path path = folder_ / "f";
  put(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
  {
    const AsUser user(1234);
    write_file_atomically(path, "new");
  }
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_mode & 07777U, 0755u);
  EXPECT_EQ(read_file(path, 10), "new");
}

// Computed bit by bit from the polynomial, without the code of the table-driven library.
std::uint32_t slow_crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

TEST(Crc32Test, IsTheOneOfZipFilesWholeOrInPieces) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u) << "the published check value";
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("", 0x12345678), 0x12345678u) << "nothing more changes nothing";
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(crc32(bytes), slow_crc32(bytes)) << i;
    const std::size_t cut = bytes.size() / 3;
    EXPECT_EQ(crc32(std::string_view(bytes).substr(cut), crc32(bytes.substr(0, cut))), slow_crc32(bytes)) << i;
    bytes += static_cast<char>(i * 37);
  }
}

// Long runs are folded 64 bytes at a time: lengths around multiples of 16 and 64, at addresses of every alignment, of
// bytes without a pattern, continued from a seed.
TEST(Crc32Test, IsTheSameForLongRunsAtEveryAlignment) {
  std::string bytes;
  std::uint32_t state = 12345;
  for (int i = 0; i < 1200; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  const std::string_view all = bytes;
  for (std::size_t start = 0; start < 17; ++start) {
    for (const std::size_t count : {63U, 64U, 65U, 79U, 80U, 81U, 127U, 128U, 143U, 144U, 145U, 1023U, 1024U, 1025U, 1100U}) {
      const std::string_view part = all.substr(start, count);
      EXPECT_EQ(crc32(part), slow_crc32(part)) << start << ' ' << count;
      EXPECT_EQ(crc32(part, crc32(all.substr(0, start))), slow_crc32(all.substr(0, start + count)));
    }
  }
}

// The work of the signal handler: the partial file is removed, the previous file stays, and a committed file is not
// changed.
TEST(RemovePendingFiles, RemovesWhatIsHalfWrittenAndNothingElse) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "kvscope_remove_pending";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  write_file_atomically(folder / "old.txt", "old");
  {
    PendingFile half(folder / "old.txt");
    std::ofstream(half.temporary()) << "ha";
    PendingFile whole(folder / "new.txt");
    std::ofstream(whole.temporary()) << "new";
    whole.commit();
    remove_pending_files();
    EXPECT_FALSE(std::filesystem::exists(half.temporary()));
  }
  EXPECT_EQ(read_file(folder / "old.txt", 100), "old");
  EXPECT_EQ(read_file(folder / "new.txt", 100), "new");
  // A child process leaves its parent's files alone.
  {
    const PendingFile ours(folder / "ours.txt");
    const pid_t child = ::fork();
    if (child == 0) {
      remove_pending_files();
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(std::filesystem::exists(ours.temporary()));
  }
  // Slots are reused: many more files than slots, one after the other.
  for (int i = 0; i < 100; ++i) write_file_atomically(folder / "many.txt", "x");
  PendingFile last(folder / "last.txt");
  std::ofstream(last.temporary()) << "la";
  remove_pending_files();
  EXPECT_FALSE(std::filesystem::exists(last.temporary()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kvscope::file_test
