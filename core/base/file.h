// Files that users keep: read whole up to a size limit, and written completely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope {

// The file's bytes. InputError when it cannot be read, is a folder, or is larger than `max_bytes` (the size is checked
// before anything is allocated).
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes);

// Writes to a temporary name in the same folder, then renames: a reader sees the old file or the new one, never a
// partial one. On failure the temporary file is removed and InputError carries the system's error message.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// For writers that need a path (a database, a zip): write to `temporary()`, then call `commit()`.
// Destroyed without commit, it removes the temporary file.
class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path final_path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

// Removes the temporary file of every PendingFile that is neither committed nor destroyed. Async-signal-safe: a program
// calls it from its signal handler, so that an interrupted run leaves no partial file.
void remove_pending_files() noexcept;

// CRC-32 (IEEE 802.3, the one of zlib.crc32 in Python) of `bytes`, continuing from `seed`.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace kvscope
