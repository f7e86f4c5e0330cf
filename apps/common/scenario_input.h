// What every command that takes a scenario needs: the file, its requests, and the folder that paths in it start from.
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

// Reads and checks both. `requests_file` replaces the scenario's own requests. Throws InputError with every fault.
[[nodiscard]] ScenarioInput read_scenario(const std::string& path, const std::optional<std::string>& requests_file);

// A scenario as files keep it: beside a report, and in the meta of a trace.
[[nodiscard]] std::string scenario_text(const Scenario& scenario);

// What a trace of a run says of where it comes from: "producer" and "scenario".
[[nodiscard]] trace::Meta trace_meta(const Scenario& scenario);

}  // namespace kvscope::apps
