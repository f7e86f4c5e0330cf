// The report of a run, as text for a terminal and as JSON for programs.
#pragma once

#include <string>

#include "core/base/json.h"
#include "core/pipeline/run_scenario.h"

namespace kvscope {

// Every invariant held, and both second computations agree with the golden (or there is no golden, with a reason).
[[nodiscard]] bool passed(const RunOutcome& outcome);

[[nodiscard]] std::string to_text(const Scenario& scenario, const RunOutcome& outcome);
[[nodiscard]] json::Value to_json(const Scenario& scenario, const RunOutcome& outcome);

}  // namespace kvscope
