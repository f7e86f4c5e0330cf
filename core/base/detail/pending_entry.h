// What PendingFile and PendingFolder share: random names, the list of temporary entries that a signal handler removes,
// and the calls of the system that an interrupted or unsupported call must not end.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace kvscope::detail {

// ".kvscope-<32 hexadecimal digits>.tmp": 128 random bits, so no two processes of any machine choose the same name.
[[nodiscard]] std::string random_entry_name();

// Enters a temporary file or folder in the list that remove_pending_files() removes; call before it is created.
// Returns its place in the list, or -1 if the list is full or the name is too long: the destructor alone removes it.
[[nodiscard]] int remember_pending(const std::string& path, bool is_folder) noexcept;
void forget_pending(int slot) noexcept;

// Removes a folder with the files in it, but not its subfolders. Async-signal-safe, allocates nothing.
void remove_flat_folder(const char* path) noexcept;

// open() that is repeated when a signal interrupts it.
[[nodiscard]] int open_retrying(const char* path, int flags, mode_t mode = 0) noexcept;

// Each returns 0 or an errno. EINVAL and EROFS of fsync mean that the file system has nothing to sync.
[[nodiscard]] int sync_descriptor(int descriptor) noexcept;
[[nodiscard]] int sync_folder(const std::filesystem::path& folder) noexcept;
[[nodiscard]] int write_all(int descriptor, const char* bytes, std::size_t count) noexcept;

// Gives the open file or folder the mode of `old`, and its owner and group as far as the system permits. Without the
// owner, the set-user-ID and set-group-ID bits are dropped.
void keep_access(int descriptor, const struct stat& old) noexcept;

// The path behind a symbolic link, and behind the links that it leads to; `path` itself if it is none. The final target
// need not exist. Throws InputError after 40 links.
[[nodiscard]] std::filesystem::path follow_links(const std::filesystem::path& path);

// The folder that contains `path`: "." for a bare name.
[[nodiscard]] std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace kvscope::detail
