#include "apps/common/diagnosis_inputs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "apps/common/faults.h"
#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layouts.h"
#include "core/golden/verdict/output_names.h"
#include "core/layout/filled.h"

namespace kvscope::apps {
namespace {

// Rows of a list for all sequences, each continued with the entries of the sequences after it. Example: {3, 1} and {2}
// are rows {3, 1, 2} and {2, unknown, unknown}.
xt::xtensor<std::uint32_t, 2> continued_lists(const xt::xtensor<std::uint32_t, 2>& table) {
  std::vector<std::uint32_t> entries;
  std::vector<std::size_t> first;
  for (std::size_t b = 0; b < table.shape(0); ++b) {
    std::size_t count = table.shape(1);
    while (count > 0 && table(b, count - 1) == golden::kUnknownBlock) --count;
    first.push_back(entries.size());
    for (std::size_t i = 0; i < count; ++i) entries.push_back(table(b, i));
  }
  xt::xtensor<std::uint32_t, 2> continued =
      filled(golden::kUnknownBlock, table.shape(0), std::max<std::size_t>(entries.size(), 1));
  for (std::size_t b = 0; b < first.size(); ++b) {
    std::copy(entries.begin() + static_cast<std::ptrdiff_t>(first[b]), entries.end(), &continued(b, 0));
  }
  return continued;
}

}  // namespace

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

GoldenInputs::GoldenInputs(const golden::Bundle& golden, const std::string& golden_path, const std::string& inputs)
    : golden_(golden),
      inputs_(inputs),
      loaded_(inputs.empty() ? golden::Bundle() : golden::load_bundle(inputs)),
      options_(golden::layout_options_of(golden, golden_path)),
      prepared_(
          golden::prepare_problem(inputs.empty() ? golden : loaded_, options_, inputs.empty() ? golden_path : inputs)),
      problem_(prepared_.with_given_table()) {}

golden::Diagnosis GoldenInputs::diagnose(const golden::Bundle& candidate, const golden::StatedRounding& rounding,
                                         const std::vector<golden::FailingGroup>& failing_groups) const {
  const golden::Bundle& bundle = inputs_.empty() ? golden_ : loaded_;
  attention::Problem problem = problem_;
  golden::DiagnosisInput input{problem, golden_, candidate, {}};
  input.one_list = bundle.tensors.contains("kv_indices") || bundle.tensors.contains("paged_kv_indices");
  xt::xtensor<std::uint32_t, 2> continued;
  if (input.one_list) {
    continued = continued_lists(prepared_.given_table);
    for (attention::PagedRows* rows : {&problem.k, &problem.v}) {
      rows->table = continued.data();
      rows->table_stride = static_cast<std::int64_t>(continued.shape(1));
    }
  }
  input.rounding = rounding;
  if (prepared_.masks) input.masks = &*prepared_.masks;
  input.failing_groups = failing_groups;
  if (!inputs_.empty()) input.inputs_name = inputs_;
  if (const auto blocks = bundle.tensors.find("blocks"); prepared_.layout == "max" && blocks != bundle.tensors.end()) {
    const golden::Tensor& tensor = blocks->second;  // [N, kv, L, P, H, D]
    input.pool = tensor.bytes;
    input.layers = tensor.shape[2];
    input.layer = options_.layer;
    input.layer_stride = tensor.shape[3] * tensor.shape[4] * tensor.shape[5];
    // Scales of other layers can be read when the problem's scales are the tensor itself and not a product of two.
    if (const auto scales = bundle.tensors.find("scales");
        scales != bundle.tensors.end() && prepared_.k_scales.empty()) {
      const std::vector<std::int64_t>& shape = scales->second.shape;  // [N, kv, L, P, H, G]
      if (shape.size() == 6 && shape[2] == input.layers) input.scale_layer_stride = shape[3] * shape[4] * shape[5];
    }
  }
  return golden::diagnose(input);
}

}  // namespace kvscope::apps
