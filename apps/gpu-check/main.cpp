// gpu-check: runs every kernel's cases, the probes and the benchmarks on a GPU of this machine, and writes one report.
// Needs only the CUDA driver. Exit codes: 0 all passed, 1 something failed, 2 usage, 77 no GPU.
#include <iostream>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/signals.h"
#include "apps/common/usage.h"
#include "apps/gpu-check/settle_checks.h"
#include "gpu/hardware/check.h"

namespace {

using namespace kvscope;

constexpr int kExitNoGpu = 77;

int run(const gpu::CheckOptions& options, const std::string& one, const std::string& out) {
  if (!one.empty()) {
    gpu::do_one(options.which, one, [](const json::Value& line) { std::cout << json::dump(line, -1) << std::endl; });
    return apps::kExitFine;
  }
  gpu::CheckReport report;
  if (const auto none = gpu::find_device(options, report)) {
    std::cerr << "gpu-check: no GPU to check: " << *none << '\n';
    return kExitNoGpu;
  }
  std::cout << "checking " << report.device.name << std::endl;
  gpu::check(options, report, [](const std::string& doing) { std::cerr << doing << '\n'; });
  const std::string path = gpu::write_report(report, out);
  std::cout << gpu::summary(report) << "written " << path << ".json and .md\n";
  return report.passed() ? apps::kExitFine : apps::kExitCheckFailed;
}

}  // namespace

int main(int argc, char** argv) {
  apps::clean_up_on_signals();
  CLI::App app{
      "Tests a GPU: compares kernels with the CPU model, probes behavior that the manuals leave open, measures times.",
      "gpu-check"};
  apps::set_up_program(app, "0 all passed, 1 something failed, 2 usage, 77 no GPU.");
  gpu::CheckOptions options{
      .which = {}, .probes = false, .cases = false, .instructions = false, .program = "/proc/self/exe"};
  std::string one, out;
  bool in_process = false;
  app.add_option("--device", options.which.device,
                 "cuda: the first GPU of this machine; virtual: the virtual GPU, on the CPU")
      ->check(CLI::IsMember(std::vector<std::string>{"cuda", "virtual"}))
      ->capture_default_str();
  app.add_option("--driver", options.which.driver, "CUDA driver library, by name or path")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--out", out, "Folder for the report (.json and .md); created if missing. Required, except with --one")
      ->type_name("DIR");
  app.add_flag("--cases", options.cases, "Run the test cases of the kernels");
  app.add_flag("--probes", options.probes, "Run the probes of behavior that the manuals leave open");
  app.add_flag("--instructions", options.instructions,
               "Run every instruction that computes, and compare its results with the virtual GPU's");
  app.add_flag("--bench", options.bench,
               "Measure times; needs a GPU [default without these four: --cases --probes --instructions]");
  app.add_option("--kernel", options.which.kernel,
                 "Test and measure this kernel only, a name of 'kvscope kernels list'")
      ->type_name("NAME");
  app.add_flag("--small", options.which.small, "Run one small case per kernel, and one of 16 instructions");
  app.add_option("--blocks", options.which.random_blocks,
                 "Random products that a probe of summation order compares, more for a stronger test")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--time-limit", options.most_silence,
                 "Seconds without a result after which the process of a test is ended")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_flag("--in-process", in_process,
               "Run the tests in this process, for a sanitizer or a debugger, instead of one process each");
  app.add_option("--one", one,
                 "Run one test only and print its results as JSON lines: device, cases:KERNEL/N, probe:ID/PART, "
                 "instructions/N, or bench")
      ->type_name("TEST");
  apps::add_examples(app, {"gpu-check --device virtual --cases --small --kernel gather_rows --out report",
                           "gpu-check --device virtual --one device"});
  try {
    apps::parse_words(app, argc, argv);
    if (out.empty() && one.empty()) throw CLI::RequiredError("--out");
    if (options.bench && options.which.device == "virtual")
      throw CLI::ValidationError("--bench", "the virtual GPU has no clock: leave it out or use --device cuda");
  } catch (const CLI::Success& asked) {  // --help and --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return apps::usage_fault(app, error, argc > 1 ? argv[1] : "");
  }
  if (in_process) options.program.clear();
  try {
    apps::settle_checks(options, one, out, [&app](const std::string& option) { return app.count(option) > 0; });
    return run(options, one, out);
  } catch (const std::exception& error) {
    return apps::print_faults("gpu-check", error);
  }
}
