// Runs cases on the virtual GPU: kvscope_gpu_verify_runner [--kernel K] [--case PART] [--policy late|early|seed:N] [--list]
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/run_case.h"

int main(int argc, char** argv) try {
  using namespace kvscope::gpu;
  std::string kernel, part;
  VirtualGpuOptions options;
  bool list = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list")
      list = true;
    else if (word == "--kernel")
      kernel = argv[++i];
    else if (word == "--case")
      part = argv[++i];
    else if (word == "--policy") {
      const std::string policy = argv[++i];
      options.policy = policy == "late"    ? kvscope::ptx::Policy::late
                       : policy == "early" ? kvscope::ptx::Policy::early
                                           : kvscope::ptx::Policy::seeded;
      if (policy.starts_with("seed:")) options.seed = std::stoull(policy.substr(5));
    } else
      return 2;
  }
  int failed = 0;
  double seconds = 0;
  for (const Case* c : select_cases(kernel, part)) {
    if (list) {
      fmt::print("{:20} {:40} {}\n", c->kernel, c->name, c->what);
      continue;
    }
    options.architecture = c->architecture;
    VirtualGpu device(options);
    const CaseResult result = run_case(*c, device);
    seconds += result.seconds;
    fmt::print(
        "{} {:20} {:40} {:6.2f} s  {} instructions, wavefronts {} (ideal {}), sectors {} (ideal {}), TMA bytes {}\n",
        result.passed() ? "ok  " : "FAIL", c->kernel, c->name, result.seconds, result.costs.instructions,
        result.costs.wavefronts, result.costs.ideal_wavefronts, result.costs.sectors, result.costs.ideal_sectors,
        result.costs.tma_bytes);
    for (const std::string& fault : result.faults) fmt::print("     {}\n", fault);
    if (!result.passed()) ++failed;
  }
  fmt::print("{} failed, {:.1f} s\n", failed, seconds);
  return failed == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
