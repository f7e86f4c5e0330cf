// How an element is judged: NaN and infinities as masks, everything else by its error over the allowed error.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/attention/bounds.h"
#include "core/golden/verdict/group_tests.h"

namespace kvscope::golden {

inline char mask_of(double x) {
  return std::isnan(x) ? 'n' : std::isinf(x) ? (x > 0 ? '+' : '-') : '.';
}

inline double ratio_of(double error, double allowed) {
  return error == 0 ? 0 : error / allowed;
}
// "12.1x the allowed error". Where the golden is 0 from values of 0, next to no error is allowed: 9.81e+44x or infx.
inline std::string ratio_text(double ratio) {
  return ratio > 1e12 ? "more than 1e12x the allowed error" : fmt::format("{:.3g}x the allowed error", ratio);
}

// Elements whose masks were compared.
struct MaskCount {
  std::int64_t elements = 0, special = 0, differing = 0;  // special: NaN or infinite in the golden
  std::size_t first = 0;                                  // of those that differ
  double candidate = 0, golden = 0;                       // at `first`

  void add(std::size_t at, double have, double want) {
    ++elements;
    if (mask_of(want) != '.') ++special;
    if (mask_of(want) == mask_of(have) || differing++ != 0) return;
    first = at;
    candidate = have;
    golden = want;
  }
};

// Elements whose errors were compared with the allowed ones.
struct Judged {
  std::int64_t failing = 0;
  double worst_ratio = -1;  // -1: no finite element
  std::size_t worst_at = 0;

  // True when the element fails; a ratio of NaN does.
  bool add(std::size_t at, double ratio) {
    const bool fails = !(ratio <= 1);
    if (fails) ++failing;
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      worst_at = at;
    }
    return fails;
  }
};

// The systematic part of a budget is allowed in full; the rest is measured in standard deviations. An error upwards has
// no part that only falls. What is expected does not depend on the direction of the error.
inline void add_evidence(RowEvidence& row, const attention::Rounding& rounding, DType type,
                         const attention::Budget& budget, double candidate, double golden, double rounded_golden) {
  const double systematic = budget.before_output() - budget.independent;
  const double boundary = attention::half_step(type, golden) - std::abs(rounded_golden - golden);
  const double falling = candidate > golden ? budget.falling : 0;
  const double excess = std::abs(candidate - golden) - attention::half_step(type, candidate) - (systematic - falling);
  row.add(std::max(0.0, excess) / budget.deviation, std::max(0.0, boundary - systematic) / budget.deviation,
          rounding.deviations);
}

}  // namespace kvscope::golden
