#include "gpu/hardware/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "core/base/errors.h"
#include "gpu/launch/device_error.h"

namespace kvscope::gpu {
namespace {

constexpr std::size_t kKeptErrors = 4000;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw DeviceError(fmt::format("cannot create a pipe to a child process: {}", system_message(errno)));
    read = ends[0];
    write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(read);
    close_write();
  }
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
};

pid_t start(const std::vector<std::string>& command, const Pipe& out, const Pipe& err) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw DeviceError(fmt::format("cannot start {}: {}", command.front(), system_message(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent ended before the death signal was set
    dup2(out.write, STDOUT_FILENO);
    dup2(err.write, STDERR_FILENO);
    execv(words.front(), words.data());
    _exit(127);
  }
  return child;
}

// Reads available output; returns false at its end.
bool take(int from, std::string& to) {
  std::array<char, 4096> buffer{};
  const ssize_t count = read(from, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  to.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

std::string ChildEnd::words() const {
  if (silence > 0) return fmt::format("silent for {:g} s, killed", silence);
  if (signal != 0) return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  return exit_code == 0 ? "" : fmt::format("exit code {}", exit_code);
}

ChildEnd run_child(const std::vector<std::string>& command, double most_silence,
                   const std::function<void(std::string_view line)>& hear) {
  using Clock = std::chrono::steady_clock;
  Pipe out, err;
  const pid_t child = start(command, out, err);
  out.close_write();
  err.close_write();

  ChildEnd end;
  std::string said;
  std::array<pollfd, 2> ends{{{out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};
  auto last = Clock::now();
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const double left = most_silence - std::chrono::duration<double>(Clock::now() - last).count();
    const int ready = left <= 0 ? 0 : poll(ends.data(), ends.size(), static_cast<int>(left * 1000) + 1);
    if (ready == 0) {
      kill(child, SIGKILL);
      end.silence = most_silence;
      break;
    }
    if (ready < 0) continue;  // interrupted by a handled signal
    if (ends[1].revents != 0) {
      if (!take(err.read, end.errors)) ends[1].fd = -1;
      if (end.errors.size() > kKeptErrors) end.errors.erase(0, end.errors.size() - kKeptErrors);
    }
    if (ends[0].revents != 0) {
      if (!take(out.read, said)) ends[0].fd = -1;
      for (std::size_t newline = said.find('\n'); newline != std::string::npos; newline = said.find('\n')) {
        const std::string line = said.substr(0, newline);
        said.erase(0, newline + 1);
        last = Clock::now();
        hear(line);
      }
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

}  // namespace kvscope::gpu
