#include "core/base/pending_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/detail/pending_entry.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

bool is_folder(const std::filesystem::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool has_entry(const std::filesystem::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_mount_point(const std::filesystem::path& folder) {
  struct statx status = {};
  return ::statx(AT_FDCWD, folder.c_str(), 0, STATX_TYPE, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Whether another folder can take this one's place: not the current folder, which programs hold by its inode, not the
// root of a file system, and only in a writable parent folder.
bool is_exchangeable(const std::filesystem::path& folder, const struct stat& status) {
  struct stat current = {};
  const bool is_current = ::stat(".", &current) == 0 && is_same(current, status);
  return !is_current && !is_mount_point(folder) && ::access(detail::folder_of(folder).c_str(), W_OK | X_OK) == 0;
}

// Removes the path's last slash and its "." and "..".
std::filesystem::path plain(const std::filesystem::path& folder) {
  std::filesystem::path out = std::filesystem::absolute(folder).lexically_normal();
  return out.has_filename() ? out : out.parent_path();
}

int rename_flags(const std::filesystem::path& from, const std::filesystem::path& to, unsigned flags) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}

bool is_unsupported(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

// The names in a folder; none: the folder cannot be read. Not by std::filesystem::directory_iterator: that of
// libstdc++ 12 ends the program when memory runs out.
std::optional<std::vector<std::string>> names_in(const std::filesystem::path& folder) {
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(::opendir(folder.c_str()));
  if (entries == nullptr && errno == ENOMEM) throw std::bad_alloc();
  if (entries == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(entries.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return std::nullopt;
  return names;
}

// Held while a set takes its place in the folder, so that two programs do not mix their sets. Without a lock where the
// folder is missing, not readable, or of a file system that has no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder) {
    struct stat locked = {}, named = {};
    do {  // until the folder that is locked is the one of this name: another program may have exchanged it
      if (descriptor_ >= 0) ::close(descriptor_);
      descriptor_ = detail::open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (descriptor_ < 0) return;
      while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
      }
    } while (::fstat(descriptor_, &locked) == 0 && ::stat(folder.c_str(), &named) == 0 && !is_same(locked, named));
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_ = -1;
};

}  // namespace

PendingFolder::PendingFolder(std::filesystem::path folder, std::vector<std::string> names)
    : shown_(std::move(folder)), final_(detail::follow_links(plain(shown_))), names_(std::move(names)) {
  struct stat old = {};
  const bool replaces = ::stat(final_.c_str(), &old) == 0;
  if (!replaces && errno != ENOENT) reject(errno);
  if (replaces && !S_ISDIR(old.st_mode)) reject(ENOTDIR);
  if (!replaces) create_parents();
  const bool is_beside = !replaces || is_exchangeable(final_, old);
  int error = EEXIST;
  while (error == EEXIST) {
    temporary_ = (is_beside ? detail::folder_of(final_) : final_) / detail::random_entry_name();
    slot_ = detail::remember_pending(temporary_.native(), true);
    error = ::mkdir(temporary_.c_str(), replaces ? 0700 : 0777) == 0 ? 0 : errno;
    if (error != 0) detail::forget_pending(slot_);
  }
  if (error != 0) {
    for (const auto& parent : created_) ::rmdir(parent.c_str());
    reject(error);
  }
  if (!replaces || !is_beside) return;
  const int descriptor = detail::open_retrying(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  detail::keep_access(descriptor, old);
  ::close(descriptor);
}

PendingFolder::~PendingFolder() {
  if (committed_) return;
  detail::remove_flat_folder(temporary_.c_str());
  detail::forget_pending(slot_);
  for (const auto& folder : created_) ::rmdir(folder.c_str());  // fails for one that is not empty
}

void PendingFolder::reject(int error) const {
  throw InputError(shown_.string(), "", "cannot be written: " + system_message(error));
}

void PendingFolder::create_parents() {
  std::vector<std::filesystem::path> missing;
  for (std::filesystem::path at = detail::folder_of(final_); !has_entry(at); at = detail::folder_of(at)) {
    missing.push_back(at);  // "/" has an entry
  }
  created_.reserve(missing.size());
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (::mkdir(folder->c_str(), 0777) == 0) {
      created_.insert(created_.begin(), *folder);
    } else if (errno != EEXIST) {
      const int error = errno;
      for (const auto& made : created_) ::rmdir(made.c_str());
      reject(error);
    }
  }
}

OutputPath PendingFolder::operator/(std::string_view name) const {
  KVSCOPE_ASSERT(std::ranges::find(names_, name) != names_.end());
  return {temporary_ / name, shown_ / name};
}

bool PendingFolder::has_only_the_set() const {
  const auto names = names_in(final_);
  return names && std::ranges::all_of(*names, [this](const std::string& name) {
           struct stat status = {};
           return ::lstat((final_ / name).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
                  std::ranges::find(names_, name) != names_.end();
         });
}

void PendingFolder::keep_access_of_files() const {
  for (const std::string& name : names_) {
    struct stat old = {};
    if (::stat((final_ / name).c_str(), &old) != 0 || !S_ISREG(old.st_mode)) continue;
    const int descriptor = detail::open_retrying((temporary_ / name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) continue;
    detail::keep_access(descriptor, old);
    ::close(descriptor);
  }
}

// The old set is now below the temporary name. Entries that another program added meanwhile are put back.
void PendingFolder::remove_displaced() const {
  for (const std::string& name : names_) ::unlink((temporary_ / name).c_str());
  if (::rmdir(temporary_.c_str()) == 0) return;
  for (const std::string& name : names_in(temporary_).value_or(std::vector<std::string>())) {
    static_cast<void>(rename_flags(temporary_ / name, final_ / name, RENAME_NOREPLACE));
  }
  ::rmdir(temporary_.c_str());
}

PendingFolder::Outcome PendingFolder::exchange() {
  if (!has_entry(final_)) {
    const int error = rename_flags(temporary_, final_, 0);
    if (error == 0) return Outcome::done;
    if (error != EEXIST && error != ENOTEMPTY && error != ENOTDIR) reject(error);  // else created meanwhile
  }
  if (detail::folder_of(temporary_) == final_ || !has_only_the_set()) return Outcome::impossible;
  const int error = rename_flags(temporary_, final_, RENAME_EXCHANGE);
  if (is_unsupported(error) || error == EBUSY) return Outcome::impossible;
  if (error != 0) reject(error);
  remove_displaced();
  return Outcome::done;
}

// Exchanges each file with its older version, so that a failed move can be taken back.
void PendingFolder::move_files() {
  struct Move {
    std::filesystem::path from, to;
    unsigned flags;
  };
  std::vector<Move> moved;
  moved.reserve(names_.size());
  const auto take_back = [&moved](int error) {
    for (auto move = moved.rbegin(); move != moved.rend(); ++move) {
      static_cast<void>(rename_flags(move->to, move->from, move->flags));
    }
    return error;
  };
  for (const std::string& name : names_) {
    const bool is_new = has_entry(temporary_ / name), is_old = has_entry(final_ / name);
    if (!is_new && !is_old) continue;
    if (is_folder(final_ / name)) reject(take_back(EISDIR));
    Move move{temporary_ / name, final_ / name, is_new && is_old ? RENAME_EXCHANGE : 0U};
    if (!is_new) std::swap(move.from, move.to);  // of an older set
    int error = rename_flags(move.from, move.to, move.flags);
    if (is_unsupported(error)) error = rename_flags(move.from, move.to, 0);
    if (error != 0) reject(take_back(error));
    moved.push_back(std::move(move));
  }
  if (const int error = detail::sync_folder(final_)) reject(take_back(error));
  remove_displaced();
}

void PendingFolder::commit() {
  keep_access_of_files();
  if (const int error = detail::sync_folder(temporary_)) reject(error);
  const FolderLock lock(final_);
  const bool is_exchanged = exchange() == Outcome::done;
  if (!is_exchanged) move_files();
  committed_ = true;
  detail::forget_pending(slot_);
  // The folders that were created are new names too.
  std::vector<std::filesystem::path> changed{detail::folder_of(final_)};
  for (const auto& folder : created_) changed.push_back(detail::folder_of(folder));
  for (const auto& folder : changed) {
    if (const int error = detail::sync_folder(folder)) reject(error);
  }
}

TemporaryFolder::TemporaryFolder() {
  std::error_code missing;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(missing);
  if (missing) {
    throw InputError("temporary folder", "",
                     system_message(missing.value()) + ": set TMPDIR to a folder that can be written");
  }
  int error = EEXIST;
  while (error == EEXIST) {
    path_ = parent / detail::random_entry_name();
    slot_ = detail::remember_pending(path_.native(), true);
    error = ::mkdir(path_.c_str(), 0700) == 0 ? 0 : errno;
    if (error != 0) detail::forget_pending(slot_);
  }
  if (error != 0) throw InputError(parent.string(), "", "no temporary folder can be made: " + system_message(error));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  detail::forget_pending(slot_);
}

}  // namespace kvscope
