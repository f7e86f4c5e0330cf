// Reads a scenario and its requests, for each command that takes a scenario.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.h"
#include "core/trace/trace_file.h"

namespace kvscope::apps {

struct ScenarioInput {
  Scenario scenario;
  std::vector<Request> requests;
};

// Throws InputError for a file of another kind, by its ending or first bytes, and names the command that takes it.
void reject_other_kinds(const std::string& path);

// Reads and checks both. `requests_file` replaces the scenario's own requests. Throws InputError with every fault.
[[nodiscard]] ScenarioInput read_scenario(const std::string& path, const std::optional<std::string>& requests_file);

// A scenario as JSON text, as it is stored next to a report and in the metadata of a trace.
[[nodiscard]] std::string scenario_text(const Scenario& scenario);

// The metadata of a trace that name its origin: "producer" and "scenario".
[[nodiscard]] trace::Meta trace_meta(const Scenario& scenario);

}  // namespace kvscope::apps
