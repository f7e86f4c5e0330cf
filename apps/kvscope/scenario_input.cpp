#include "apps/kvscope/scenario_input.h"

#include <filesystem>

#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::apps {

ScenarioInput read_scenario(const std::string& path, const std::optional<std::string>& requests_file) {
  ScenarioInput input;
  input.scenario = load_scenario(path);
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (requests_file) {
    input.scenario.requests = {};
    input.scenario.requests.file = RequestFile{*requests_file};
    folder = "";
  }
  input.requests = make_requests(input.scenario, folder);
  return input;
}

}  // namespace kvscope::apps
