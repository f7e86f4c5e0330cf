// kvscope explain SCENARIO --seq S --token T: every link from a token to its byte, with the formula and its numbers.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/pipeline/explain.h"

namespace kvscope::apps {
namespace {

struct ExplainCommand {
  std::string scenario;
  std::optional<std::string> requests;
  std::int64_t seq = 0, token = 0, layer = 0, head = 0, dim = 0;
  std::optional<std::int64_t> step;
  std::string kv = "k";
  bool json = false;
};

int run(const ExplainCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, command.requests);
  trace::Question question;
  question.seq = SeqIdx{command.seq};
  question.token = TokIdx{command.token};
  question.layer = LayerIdx{command.layer};
  question.head = HeadIdx{command.head};
  question.dim = DimIdx{command.dim};
  question.kv = command.kv == "k" ? KOrV::k : KOrV::v;
  if (command.step) {
    if (*command.step < 0)
      throw InputError("command line", "--step", fmt::format("{} is below 0, the first step", *command.step));
    question.step = StepIdx{*command.step};
  }
  const trace::Explanation explanation = explain(input.scenario, input.requests, question);
  std::cout << (command.json ? json::dump(to_json(explanation)) + "\n" : to_text(explanation));
  return kExitFine;
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ExplainCommand>();
  CLI::App* explain_app = app.add_subcommand("explain", "Follow one token to its page, block, row and byte");
  explain_app->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  explain_app->add_option("--seq", command->seq, "Sequence: the n-th request by arrival, from 0")->required();
  explain_app->add_option("--token", command->token, "Token's position in the sequence")->required();
  explain_app->add_option("--layer", command->layer, "Layer")->capture_default_str();
  explain_app->add_option("--head", command->head, "KV head")->capture_default_str();
  explain_app->add_option("--dim", command->dim, "Element of the head")->capture_default_str();
  explain_app->add_option("--kv", command->kv, "Which of the two")
      ->check(CLI::IsMember(std::vector<std::string>{"k", "v"}))
      ->capture_default_str();
  explain_app->add_option("--step", command->step,
                          "Engine step; default: the last that computed a token of the sequence");
  explain_app->add_option("--requests", command->requests,
                          "Recorded requests in place of the scenario's (.csv, .jsonl)");
  explain_app->add_flag("--json", command->json, "Print the links as JSON");
  explain_app->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
