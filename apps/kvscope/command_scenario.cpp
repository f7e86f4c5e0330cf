// kvscope scenario check|schema|presets: checks a scenario, or prints the file format or the presets; runs nothing.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "core/scenario/presets.h"
#include "core/scenario/schema.h"

namespace kvscope::apps {
namespace {

struct CheckCommand {
  std::string scenario;
  std::optional<std::string> requests;
};

int check(const CheckCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, command.requests);
  std::int64_t prompt = 0, generate = 0;
  for (const Request& request : input.requests) {
    prompt += request.prompt_tokens;
    generate += request.generate_tokens;
  }
  std::cout << fmt::format("{}: fine{}\n  requests            {}\n  prompt tokens       {}\n  tokens to generate  {}\n",
                           command.scenario, input.scenario.name.empty() ? "" : ", '" + input.scenario.name + "'",
                           input.requests.size(), prompt, generate);
  return kExitFine;
}

int print_presets() {
  std::cout << fmt::format("{:<15} {:>6} {:>12} {:>9} {:>10} {:>11}\n", "name", "layers", "query heads", "kv heads",
                           "head size", "value size");
  for (const ModelPreset& preset : model_presets()) {
    const ModelGeometry& model = preset.model;
    std::cout << fmt::format("{:<15} {:>6} {:>12} {:>9} {:>10} {:>11}   {}{}\n", model.name, model.layers,
                             model.query_heads, model.kv_heads, model.head_size, model.value_size, preset.title,
                             model.is_mla ? " (MLA)" : "");
  }
  return kExitFine;
}

}  // namespace

void add_scenario(CLI::App& app, Action& chosen) {
  CLI::App* scenario =
      app.add_subcommand("scenario", "Check a scenario file, or print the file format and the model presets");
  scenario->require_subcommand(1);
  const auto command = std::make_shared<CheckCommand>();
  CLI::App* check_app =
      scenario->add_subcommand("check", "Check a scenario and its requests, and report all faults at once");
  check_app->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  check_app
      ->add_option("--requests", command->requests, "Recorded requests (.csv, .jsonl) to replace the scenario's own")
      ->type_name("FILE");
  add_examples(*check_app, {"kvscope scenario check apps/scenarios/first_light.json"});
  check_app->callback([command, &chosen] { chosen = [command] { return check(*command); }; });
  CLI::App* schema_app = scenario->add_subcommand("schema", "Print the JSON Schema of scenario files");
  add_examples(*schema_app, {"kvscope scenario schema > scenario.schema.json"});
  schema_app->callback([&chosen] {
    chosen = [] {
      std::cout << scenario_schema();
      return kExitFine;
    };
  });
  CLI::App* presets_app = scenario->add_subcommand("presets", "List the model presets that a scenario can name");
  add_examples(*presets_app, {"kvscope scenario presets"});
  presets_app->callback([&chosen] { chosen = [] { return print_presets(); }; });
  add_examples(*scenario, {"kvscope scenario check apps/scenarios/first_light.json"});
}

}  // namespace kvscope::apps
