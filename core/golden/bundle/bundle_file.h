// A bundle's file, read by parts: its size, its first and last bytes. read_bundle_file checks these before it reads the
// file whole, so that a file of another format, however long, costs a few bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kvscope::golden {

enum class BundleFormat { safetensors, npz, npy };

// The whole file, after its start has the form of `format`: the magic, the sizes that the header gives, and for a
// zip its end record. InputError as the parser of the format gives, and as BundleFile does.
[[nodiscard]] std::string read_bundle_file(const std::filesystem::path& path, BundleFormat format);

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

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace kvscope::golden
