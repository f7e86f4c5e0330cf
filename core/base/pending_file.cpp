#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/detail/pending_entry.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope {
namespace {

constexpr std::size_t kWriteBuffer = std::size_t{1} << 16;  // [bytes]

[[noreturn]] void reject_write(const std::filesystem::path& path, int error) {
  throw InputError(path.string(), "", "cannot be written: " + system_message(error));
}

// The file that is replaced. Empty mode: there is none yet.
struct stat replaced_file(const std::filesystem::path& file, const std::filesystem::path& shown) {
  struct stat old = {};
  if (::stat(file.c_str(), &old) != 0) {
    if (errno != ENOENT) reject_write(shown, errno);
    return {};
  }
  if (S_ISDIR(old.st_mode)) throw InputError(shown.string(), "", "is a folder: name a file in it");
  if (!S_ISREG(old.st_mode)) throw InputError(shown.string(), "", "is a device or a pipe: name a regular file");
  return old;
}

// A descriptor for a path that has no old content to keep, or -1: a pipe, a character device, standard output.
int stream_of(const std::filesystem::path& path) {
  struct stat target = {}, output = {};
  if (::stat(path.c_str(), &target) != 0) return -1;
  if (S_ISFIFO(target.st_mode) || S_ISCHR(target.st_mode)) {
    const int descriptor = detail::open_retrying(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) reject_write(path, errno);
    return descriptor;
  }
  const bool is_output = S_ISREG(target.st_mode) && ::fstat(STDOUT_FILENO, &output) == 0 &&
                         output.st_dev == target.st_dev && output.st_ino == target.st_ino;
  return is_output ? ::dup(STDOUT_FILENO) : -1;
}

}  // namespace

void write_file_atomically(const OutputPath& path, std::string_view bytes) {
  if (const int stream = stream_of(path.file); stream >= 0) {
    int error = detail::write_all(stream, bytes.data(), bytes.size());
    if (::close(stream) != 0 && error == 0 && errno != EINTR) error = errno;
    if (error != 0) reject_write(path.shown, error);
    return;
  }
  PendingFile pending(path);
  pending.write(bytes);
  pending.commit();
}

PendingFile::PendingFile(OutputPath path) : shown_(std::move(path.shown)), final_(detail::follow_links(path.file)) {
  if (!shown_.has_filename()) throw InputError(shown_.string(), "", "is not a file name: add one after the folder");
  const struct stat old = replaced_file(final_, shown_);
  const bool replaces = old.st_mode != 0;
  while (descriptor_ < 0) {
    // Not replace_filename: in libstdc++ 12 a failed allocation in it leaves a path that cannot be destroyed.
    temporary_ = final_.parent_path() / detail::random_entry_name();
    slot_ = detail::remember_pending(temporary_.native(), false);
    // A file that replaces a private one is private from its creation on.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    descriptor_ = ::open(temporary_.c_str(), kFlags, replaces ? 0600 : 0666);
    if (descriptor_ >= 0) break;
    const int error = errno;
    detail::forget_pending(slot_);
    if (error != EEXIST && error != EINTR) reject(error);
  }
  if (replaces) detail::keep_access(descriptor_, old);
}

PendingFile::~PendingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (committed_) return;
  ::unlink(temporary_.c_str());
  detail::forget_pending(slot_);
}

void PendingFile::reject(int error) const {
  reject_write(shown_, error);
}

void PendingFile::flush() {
  if (const int error = detail::write_all(descriptor_, buffer_.data(), buffer_.size())) reject(error);
  buffer_.clear();
}

void PendingFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kWriteBuffer) {
    flush();
    if (bytes.size() > kWriteBuffer) {
      if (const int error = detail::write_all(descriptor_, bytes.data(), bytes.size())) reject(error);
      return;
    }
  }
  buffer_ += bytes;
}

void PendingFile::commit() {
  flush();
  if (const int error = detail::sync_descriptor(descriptor_)) reject(error);
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) reject(errno);
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) reject(errno);
  committed_ = true;
  detail::forget_pending(slot_);
  if (const int error = detail::sync_folder(detail::folder_of(final_))) reject(error);
}

}  // namespace kvscope
