// kvscope, the command line: registers the commands, parses, and runs the selected one.
// Exit codes: 0 success, 1 a check failed, 2 invalid input or usage.
#include <iostream>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/signals.h"
#include "apps/common/terminal_output.h"
#include "apps/common/time_limit.h"
#include "apps/common/usage.h"
#include "apps/common/written_files.h"
#include "apps/kvscope/commands.h"

namespace {

using namespace kvscope::apps;

// The commands under one heading of --help.
struct CommandGroup {
  const char* heading;
  std::vector<void (*)(CLI::App&, Action&)> commands;
};

const CommandGroup kCommandGroups[] = {
    {"Commands that simulate a cache", {add_run, add_explain, add_scenario, add_trace}},
    {"Commands that check the output of an attention kernel",
     {add_golden, add_verify, add_diagnose, add_reduce, add_merge}},
    {"Commands that prepare the tensors of a kernel", {add_layout, add_convert, add_lint, add_import, add_dtype}},
    {"Commands that run CUDA kernels without a GPU", {add_ptx, add_cuda, add_nvcc, add_kernels}},
    {"Commands that follow a tile into shared memory and registers",
     {add_stage, add_tma, add_swizzle, add_fragment, add_lds}},
    {"Other commands", {add_lab, add_completion}}};

void add_commands(CLI::App& app, Action& chosen) {
  for (const CommandGroup& group : kCommandGroups) {
    for (const auto add : group.commands) {
      add(app, chosen);
      app.get_subcommands([](const CLI::App*) { return true; }).back()->group(group.heading);
    }
  }
  add_examples(app, {"kvscope run apps/scenarios/first_light.json",
                     "kvscope explain apps/scenarios/first_light.json --seq 0 --token 5",
                     "kvscope golden apps/scenarios/first_light.json --out golden.safetensors --candidate mine.npz",
                     "kvscope verify golden.safetensors mine.npz",
                     "kvscope ptx run apps/examples/scale.ptx --block 64 --arg 'f32[64]' --arg 2.5",
                     "kvscope lab start 1 my_lab"});
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  const TerminalOutput output(std::cout);
  const TerminalOutput errors(std::cerr);
  CLI::App app{
      "Simulates paged KV caches, follows a token from its page to a GPU register, runs PTX kernels on a virtual GPU, "
      "and "
      "checks a kernel's attention output against a golden reference.",
      "kvscope"};
  set_up_program(app, "0 success, 1 a check failed, 2 invalid input or usage.");
  app.require_subcommand(1);

  try {
    Action chosen;
    add_commands(app, chosen);
    const auto seconds = add_timeout_option(app);
    try {
      parse_words(app, argc, argv);
    } catch (const CLI::Success& asked) {  // --help and --version
      return app.exit(asked);
    } catch (const CLI::ParseError& error) {
      return usage_fault(app, error, argc > 1 ? argv[1] : "");
    }
    check_written_files(app);
    start_time_limit(*seconds);
    const int code = chosen();
    if (!std::cout.flush()) {
      std::cerr << "kvscope: standard output could not be written: is the disk full?\n";
      return kExitBadInput;
    }
    return code;
  } catch (const std::exception& error) {
    return print_faults("kvscope", error);
  }
}
