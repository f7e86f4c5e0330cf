// Scales of a cache in separate tensors: k_scale, v_scale and kv_scale (known_tensors.h). The keys of the problem are
// k * k_scale, its values v * v_scale. The tensor's shape determines what one scale covers:
//
//   []  or [1]   per tensor                    [N, P]     per token; also [N * P], by slot number
//   [H]          per KV head                   [N, P, H]  per token and KV head; also [N * P, H]
//   [N]          per block                     [N, H]     per block and KV head
//
// in the order of the layout's axes (hnd: [N, H, P]), each optionally with a last axis of length 1. Layout max accepts
// each of them with the axis L too. kv_scale covers K and V together, or separately with the axis 2 in its place: [2],
// [2, H]. FlashAttention's k_descale [B, H], per sequence and KV head, is read under the names that end in _descale, in
// layouts nhd and hnd. A shape with two possible meanings, such as [N] where N = H, is a fault. The shape with every
// axis of the cache, and 1 for those that share a scale, is unambiguous: [1, 1, H, 1] for layout nhd.
//
// Example: nhd, 13 blocks of 4 tokens, 2 heads: k_scale [2] multiplies K of head 0 by k_scale[0], of head 1 by
// k_scale[1]; k_scale [13, 4] multiplies K of block 5, slot 3 by k_scale[23].
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// The location of K's or V's scale for (block, slot, head), or for (sequence, head), in a tensor. // [elements]
struct ScaleWalk {
  std::int64_t offset = 0;
  std::int64_t block = 0, slot = 0, head = 0;
  std::int64_t sequence = 0;  // not 0: the scale depends on the sequence and not on block and slot
  friend bool operator==(const ScaleWalk&, const ScaleWalk&) = default;
};

struct ScaleReading {
  const Tensor* tensor = nullptr;   // null: unscaled
  std::array<ScaleWalk, 2> walk{};  // K's and V's
  std::string text;                 // "k_scale f32 [2], per KV head"
  std::string axes;                 // a letter for each axis: N, P, H, L, 2, T (N and P as one), B sequence, 1
};

// Whether a scale depends on the block or the slot.
[[nodiscard]] inline bool varies_by_place(const ScaleReading& scales) {
  return scales.walk[0].block != 0 || scales.walk[0].slot != 0 || scales.walk[1].block != 0 || scales.walk[1].slot != 0;
}

struct CacheScales {
  ScaleReading k, v;
};

// Determines the scales of the input. Reports faults to the reader; sizes unknown after a fault are not checked.
[[nodiscard]] CacheScales read_scales(LayoutReader& reader);

// Sets the scales of problem.k and problem.v, whose rows and tables must be set. If layout max also has `scales`, the
// product of both is computed in double, once per granule.
void apply_scales(const CacheScales& scales, PreparedProblem& prepared);

}  // namespace kvscope::golden
