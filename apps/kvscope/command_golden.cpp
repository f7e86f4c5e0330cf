// kvscope golden: writes the reference attention output, over a scenario's cache or over a user's tensors.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/common/bundle_input.h"
#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/progress.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/layout_choice.h"
#include "core/attention/bounds.h"
#include "core/attention/fast.h"
#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "core/base/report.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layouts.h"
#include "core/pipeline/run_scenario.h"
#include "core/pipeline/scenario_bundle.h"

namespace kvscope::apps {
namespace {

constexpr const char* kWithScenario = "Options with SCENARIO";
constexpr const char* kWithTensors = "Options with --input";
constexpr const char* kProducer = "kvscope " KVSCOPE_VERSION;

struct GoldenCommand {
  std::optional<std::string> scenario;
  std::optional<std::string> requests;
  std::optional<std::int64_t> step;

  std::optional<std::string> input;
  LayoutChoice layout;  // its layer is used with SCENARIO too
  std::string mask = "causal";
  std::string alignment = "bottom_right";
  std::int64_t window_left = -1, window_right = 0, chunk = 0;
  std::optional<double> scale, soft_cap;
  std::string lse_base = "natural";
  std::string empty_lse = "-inf";
  bool lint = false;
  std::string accuracy = "strict";

  std::string out;
  bool inputs_only = false, outputs_only = false;
  std::optional<std::string> candidate;
  std::string candidate_dtype = "f32";

  // Options given, and those of them that belong to the other kind of input; filled while parsing.
  std::vector<std::string> given, only_scenario, only_input;
};

attention::LseBase lse_base(const GoldenCommand& command) {
  return command.lse_base == "two" ? attention::LseBase::two : attention::LseBase::natural;
}
attention::EmptyRow empty_row(const GoldenCommand& command) {
  return command.empty_lse == "+inf" ? attention::EmptyRow::plus_infinity : attention::EmptyRow::minus_infinity;
}

void write_candidate(const GoldenCommand& command, const attention::Problem& problem) {
  if (!command.candidate) return;
  const DType output = *dtype_from_name(command.candidate_dtype);
  attention::TiledConfig config;
  config.probabilities = output;
  config.output = output;
  golden::save_bundle(*command.candidate, candidate_bundle(attention::tiled(problem, config), output, problem.options));
  std::cout << fmt::format("candidate  {}: the same attention computed tile by tile, in {}\n", *command.candidate,
                           command.candidate_dtype);
}

constexpr std::pair<const char*, MaskKind> kMasks[] = {{"none", MaskKind::none},
                                                       {"causal", MaskKind::causal},
                                                       {"sliding_window", MaskKind::sliding_window},
                                                       {"chunked", MaskKind::chunked}};

void print_result(const GoldenCommand& command, const attention::Problem& problem) {
  std::int64_t keys = 0;
  for (const std::int64_t length : problem.key_lengths) keys += length;
  std::cout << fmt::format("{}     {}: {}, {}, {}, {} on {}, head size {}\n",
                           command.inputs_only    ? "inputs"
                           : command.outputs_only ? "output"
                                                  : "golden",
                           command.out, counted(problem.batch, "sequence"),
                           counted(problem.total_queries(), "query", "queries"), counted(keys, "key"),
                           counted(problem.query_heads, "query head"), counted(problem.k.heads, "KV head"),
                           problem.k.head_size);
  std::cout << "convention" << golden::conventions_text(problem.options) << "\n";
  if (!command.inputs_only) return;
  std::cout << fmt::format("next       kvscope golden --input {} --out {} computes the expected values\n", command.out,
                           golden::golden_name_of(command.out));
}

// Largest errors of o and lse, and how many rows have none because floats do not hold their values.
std::string accuracy_text(double o_error, std::string_view lse, double lse_error, std::string_view next,
                          std::size_t strict_rows, std::size_t rows) {
  std::string text =
      fmt::format("accuracy   fast: o within {:.2g}, {} within {:.2g}; {}", o_error, lse, lse_error, next);
  if (strict_rows > 0) text += fmt::format(". {} of {} rows in double, without error", strict_rows, rows);
  return text + "\n";
}

std::string accuracy_text(const attention::Result& result) {
  double o_error = 0;
  double lse_error = 0;
  std::size_t strict_rows = 0;
  for (std::size_t query = 0; query < result.o.shape(0); ++query) {
    for (std::size_t head = 0; head < result.o.shape(1); ++head) {
      const attention::RowTerms row = attention::row_terms(result, query, head, 1);
      if (row.score_error == 0) ++strict_rows;
      lse_error = std::max(lse_error, row.score_error);
      for (std::size_t dim = 0; dim < result.o.shape(2); ++dim) {
        o_error = std::max(
            o_error, attention::output_budget({}, row, attention::element_terms(result, query, head, dim)).golden);
      }
    }
  }
  return accuracy_text(o_error, "natural lse", lse_error, "kvscope verify adds these errors", strict_rows,
                       result.lse.size());
}

std::string accuracy_text(const attention::Output& output) {
  double o_error = 0, lse_error = 0;
  for (const double error : output.o_error) o_error = std::max(o_error, error);
  for (const double error : output.lse_error) lse_error = std::max(lse_error, error);
  return accuracy_text(o_error, "lse", lse_error, "o_error and lse_error have the errors of each row",
                       static_cast<std::size_t>(std::ranges::count(output.lse_error, 0.0)), output.lse_error.size());
}

struct Answer {
  golden::Bundle bundle;
  std::string accuracy;  // a line to print; empty: strict
};

Answer compute(const GoldenCommand& command, const attention::Problem& problem, const golden::Origin& origin) {
  const bool fast = command.accuracy == "fast";
  if (command.outputs_only) {
    const attention::Output output = fast ? attention::fast_output(problem) : attention::reference_output(problem);
    return {golden::output_bundle(problem, output, origin), fast ? accuracy_text(output) : ""};
  }
  const attention::Result result = fast ? attention::fast_reference(problem) : attention::reference(problem);
  return {golden::golden_bundle(problem, result, origin), fast ? accuracy_text(result) : ""};
}

int over_scenario(const GoldenCommand& command) {
  ScenarioInput input = read_scenario(*command.scenario, command.requests);
  if (command.step) input.scenario.focus.step = *command.step;  // checked against the run below
  if (const auto layer = command.layout.layer) {
    check_index("--layer", *layer, input.scenario.model.layers);
    input.scenario.focus.layer = *layer;
  }
  trace::Recorder off;
  EngineRun engine;
  {
    Progress progress("requests");
    engine = run_engine(input.scenario, input.requests, off,
                        {0, [&](std::int64_t done, std::int64_t all) { return progress.show(done, all), true; }});
  }
  if (command.step) check_index("--step", *command.step, engine.report.steps, "steps of the run");
  const StepIdx step = focus_step(input.scenario, engine.report);
  GoldenOptions options;
  options.lse_base = lse_base(command);
  options.empty_row = empty_row(command);
  const GoldenRun run = run_golden(input.scenario, state_at(input.scenario, input.requests, step), options);
  golden::Bundle bundle = scenario_bundle(input.scenario, run, kProducer);
  golden::save_bundle(command.out, command.inputs_only ? golden::without_answer(std::move(bundle)) : bundle);
  print_result(command, run.attention.problem);
  write_candidate(command, run.attention.problem);
  return run.second_path.passed() && run.kernel_flow.passed() ? kExitFine : kExitCheckFailed;
}

// `options` with the conventions of the command line.
golden::LayoutOptions layout_options(const GoldenCommand& command, golden::LayoutOptions options) {
  options.scale = command.scale;
  attention::Options& attention = options.attention;
  attention.mask = std::ranges::find_if(kMasks, [&](const auto& mask) { return mask.first == command.mask; })->second;
  attention.alignment = command.alignment == "top_left" ? CausalAlignment::top_left : CausalAlignment::bottom_right;
  attention.window_left = command.window_left;
  attention.window_right = command.window_right;
  attention.chunk = command.chunk;
  attention.soft_cap = command.soft_cap;
  attention.lse_base = lse_base(command);
  attention.empty_row = empty_row(command);
  return options;
}

// The command with each convention that was not given as the manifest of a bundle of inputs states it. A convention
// is no property of the tensors: one that is given replaces the manifest's.
GoldenCommand with_manifest(GoldenCommand command, const golden::LayoutOptions& stated) {
  const auto set = [&](const char* option, auto& to, auto value) {
    if (std::ranges::count(command.given, option) == 0) to = std::move(value);
  };
  const attention::Options& attention = stated.attention;
  set("--mask", command.mask, std::string(std::ranges::find_if(kMasks, [&](const auto& mask) {
                                            return mask.second == attention.mask;
                                          })->first));
  set("--alignment", command.alignment,
      std::string(attention.alignment == CausalAlignment::top_left ? "top_left" : "bottom_right"));
  set("--window-left", command.window_left, attention.window_left);
  set("--window-right", command.window_right, attention.window_right);
  set("--chunk", command.chunk, attention.chunk);
  set("--scale", command.scale, stated.scale);
  set("--soft-cap", command.soft_cap, attention.soft_cap);
  set("--lse-base", command.lse_base, std::string(attention.lse_base == attention::LseBase::two ? "two" : "natural"));
  set("--empty-lse", command.empty_lse,
      std::string(attention.empty_row == attention::EmptyRow::plus_infinity ? "+inf" : "-inf"));
  return command;
}

struct Idle {
  const char* option;
  bool used;
  std::string given;   // what makes it unused
  std::string needed;  // empty: nothing else can be passed
};

bool is_given(const GoldenCommand& command, const char* option) {
  return std::ranges::count(command.given, option) > 0;
}
std::string stated_by(const GoldenCommand& command) {
  return fmt::format(", which the manifest of '{}' states", *command.input);
}

std::vector<Fault> faults_of(const GoldenCommand& command, std::span<const Idle> idles) {
  std::vector<Fault> faults;
  for (const Idle& idle : idles) {
    if (idle.used || !is_given(command, idle.option)) continue;
    faults.push_back({idle.option, fmt::format("has no effect with {}: remove it{}", idle.given,
                                               idle.needed.empty() ? "" : ", or pass " + idle.needed)});
  }
  return faults;
}
void throw_if_any(std::vector<Fault> faults) {
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

// Options that the layout, or --inputs-only, would ignore.
std::vector<Fault> options_idle_in_layout(const GoldenCommand& command, const golden::LayoutOptions& options) {
  const bool is_stated = !is_given(command, "--layout") && !is_given(command, "--axes");
  const std::string layout = is_stated ? fmt::format("layout '{}'{}", options.layout, stated_by(command))
                             : command.layout.axes.empty() ? "--layout " + options.layout
                                                           : "--axes";
  const bool has_head_size = golden::layout_of(options).has_axis("head*dim");
  const char* computed = "it when you compute the golden output";
  const Idle idles[] = {{"--value-size", golden::layout_of(options).needs_value_size(), layout,
                         is_stated ? "" : "--layout mla or --layout max"},
                        {"--head-size", has_head_size, layout,
                         is_stated ? "" : "a layout with one axis for heads and elements, such as lmcache"},
                        {"--accuracy", !command.inputs_only, "--inputs-only", computed},
                        {"--outputs-only", !command.inputs_only, "--inputs-only", computed}};
  return faults_of(command, idles);
}

// Options that the mask would ignore. `has_conventions`: the mask is the manifest's, unless --mask is given.
std::vector<Fault> options_idle_in_mask(const GoldenCommand& command, bool has_conventions) {
  const std::string mask =
      "--mask " + command.mask + (has_conventions && !is_given(command, "--mask") ? stated_by(command) : "");
  const Idle idles[] = {{"--window-left", command.mask == "sliding_window", mask, "--mask sliding_window"},
                        {"--window-right", command.mask == "sliding_window", mask, "--mask sliding_window"},
                        {"--chunk", command.mask == "chunked", mask, "--mask chunked"}};
  std::vector<Fault> faults = faults_of(command, idles);
  if (is_given(command, "--mask") && command.mask == "sliding_window" && command.window_left == -1 &&
      command.window_right == 0 && !is_given(command, "--window-left") && !is_given(command, "--window-right")) {
    faults.push_back({"--mask",
                      "sliding_window needs the size of the window: pass --window-left N, the number of keys "
                      "before the query's position that it sees"});
  }
  if (is_given(command, "--mask") && command.mask == "chunked" && !is_given(command, "--chunk")) {
    faults.push_back({"--mask", "chunked needs the length of a chunk: pass --chunk N, in tokens"});
  }
  return faults;
}

golden::PreparedProblem prepare(const GoldenCommand& command, const golden::Bundle& bundle,
                                const golden::LayoutOptions& options) {
  try {
    return golden::prepare_problem(bundle, options, *command.input);
  } catch (const InputError& error) {
    if (golden::states_layout(bundle)) throw;
    throw_with_fitting_layouts(error, bundle, command.layout, *command.input, "--layout");
  }
}

// Rejects options that these tensors make idle. A mask tensor states the keys of each query: what the command line
// states of them would be ignored.
void reject_options_of_other_tensors(const GoldenCommand& command, const golden::PreparedProblem& prepared) {
  std::vector<Fault> faults;
  const std::string& tensor = prepared.mask_tensor;
  if (is_given(command, "--granularity") && prepared.problem.k.scales == nullptr &&
      prepared.problem.v.scales == nullptr) {
    faults.push_back({"--granularity", "has no effect: the input has no block scales; remove it"});
  }
  // Without a mask, only ALiBi measures from the position of a query.
  if (is_given(command, "--alignment") && tensor.empty() && command.mask == "none" && prepared.alibi_slopes.empty()) {
    const std::string stated = is_given(command, "--mask") ? "" : stated_by(command);
    faults.push_back({"--alignment", fmt::format("has no effect with --mask none{}: remove it, or pass --mask causal, "
                                                 "sliding_window or chunked",
                                                 stated)});
  }
  for (const char* option : {"--mask", "--alignment"}) {
    if (tensor.empty() || !is_given(command, option)) continue;
    faults.push_back({option, fmt::format("has no effect with {0}, which states the keys of each query: remove it, or "
                                          "pass --ignore {0}",
                                          tensor)});
  }
  throw_if_any(std::move(faults));
}

int over_tensors(const GoldenCommand& given) {
  const auto chosen = given_layout(given.layout, "--layout");
  // Before the file is read, which may be large, unless there may be faults of the mask too, which it may state.
  if (chosen && options_idle_in_mask(given, false).empty()) throw_if_any(options_idle_in_layout(given, *chosen));
  const golden::Bundle bundle = open_bundle(*given.input);
  golden::LayoutOptions options = layout_of_input(bundle, given.layout, chosen, *given.input, "--layout");
  const bool has_conventions = golden::states_conventions(bundle);
  const GoldenCommand command = has_conventions ? with_manifest(given, options) : given;
  std::vector<Fault> idle = options_idle_in_mask(command, has_conventions);
  std::ranges::copy(options_idle_in_layout(command, options), std::back_inserter(idle));
  throw_if_any(std::move(idle));
  options = layout_options(command, std::move(options));
  const golden::PreparedProblem prepared = prepare(command, bundle, options);
  reject_options_of_other_tensors(command, prepared);
  for (const std::string& warning : prepared.warnings) std::cerr << "kvscope: warning: " << warning << "\n";
  for (const std::string& note : prepared.notes) {
    if (command.lint) std::cerr << "kvscope: note: " << note << "\n";
  }
  if (command.inputs_only) {
    golden::save_bundle(command.out, golden::inputs_bundle(bundle, prepared, options, kProducer));
    print_result(command, prepared.problem);
    return kExitFine;
  }
  Answer answer = compute(command, prepared.problem, {kProducer, options.layout, {}});
  answer.bundle.manifest.set("inputs", golden::inputs_manifest(options, *command.input));
  golden::save_bundle(command.out, answer.bundle);
  if (const std::string rows = golden::non_finite_rows(answer.bundle); !rows.empty()) {
    std::cerr << "kvscope: warning: " << rows << "\n";
  }
  print_result(command, prepared.problem);
  std::cout << answer.accuracy;
  for (const std::string& scales : prepared.scales) std::cout << "scales     " << scales << "\n";
  write_candidate(command, prepared.problem);
  return kExitFine;
}

int run(const GoldenCommand& command) {
  if (command.scenario.has_value() == command.input.has_value()) {
    throw InputError("command line", "golden", "give either a SCENARIO or --input TENSORS, and not both");
  }
  if (command.scenario) reject_other_kinds(*command.scenario);  // before its options: the file was meant for --input
  std::vector<Fault> faults;
  for (const std::string& option : command.scenario ? command.only_input : command.only_scenario) {
    faults.push_back({option, command.scenario
                                  ? "applies only to --input: with SCENARIO, mask, scale and types come from the "
                                    "scenario file; 'kvscope scenario schema' prints its keys"
                                  : "applies only to SCENARIO: remove it, or pass a SCENARIO instead of --input"});
  }
  if (!faults.empty()) throw InputError("command line", faults);
  golden::check_bundle_name(command.out);
  if (command.inputs_only && command.candidate) {
    throw InputError("command line", "--candidate",
                     "needs the golden output, which --inputs-only leaves out: remove one of the two");
  }
  if (command.candidate) golden::check_bundle_name(*command.candidate);
  return command.scenario ? over_scenario(command) : over_tensors(command);
}

// Printed by --help, below the options: the tensors of each layout, by its first form.
std::vector<std::string> layout_help() {
  std::vector<std::string> lines{
      "Sizes: B sequences, N blocks, P tokens per page, S positions, H KV heads, D head size, L layers, T query rows, "
      "G",
      "scales per head. 'kvscope layout show LAYOUT' prints a layout with all names and forms of its tensors."};
  for (const golden::LayoutDescription& layout : golden::named_layouts()) {
    std::vector<std::string> parts;
    std::string names, shape;
    for (const golden::CacheTensor& tensor : layout.forms.front().tensors) {
      if (tensor.shape_words() == shape) {
        names += ", " + tensor.name;
      } else {
        if (!names.empty()) parts.push_back(names + " " + shape);
        names = tensor.name;
        shape = tensor.shape_words();
      }
    }
    parts.push_back(names + " " + shape);
    for (const std::string& role : golden::table_roles(layout.table.form)) {
      if (layout.table.has(role)) parts.push_back(layout.table.name(role));
    }
    std::string line = fmt::format("{:<17}", layout.name);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string part = " " + parts[i] + (i + 1 < parts.size() ? "," : "");
      if (line.size() + part.size() > 112) {
        lines.push_back(line);
        line = std::string(17, ' ');
      }
      line += part;
    }
    lines.push_back(line);
  }
  for (const char* line :
       {"Every layout also takes q [T, Hq, D] with query_offsets [B + 1]; without query_offsets, T = B.",
        "Optional tensors: alibi_slopes [Hq], sinks [Hq], sm_scale [], and k_scale, v_scale or kv_scale: [] per "
        "tensor,",
        "[H] per KV head, [N, P] per token, [N] per block, [N, P, H], [N, H]. Common synonyms such as k_descale are "
        "read "
        "too.",
        "A tensor that is not used is an error. Table entries and slots that no sequence owns are never read."}) {
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

void add_golden(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<GoldenCommand>();
  const auto one_of = [](std::vector<std::string> words) { return CLI::IsMember(std::move(words)); };
  CLI::App* golden = app.add_subcommand(
      "golden",
      "Compute attention in double precision and write it as a golden bundle, from a scenario or your tensors");
  golden->add_option("SCENARIO", command->scenario,
                     "Scenario file (JSON): attention over its cache at one engine step. Give SCENARIO or --input");
  golden->add_option("--out", command->out, "Bundle to write (.safetensors, .npz)")
      ->required()
      ->type_name("FILE")
      ->check(writes_file());
  golden->add_flag("--inputs-only", command->inputs_only,
                   "Write the inputs without the expected output: for an exercise, or for a bug report. kvscope golden "
                   "--input reads the file again, without further options");
  CLI::Option* candidate =
      golden
          ->add_option("--candidate", command->candidate,
                       "Also write the output of a tiled attention loop, as an example candidate for kvscope verify")
          ->type_name("FILE")
          ->check(writes_file());
  golden
      ->add_option("--candidate-dtype", command->candidate_dtype,
                   "Element type of the candidate's probabilities and output")
      ->check(CLI::IsMember(std::vector<std::string>{"f32", "f16", "bf16"}))
      ->needs(candidate)
      ->capture_default_str();
  golden->add_option("--layer", command->layout.layer,
                     "Layer, from 0, of a scenario or of a cache of several [default: the scenario's focus; with "
                     "--input the manifest's, or 0]");

  golden->add_option("--lse-base", command->lse_base, "Base of the log-sum-exp: e (natural) or 2 (two)")
      ->check(one_of({"natural", "two"}))
      ->capture_default_str();
  golden->add_option("--empty-lse", command->empty_lse, "Log-sum-exp of a query that sees no key")
      ->check(one_of({"-inf", "+inf"}))
      ->capture_default_str();

  golden->add_option("--requests", command->requests, "Recorded requests (.csv, .jsonl) to replace the scenario's own")
      ->type_name("FILE")
      ->group(kWithScenario);
  golden
      ->add_option(
          "--step", command->step,
          "Engine step, from 0; -1 selects the step with the most filled slots [default: the scenario's focus]")
      ->group(kWithScenario);

  const std::string own = kWithTensors;
  golden->add_option("--input", command->input, "Your tensors (.safetensors, .npz)")->type_name("FILE")->group(own);
  add_layout_name(*golden, "--layout", command->layout.layout,
                  "Layout, see below, or a .json file [default: the manifest's]")
      ->group(own);
  golden
      ->add_option("--accuracy", command->accuracy,
                   "strict: sums in double, the same bytes on every machine; fast: sums in float, with a known error "
                   "that is written beside o and that kvscope verify adds to the bound")
      ->check(one_of({"strict", "fast"}))
      ->capture_default_str()
      ->group(own);
  golden
      ->add_flag("--outputs-only", command->outputs_only,
                 "Write o and lse alone, which takes less time: to compare them in your own way. kvscope verify needs "
                 "the terms of the error bound, which are then left out")
      ->group(own);
  add_axes(*golden, command->layout, own);
  golden->add_option("--mask", command->mask, "Which keys a query sees")
      ->check(one_of({"none", "causal", "sliding_window", "chunked"}))
      ->type_name("MASK")
      ->capture_default_str()
      ->group(own);
  golden
      ->add_option("--alignment", command->alignment,
                   "Corner of the score matrix at which a causal mask begins: bottom_right aligns the last query with "
                   "the last key, top_left the first with the first")
      ->check(one_of({"bottom_right", "top_left"}))
      ->capture_default_str()
      ->group(own);
  golden
      ->add_option("--window-left", command->window_left,
                   "With --mask sliding_window: number of keys before the query's position; -1: all")
      ->group(own)
      ->capture_default_str();
  golden
      ->add_option("--window-right", command->window_right,
                   "With --mask sliding_window: number of keys after the query's position; -1: all")
      ->group(own)
      ->capture_default_str();
  golden->add_option("--chunk", command->chunk, "With --mask chunked: length of a chunk [tokens]")->group(own);
  golden
      ->add_option("--scale", command->scale,
                   "Factor of the scores [default: the tensor sm_scale, or 1/sqrt(D); MLA has no default]")
      ->group(own);
  golden
      ->add_option("--soft-cap", command->soft_cap,
                   "Replace each score by X * tanh(score / X) [default: scores are not capped]")
      ->group(own);
  add_layout_sizes(*golden, command->layout, own);
  golden
      ->add_option("--query-dtype", command->layout.query_dtype,
                   "Element type of a q whose bit patterns are stored as u8 or u16 [default: the tensor's own]")
      ->check(one_of({"f16", "bf16", "e4m3", "e5m2"}))
      ->group(own);
  golden
      ->add_flag("--lint", command->lint,
                 "Also warn about inputs that are legal here but that an engine of this layout rejects")
      ->group(own);
  add_help_section(*golden, "Layouts of --input, by the names and shapes of its tensors", layout_help());
  add_examples(*golden,
               {"kvscope golden apps/scenarios/first_light.json --out golden.safetensors --candidate mine.safetensors",
                "kvscope verify golden.safetensors mine.safetensors"});
  golden->callback([command, golden, own, &chosen] {
    for (const CLI::Option* option : golden->get_options()) {
      if (option->count() == 0 || option->get_name() == "--input") continue;
      command->given.push_back(option->get_name());
      if (option->get_group() == own) command->only_input.push_back(option->get_name());
      if (option->get_group() == kWithScenario) command->only_scenario.push_back(option->get_name());
    }
    chosen = [command] { return run(*command); };
  });
}

}  // namespace kvscope::apps
