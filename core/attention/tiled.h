// The algorithm of attention kernels: tile after tile of BN keys, with a running maximum that rescales the sums so far
// (online softmax), optionally split over keys into parts that are merged at the end.
//
//   for each tile:  s = scale * q k^T          float32
//                   m' = max(m, max s)         c = exp(m - m')
//                   p = exp(s - m')            rounded to `probabilities`, as for the second matrix product
//                   l = c * l + sum p          unrounded p
//                   o = c * o + p v
//   at the end      o / l, rounded to `output`;  lse = m + log l
//
// It locates rows and computes masks, scores and sums with its own code and shares no arithmetic with reference.cpp, so
// agreement is evidence. Bits may differ between C libraries (exp): compare within bounds.h, never byte for byte.
#pragma once

#include <cstdint>

#include "core/attention/merge.h"
#include "core/attention/problem.h"

namespace kvscope::attention {

struct TiledConfig {
  std::int64_t tile_keys = 64;       // BN [keys]; tiles start at multiples of it, pages may end inside one
  std::int64_t splits = 1;           // parts that a sequence's tiles are divided into, each with its own m, l and o
  DType probabilities = DType::f32;  // f32, f16 or bf16: their type in p v
  DType output = DType::f32;         // f32, f16 or bf16; computed in float32 until the end
};

// Output values are exactly representable in config.output. The problem sets the empty row and the base of lse.
// GeometryError for tile_keys or splits under 1, UnsupportedError for other types, and the errors of check_problem.
[[nodiscard]] PartialState tiled(const Problem& problem, const TiledConfig& config = {});

// The same algorithm in double without rounding to narrower types: a second computation to check the reference, with
// another order of operations.
// |o - reference| <= 64 * 2^-53 * (1 + smax) * max |v|.   // held by tests/core/attention/reference_oracle_test.cpp
[[nodiscard]] PartialState tiled_double(const Problem& problem, std::int64_t tile_keys = 64, std::int64_t splits = 1);

}  // namespace kvscope::attention
