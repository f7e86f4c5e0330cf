// A progress bar on standard error: drawn only on a terminal, at most ten times per second, and erased at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvscope::apps {

class Progress {
 public:
  // `what` is the word before the bar: "requests".
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // requests  [##########..........]  50 %  6016 of 12031
  void show(std::int64_t done, std::int64_t all);

 private:
  std::string what_;
  bool on_terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace kvscope::apps
