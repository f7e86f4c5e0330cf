// kvscope diagnose GOLDEN CANDIDATE: which fault explains a wrong output?
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/diagnosis_inputs.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/rounding_options.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::apps {
namespace {

struct DiagnoseCommand {
  std::string golden;
  std::string candidate;
  std::optional<std::string> input;
  golden::StatedRounding rounding;
  bool json = false;
};

int run(const DiagnoseCommand& command) {
  const auto [golden_bundle, candidate, notes] = load_both(command.golden, command.candidate);
  if (!golden_bundle.tensors.contains("o")) {
    throw InputError(command.golden, "golden 'o'",
                     "is missing: only an attention output is diagnosed. Make the golden with `kvscope golden`");
  }
  golden::CompareOptions options;
  options.golden_name = command.golden;
  options.candidate_name = command.candidate;
  options.rounding = command.rounding;
  const GoldenInputs read(golden_bundle, command.golden, required_inputs(golden_bundle, command.golden, command.input));
  options.inputs = &read.problem();
  const golden::CompareResult compared = golden::compare(golden_bundle, candidate, options);
  const golden::Diagnosis diagnosis = read.diagnose(candidate, command.rounding, compared.failing_groups);
  if (command.json) {
    json::Value report = golden::json_report(diagnosis);
    report.set("passed", compared.passed);
    std::cout << json::dump(report) << "\n";
  } else {
    std::cout << golden::text_report(diagnosis);
    for (const std::string& note : notes) std::cout << "note: " << note << "\n";
  }
  return compared.passed && diagnosis.candidate_passes ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<DiagnoseCommand>();
  CLI::App* diagnose = app.add_subcommand("diagnose", "Find the fault that explains a wrong attention output");
  diagnose->add_option("GOLDEN", command->golden, "Golden bundle, written by kvscope golden")->required();
  diagnose
      ->add_option("CANDIDATE", command->candidate,
                   "The kernel's output (.safetensors, .npz, .npy): the tensor o (or out, output), and optionally lse "
                   "(or softmax_lse, logsumexp)")
      ->required();
  diagnose
      ->add_option("--input", command->input,
                   "Tensors that the golden output was computed from [default: the file that its manifest names]")
      ->type_name("FILE");
  add_rounding_options(*diagnose, command->rounding);
  diagnose->add_flag("--json", command->json, "Print the diagnosis as JSON");
  add_examples(*diagnose,
               {"kvscope golden apps/scenarios/first_light.json --out golden.safetensors --candidate mine.safetensors",
                "kvscope diagnose golden.safetensors mine.safetensors"});
  diagnose->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
