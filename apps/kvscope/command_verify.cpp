// kvscope verify BUNDLE CANDIDATE: is a kernel's output within what rounding may make of the golden one?
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/golden/bundle.h"
#include "core/golden/compare.h"
#include "core/golden/compare_report.h"
#include "core/golden/tolerance.h"

namespace kvscope::apps {
namespace {

struct VerifyCommand {
  std::string golden;
  std::string candidate;
  std::optional<std::string> profile;
  std::vector<std::string> exact;
  std::optional<std::string> junit;
  bool json = false;
};

// Both are read before either is complained about, so that one run names everything that is wrong.
std::pair<golden::Bundle, golden::Bundle> load_both(const std::string& golden, const std::string& candidate) {
  std::pair<golden::Bundle, golden::Bundle> both;
  std::vector<Fault> faults;
  const auto load = [&](const std::string& path, golden::Bundle& bundle) {
    try {
      bundle = golden::load_bundle(path);
    } catch (const InputError& error) {
      for (const std::string& line : fault_lines(error)) faults.push_back({"", line});
    }
  };
  load(golden, both.first);
  load(candidate, both.second);
  if (!faults.empty()) throw InputError("", faults);
  return both;
}

int run(const VerifyCommand& command) {
  golden::CompareOptions options;
  options.profile = command.profile;
  options.exact = command.exact;
  options.golden_name = command.golden;
  options.candidate_name = command.candidate;
  const auto [golden_bundle, candidate_bundle] = load_both(command.golden, command.candidate);
  const golden::CompareResult result = golden::compare(golden_bundle, candidate_bundle, options);
  if (command.junit) write_file_atomically(*command.junit, golden::junit_report(result));
  std::cout << (command.json ? json::dump(golden::json_report(result)) + "\n" : golden::text_report(result));
  return result.passed ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<VerifyCommand>();
  CLI::App* verify =
      app.add_subcommand("verify", "Compare a candidate's output with a golden bundle, element by element");
  verify->add_option("BUNDLE", command->golden, "Golden bundle, as kvscope golden writes it")->required();
  verify->add_option("CANDIDATE", command->candidate, "Tensors o and, if there is, lse (.safetensors, .npz, .npy)")
      ->required();
  verify
      ->add_option("--profile", command->profile,
                   "Fixed tolerance of a public test suite in place of the derived bound; lets more through")
      ->check(CLI::IsMember(golden::profile_names()));
  verify->add_option("--exact", command->exact, "Tensor to compare bit for bit; may be given again");
  verify->add_option("--junit", command->junit, "Write a JUnit report to this file");
  verify->add_flag("--json", command->json, "Print the report as JSON");
  verify->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
