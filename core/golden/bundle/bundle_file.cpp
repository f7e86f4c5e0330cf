#include "core/golden/bundle/bundle_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/bundle/torch_save.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kStart = 16 << 10;    // [bytes] more than the header of an npy file
constexpr std::int64_t kBuffer = 256 << 10;  // [bytes]
static_assert(kStart >= static_cast<std::int64_t>(kMaxNpyHeader) + 12);

}  // namespace

std::string checked_start(const BundleFile& file, const std::filesystem::path& path, BundleFormat format) {
  const std::string source = path.string();
  const auto size = static_cast<std::uint64_t>(file.size());
  std::string start = file.read(0, kStart);
  if (is_torch_save(start)) throw InputError(source, "", "was written by torch.save, as " + torch_save_advice(path));
  if (format == BundleFormat::npy) {
    check_npy_start(start, size, source);
  } else if (format == BundleFormat::safetensors) {
    const std::size_t header = safetensors_header_size(start, size, source);
    start = file.read(0, static_cast<std::int64_t>(kSafetensorsPrefix + header));
    check_safetensors_start(start, size, source);
  } else if (size > 0 && !start.starts_with("PK")) {
    throw InputError(source, "", "not a readable zip archive: Not a zip archive");
  }
  return start;
}

std::string read_bundle_file(const std::filesystem::path& path, BundleFormat format) {
  const BundleFile file(path);
  static_cast<void>(checked_start(file, path, format));
  return file.read(0, file.size());
}

BundleFile::BundleFile(std::filesystem::path path) : path_(std::move(path)) {
  const auto reject = [&](const std::string& message) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw InputError(path_.string(), "", message);
  };
  // O_NONBLOCK: opening a pipe without a writer does not wait.
  do {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) reject("cannot be read: " + system_message(errno));
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) reject("cannot be read: " + system_message(errno));
  if (S_ISDIR(status.st_mode)) reject("is a folder: name a file in it");
  if (!S_ISREG(status.st_mode)) reject("is a device or a pipe, which may not end: write it to a file first");
  size_ = status.st_size;
  if (size_ > kMaxFileBytes) {
    reject(fmt::format("{} bytes, but at most {} are read: split it or give a smaller one", size_, kMaxFileBytes));
  }
}

BundleFile::~BundleFile() {
  ::close(descriptor_);
}

std::string BundleFile::read(std::int64_t at, std::int64_t count) const {
  std::string bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(size_ - at, 0, count)), '\0');
  bytes.resize(read_to(at, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::vector<std::byte> BundleFile::read_exactly(std::int64_t at, std::int64_t count) const {
  // By way of a buffer in the caches: memory that is cleared first would be written twice.
  std::vector<std::byte> bytes, buffer(static_cast<std::size_t>(std::min(count, kBuffer)));
  bytes.reserve(static_cast<std::size_t>(count));
  while (const auto left = static_cast<std::size_t>(count) - bytes.size()) {
    const std::span<std::byte> part = std::span(buffer).first(std::min(left, buffer.size()));
    if (read_to(at + static_cast<std::int64_t>(bytes.size()), part) < part.size()) {
      throw InputError(
          path_.string(), "",
          fmt::format("ended while it was read, before byte {}: another program writes it; try again", at + count));
    }
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

std::size_t BundleFile::read_to(std::int64_t at, std::span<std::byte> target) const {
  std::size_t used = 0;
  while (used < target.size()) {
    const ssize_t got = ::pread(descriptor_, target.data() + used, target.size() - used,
                                static_cast<off_t>(at) + static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path_.string(), "", "cannot be read: " + system_message(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return used;
}

}  // namespace kvscope::golden
