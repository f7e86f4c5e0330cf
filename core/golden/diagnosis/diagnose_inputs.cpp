#include "core/golden/diagnosis/diagnose_inputs.h"

#include <algorithm>
#include <cstdint>
#include <xtensor/xtensor.hpp>

#include "core/golden/golden_bundle.h"
#include "core/layout/filled.h"

namespace kvscope::golden {
namespace {

// Rows of a list for all sequences, each continued with the entries of the sequences after it. Example: {3, 1} and {2}
// are rows {3, 1, 2} and {2, unknown, unknown}.
xt::xtensor<std::uint32_t, 2> lists_continued(const xt::xtensor<std::uint32_t, 2>& table) {
  std::vector<std::uint32_t> entries;
  std::vector<std::size_t> first;
  for (std::size_t b = 0; b < table.shape(0); ++b) {
    std::size_t count = table.shape(1);
    while (count > 0 && table(b, count - 1) == kUnknownBlock) --count;
    first.push_back(entries.size());
    for (std::size_t i = 0; i < count; ++i) entries.push_back(table(b, i));
  }
  xt::xtensor<std::uint32_t, 2> continued =
      filled(kUnknownBlock, table.shape(0), std::max<std::size_t>(entries.size(), 1));
  for (std::size_t b = 0; b < first.size(); ++b) {
    std::copy(entries.begin() + static_cast<std::ptrdiff_t>(first[b]), entries.end(), &continued(b, 0));
  }
  return continued;
}

}  // namespace

Diagnosis diagnose_inputs(const InputsOfGolden& inputs, const Bundle& golden, const Bundle& candidate,
                          const StatedRounding& rounding, const std::vector<FailingGroup>& failing_groups) {
  const Bundle& bundle = inputs.tensors;
  const PreparedProblem& prepared = inputs.prepared;
  attention::Problem problem = prepared.with_given_table();
  DiagnosisInput input{problem, golden, candidate, {}};
  input.one_list = bundle.tensors.contains("kv_indices") || bundle.tensors.contains("paged_kv_indices");
  xt::xtensor<std::uint32_t, 2> continued;
  if (input.one_list) {
    continued = lists_continued(prepared.given_table());
    for (attention::PagedRows* rows : {&problem.k, &problem.v}) {
      rows->table = continued.data();
      rows->table_stride = static_cast<std::int64_t>(continued.shape(1));
    }
  }
  input.rounding = rounding;
  if (prepared.masks) input.masks = &*prepared.masks;
  input.failing_groups = failing_groups;
  input.inputs_name = inputs.name;
  if (const auto blocks = bundle.tensors.find("blocks"); prepared.layout == "max" && blocks != bundle.tensors.end()) {
    const Tensor& tensor = blocks->second;  // [N, kv, L, P, H, D]
    input.pool = tensor.bytes;
    input.layers = tensor.shape[2];
    input.layer = inputs.options.layer;
    input.layer_stride = tensor.shape[3] * tensor.shape[4] * tensor.shape[5];
    // Scales of other layers can be read when the problem's scales are the tensor itself and not a product of two.
    if (const auto scales = bundle.tensors.find("scales");
        scales != bundle.tensors.end() && prepared.k_scales.empty()) {
      const std::vector<std::int64_t>& shape = scales->second.shape;  // [N, kv, L, P, H, G]
      if (shape.size() == 6 && shape[2] == input.layers) input.scale_layer_stride = shape[3] * shape[4] * shape[5];
    }
  }
  return diagnose(input);
}

}  // namespace kvscope::golden
