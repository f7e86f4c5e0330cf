// What a candidate's kernel rounds: stated by the caller, or found in the values.
//
// An f32 tensor whose values are all exactly bf16 (or f16) numbers was computed in that type and saved as f32. It is
// judged as that type. Values that the golden itself has exactly, such as 0.5, are not counted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {

// Empty or default: found in the values, or the usual choice of kernels (attention/bounds.h).
struct StatedRounding {
  std::optional<DType> output;         // f64, f32, f16, bf16
  std::optional<DType> probabilities;  // f32, f16, bf16, e4m3
  std::optional<DType> partials;       // f32, f16, bf16
  std::optional<DType> inputs;         // f16 (also tf32), bf16, e4m3, e5m2
  std::optional<double> ex2_error;     // relative, 0 .. 1
  std::int64_t tile_keys = 1;
  int accumulator_bits = 0;  // 0: as Rounding::accumulator_bits (attention/bounds.h)
  attention::RowSum row_sum = attention::RowSum::either;
};

struct FoundRounding {
  attention::Rounding rounding;
  std::string output_text;  // "bf16", "f32 holding bf16 values"
};

// Both bundles have o. InputError ("candidate") when the values of o are not of the stated type.
[[nodiscard]] FoundRounding find_rounding(const Bundle& golden, const Bundle& candidate, const StatedRounding& stated,
                                          const std::string& candidate_name);

// Whether the row sums were made of unrounded probabilities: at least nine in ten of 24 distinct rows are far closer to
// the golden than rounded probabilities leave them. Rows in which few keys have all the weight, or all keys have the
// same, are not counted: their rounding errors are small or equal. `have`, `want`: lse of candidate and golden, by row.
[[nodiscard]] bool sums_are_exact(const attention::Rounding& rounding, const GoldenTerms& terms,
                                  std::span<const double> have, std::span<const double> want);

}  // namespace kvscope::golden
