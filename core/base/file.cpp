#include "core/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/errors.h"

namespace kvscope {
namespace {

[[noreturn]] void reject(const std::filesystem::path& path, const std::string& message) {
  throw InputError(path.string(), "", message);
}

[[noreturn]] void reject_size(const std::filesystem::path& path, std::string_view size, std::int64_t max_bytes) {
  reject(path, fmt::format("{} bytes, but at most {} are read: split it or give a smaller one", size, max_bytes));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // Closes before the destructor, because some errors are reported only by close().
  [[nodiscard]] int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_all(int fd, std::string_view bytes, const std::filesystem::path& shown) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) reject(shown, "cannot be written: " + system_message(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) reject(path, "cannot be read: " + system_message(errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) reject(path, "cannot be read: " + system_message(errno));
  if (S_ISDIR(status.st_mode)) reject(path, "is a folder: name a file in it");
  if (status.st_size > max_bytes) reject_size(path, std::to_string(status.st_size), max_bytes);

  // The size is a hint: a pipe has none, and a file may grow while it is read. Reading one byte past the limit detects
  // both.
  std::string bytes;
  std::size_t used = 0;
  const auto bound = static_cast<std::size_t>(max_bytes) + 1;
  for (;;) {
    if (used == bytes.size()) {
      const std::size_t wanted = used == 0 ? static_cast<std::size_t>(status.st_size) + 1 : used * 2;
      bytes.resize(std::min(bound, std::max<std::size_t>(wanted, 4096)));
    }
    if (used == bytes.size()) reject_size(path, fmt::format("more than {}", max_bytes), max_bytes);
    const ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) reject(path, "cannot be read: " + system_message(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  if (used > static_cast<std::size_t>(max_bytes)) reject_size(path, fmt::format("more than {}", max_bytes), max_bytes);
  bytes.resize(used);
  return bytes;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  PendingFile pending(path);
  Descriptor file(::open(pending.temporary().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) reject(path, "cannot be written: " + system_message(errno));
  write_all(file.get(), bytes, path);
  if (::fsync(file.get()) != 0 || file.close() != 0) reject(path, "cannot be written: " + system_message(errno));
  pending.commit();
}

namespace {

// Names of temporary files for the signal handler: fixed memory, each slot published by its flag. A file whose name is
// too long, or for which no slot is free, is removed only by its owner's destructor.
struct PendingName {
  std::atomic<bool> taken{false};
  std::atomic<bool> ready{false};
  char name[4096];
};
PendingName pending_names[8];
static_assert(std::atomic<bool>::is_always_lock_free);

void remember_pending(const std::string& name) {
  if (name.size() >= sizeof(PendingName::name)) return;
  for (PendingName& slot : pending_names) {
    if (slot.taken.exchange(true)) continue;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.ready = true;
    return;
  }
}

void forget_pending(const std::string& name) {
  for (PendingName& slot : pending_names) {
    if (slot.ready && name == slot.name) {
      slot.ready = false;
      slot.taken = false;
      return;
    }
  }
}

}  // namespace

void remove_pending_files() noexcept {
  for (PendingName& slot : pending_names) {
    if (slot.ready) ::unlink(slot.name);
  }
}

PendingFile::PendingFile(std::filesystem::path final_path) : final_(std::move(final_path)) {
  if (!final_.has_filename()) reject(final_, "is not a file name: add one after the folder");
  std::error_code error;
  const auto status = std::filesystem::status(final_, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    reject(final_, std::filesystem::is_directory(status) ? "is a folder: name a file in it"
                                                         : "is a device or a pipe: name a regular file");
  }
  static std::atomic<int> count{0};
  do {
    temporary_ = final_;
    temporary_.replace_filename(
        fmt::format(".{}.{}.{}.tmp", final_.filename().string(), ::getpid(), count.fetch_add(1)));
  } while (std::filesystem::exists(std::filesystem::symlink_status(temporary_, error)));
  remember_pending(temporary_.string());
}

PendingFile::~PendingFile() {
  std::error_code ignored;
  if (committed_) return;
  std::filesystem::remove(temporary_, ignored);
  forget_pending(temporary_.string());
}

void PendingFile::commit() {
  std::error_code error;
  std::filesystem::rename(temporary_, final_, error);
  if (error) reject(final_, "cannot be written: " + system_message(error.value()));
  forget_pending(temporary_.string());
  committed_ = true;
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t seed) {
  // zlib returns the start value for a null pointer and ignores the seed.
  if (bytes.empty()) return seed;
  return static_cast<std::uint32_t>(::crc32_z(seed, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace kvscope
