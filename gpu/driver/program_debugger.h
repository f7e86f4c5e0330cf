// The debugger of `kvscope cuda --gdb`. A launch runs until its first report or breakpoint. The debugger then prints the stop
// to standard error, and reads commands (gpu/virtual/debug/debug_session.h) from a file descriptor:
//
//   continue   to the next report or breakpoint, of this launch or of a later one
//   detach     the program runs on without the debugger
//   quit       ends the program; so does the end of the input
//
// Without a stop, nothing is printed. A launch can be moved backward only until it has ended and `continue` has left it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/virtual/debug/debug_session.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::driver {

class ProgramDebugger {
 public:
  // Reads commands from `commands`, unbuffered, because the processes of one program share it. A terminal gets a prompt.
  ProgramDebugger(int commands, std::vector<ptx::BreakPlace> breaks);

  // Runs a launch under control. `tell` prints a report, and may be called again for the same one after a movement
  // backward. If the user quits, the result has what the launch did so far.
  ptx::LaunchResult launch(ptx::Device& device, const ptx::LoadedModule& module, const ptx::LaunchConfig& config,
                           ptx::Monitor* monitor, const std::function<void(const ptx::Report&)>& tell);

  [[nodiscard]] bool quits() const { return quits_; }
  // A command of a script was wrong. The program ends with exit code 2.
  [[nodiscard]] bool has_faults() const { return faults_; }

 private:
  // False at the end of the input.
  bool read_line(std::string& line) const;
  ptx::DebugSession::Answer converse(ptx::DebugSession& session);

  int commands_;
  bool person_;  // commands come from a terminal
  std::vector<ptx::BreakPlace> breaks_;
  bool greeted_ = false, detached_ = false, quits_ = false, faults_ = false;
};

}  // namespace kvscope::driver
