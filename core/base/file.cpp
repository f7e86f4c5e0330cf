#include "core/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/detail/pending_entry.h"
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

 private:
  int fd_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  const Descriptor file(detail::open_retrying(path.c_str(), O_RDONLY | O_CLOEXEC));
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
  bytes.resize(used);
  return bytes;
}

std::string read_file_start(const std::filesystem::path& path, std::size_t bytes) {
  const Descriptor file(detail::open_retrying(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) reject(path, "cannot be read: " + system_message(errno));
  std::string start(bytes, '\0');
  std::size_t used = 0;
  while (used < bytes) {
    const ssize_t got = ::read(file.get(), start.data() + used, bytes - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) reject(path, "cannot be read: " + system_message(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  start.resize(used);
  return start;
}

}  // namespace kvscope
