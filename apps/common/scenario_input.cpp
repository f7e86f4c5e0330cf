#include "apps/common/scenario_input.h"

#include <filesystem>

#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::apps {

ScenarioInput read_scenario(const std::string& path, const std::optional<std::string>& requests_file) {
  ScenarioInput input;
  input.scenario = load_scenario(path);
  input.requests = make_requests(input.scenario, std::filesystem::path(path).parent_path(), requests_file);
  return input;
}

std::string scenario_text(const Scenario& scenario) {
  return json::dump(to_json(scenario)) + "\n";
}

trace::Meta trace_meta(const Scenario& scenario) {
  return {{"producer", "kvscope " KVSCOPE_VERSION}, {"scenario", scenario_text(scenario)}};
}

}  // namespace kvscope::apps
