#include "apps/common/shell_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "apps/common/signals.h"
#include "core/base/child_group.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::apps {
namespace {

constexpr std::size_t kKeptOutput = 2000;
constexpr std::int64_t kMostLog = std::int64_t{1} << 30;

}  // namespace

CommandEnd run_shell(const std::string& command, double seconds, const std::filesystem::path& log) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (output < 0) throw InputError(log.string(), "", fmt::format("cannot be written: {}", std::strerror(errno)));
  const pid_t parent = getpid();
  std::optional<SignalsDelayed> delayed(std::in_place);
  const pid_t child = fork();
  if (child < 0) {
    close(output);
    throw InputError("command line", "--command", fmt::format("cannot be started: {}", std::strerror(errno)));
  }
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent ended before the death signal was set
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    delayed->undo_in_child();
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(output);
  setpgid(child, child);  // whichever of the two processes comes first
  std::optional<ChildGroup> group(std::in_place, child);
  delayed.reset();
  using Clock = std::chrono::steady_clock;
  const auto limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  CommandEnd end;
  int status = 0;
  auto pause = std::chrono::microseconds(200);
  for (pid_t done = 0; done != child;) {
    {
      const SignalsDelayed reaping;  // a child that is reaped is no group to end: its number may be another's
      done = waitpid(child, &status, WNOHANG);
      if (done == child) {
        kill(-child, SIGKILL);  // children that it left running would write into the next run's file
        group.reset();
      }
    }
    if (done == child) break;
    if (done < 0 && errno != EINTR) break;
    if (Clock::now() >= limit) {
      const SignalsDelayed reaping;
      end.timed_out = true;
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      group.reset();
      break;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
  if (!end.timed_out) {
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  }
  end.output = read_file(log, kMostLog);
  if (end.output.size() > kKeptOutput) end.output.erase(0, end.output.size() - kKeptOutput);
  return end;
}

}  // namespace kvscope::apps
