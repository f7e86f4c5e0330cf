// kvscope ptx survey | disasm FILE: counts the instructions of a PTX file, or prints the parsed file as PTX.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/launch/options.h"
#include "apps/launch/ptx_file.h"
#include "core/base/json.h"
#include "core/base/report.h"
#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/isa/survey.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/text/print.h"

namespace kvscope::apps {

void add_check_option(CLI::App& command, std::vector<std::string>& names) {
  command
      .add_option("--check", names,
                  "Comma-separated checks; all is " + ptx::checks_in_all() +
                      "; docs/15_virtual_gpu.md describes each "
                      "[default: all]")
      ->type_name("CHECK,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(ptx::check_names()));
}

void add_jobs_option(CLI::App& command, std::int64_t& jobs) {
  command
      .add_option("--jobs", jobs,
                  "Run CTAs that cannot see one another on N threads. Reports, counters and outputs are those of one "
                  "thread; a launch that needs one thread says why")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, ptx::kMostJobs))
      ->capture_default_str();
}

namespace {

struct SurveyCommand {
  std::string path;
  std::optional<int> target;  // none: that of the file (ptx::target_for)
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
  const ptx::Decoded decoded = ptx::decode(module, command.target.value_or(ptx::target_for(module)));
  const ptx::Survey survey = ptx::survey(module, decoded);
  if (command.json) {
    std::cout << json::dump(survey_json(survey)) << '\n';
    return kExitFine;
  }
  std::cout << fmt::format(
      "file        {}: PTX {}.{} for sm_{}{}, {}, {} on {}\n", command.path, module.version / 10, module.version % 10,
      module.target, module.target_suffix != 0 ? std::string(1, module.target_suffix) : "",
      counted(survey.statements, "instruction"), counted(std::ssize(survey.words), "distinct opcode"),
      counted(std::ssize(survey.bases), "base name"));
  for (const ptx::KernelSurvey& kernel : survey.kernels) {
    std::cout << fmt::format(
        "kernel      {}: {}, {}\n", kernel.name, counted(kernel.statements, "instruction"),
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
  CLI::App* ptx = app.add_subcommand("ptx", "Run or debug a compiled CUDA kernel on the virtual GPU, without a GPU");
  ptx->require_subcommand(1);
  add_ptx_run(*ptx, chosen);
  add_ptx_debug(*ptx, chosen);

  auto survey_command = std::make_shared<SurveyCommand>();
  CLI::App* survey =
      ptx->add_subcommand("survey", "Count the instructions of a PTX file and list the unsupported ones");
  survey->add_option("FILE", survey_command->path, kPtxFileHelp)->required();
  survey->add_option("--target", survey_command->target, kTargetHelp)->check(at_least(1))->type_name("N");
  survey->add_flag("--words", survey_command->words,
                   "Count full opcodes such as ld.global.f32, not base names such as ld");
  survey->add_flag("--json", survey_command->json, "Print JSON, with all opcodes");
  add_examples(*survey, {"kvscope ptx survey apps/examples/scale.ptx --words"});
  survey->callback([&chosen, survey_command] { chosen = [survey_command] { return show_survey(*survey_command); }; });

  auto path = std::make_shared<std::string>();
  CLI::App* disasm = ptx->add_subcommand("disasm", "Parse a PTX file and print it as PTX again");
  disasm->add_option("FILE", *path, kPtxFileHelp)->required();
  add_examples(*disasm, {"kvscope ptx disasm apps/examples/scale.ptx"});
  disasm->callback([&chosen, path] {
    chosen = [path] {
      std::cout << ptx::to_ptx(read_ptx(*path));
      return kExitFine;
    };
  });
  add_examples(*ptx, {"kvscope ptx run apps/examples/scale.ptx --grid 2 --block 32 --arg 'f32[64]' --arg 2.5"});
}

}  // namespace kvscope::apps
