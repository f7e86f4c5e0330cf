// kvscope, the command line: registers the commands, parses, and runs the selected one.
// Exit codes: 0 success, 1 a check failed, 2 invalid input or usage.
#include <iostream>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/signals.h"
#include "apps/common/terminal_output.h"
#include "apps/common/time_limit.h"
#include "apps/common/usage.h"
#include "apps/kvscope/commands.h"

namespace {

using namespace kvscope::apps;

void add_commands(CLI::App& app, Action& chosen) {
  add_run(app, chosen);
  add_explain(app, chosen);
  add_stage(app, chosen);
  add_golden(app, chosen);
  add_import(app, chosen);
  add_lint(app, chosen);
  add_verify(app, chosen);
  add_diagnose(app, chosen);
  add_reduce(app, chosen);
  add_merge(app, chosen);
  add_convert(app, chosen);
  add_trace(app, chosen);
  add_scenario(app, chosen);
  add_tma(app, chosen);
  add_swizzle(app, chosen);
  add_lds(app, chosen);
  add_fragment(app, chosen);
  add_ptx(app, chosen);
  add_cuda(app, chosen);
  add_nvcc(app, chosen);
  add_kernels(app, chosen);
  add_layout(app, chosen);
  add_dtype(app, chosen);
  add_lab(app, chosen);
  add_completion(app, chosen);
  add_examples(app, {"kvscope run apps/scenarios/first_light.json",
                     "kvscope explain apps/scenarios/first_light.json --seq 0 --token 5",
                     "kvscope golden apps/scenarios/first_light.json --out golden.safetensors"});
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
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help and --version
      return app.exit(asked);
    } catch (const CLI::ParseError& error) {
      return usage_fault(app, error, argc > 1 ? argv[1] : "");
    }
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
