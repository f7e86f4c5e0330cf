// kvscope explain SCENARIO --seq S --token T: prints every link from a token to its byte, bank and register, with the
// formula and its numbers. With --shared-address A, or --lane L --register R, it finds the element there first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/pipeline/run_scenario.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/locate_staged.h"

namespace kvscope::apps {
namespace {

struct ExplainCommand {
  std::string scenario;
  std::optional<std::string> requests;
  std::int64_t seq = 0, layer = 0, head = 0, dim = 0;
  std::optional<std::int64_t> token, step;
  std::optional<std::int64_t> shared_address, lane, reg;  // the place to search
  std::int64_t tile = 0, wave = 0, k_step = 0;
  std::string path = "tma";
  std::string kv = "k";
  bool json = false;
};

// The step of --step; -1 selects the step with the most filled slots, as in `stage`. nullopt without --step.
std::optional<StepIdx> step_of(const ExplainCommand& command, const ScenarioInput& input) {
  if (!command.step || *command.step >= 0) return command.step ? std::optional(StepIdx{*command.step}) : std::nullopt;
  Scenario scenario = input.scenario;
  scenario.focus.step = -1;
  trace::Recorder off;
  return focus_step(scenario, run_engine(scenario, input.requests, off).report);
}

trace::Question forward(const ExplainCommand& command, const ScenarioInput& input) {
  trace::Question question;
  question.seq = SeqIdx{command.seq};
  question.token = TokIdx{*command.token};
  question.layer = LayerIdx{command.layer};
  question.head = HeadIdx{command.head};
  question.dim = DimIdx{command.dim};
  question.kv = command.kv == "k" ? KOrV::k : KOrV::v;
  if (const auto step = step_of(command, input)) question.step = *step;
  return question;
}

bool is_backward(const ExplainCommand& command) {
  return command.shared_address || command.lane || command.reg;
}

void check_options(const ExplainCommand& command) {
  std::vector<Fault> faults;
  if (command.step && *command.step < -1) {
    faults.push_back(
        {"--step", fmt::format("{} is below -1, which selects the step with the most filled slots", *command.step)});
  }
  if (!is_backward(command) && !command.token) {
    faults.push_back({"--token", "is required, unless a place is given: --shared-address, or --lane with --register"});
  }
  if (is_backward(command) && command.token) {
    faults.push_back(
        {"--token", "cannot be combined with a place (--shared-address, --lane, --register): give one of both"});
  }
  if (command.shared_address && (command.lane || command.reg)) {
    faults.push_back({"--shared-address", "cannot be combined with --lane and --register: give one place"});
  }
  if (command.lane.has_value() != command.reg.has_value()) {
    faults.push_back({command.lane ? "--register" : "--lane", "is required: a lane has many registers"});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

// The step's cache: --step, or the last step of the sequence.
CacheState state_of(const ExplainCommand& command, const ScenarioInput& input) {
  check_index("sequence", command.seq, std::ssize(input.requests), "sequences are numbered by arrival");
  check_index("layer", command.layer, input.scenario.model.layers, "layers of the scenario's model");
  check_index("KV head", command.head, input.scenario.model.kv_heads, "KV heads of the scenario's model");
  check_index("dim", command.dim, input.scenario.model.head_size, "elements of a head");
  if (command.kv == "v" && input.scenario.model.is_mla) {
    throw UnsupportedError("an MLA cache stores K only, and V is the first elements of K: use --kv k");
  }
  std::optional<StepIdx> step = step_of(command, input);
  if (!step) step = last_step_of(input.scenario, input.requests, SeqIdx{command.seq}, TokIdx{0});
  if (!step) {
    throw IndexError(fmt::format("sequence {} never stores a token: a rejected request has no cache", command.seq));
  }
  return state_at(input.scenario, input.requests, *step).cache;
}

std::string element_text(const trace::Question& q) {
  return fmt::format("{} of token {}, dim {}", q.kv == KOrV::k ? "K" : "V", q.token.value, q.dim.value);
}

// The elements stored at the place; the first one is explained.
std::vector<trace::Question> backward(const ExplainCommand& command, const ScenarioInput& input,
                                      const CacheState& state) {
  TileQuestion question;
  question.path = command.path == "tma" ? StagingPath::tma : StagingPath::lds;
  question.seq = SeqIdx{command.seq};
  question.layer = LayerIdx{command.layer};
  question.head = HeadIdx{command.head};
  question.kv = command.kv == "k" ? KOrV::k : KOrV::v;
  question.tile = command.tile;
  question.step = command.k_step;
  question.dim = DimIdx{command.dim};
  if (command.shared_address) return {locate_shared(input.scenario, state, question, *command.shared_address)};
  check_index("--lane", *command.lane, 64, "lanes of a wave; a warp has 32");
  return locate_register(input.scenario, state, question, WaveIdx{command.wave}, static_cast<int>(*command.lane),
                         *command.reg);
}

// The chain, and behind it, where a terminal shows it, the short answer.
std::string whole_text(const trace::Explanation& explanation) {
  return to_text(explanation) + "\n" + places_text(explanation);
}

int explain_backward(const ExplainCommand& command, const ScenarioInput& input) {
  const CacheState state = state_of(command, input);
  const std::vector<trace::Question> found = backward(command, input, state);
  const trace::Explanation explanation = explain(input.scenario, input.requests, found.front(), state);
  if (command.json) {
    std::cout << json::dump(to_json(explanation)) << '\n';
    return kExitFine;
  }
  std::vector<std::string> elements;
  for (const trace::Question& element : found) elements.push_back(element_text(element));
  std::cout << fmt::format("{} holds {}\n\n",
                           command.shared_address ? fmt::format("shared byte {}", *command.shared_address)
                                                  : fmt::format("register {} of lane {}", *command.reg, *command.lane),
                           fmt::join(elements, "; "))
            << whole_text(explanation);
  return kExitFine;
}

int run(const ExplainCommand& command) {
  check_options(command);
  const ScenarioInput input = read_scenario(command.scenario, command.requests);
  if (is_backward(command)) return explain_backward(command, input);
  const trace::Explanation explanation = explain(input.scenario, input.requests, forward(command, input));
  std::cout << (command.json ? json::dump(to_json(explanation)) + "\n" : whole_text(explanation));
  return kExitFine;
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ExplainCommand>();
  CLI::App* explain_app = app.add_subcommand(
      "explain", "Follow one token to its page, byte, bank and register, or find the element that a register holds");
  explain_app->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  explain_app->add_option("--seq", command->seq, "Sequence: index of its request in order of arrival, from 0")
      ->required();
  explain_app->add_option("--token", command->token,
                          "Position of the token in its sequence, from 0. Required, unless a place is given");
  explain_app->add_option("--layer", command->layer, "Layer, from 0")->capture_default_str();
  explain_app->add_option("--head", command->head, "KV head, from 0")->capture_default_str();
  explain_app->add_option("--dim", command->dim, "Element of the head, from 0")->capture_default_str();
  explain_app->add_option("--kv", command->kv, "Tensor: K or V")
      ->check(CLI::IsMember(std::vector<std::string>{"k", "v"}))
      ->capture_default_str();
  explain_app->add_option("--step", command->step,
                          "Engine step, from 0; -1 selects the step with the most filled slots [default: the last "
                          "step that computed a token of the sequence]");
  explain_app
      ->add_option("--requests", command->requests, "Recorded requests (.csv, .jsonl) to replace the scenario's own")
      ->type_name("FILE");
  explain_app->add_flag("--json", command->json, "Print the explanation as JSON");
  const std::string backward = "Find the element stored in a place, instead of --token";
  explain_app->add_option("--shared-address", command->shared_address, "Byte address in the staged tile")
      ->type_name("BYTE")
      ->group(backward);
  explain_app->add_option("--lane", command->lane, "Lane of the warp or wave, together with --register")
      ->group(backward);
  explain_app->add_option("--register", command->reg, "32-bit register of the lane, from 0")->group(backward);
  explain_app->add_option("--wave", command->wave, "Wave; with --path tma, the warp when several warps share a k-step")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(backward);
  explain_app->add_option("--k-step", command->k_step, "Number of the k-step, for a tile that is loaded in several")
      ->capture_default_str()
      ->group(backward);
  explain_app->add_option("--tile", command->tile, "Tile of the sequence, from 0")
      ->capture_default_str()
      ->group(backward);
  explain_app->add_option("--path", command->path, "How the tile was staged: by TMA, or through LDS by waves")
      ->check(CLI::IsMember(std::vector<std::string>{"tma", "lds"}))
      ->capture_default_str()
      ->group(backward);
  add_examples(*explain_app, {"kvscope explain apps/scenarios/first_light.json --seq 0 --token 5",
                              "kvscope explain apps/scenarios/mla.json --seq 0 --lane 3 --register 1"});
  explain_app->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
