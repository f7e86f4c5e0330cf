// Runs one untrusted program: a compiler on a student's file, or the compiled file itself. The threat model is
// docs/labs/staff/SECURITY.md.
//
//   bubblewrap   read-only /usr, an empty /tmp, the given folders; private network, processes, IPC, host and user names
//   namespaces   the same with the system calls themselves, where bubblewrap is not installed and user namespaces are
//                allowed
//   trusted      limits only, for code that the caller wrote (--trust)
//
// In all of them: limits of CPU time, memory, file size and open files of each process, and of memory and processes
// together where a control group may be created (control_group.h); wall clock by this process; the process group, and
// with it the private process namespace, is killed at the end; standard output and errors are cut at a limit.
// Programs that need no other process may also not start one, nor a thread unless they need it (seccomp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/control_group.h"

namespace kvscope::labs {

enum class SandboxKind : std::uint8_t { none, bubblewrap, namespaces, trusted };
[[nodiscard]] std::string_view sandbox_name(SandboxKind kind);

// The strongest kind that works here: each is tried once with /bin/true. `none` if neither works.
[[nodiscard]] SandboxKind available_sandbox();
// As available_sandbox(); `trust` selects `trusted`. InputError, with what to install, when there is no sandbox.
[[nodiscard]] SandboxKind require_sandbox(bool trust);

struct SandboxLimits {
  double wall_seconds = 10;
  std::int64_t cpu_seconds = 10;
  std::int64_t memory_bytes = std::int64_t{1} << 30;  // address space of each process
  std::int64_t file_bytes = std::int64_t{64} << 20;   // of a written file, and of /tmp
  std::int64_t output_bytes = std::int64_t{4} << 20;  // of standard output; errors: kMaxErrors
  bool processes = false;                             // may start processes and threads
  bool threads = false;                               // may start threads; without `processes`, no process
};
inline constexpr std::int64_t kMaxErrors = 16 * 1024;  // [bytes] of standard error that are kept

struct SandboxMount {
  std::filesystem::path outside;  // an existing file or folder
  std::string inside;             // absolute; in the kind `trusted` the program sees `outside` instead
  bool writable = false;
};

struct SandboxJob {
  std::vector<std::string> command;  // the program's absolute path inside, and its arguments
  std::vector<SandboxMount> mounts;
  std::string input;  // of standard input
  SandboxLimits limits;
};

struct SandboxEnd {
  int exit_code = 0;
  int signal = 0;  // if a signal ended it
  bool timed_out = false;
  bool output_too_long = false;  // killed at the limit
  bool out_of_memory = false;    // killed because all processes together used more than the control group's memory
  double cpu_seconds = 0;        // of all processes that were reaped; bubblewrap does not reap the program
  std::string output, errors;    // errors: the first kMaxErrors bytes

  [[nodiscard]] bool fine() const {
    return exit_code == 0 && signal == 0 && !timed_out && !output_too_long && !out_of_memory;
  }
};

// The limits of the control group around a job: those of each process, for all of them together.
[[nodiscard]] ControlLimits control_limits(const SandboxLimits& limits);

// InputError when the sandbox itself cannot be started.
[[nodiscard]] SandboxEnd run_in_sandbox(SandboxKind kind, const SandboxJob& job);

// The options that raise limits of a job, for messages. Empty: the limit has no option.
struct LimitOptions {
  std::string_view time = {}, memory = {}, output = {};
};

// Signals that ended a program. SIGXCPU: the limit of CPU time. SIGKILL: the same if the CPU time was measured and
// reaches the limit, else another process or the program itself sent it.
//
// "the program was ended by signal 11 (segmentation fault)"; empty when it ended normally. An exceeded limit that has
// an option is followed by it: "the program used more than 2 s of CPU time; a larger limit: --max-run-time".
[[nodiscard]] std::string end_text(const SandboxEnd& end, const SandboxLimits& limits,
                                   const LimitOptions& options = {});

}  // namespace kvscope::labs
