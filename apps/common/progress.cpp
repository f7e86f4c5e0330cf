#include "apps/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace kvscope::apps {

Progress::Progress(std::string what) : what_(std::move(what)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::int64_t done, std::int64_t all) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  constexpr std::int64_t kBarWidth = 20;
  const std::int64_t filled = all > 0 ? std::clamp<std::int64_t>(done * kBarWidth / all, 0, kBarWidth) : 0;
  fmt::print(stderr, "\r{}  [{:#<{}}{:.<{}}] {:3} %  {} of {}", what_, "", filled, "", kBarWidth - filled,
             all > 0 ? done * 100 / all : 0, done, all);
  std::fflush(stderr);
}

}  // namespace kvscope::apps
