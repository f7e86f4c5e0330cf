#include "apps/common/diagnosis_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "apps/common/bundle_input.h"
#include "apps/common/faults.h"
#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/diagnosis/diagnose_inputs.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layouts.h"
#include "core/golden/verdict/output_names.h"

namespace kvscope::apps {

namespace {

bool is_written_by_kvscope(const golden::Bundle& bundle) {
  return bundle.manifest.find("kvscope_bundle") != nullptr;
}

// The two mistakes in what is passed as the golden bundle: the candidate, or the tensors that the kernel reads.
void check_golden(const GoldenAndCandidate& both, const std::string& golden, const std::string& candidate) {
  if (is_written_by_kvscope(both.golden)) return;
  if (is_written_by_kvscope(both.candidate) && both.candidate.tensors.contains("o")) {
    throw InputError(golden, "",
                     fmt::format("is not a golden bundle, but '{}' is one: exchange the two files", candidate));
  }
  const auto is_in_candidate = [&](const auto& entry) { return both.candidate.tensors.contains(entry.first); };
  if (both.golden.tensors.contains("o") || std::ranges::any_of(both.golden.tensors, is_in_candidate)) return;
  throw InputError(golden, "",
                   fmt::format("is not a golden bundle: it has no tensor 'o' and none of '{0}'. If it holds the inputs "
                               "of the kernel, compute the golden output with `kvscope golden --input {1} --out {2}`",
                               candidate, golden, golden::golden_name_of(golden)));
}

}  // namespace

GoldenAndCandidate load_both(const std::string& golden, const std::string& candidate) {
  GoldenAndCandidate both;
  std::vector<Fault> faults;
  const auto load = [&](const std::string& path, golden::Bundle& bundle) {
    try {
      bundle = open_bundle(path);
    } catch (const InputError& error) {
      for (const std::string& line : fault_lines(error)) faults.push_back({"", line});
    }
  };
  load(golden, both.golden);
  load(candidate, both.candidate);
  if (!faults.empty()) throw InputError("", faults);
  check_golden(both, golden, candidate);
  golden::check_has_answer(both.golden, golden, candidate);
  both.notes = golden::use_output_names(both.golden, both.candidate, candidate);
  return both;
}

std::optional<std::string> find_inputs(const golden::Bundle& golden, const std::string& golden_path,
                                       const std::optional<std::string>& given) {
  if (given) return given;
  if (golden::holds_inputs(golden)) return "";
  const std::optional<std::string> named = golden::inputs_file(golden, golden_path);
  if (!named) return std::nullopt;
  for (const std::filesystem::path& path :
       {std::filesystem::path(*named), std::filesystem::path(golden_path).parent_path() / *named,
        std::filesystem::path(golden_path).parent_path() / std::filesystem::path(*named).filename()}) {
    if (std::error_code error; std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return std::nullopt;
}

std::string required_inputs(const golden::Bundle& golden, const std::string& golden_path,
                            const std::optional<std::string>& given) {
  if (const std::optional<std::string> found = find_inputs(golden, golden_path, given)) return *found;
  const std::optional<std::string> named = golden::inputs_file(golden, golden_path);
  throw InputError(golden_path, "inputs",
                   named
                       ? fmt::format("'{}', from which it was computed, is missing: pass the file with --input", *named)
                       : "are not named in its manifest: pass the file that it was computed from with --input");
}

GoldenInputs::GoldenInputs(const golden::Bundle& golden, const std::string& golden_path, const std::string& inputs)
    : golden_(golden),
      inputs_(inputs),
      loaded_(inputs.empty() ? golden::Bundle() : open_bundle(inputs)),
      options_(golden::layout_options_of(golden, golden_path)),
      prepared_(
          golden::prepare_problem(inputs.empty() ? golden : loaded_, options_, inputs.empty() ? golden_path : inputs)),
      problem_(prepared_.with_given_table()) {}

golden::Diagnosis GoldenInputs::diagnose(const golden::Bundle& candidate, const golden::StatedRounding& rounding,
                                         const std::vector<golden::FailingGroup>& failing_groups) const {
  return golden::diagnose_inputs({options_, prepared_, inputs_.empty() ? "inputs" : inputs_}, golden_,
                                 candidate, rounding, failing_groups);
}

}  // namespace kvscope::apps
