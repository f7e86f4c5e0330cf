// Compares output and log-sum-exp of an attention kernel with the golden reference: each element within the bound of
// core/attention/bounds.h; cases add no tolerances.
//
//   sequence 2, query 5, head 1, dim 17 (block 9, slot 5 is its last key): 0.5 instead of
//   0.25, 31 times the bound; 12 of 4096 elements
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/problem.h"
#include "core/attention/reference.h"
#include "core/base/convert.h"

namespace kvscope::gpu {

// `out` is [total_queries, query_heads, v.head_size] of `dtype`, `lse` [total_queries, query_heads].
inline std::vector<std::string> attention_faults(const attention::Problem& problem, DType dtype,
                                                 std::span<const std::byte> out, std::span<const float> lse) {
  const attention::Result golden = attention::reference(problem);
  const std::int64_t queries = problem.total_queries(), heads = problem.query_heads, dims = problem.v.head_size;
  std::vector<std::string> faults;
  if (static_cast<std::int64_t>(out.size()) != queries * heads * dims * size_of(dtype) ||
      static_cast<std::int64_t>(lse.size()) != queries * heads) {
    faults.push_back(fmt::format("{} bytes of output and {} of lse for {} rows of {} elements", out.size(), lse.size(),
                                 queries * heads, dims));
    return faults;
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
  if (wrong > 0) faults.push_back(fmt::format("{}; {} of {} elements", first, wrong, queries * heads * dims));
  if (wrong_lse > 0) faults.push_back(fmt::format("{}; {} of {} rows", first_lse, wrong_lse, queries * heads));
  return faults;
}

}  // namespace kvscope::gpu
