// Runs a program as a child process that may crash, hang or lose its GPU without affecting this process.
//
//   ChildEnd end = run_child({"/proc/self/exe", "--one", "probe:H5/0"}, 60, [](std::string_view line) { ... });
//   end.words()   "" | "exit code 3" | "killed by signal 11 (Segmentation fault)" | "silent for 60 s, killed"
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::gpu {

struct ChildEnd {
  int exit_code = 0;   // if it exited by itself
  int signal = 0;      // if it was killed by a signal
  double silence = 0;  // [s] if it was killed because it had no output for that long; otherwise 0
  std::string errors;  // the end of its standard error, at most 4000 characters

  [[nodiscard]] std::string words() const;  // how it ended; empty: exit code 0
};

// `hear` is called with each whole line of its standard output as it arrives. The child is killed if it has no output
// for `most_silence` seconds, and when this process ends. Throws DeviceError if it cannot be started.
ChildEnd run_child(const std::vector<std::string>& command, double most_silence,
                   const std::function<void(std::string_view line)>& hear);

}  // namespace kvscope::gpu
