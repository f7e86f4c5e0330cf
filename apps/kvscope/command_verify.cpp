// kvscope verify BUNDLE CANDIDATE: compares a kernel's output with the golden output.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/diagnosis_inputs.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/rounding_options.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/compare_report.h"
#include "core/golden/verdict/tolerance.h"

namespace kvscope::apps {
namespace {

struct VerifyCommand {
  std::string golden;
  std::string candidate;
  std::optional<std::string> profile;
  std::vector<std::string> exact;
  std::optional<std::string> junit;
  std::optional<std::string> input;
  golden::StatedRounding rounding;
  bool explain = false;
  bool no_diagnose = false;
  bool json = false;
};

// The inputs of the golden, for the tests of pages and a diagnosis; `missing` is the reason why there are none.
struct Inputs {
  std::unique_ptr<GoldenInputs> inputs;
  std::vector<std::string> missing;
};

Inputs read_inputs(const VerifyCommand& command, const golden::Bundle& golden_bundle) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 28;
  Inputs result;
  const std::optional<std::string> path = find_inputs(golden_bundle, command.golden, command.input);
  if (!path) {
    result.missing.emplace_back("the inputs of the golden are missing; pass them with --input");
    return result;
  }
  if (std::error_code error;
      !command.input && !path->empty() && std::filesystem::file_size(*path, error) > kMostBytes) {
    result.missing.push_back(*path + " is larger than 256 MiB; pass it with --input to read it");
    return result;
  }
  try {
    result.inputs = std::make_unique<GoldenInputs>(golden_bundle, command.golden, *path);
  } catch (const InputError& error) {
    // A file that the golden's manifest names may have been overwritten; the report does not depend on it.
    if (command.input) throw;
    result.missing = fault_lines(error);
  }
  return result;
}

int run(const VerifyCommand& command) {
  if (command.profile && command.explain) {
    throw InputError(
        "command line", "--explain",
        "has no effect with --profile, whose tolerance is no sum of rounding errors: remove one of the two");
  }
  golden::CompareOptions options;
  options.profile = command.profile;
  options.exact = command.exact;
  options.rounding = command.rounding;
  options.golden_name = command.golden;
  options.candidate_name = command.candidate;
  const auto [golden_bundle, candidate_bundle, notes] = load_both(command.golden, command.candidate);
  // Only an attention output has pages, and only with the inputs at hand.
  const bool has_output = golden_bundle.tensors.contains("o");
  Inputs read;
  if (has_output && !(command.profile && command.no_diagnose)) read = read_inputs(command, golden_bundle);
  if (read.inputs) options.inputs = &read.inputs->problem();
  golden::CompareResult result = golden::compare(golden_bundle, candidate_bundle, options);
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  if (std::error_code error; std::filesystem::equivalent(command.golden, command.candidate, error)) {
    result.notes.emplace_back("the candidate is the golden file: it is compared with itself");
  }
  const bool diagnosed = !result.passed && !command.no_diagnose && has_output;
  for (const std::string& reason : read.missing) {
    if (!command.profile) result.notes.push_back("pages were not tested: " + reason);
    if (diagnosed) result.notes.push_back("no diagnosis: " + reason);
  }
  std::optional<golden::Diagnosis> diagnosis;
  if (diagnosed && read.inputs) {
    try {
      diagnosis = read.inputs->diagnose(candidate_bundle, command.rounding, result.failing_groups);
    } catch (const InputError& error) {
      if (command.input) throw;
      for (const std::string& line : fault_lines(error)) result.notes.push_back("no diagnosis: " + line);
    }
  }
  if (command.junit) write_file_atomically(*command.junit, golden::junit_report(result));
  if (command.json) {
    json::Value report = golden::json_report(result);
    if (diagnosis) report.set("diagnosis", golden::json_report(*diagnosis));
    std::cout << json::dump(report) << "\n";
  } else {
    const bool explained = diagnosis && !diagnosis->candidate_passes;
    std::cout << golden::text_report(result, explained ? golden::text_report(*diagnosis) : std::string());
    if (command.explain) std::cout << golden::budget_report(result);
  }
  return result.passed ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<VerifyCommand>();
  CLI::App* verify = app.add_subcommand("verify", "Compare a kernel's output with a golden bundle, element by element");
  verify->add_option("BUNDLE", command->golden, "Golden bundle, written by kvscope golden")->required();
  verify
      ->add_option("CANDIDATE", command->candidate,
                   "The kernel's output (.safetensors, .npz, .npy): the tensor o (or out, output), and optionally lse "
                   "(or softmax_lse, logsumexp)")
      ->required();
  CLI::Option* profile =
      verify
          ->add_option(
              "--profile", command->profile,
              "Use the fixed tolerance of a public test suite, which is looser [default: a bound derived from the "
              "rounding errors of each element]")
          ->type_name("SUITE")
          ->check(CLI::IsMember(golden::profile_names()));
  verify
      ->add_option("--exact", command->exact,
                   "Tensor to compare bit for bit, for data that a kernel only moves, such as k_cache; may be repeated")
      ->type_name("NAME");
  for (CLI::Option* option : add_rounding_options(*verify, command->rounding)) {
    if (option->get_name() != "--candidate-dtype") option->excludes(profile);  // a profile depends on that type only
  }
  verify->add_flag(
      "--explain", command->explain,
      "Also print the error budget at the element with the largest error: how much each source of rounding "
      "may contribute");
  verify->add_option("--junit", command->junit, "Also write the report as a JUnit XML file")
      ->type_name("FILE")
      ->check(writes_file());
  verify
      ->add_option(
          "--input", command->input,
          "Tensors that the golden output was computed from, to test its pages and to diagnose a failure [default: the "
          "file that its manifest names, up to 256 MiB]")
      ->type_name("FILE");
  verify->add_flag("--no-diagnose", command->no_diagnose, "Do not diagnose a failure");
  verify->add_flag("--json", command->json, "Print the report as JSON");
  add_examples(*verify,
               {"kvscope golden apps/scenarios/first_light.json --out golden.safetensors --candidate mine.safetensors",
                "kvscope verify golden.safetensors mine.safetensors"});
  verify->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
