#include "apps/common/scenario_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::apps {
namespace {

// What a file of another kind is, and which command takes it, by its ending or else its first bytes; empty for any
// other file. InputError: it cannot be read.
std::string other_kind(const std::filesystem::path& path) {
  struct Kind {
    std::string_view ending, words;
  };
  constexpr std::string_view kRun = "is a recorded run: open it with `kvscope trace show {0}` or kvscope-viewer";
  constexpr std::string_view kTensors =
      "is a file of tensors: pass it as `kvscope golden --input {0}`, or to kvscope lint, layout detect or convert";
  constexpr std::string_view kTraffic =
      "is recorded traffic, which a scenario runs: `kvscope run SCENARIO --requests {0}`, or \"requests\": {{\"file\": "
      "{{\"path\": \"{0}\"}}}} in the scenario";
  constexpr Kind kKinds[] = {{".npz", kTensors},
                             {".npy", kTensors},
                             {".safetensors", kTensors},
                             {".kvt", kRun},
                             {".csv", kTraffic},
                             {".jsonl", kTraffic},
                             {".ptx", "is a compiled kernel: run it with `kvscope ptx run {0}`"}};
  for (const Kind& kind : kKinds) {
    if (path.extension() == kind.ending) return fmt::format(fmt::runtime(kind.words), path.string());
  }
  const std::string start = read_file_start(path, 64);
  if (start.starts_with("SQLite format 3")) return fmt::format(fmt::runtime(kRun), path.string());
  if (start.find("\"kvscope_grade\"") != std::string::npos) {
    return fmt::format("is the result of a lab's check: open it with kvscope-viewer {}", path.string());
  }
  return "";
}

}  // namespace

void reject_other_kinds(const std::string& path) {
  std::error_code unread;  // load_scenario names the reason
  if (!std::filesystem::is_regular_file(path, unread)) return;
  if (const std::string kind = other_kind(path); !kind.empty())
    throw InputError(path, "", "is not a scenario (JSON). It " + kind);
}

ScenarioInput read_scenario(const std::string& path, const std::optional<std::string>& requests_file) {
  ScenarioInput input;
  reject_other_kinds(path);
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
