// A row of a candidate's output, and how well a prediction fits it.
#pragma once

#include <limits>
#include <vector>

#include "core/attention/bounds.h"
#include "core/golden/diagnosis/row_recipe.h"

namespace kvscope::golden {

// A candidate's row, in double.
struct CandidateRow {
  std::vector<double> o;  // [value_dim]
  double lse = 0;
  bool has_lse = false;
  attention::Rounding rounding;      // of the candidate's kernel
  attention::Rounding lse_rounding;  // the same for lse
};

// The golden's o and lse, and the variance of what rounding adds to them. Trials are ranked by how much of the
// candidate's distance from the golden they explain, in these variances.
struct RowNoise {
  std::vector<double> golden, variance;  // [value_dim] of o
  double lse = 0, lse_variance = 0;
};

inline constexpr double kNoFit = std::numeric_limits<double>::infinity();

// max over the row of |candidate - predicted| / bound of the prediction; kNoFit where NaN or infinities differ. A
// prediction without o is judged by lse alone. Of a row that lost its keys, each value that kernels store for a row
// without keys fits.
[[nodiscard]] double misfit(const CandidateRow& candidate, const RowValue& predicted);

}  // namespace kvscope::golden
