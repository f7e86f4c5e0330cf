// kvscope, the command line: registers the commands, parses, runs the one that was chosen.
// Exit codes: 0 fine, 1 the check failed, 2 bad input or usage.
#include <iostream>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/signals.h"
#include "apps/common/usage.h"
#include "apps/kvscope/commands.h"

namespace {

using namespace kvscope::apps;

void add_commands(CLI::App& app, Action& chosen) {
  add_run(app, chosen);
  add_explain(app, chosen);
  add_stage(app, chosen);
  add_golden(app, chosen);
  add_verify(app, chosen);
  add_diagnose(app, chosen);
  add_merge(app, chosen);
  add_trace(app, chosen);
  add_scenario(app, chosen);
  add_tma(app, chosen);
  add_swizzle(app, chosen);
  add_lds(app, chosen);
  add_fragment(app, chosen);
  add_ptx(app, chosen);
  add_kernels(app, chosen);
  add_layout(app, chosen);
  add_dtype(app, chosen);
  add_completion(app, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  CLI::App app{
      "Shows and checks how a paged KV cache maps tokens to pages, rows, bytes, shared memory and registers, and what "
      "attention over it must give.",
      "kvscope"};
  app.set_version_flag("--version", "kvscope " KVSCOPE_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 fine, 1 the check failed, 2 bad input or usage.");

  try {
    Action chosen;
    add_commands(app, chosen);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help and --version
      return app.exit(asked);
    } catch (const CLI::ParseError& error) {
      return usage_fault(app, error, argc > 1 ? argv[1] : "");
    }
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
