#include "core/golden/diagnosis/diagnose_inputs.h"

#include <algorithm>
#include <cstdint>
#include <vector>
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
  const PreparedProblem& prepared = inputs.prepared;
  attention::Problem problem = prepared.with_given_table();
  DiagnosisInput input{problem, golden, candidate, {}};
  const TableForm form = layout_of(inputs.options).table.form;
  input.one_list = form == TableForm::indptr || form == TableForm::tokens;
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
  const PoolOfLayers& pool = prepared.pool;
  input.pool = pool.bytes;
  input.layers = pool.layers;
  input.layer = pool.layer;
  input.layer_stride = pool.layer_stride;
  // Scales of other layers can be read where the problem's scales are the tensor itself and not a product of two.
  if (prepared.k_scales.empty() && prepared.v_scales.empty()) input.scale_layer_stride = pool.scale_layer_stride;
  return diagnose(input);
}

}  // namespace kvscope::golden
