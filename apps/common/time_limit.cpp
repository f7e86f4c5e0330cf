#include "apps/common/time_limit.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>

#include "apps/common/faults.h"
#include "apps/common/signals.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"

namespace kvscope::apps {
namespace {

constexpr double kMostSeconds = 1e6;

std::array<char, 160> time_message{};  // for the signal handler, which may not allocate
std::size_t time_message_bytes = 0;

void end_in_time(int) {
  clean_up();
  static_cast<void>(!::write(STDERR_FILENO, time_message.data(), time_message_bytes));
  ::_exit(kExitBadInput);
}

}  // namespace

std::string time_limit_fault(const std::string& text) {
  const auto seconds = whole_number<double>(text);
  if (seconds && *seconds >= 0 && *seconds <= kMostSeconds) return {};
  return fmt::format("'{}' is not a number of seconds from 0 to {:.0f}", text, kMostSeconds);
}

void start_time_limit(double seconds) {
  if (!(seconds > 0)) return;
  const auto end = fmt::format_to_n(time_message.data(), time_message.size(),
                                    "kvscope: the time limit of {:g} s is reached: raise it with --timeout\n", seconds);
  time_message_bytes = std::min(end.size, time_message.size());
  struct sigaction action = {};
  action.sa_handler = end_in_time;
  action.sa_mask = signals_that_clean_up();
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  if (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) timer.it_value.tv_usec = 1;
  KVSCOPE_ASSERT(::setitimer(ITIMER_REAL, &timer, nullptr) == 0);
}

}  // namespace kvscope::apps
