// Runs a shell command with a time limit.
#pragma once

#include <filesystem>
#include <string>

namespace kvscope::apps {

struct CommandEnd {
  int exit_code = 0;
  int signal = 0;          // if a signal ended it
  bool timed_out = false;  // killed at the time limit, with all its child processes
  std::string output;      // the end of its output, at most 2000 bytes
};

// `/bin/sh -c command` in the current folder, with standard input empty, output and errors in `log`. The command and
// its children form a process group, which ends with this program when a signal ends it (signals.h). Throws InputError
// when it cannot be started.
[[nodiscard]] CommandEnd run_shell(const std::string& command, double seconds, const std::filesystem::path& log);

}  // namespace kvscope::apps
