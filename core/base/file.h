// Files that users keep: read whole up to a size limit, and written completely or not at all. Several files that belong
// together are written by pending_folder.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace kvscope {

// The file's bytes. InputError when it cannot be read, is a folder, or is larger than `max_bytes` (the size is checked
// before anything is allocated).
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes);

// The first `bytes` bytes of a file, fewer if it is shorter: enough to recognize its format. InputError as read_file().
[[nodiscard]] std::string read_file_start(const std::filesystem::path& path, std::size_t bytes);

// Without the UTF-8 byte order mark that editors and tables of Windows begin with.
[[nodiscard]] constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

// Where a file is written, and its name in messages. The two differ for a file of a PendingFolder, which is written to
// the temporary folder.
struct OutputPath {
  template <class P>
  requires std::convertible_to<P, std::filesystem::path> OutputPath(const P& path)
      : file(path), shown(file) {}  // NOLINT(google-explicit-constructor): a path is both
  OutputPath(std::filesystem::path written, std::filesystem::path named)
      : file(std::move(written)), shown(std::move(named)) {}

  std::filesystem::path file, shown;
};

// Writes to a temporary name in the same folder, then renames: a reader sees the old file or the new one, never a
// partial one, also after a power failure. On failure the temporary file is removed and InputError carries the system's
// error message. A pipe, a character device, and the file that is standard output have nothing to keep: the bytes are
// written to them directly, so that `--out /dev/stdout` works.
void write_file_atomically(const OutputPath& path, std::string_view bytes);

// A file that is written in parts, or by a library that needs a path (a database, a video): write with write() or to
// `temporary()`, then call `commit()`. Destroyed without commit, it removes the temporary file.
//
//   .kvscope-<32 random digits>.tmp   created exclusively, beside the final file: bytes, fsync
//        | rename                     atomic: the old file or the new one
//   report.txt                        then fsync of the folder: the new name survives a power failure
//
// The temporary name does not contain the final one, so names of up to 255 bytes work, and two machines that share the
// folder do not choose the same one. A symbolic link is followed: its target is replaced and the link stays. A file
// that is replaced keeps its mode, and its owner if the system permits it; hard links to it keep the old bytes.
class PendingFile {
 public:
  // Creates the temporary file. Throws InputError if the folder is missing or not writable, or if the final file is a
  // folder, a device or a pipe.
  explicit PendingFile(OutputPath path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  // Appends, through a buffer. Not to be mixed with writing to `temporary()`.
  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void reject(int error) const;
  void flush();

  std::filesystem::path shown_;  // as the caller named it
  std::filesystem::path final_;  // links followed
  std::filesystem::path temporary_;
  std::string buffer_;
  int descriptor_ = -1;
  int slot_ = -1;
  bool committed_ = false;
};

// Removes the temporary file of every PendingFile, and the folder of every PendingFolder and TemporaryFolder, that is
// neither committed nor destroyed. Async-signal-safe: a program calls it from its signal handler, so that an
// interrupted run leaves no partial file. Does nothing in a child process of the one that made them.
void remove_pending_files() noexcept;

// CRC-32 (IEEE 802.3, the one of zlib.crc32 in Python) of `bytes`, continuing from `seed`.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace kvscope
