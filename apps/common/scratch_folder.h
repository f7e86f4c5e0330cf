// A folder for what is written on the way, which neither the end of the program nor a signal leaves behind.
//
//   ScratchFolder runs(std::filesystem::temp_directory_path() / "kvscope_reduce_");   /tmp/kvscope_reduce_aB3xYz
//   write_file_atomically(runs / "inputs.npz", bytes);
#pragma once

#include <filesystem>

namespace kvscope::apps {

// The destructor removes the folder with all that is in it, and so do the signals of signals.h and the time limit. One
// such folder at a time.
class ScratchFolder {
 public:
  // The name is `beginning` and six random characters. InputError(source) with the system's words.
  ScratchFolder(const std::filesystem::path& beginning, const std::filesystem::path& source);
  explicit ScratchFolder(const std::filesystem::path& beginning) : ScratchFolder(beginning, beginning) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace kvscope::apps
