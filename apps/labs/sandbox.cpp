#include "apps/labs/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include "apps/common/signals.h"
#include "apps/labs/detail/sandbox_child.h"
#include "apps/labs/limits.h"
#include "core/base/child_group.h"
#include "core/base/errors.h"

namespace kvscope::labs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSeccompDescriptor = 10;  // of bubblewrap

// One end of a channel, closed when it is destroyed.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  void reset(int number = -1) {
    if (number_ >= 0) close(number_);
    number_ = number;
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// Sockets instead of pipes, because a write to a closed one can return an error instead of raising SIGPIPE.
struct Channel {
  Descriptor ours, theirs;
  Channel() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw InputError("sandbox", "", fmt::format("no channel to the program: {}", system_message(errno)));
    }
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
};

// Trusted commands run outside: every path inside becomes the path outside.
std::vector<std::string> outside_command(const SandboxJob& job) {
  std::vector<std::string> arguments = job.command;
  for (std::string& argument : arguments) {
    for (const SandboxMount& mount : job.mounts) {
      const std::size_t at = argument.find(mount.inside);
      const std::size_t after = at + mount.inside.size();
      if (at == std::string::npos || (after < argument.size() && argument[after] != '/')) continue;
      argument.replace(at, mount.inside.size(), mount.outside.string());
      break;
    }
  }
  return arguments;
}

[[noreturn]] void child(SandboxKind kind, const SandboxJob& job, const std::string& seccomp, const Channel& in,
                        const Channel& out, const Channel& errors, const std::optional<ControlGroup>& group) {
  setsid();
  std::signal(SIGXCPU, SIG_DFL);  // the grader's parent may ignore it, and programs inherit that
  if (group.has_value() && !group->enter()) sandbox_failed("control group");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(in.theirs.number(), STDIN_FILENO);
  dup2(out.theirs.number(), STDOUT_FILENO);
  dup2(errors.theirs.number(), STDERR_FILENO);
  if (kind == SandboxKind::bubblewrap) {
    const int filter = memfd_create("seccomp", 0);
    if (filter < 0 || write(filter, seccomp.data(), seccomp.size()) != static_cast<ssize_t>(seccomp.size()) ||
        lseek(filter, 0, SEEK_SET) != 0 || dup2(filter, kSeccompDescriptor) < 0) {
      sandbox_failed("seccomp");
    }
    close_range(kSeccompDescriptor + 1, ~0U, 0);
    run_command(bubblewrap_command(job, seccomp.empty() ? -1 : kSeccompDescriptor), job.limits);
  }
  close_range(STDERR_FILENO + 1, ~0U, 0);
  if (kind == SandboxKind::namespaces) run_in_namespaces(job, seccomp);
  run_command(outside_command(job), job.limits);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Reads what is there. False at the end of the channel.
bool receive(const Descriptor& from, std::string& text, std::int64_t keep, bool& exceeded) {
  std::array<char, 65536> part{};
  const ssize_t count = recv(from.number(), part.data(), part.size(), 0);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, keep - static_cast<std::int64_t>(text.size())));
  text.append(part.data(), std::min(room, static_cast<std::size_t>(count)));
  exceeded = exceeded || static_cast<std::size_t>(count) > room;
  return count > 0;
}

// Feeds and drains the program until it closed both of its outputs, or a limit is reached. A process that is left may
// keep them open beyond the end of the command: `ended` is asked after each pause.
template <class Ended>
void converse(const SandboxJob& job, Channel& in, Channel& out, Channel& errors, SandboxEnd& end, Ended ended) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(job.limits.wall_seconds));
  std::size_t sent = 0;
  bool cut = false, reading_out = true, reading_errors = true;
  while (reading_out || reading_errors) {
    if (sent == job.input.size()) in.ours.reset();
    std::array<pollfd, 3> wait{{{reading_out ? out.ours.number() : -1, POLLIN, 0},
                                {reading_errors ? errors.ours.number() : -1, POLLIN, 0},
                                {in.ours.number(), POLLOUT, 0}}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      end.timed_out = true;
      return;
    }
    const int ready = poll(wait.data(), wait.size(), static_cast<int>(std::min<std::int64_t>(left + 1, 100)));
    if (ready == 0 && ended()) return;
    if ((wait[0].revents != 0) && !receive(out.ours, end.output, job.limits.output_bytes, end.output_too_long)) {
      reading_out = false;
    }
    if (wait[1].revents != 0 && !receive(errors.ours, end.errors, kMaxErrors, cut)) reading_errors = false;
    if (wait[2].revents != 0) {
      const ssize_t part = send(in.ours.number(), job.input.data() + sent, job.input.size() - sent, MSG_NOSIGNAL);
      if (part > 0) sent += static_cast<std::size_t>(part);
      if (part < 0 && errno != EINTR && errno != EAGAIN) sent = job.input.size();  // it reads no more
    }
    if (end.output_too_long) return;
  }
}

}  // namespace

std::string_view sandbox_name(SandboxKind kind) {
  switch (kind) {
    case SandboxKind::bubblewrap:
      return "bubblewrap";
    case SandboxKind::namespaces:
      return "namespaces";
    case SandboxKind::trusted:
      return "none (--trust)";
    default:
      return "none";
  }
}

ControlLimits control_limits(const SandboxLimits& limits) {
  constexpr int kSandboxProcesses = 8;  // bubblewrap has up to three, and the program is one
  constexpr int kCompilerProcesses = 128, kCompilerCpus = 2;
  // A file in /tmp is memory too.
  const bool several = limits.processes || limits.threads;
  return {limits.memory_bytes + limits.file_bytes, several ? kCompilerProcesses : kSandboxProcesses,
          several ? kCompilerCpus : 1};
}

SandboxEnd run_in_sandbox(SandboxKind kind, const SandboxJob& job) {
  if (kind == SandboxKind::none) throw InputError("sandbox", "", "no kind was selected: use require_sandbox()");
  const std::string seccomp = kind == SandboxKind::trusted ? "" : seccomp_program(job.limits);
  Channel in, out, errors;
  std::optional<ControlGroup> group;  // destroyed after the process was reaped
  if (const auto& groups = delegated_group().folder) group.emplace(*groups, control_limits(job.limits));
  const pid_t parent = getpid();
  pid_t process = -1;
  std::optional<ChildGroup> started;
  {
    const apps::SignalsDelayed delayed;
    process = fork();
    if (process == 0) {
      delayed.undo_in_child();
      if (getppid() != parent) _exit(kSandboxFailed);
      child(kind, job, seccomp, in, out, errors, group);
    }
    if (process > 0) started.emplace(process);
  }
  if (process < 0) throw InputError("sandbox", "", fmt::format("no new process: {}", system_message(errno)));
  in.theirs.reset();
  out.theirs.reset();
  errors.theirs.reset();

  SandboxEnd end;
  int status = 0;
  rusage used = {};
  bool reaped = false;
  // WNOWAIT: the number of a process that is not reaped yet belongs to no other process, so its group can be killed.
  const auto ended = [&] {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process;
  };
  converse(job, in, out, errors, end, ended);
  if (!end.timed_out && !end.output_too_long) {
    // The outputs are closed; the process may go on computing until its limit.
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(job.limits.wall_seconds));
    while (!ended() && Clock::now() < deadline) usleep(500);
    end.timed_out = !ended();
  }
  {
    const apps::SignalsDelayed reaping;
    kill(-process, SIGKILL);
    kill(process, SIGKILL);
    while (!reaped) reaped = wait4(process, &status, 0, &used) == process || errno != EINTR;
    started.reset();
  }
  end.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  end.out_of_memory = group.has_value() && group->out_of_memory();
  if (!end.timed_out && !end.output_too_long) {
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    // Both sandboxes report a signal as shells do.
    if (kind != SandboxKind::trusted && end.exit_code > 128 && end.exit_code < 160) {
      end.signal = end.exit_code - 128;
      end.exit_code = 0;
    }
  }
  const bool bubblewrap_failed =
      kind == SandboxKind::bubblewrap && end.exit_code == 1 && end.errors.starts_with("bwrap: ");
  if (bubblewrap_failed || (end.exit_code == kSandboxFailed && end.errors.starts_with(kSandboxFailure))) {
    throw InputError("sandbox", std::string(sandbox_name(kind)), end.errors.substr(0, end.errors.find('\n')));
  }
  return end;
}

SandboxKind available_sandbox() {
  for (const SandboxKind kind : {SandboxKind::bubblewrap, SandboxKind::namespaces}) {
    if (kind == SandboxKind::bubblewrap && access("/usr/bin/bwrap", X_OK) != 0) continue;
    try {
      SandboxJob job;
      job.command = {"/usr/bin/true"};
      if (run_in_sandbox(kind, job).fine()) return kind;
    } catch (const InputError&) {  // this kind does not work here; the next one may
    }
  }
  return SandboxKind::none;
}

SandboxKind require_sandbox(bool trust) {
  if (trust) return SandboxKind::trusted;
  const SandboxKind kind = available_sandbox();
  if (kind == SandboxKind::none) {
    throw InputError(
        "command line", "",
        "submitted code needs a sandbox, and neither bubblewrap nor user namespaces work here: install the "
        "package bubblewrap, or add --trust to run code that you wrote yourself without one");
  }
  return kind;
}

std::string end_text(const SandboxEnd& end, const SandboxLimits& limits, const LimitOptions& options) {
  if (end.timed_out) {
    return fmt::format("the program did not end within {} s{}", limits.wall_seconds, larger_limit(options.time));
  }
  if (end.output_too_long) {
    return fmt::format("the program wrote more than {} bytes{}", limits.output_bytes, larger_limit(options.output));
  }
  if (end.out_of_memory) {
    return fmt::format("the program used more than {} bytes of memory{}", control_limits(limits).memory_bytes,
                       larger_limit(options.memory));
  }
  const bool reached = end.cpu_seconds >= static_cast<double>(limits.cpu_seconds);
  if (end.signal == SIGXCPU || (end.signal == SIGKILL && reached)) {
    return fmt::format("the program used more than {} s of CPU time{}", limits.cpu_seconds, larger_limit(options.time));
  }
  if (end.signal == SIGKILL) return "the program was killed (signal 9)";
  if (end.signal == SIGABRT && end.errors.find("std::bad_alloc") != std::string::npos) {
    return fmt::format(
        "the program was ended by signal 6 (abort): an allocation failed, and a process may have {} bytes of memory{}",
        limits.memory_bytes, larger_limit(options.memory));
  }
  if (end.signal == SIGSEGV) return "the program was ended by signal 11 (segmentation fault)";
  if (end.signal == SIGABRT) return "the program was ended by signal 6 (abort)";
  if (end.signal == SIGXFSZ) return fmt::format("the program wrote a file of more than {} bytes", limits.file_bytes);
  if (end.signal == SIGFPE) return "the program was ended by signal 8 (integer division by zero)";
  if (end.signal != 0) return fmt::format("the program was ended by signal {}", end.signal);
  if (end.exit_code != 0) return fmt::format("the program ended with exit code {}", end.exit_code);
  return {};
}

}  // namespace kvscope::labs
