#include "gpu/verify/run_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::gpu {
namespace {

void hold(std::vector<std::string>& faults, std::string_view what, std::optional<std::int64_t> most, std::int64_t is) {
  if (most && is > *most)
    faults.push_back(fmt::format("{} {} where {} are enough: the kernel moves more than its budget", is, what, *most));
}

}  // namespace

CaseResult run_case(const Case& c, Device& device, Budgets budgets) {
  CaseResult result;
  result.of = &c;
  const auto begin = std::chrono::steady_clock::now();
  try {
    Verdict verdict = c.run(device);
    result.faults = std::move(verdict.faults);
    result.costs = verdict.costs;
  } catch (const std::exception& error) {
    result.faults.emplace_back(error.what());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (device.info().kind == "virtual" && budgets == Budgets::held) {
    hold(result.faults, "shared wavefronts", c.budget.wavefronts, result.costs.wavefronts);
    hold(result.faults, "sectors of global memory", c.budget.sectors, result.costs.sectors);
    hold(result.faults, "bytes by TMA", c.budget.tma_bytes, result.costs.tma_bytes);
  }
  return result;
}

std::vector<const Case*> select_cases(std::string_view kernel, std::string_view part) {
  std::vector<const Case*> chosen;
  std::vector<std::string> names;
  for (const Kernel& k : all_kernels()) {
    names.push_back(k.name);
    if (!kernel.empty() && k.name != kernel) continue;
    for (const Case& c : k.cases)
      if (c.name.find(part) != std::string::npos) chosen.push_back(&c);
  }
  if (!chosen.empty()) return chosen;
  if (kernel.empty() || std::find(names.begin(), names.end(), kernel) != names.end())
    throw InputError("command line", "--case",
                     fmt::format("no case has '{}' in its name: leave it out to see all", part));
  throw InputError("command line", "--kernel",
                   fmt::format("no kernel '{}': one of {}", kernel, fmt::join(names, ", ")));
}

}  // namespace kvscope::gpu
