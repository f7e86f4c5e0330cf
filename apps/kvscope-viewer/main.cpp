// kvscope-viewer: opens a window, writes a picture, or runs a simulation for the window.
// Exit codes: 0 success, 2 invalid input or usage.
#include <exception>
#include <iostream>

#include "apps/common/faults.h"
#include "apps/common/signals.h"
#include "apps/common/terminal_output.h"
#include "apps/kvscope-viewer/command_line.h"
#include "apps/kvscope-viewer/kernel_window.h"
#include "apps/kvscope-viewer/render.h"
#include "apps/kvscope-viewer/simulate.h"
#include "apps/kvscope-viewer/window.h"

namespace {

using namespace kvscope::apps;

int run(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  switch (line.mode) {
    case CommandLine::Mode::window:
      return show_window(line.window, argc, argv);
    case CommandLine::Mode::render:
      return render(line.render, argc, argv);
    case CommandLine::Mode::kernel:
      return line.kernel.out ? render_kernel(line.kernel, argc, argv) : show_kernel(line.kernel, argc, argv);
    case CommandLine::Mode::simulate:
      return simulate_to_file(line.simulate.scenario, line.simulate.trace, line.simulate.changed);
    case CommandLine::Mode::answered:
      break;
  }
  return line.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  const TerminalOutput output(std::cout);
  const TerminalOutput errors(std::cerr);
  try {
    const int code = run(argc, argv);
    if (!std::cout.flush()) {
      std::cerr << "kvscope-viewer: standard output could not be written: is the disk full?\n";
      return kExitBadInput;
    }
    return code;
  } catch (const std::exception& error) {
    return print_faults("kvscope-viewer", error);
  }
}
