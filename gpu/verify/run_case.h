// Runs one case on one device; an exception becomes a fault of the case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/verify/case.h"

namespace kvscope::gpu {

struct CaseResult {
  const Case* of = nullptr;
  std::vector<std::string> faults;  // of the verdict, of the budget, or from an exception; empty: passed
  Costs costs;
  double seconds = 0;
  [[nodiscard]] bool passed() const { return faults.empty(); }
};

// Budgets apply to the virtual GPU with policy late: under other schedules a warp may test a barrier more often.
enum class Budgets : std::uint8_t { held, left_alone };
[[nodiscard]] CaseResult run_case(const Case& c, Device& device, Budgets budgets = Budgets::held);

// The cases of a kernel ("": all) whose name contains `part`. Throws InputError with the list of kernels if none
// matches.
[[nodiscard]] std::vector<const Case*> select_cases(std::string_view kernel, std::string_view part);

}  // namespace kvscope::gpu
