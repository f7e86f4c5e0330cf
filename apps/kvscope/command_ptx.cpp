// kvscope ptx survey | disasm FILE: what a PTX file uses, and its text as understood.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/ptx_checks.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/kvscope/ptx_launch.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "gpu/virtual/isa/survey.h"
#include "gpu/virtual/text/parser.h"
#include "gpu/virtual/text/print.h"

namespace kvscope::apps {

ptx::Module read_ptx(const std::string& path) {
  return ptx::parse_module(read_file(path, kMostPtxBytes), path);
}

void add_launch_options(CLI::App& command, LaunchRequest& request) {
  command.add_option("file", request.path, "PTX, as nvcc -ptx writes it")->required();
  command.add_option("--entry", request.entry, "Which kernel; may be left out when there is one");
  command.add_option("--grid", request.grid, "CTAs: X, X,Y or X,Y,Z")->delimiter(',')->expected(1, 3);
  command.add_option("--block", request.block, "Threads of a CTA: X, X,Y or X,Y,Z")->delimiter(',')->expected(1, 3);
  command.add_option("--cluster", request.cluster, "CTAs of a cluster, if any")->delimiter(',')->expected(1, 3);
  command.add_option("--smem", request.shared, "Dynamic shared memory of a CTA [bytes]")->capture_default_str();
  command
      .add_option("--arg", request.args,
                  "One a parameter: a number, FILE.npy, FILE.safetensors:NAME, TYPE[SHAPE], map:FILE.json@ARGUMENT")
      ->allow_extra_args(false);
  command.add_option("--policy", request.policy, "When copies happen and who goes first: late, early, seed:N")
      ->capture_default_str();
  command.add_option("--target", request.target, "What the machine stands for: 90 for sm_90a")->capture_default_str();
  command.add_option("--max-instructions", request.max_instructions, "Stop after so many warp instructions")
      ->capture_default_str();
  command.add_flag("--cooperative", request.cooperative, "All CTAs start together");
  command.add_flag("--contract", request.contract,
                   "Fuse products and sums as the assembler does: one rounding, not two");
  command.add_flag("--strict", request.strict, "Refuse a file with instructions that this machine cannot run");
}

void add_check_option(CLI::App& command, std::vector<std::string>& names) {
  command
      .add_option("--check", names,
                  "What to watch for: none, or a list; all is " + checks_in_all() + ", the rest goes by name")
      ->delimiter(',')
      ->check(CLI::IsMember(check_names()));
}

namespace {

struct SurveyCommand {
  std::string path;
  int target = 90;
  bool json = false;
  bool words = false;
};

json::Value survey_json(const ptx::Survey& survey) {
  json::Value out;
  out.set("statements", survey.statements);
  json::Array words, unsupported, kernels;
  for (const ptx::WordUse& use : survey.words) {
    json::Value word;
    word.set("word", use.word);
    word.set("count", use.count);
    if (!use.unsupported.empty()) word.set("unsupported", use.unsupported);
    words.push_back(std::move(word));
  }
  for (const ptx::UnsupportedUse& use : survey.unsupported) {
    json::Value place;
    place.set("word", use.word);
    place.set("message", use.message);
    place.set("function", use.function);
    place.set("line", static_cast<std::int64_t>(use.at.line));
    place.set("column", static_cast<std::int64_t>(use.at.column));
    unsupported.push_back(std::move(place));
  }
  for (const ptx::KernelSurvey& kernel : survey.kernels) {
    json::Value k;
    k.set("name", kernel.name);
    k.set("statements", kernel.statements);
    k.set("can_run", kernel.can_run());
    kernels.push_back(std::move(k));
  }
  out.set("kernels", std::move(kernels));
  out.set("unsupported", std::move(unsupported));
  out.set("words", std::move(words));
  out.set("contraction_pairs", static_cast<std::int64_t>(survey.contraction.size()));
  return out;
}

int show_survey(const SurveyCommand& command) {
  const ptx::Module module = read_ptx(command.path);
  const ptx::Decoded decoded = ptx::decode(module, command.target);
  const ptx::Survey survey = ptx::survey(module, decoded);
  if (command.json) {
    std::cout << json::dump(survey_json(survey)) << '\n';
    return kExitFine;
  }
  std::cout << fmt::format(
      "file        {}: PTX {}.{} for sm_{}{}, {} instructions, {} distinct opcodes on {} base names\n", command.path,
      module.version / 10, module.version % 10, module.target,
      module.target_suffix != 0 ? std::string(1, module.target_suffix) : "", survey.statements, survey.words.size(),
      survey.bases.size());
  for (const ptx::KernelSurvey& kernel : survey.kernels) {
    std::cout << fmt::format(
        "kernel      {}: {} instructions, {}\n", kernel.name, kernel.statements,
        kernel.can_run() ? "all of them can run" : fmt::format("{} cannot run", kernel.unsupported.size()));
  }
  for (const ptx::UnsupportedUse& use : survey.unsupported) {
    std::cout << fmt::format("missing     {}:{}:{} '{}' in {}: {}\n", command.path, use.at.line, use.at.column,
                             use.word, use.function, use.message);
  }
  if (!survey.contraction.empty()) {
    std::cout << fmt::format("contraction {} products and sums that hardware rounds once and this machine twice\n",
                             survey.contraction.size());
  }
  std::cout << "\n";
  for (const ptx::WordUse& use : command.words ? survey.words : survey.bases) {
    std::cout << fmt::format("{:>8}  {}{}\n", use.count, use.word,
                             use.unsupported.empty() ? "" : "   cannot run: " + use.unsupported);
  }
  return kExitFine;
}

}  // namespace

void add_ptx(CLI::App& app, Action& chosen) {
  CLI::App* ptx = app.add_subcommand("ptx", "Run compiled CUDA kernels on a virtual GPU, and see what a PTX file uses");
  ptx->require_subcommand(1);
  add_ptx_run(*ptx, chosen);
  add_ptx_debug(*ptx, chosen);

  auto survey_command = std::make_shared<SurveyCommand>();
  CLI::App* survey = ptx->add_subcommand("survey", "What a PTX file uses, and what of it this machine cannot run");
  survey->add_option("file", survey_command->path, "PTX, as nvcc -ptx writes it")->required();
  survey->add_option("--target", survey_command->target, "What the machine stands for: 90 for sm_90a")
      ->capture_default_str();
  survey->add_flag("--words", survey_command->words, "Count whole opcodes, not base names");
  survey->add_flag("--json", survey_command->json, "As JSON, with every opcode");
  survey->callback([&chosen, survey_command] { chosen = [survey_command] { return show_survey(*survey_command); }; });

  auto path = std::make_shared<std::string>();
  CLI::App* disasm = ptx->add_subcommand("disasm", "The file as this machine understands it, as PTX again");
  disasm->add_option("file", *path, "PTX, as nvcc -ptx writes it")->required();
  disasm->callback([&chosen, path] {
    chosen = [path] {
      std::cout << ptx::to_ptx(read_ptx(*path));
      return kExitFine;
    };
  });
}

}  // namespace kvscope::apps
