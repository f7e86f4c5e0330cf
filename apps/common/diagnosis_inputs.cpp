#include "apps/common/diagnosis_inputs.h"

#include <filesystem>
#include <vector>

#include "apps/common/faults.h"
#include "core/base/errors.h"
#include "core/golden/bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts.h"
#include "core/golden/output_names.h"

namespace kvscope::apps {

GoldenAndCandidate load_both(const std::string& golden, const std::string& candidate) {
  GoldenAndCandidate both;
  std::vector<Fault> faults;
  const auto load = [&](const std::string& path, golden::Bundle& bundle) {
    try {
      bundle = golden::load_bundle(path);
    } catch (const InputError& error) {
      for (const std::string& line : fault_lines(error)) faults.push_back({"", line});
    }
  };
  load(golden, both.golden);
  load(candidate, both.candidate);
  if (!faults.empty()) throw InputError("", faults);
  golden::check_has_answer(both.golden, golden, candidate);
  both.notes = golden::use_output_names(both.golden, both.candidate, candidate);
  return both;
}

std::optional<std::string> find_inputs(const golden::Bundle& golden, const std::string& golden_path,
                                       const std::optional<std::string>& given) {
  if (given) return given;
  if (golden::holds_inputs(golden)) return "";
  const std::optional<std::string> named = golden::inputs_file(golden);
  if (!named) return std::nullopt;
  for (const std::filesystem::path& path :
       {std::filesystem::path(*named), std::filesystem::path(golden_path).parent_path() / *named,
        std::filesystem::path(golden_path).parent_path() / std::filesystem::path(*named).filename()}) {
    if (std::error_code error; std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return std::nullopt;
}

golden::Diagnosis diagnose_with(const golden::Bundle& golden, const std::string& golden_path,
                                const golden::Bundle& candidate, const std::string& inputs,
                                const golden::StatedRounding& rounding) {
  golden::Bundle loaded;
  if (!inputs.empty()) loaded = golden::load_bundle(inputs);
  const golden::Bundle& bundle = inputs.empty() ? golden : loaded;
  const golden::LayoutOptions options = golden::layout_options_of(golden, golden_path);
  const golden::PreparedProblem prepared =
      golden::prepare_problem(bundle, options, inputs.empty() ? golden_path : inputs);
  const attention::Problem problem = prepared.with_given_table();
  golden::DiagnosisInput input{problem, golden, candidate, {}};
  input.rounding = rounding;
  if (!inputs.empty()) input.inputs_name = inputs;
  if (const auto blocks = bundle.tensors.find("blocks"); prepared.layout == "max" && blocks != bundle.tensors.end()) {
    const golden::Tensor& tensor = blocks->second;  // [N, kv, L, P, H, D]
    input.pool = tensor.bytes;
    input.layers = tensor.shape[2];
    input.layer = options.layer;
    input.layer_stride = tensor.shape[3] * tensor.shape[4] * tensor.shape[5];
    // Scales of other layers can be read when the problem's scales are the tensor itself and not a product of two.
    if (const auto scales = bundle.tensors.find("scales");
        scales != bundle.tensors.end() && prepared.k_scales.empty()) {
      const std::vector<std::int64_t>& shape = scales->second.shape;  // [N, kv, L, P, H, G]
      if (shape.size() == 6 && shape[2] == input.layers) input.scale_layer_stride = shape[3] * shape[4] * shape[5];
    }
  }
  return golden::diagnose(input);
}

}  // namespace kvscope::apps
