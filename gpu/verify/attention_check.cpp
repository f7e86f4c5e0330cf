#include "gpu/verify/attention_check.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/golden_bundle.h"

namespace kvscope::gpu {
namespace {

golden::Diagnosis diagnosis_of(const attention::Problem& problem, const attention::Result& result, DType dtype,
                               std::span<const std::byte> out, std::span<const float> lse,
                               const SurroundingCache& around) {
  const golden::Bundle reference = golden::golden_bundle(problem, result, {});
  const std::int64_t queries = problem.total_queries(), heads = problem.query_heads;
  golden::Tensor o = golden::make_tensor(dtype, {queries, heads, problem.v.head_size});
  o.bytes.assign(out.begin(), out.end());
  const golden::Bundle candidate{{{"o", std::move(o)}, {"lse", golden::tensor_of<float>({queries, heads}, lse)}}, {}};
  golden::DiagnosisInput input{problem, reference, candidate, around.pool};
  input.layers = around.layers;
  input.layer = around.layer;
  input.layer_stride = around.layer_stride;
  input.scale_layer_stride = around.scale_layer_stride;
  return golden::diagnose(input);
}

}  // namespace

void check_attention(Verdict& verdict, const attention::Problem& problem, DType dtype, std::span<const std::byte> out,
                     std::span<const float> lse, const SurroundingCache& around) {
  const attention::Result golden = attention::reference(problem);
  const std::int64_t queries = problem.total_queries(), heads = problem.query_heads, dims = problem.v.head_size;
  if (static_cast<std::int64_t>(out.size()) != queries * heads * dims * size_of(dtype) ||
      static_cast<std::int64_t>(lse.size()) != queries * heads) {
    verdict.faults.push_back(fmt::format("{} bytes of output and {} of lse for {} rows of {} elements", out.size(),
                                         lse.size(), queries * heads, dims));
    return;
  }
  // The sequence and query of a row, and the last key of that sequence.
  const auto place = [&](std::int64_t query) {
    std::int64_t b = 0;
    while (problem.first_query(b + 1) <= query) ++b;
    const std::int64_t length = problem.keys(b), last = length - 1;
    std::string text = fmt::format("sequence {}, query {}", b, query - problem.first_query(b));
    if (length > 0) {
      text += fmt::format(" ({} keys, the last in block {}, slot {})", length,
                          problem.k.table[b * problem.k.table_stride + last / problem.k.page_size],
                          last % problem.k.page_size);
    }
    return text;
  };

  attention::Rounding rounding = attention::rounding_of(dtype);
  rounding.deviations = attention::deviations_for(static_cast<double>(queries * heads * dims));
  const bool base_two = problem.options.lse_base == attention::LseBase::two;
  std::int64_t wrong = 0, wrong_lse = 0;
  std::string first, first_lse;
  for (std::int64_t row = 0; row < queries * heads; ++row) {
    const std::int64_t q = row / heads, h = row % heads;
    const attention::RowTerms terms =
        attention::row_terms(golden, static_cast<std::size_t>(q), static_cast<std::size_t>(h),
                             static_cast<double>(problem.k.head_size), base_two);
    const double lse64 = golden.lse(q, h);
    const auto got_lse = static_cast<double>(lse.data()[row]);
    if (!attention::lse_within(rounding, terms, got_lse) && wrong_lse++ == 0)
      first_lse = fmt::format("lse of {}, head {}: {} instead of {}", place(q), h, got_lse, lse64);
    for (std::int64_t d = 0; d < dims; ++d) {
      const double o = load_as_double(dtype, out.data() + (row * dims + d) * size_of(dtype));
      const attention::ElementTerms element = attention::element_terms(
          golden, static_cast<std::size_t>(q), static_cast<std::size_t>(h), static_cast<std::size_t>(d));
      const double o64 = element.o;
      if (attention::output_within(rounding, terms, element, o) || wrong++ > 0) continue;
      first = fmt::format("{}, head {}, dim {}: {} instead of {}, {:.3g} times the bound", place(q), h, d, o, o64,
                          std::abs(o - o64) / attention::output_budget(rounding, terms, element).total());
    }
  }
  if (wrong > 0) verdict.faults.push_back(fmt::format("{}; {} of {} elements", first, wrong, queries * heads * dims));
  if (wrong_lse > 0) verdict.faults.push_back(fmt::format("{}; {} of {} rows", first_lse, wrong_lse, queries * heads));
  if (wrong + wrong_lse == 0) return;
  verdict.diagnosis = std::make_shared<golden::Diagnosis>(diagnosis_of(problem, golden, dtype, out, lse, around));
  std::string text = golden::text_report(*verdict.diagnosis);
  text.pop_back();  // its newline
  verdict.faults.push_back(std::move(text));
}

}  // namespace kvscope::gpu
