// One case on one device, whatever happens in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/verify/case.h"

namespace kvscope::gpu {

struct CaseResult {
  const Case* of = nullptr;
  std::vector<std::string> faults;  // of the verdict, of the budget, or what was thrown; empty: passed
  Costs costs;
  double seconds = 0;
  [[nodiscard]] bool passed() const { return faults.empty(); }
};

// Budgets are of the virtual GPU whose copies come late: under another schedule a warp may look at a barrier more often.
enum class Budgets : std::uint8_t { held, left_alone };
[[nodiscard]] CaseResult run_case(const Case& c, Device& device, Budgets budgets = Budgets::held);

// Those of a kernel ("": all) whose name contains `part`. InputError naming the kernels there are when none is left.
[[nodiscard]] std::vector<const Case*> select_cases(std::string_view kernel, std::string_view part);

}  // namespace kvscope::gpu
