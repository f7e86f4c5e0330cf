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
#include <limits>
#include <vector>

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

// One query row of one head: what tiled_row() computes alone.
struct TiledRow {
  std::int64_t sequence = 0;  // of the batch
  std::int64_t query = 0;     // within its sequence
  std::int64_t head = 0;      // query head
};

// The running state of a row after one of its tiles.
struct TiledStep {
  std::int64_t split = 0;                    // the part whose m, l and o these are
  std::int64_t first_key = 0, last_key = 0;  // keys [first_key, last_key) of the tile that the row sees; never empty
  double largest_before = -std::numeric_limits<double>::infinity();  // m before the tile; -inf: its part's first tile
  double largest = 0;                                                // m'
  double rescale = 0;     // c = exp(m - m'); 0 in the first tile, where there is nothing to rescale
  double tile_sum = 0;    // sum p of this tile, relative to m'
  double sum = 0;         // l after the tile
  std::vector<double> o;  // [value_dim] after the tile, not divided: o / l is the attention so far
};

struct TiledRowTrace {
  std::vector<TiledStep> steps;  // tiles without a visible key have none
  // Of all keys, with the sink and all splits merged, as tiled() writes them for this row.
  std::vector<double> o;  // [value_dim]
  double lse = 0;
};

// The same computation for one row, with its state after each tile. o and lse have the bits that tiled() gives.
// Example: scores {0, ln 2}, tiles of one key: m is 0, then ln 2; c is 0, then 0.5; l is 1, then 0.5 * 1 + 1 = 1.5.
// IndexError for a sequence, query or head that the problem does not have; else as tiled().
[[nodiscard]] TiledRowTrace tiled_row(const Problem& problem, const TiledRow& row, const TiledConfig& config = {});

// The same algorithm in double without rounding to narrower types: a second computation to check the reference, with
// another order of operations.
// |o - reference| <= 64 * 2^-53 * (1 + smax) * max |v|.   // held by tests/core/attention/reference_oracle_test.cpp
[[nodiscard]] PartialState tiled_double(const Problem& problem, std::int64_t tile_keys = 64, std::int64_t splits = 1);

}  // namespace kvscope::attention
