#include "core/base/detail/pending_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::detail {
namespace {

// Fixed memory, because a signal handler reads it. `ready` publishes the other members.
struct PendingEntry {
  std::atomic<bool> taken{false};
  std::atomic<bool> ready{false};
  pid_t process = 0;  // a child after fork() removes nothing of its parent's
  bool is_folder = false;
  char name[4096];
};
PendingEntry pending_entries[64];
static_assert(std::atomic<bool>::is_always_lock_free);

// Of a kernel's directory entry only the name and the lengths are needed (getdents64(2)).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

}  // namespace

std::string random_entry_name() {
  std::array<std::uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    // No random source in this system: time, process and a counter, which O_EXCL makes safe.
    static std::atomic<std::uint64_t> count{0};
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    bits[0] = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
    bits[1] = static_cast<std::uint64_t>(::getpid()) << 32 | count.fetch_add(1);
  }
  return fmt::format(".kvscope-{:016x}{:016x}.tmp", bits[0], bits[1]);
}

int remember_pending(const std::string& path, bool is_folder) noexcept {
  if (path.size() >= sizeof(PendingEntry::name)) return -1;
  int slot = 0;
  for (PendingEntry& entry : pending_entries) {
    if (!entry.taken.exchange(true)) {
      entry.process = ::getpid();
      entry.is_folder = is_folder;
      std::memcpy(entry.name, path.c_str(), path.size() + 1);
      entry.ready = true;
      return slot;
    }
    ++slot;
  }
  return -1;
}

void forget_pending(int slot) noexcept {
  if (slot < 0) return;
  pending_entries[slot].ready = false;
  pending_entries[slot].taken = false;
}

void remove_flat_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder >= 0) {
    alignas(DirectoryEntry) char buffer[4096];
    for (long got = 0; (got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
        static_cast<void>(::unlinkat(folder, entry->name, 0));  // fails for "." and ".."
        at += entry->length;
      }
    }
    ::close(folder);
  }
  ::rmdir(path);
}

int open_retrying(const char* path, int flags, mode_t mode) noexcept {
  int descriptor = -1;
  do {
    descriptor = ::open(path, flags, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

int sync_descriptor(int descriptor) noexcept {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == EROFS ? 0 : errno;
  }
  return 0;
}

int sync_folder(const std::filesystem::path& folder) noexcept {
  const int descriptor = open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may be written but not read (mode 0300) cannot be opened, and so cannot be synced.
  if (descriptor < 0) return errno == EACCES ? 0 : errno;
  const int error = sync_descriptor(descriptor);
  ::close(descriptor);
  return error;
}

int write_all(int descriptor, const char* bytes, std::size_t count) noexcept {
  while (count > 0) {
    const ssize_t written = ::write(descriptor, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
  return 0;
}

void keep_access(int descriptor, const struct stat& old) noexcept {
  struct stat now = {};
  if (::fstat(descriptor, &now) != 0) return;
  bool is_owner_kept = now.st_uid == old.st_uid && now.st_gid == old.st_gid;
  if (!is_owner_kept) {
    is_owner_kept = ::fchown(descriptor, old.st_uid, old.st_gid) == 0;
    if (!is_owner_kept) static_cast<void>(::fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) == 0);
  }
  constexpr mode_t kSetIds = S_ISUID | S_ISGID;
  const mode_t mode = old.st_mode & 07777U;
  static_cast<void>(::fchmod(descriptor, is_owner_kept ? mode : mode & ~kSetIds));
}

std::filesystem::path follow_links(const std::filesystem::path& path) {
  constexpr int kMaxLinks = 40;  // as Linux
  std::filesystem::path at = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) return at;  // no link; any other error is found when the file is opened
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  throw InputError(path.string(), "", "cannot be written: " + system_message(ELOOP));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

}  // namespace kvscope::detail

namespace kvscope {

void remove_pending_files() noexcept {
  const pid_t process = ::getpid();
  for (const bool are_folders : {false, true}) {
    for (detail::PendingEntry& entry : detail::pending_entries) {
      if (!entry.ready || entry.process != process || entry.is_folder != are_folders) continue;
      if (are_folders) {
        detail::remove_flat_folder(entry.name);
      } else {
        ::unlink(entry.name);
      }
    }
  }
}

}  // namespace kvscope
