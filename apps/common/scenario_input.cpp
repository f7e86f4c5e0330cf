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

}  // namespace kvscope::apps
