// kvscope ptx debug FILE: steps a kernel forward and backward, by commands on standard input.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/launch/launch.h"
#include "apps/launch/options.h"
#include "core/base/errors.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/debug/debug_session.h"

namespace kvscope::apps {
namespace {

int debug_kernel(const LaunchRequest& request) {
  const PreparedLaunch prepared = prepare(request, true);
  ptx::Checks checks;
  ptx::ControlledRun run(*prepared.device, *prepared.module, prepared.config, checks.monitor());
  ptx::DebugSession session(run, std::cout);
  const bool person = isatty(STDIN_FILENO) != 0;
  if (person) std::cout << "kernel " << prepared.config.kernel << ": help lists the commands\n";
  session.show_place();
  int code = kExitFine;
  for (std::string line;;) {
    if (person) std::cout << "> " << std::flush;
    errno = 0;
    if (!std::getline(std::cin, line)) break;
    try {
      const ptx::DebugSession::Answer answer = session.obey(line);
      if (answer == ptx::DebugSession::Answer::quit || answer == ptx::DebugSession::Answer::detach) break;
    } catch (const ptx::CommandFault& fault) {
      std::cout << fault.message() << '\n';
      if (!person) code = kExitBadInput;
    }
  }
  // The end of the input and an error of the system look the same to a stream.
  if (std::ferror(stdin) != 0) {
    throw InputError("standard input", "", "cannot be read: " + system_message(errno));
  }
  return code;
}

}  // namespace

void add_ptx_debug(CLI::App& ptx, Action& chosen) {
  auto request = std::make_shared<LaunchRequest>();
  CLI::App* debug =
      ptx.add_subcommand("debug", "Step a kernel forward and backward, with commands from standard input");
  add_launch_file(*debug, *request);
  add_launch_options(*debug, *request);
  add_argument_help(*debug);
  add_help_section(*debug, "Commands on standard input", ptx::debug_commands());
  add_examples(*debug, {"printf 'step 8\\nprint %%r4\\nback\\nwhere\\n' |",
                        "  kvscope ptx debug apps/examples/scale.ptx --block 64 --arg 'f32[64]' --arg 2.5"});
  debug->callback([&chosen, request] { chosen = [request] { return debug_kernel(*request); }; });
}

}  // namespace kvscope::apps
