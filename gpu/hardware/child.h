// A program run beside this one, which may crash, hang or lose its GPU without taking anybody along.
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
  int exit_code = 0;   // when it left by itself
  int signal = 0;      // when it was killed, by whomever
  double silence = 0;  // [s] when it was killed because it said nothing for so long; else 0
  std::string errors;  // the end of its standard error, at most 4000 characters

  [[nodiscard]] std::string words() const;  // how it ended; empty: exit code 0
};

// Each whole line of its standard output is handed over as it comes. It is killed when it says nothing for
// `most_silence` seconds, and when this process ends. DeviceError when it cannot be started.
ChildEnd run_child(const std::vector<std::string>& command, double most_silence,
                   const std::function<void(std::string_view line)>& hear);

}  // namespace kvscope::gpu
