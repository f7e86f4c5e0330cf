// The child's side of the sandbox: what happens between fork and exec. Nothing here returns on failure: a message is
// written to standard error and the process exits with kSandboxFailed.
#pragma once

#include <string>
#include <vector>

#include "apps/labs/sandbox.h"

namespace kvscope::labs {

inline constexpr int kSandboxFailed = 125;
// Standard error of a sandbox that could not be started begins with this line.
inline constexpr std::string_view kSandboxFailure = "kvscope sandbox: ";

// Folders of the system that compilers and programs need. /usr/share and /usr/local are not among them: an installed
// course, with its solutions, would be there.
[[nodiscard]] std::vector<SandboxMount> system_mounts();

// A seccomp program (BPF instructions as bytes). It rejects calls that reach beyond the sandbox, and those that start
// processes or threads as far as the limits allow none. Empty on machines other than x86-64 and AArch64.
[[nodiscard]] std::string seccomp_program(const SandboxLimits& limits);

// The arguments of bwrap; `seccomp` is the descriptor that the program is read from, below 0 without one.
[[nodiscard]] std::vector<std::string> bubblewrap_command(const SandboxJob& job, int seccomp);

// Private namespaces with the system calls themselves, then the command. Called in the child process.
[[noreturn]] void run_in_namespaces(const SandboxJob& job, const std::string& seccomp);

// Runs `arguments`, with the program's absolute path first, under the limits. Called in the child process.
[[noreturn]] void run_command(const std::vector<std::string>& arguments, const SandboxLimits& limits);
[[noreturn]] void sandbox_failed(const char* what);

}  // namespace kvscope::labs
