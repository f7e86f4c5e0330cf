// A bundle's file, read by parts: its first bytes are checked before the rest is read, so that a file of another
// format, however long, costs a few bytes. Tensors are read into their own memory, without a copy of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kvscope::golden {

enum class BundleFormat { safetensors, npz, npy };

class BundleFile {
 public:
  // InputError when the file cannot be opened, is a folder, a device or a pipe (which may not end), or is larger than
  // kMaxFileBytes.
  explicit BundleFile(std::filesystem::path path);
  BundleFile(const BundleFile&) = delete;
  BundleFile& operator=(const BundleFile&) = delete;
  ~BundleFile();

  [[nodiscard]] std::int64_t size() const { return size_; }  // [bytes]
  // `count` bytes at `at`, fewer at the end of the file. InputError when they cannot be read.
  [[nodiscard]] std::string read(std::int64_t at, std::int64_t count) const;
  // The same as a vector; InputError if the file ends before them.
  [[nodiscard]] std::vector<std::byte> read_exactly(std::int64_t at, std::int64_t count) const;

 private:
  // Returns the bytes read: fewer at the end of the file.
  std::size_t read_to(std::int64_t at, std::span<std::byte> target) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// The first bytes of a file, at least the header of a safetensors or an npy file, after they have the form of `format`:
// the magic, the sizes that the header gives. InputError as the parser of the format gives, and as BundleFile does.
[[nodiscard]] std::string checked_start(const BundleFile& file, const std::filesystem::path& path, BundleFormat format);
// The whole file, after checked_start().
[[nodiscard]] std::string read_bundle_file(const std::filesystem::path& path, BundleFormat format);

}  // namespace kvscope::golden
