// Values for one layer of the pool at the focus step, generated from the seed in place of a model's. A token's values
// depend on the token's id, not on its place in memory, so sequences that share a block agree on it. Slots that hold no
// token, and the null page, are filled with NaN, so that a read of them shows in the output.
#pragma once

#include <cstdint>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/scenario/scenario.h"
#include "core/staging/focus.h"
#include "core/staging/staged_image.h"

namespace kvscope {

struct LayerData {
  golden::Tensor blocks;  // [blocks + 1, kv, 1, page_size, kv_heads, head_size]; continuous: [blocks, 2, 1, S, ...]
  golden::Tensor scales;  // [blocks + 1, kv, 1, page_size, kv_heads, granules]; no shape when not quantized
  golden::Tensor exact;   // quantized: `blocks` before quantization, f32; no shape otherwise
  golden::Tensor q;       // [queries, query_heads, head_size]: the step's new tokens, sequence by sequence
  std::vector<std::int64_t> query_offsets;  // [batch + 1]
  std::vector<std::int64_t> key_lengths;    // [batch] cached + new

  [[nodiscard]] LayerBytes bytes() { return {blocks.bytes, scales.bytes}; }
};

// The scale of a granule whose largest magnitude is `amax`, before it is rounded to the scale's type. 1 when amax is 0.
// Power of two: the smallest one that is amax / largest finite or more, found without a division or a logarithm, so
// that amax = 448 gives 1 and the next double gives 2. Precondition (caller): amax is finite; dtype is e4m3 or e5m2.
[[nodiscard]] double scale_of(Quantizer quantizer, double amax, DType dtype);

// Bytes that layer_data() would allocate for the pool of one layer.
[[nodiscard]] std::int64_t layer_bytes(const Scenario& scenario);

// Precondition (caller): layer_bytes() is a size worth allocating; run_scenario.h rejects larger ones with a reason.
[[nodiscard]] LayerData layer_data(const Scenario& scenario, const FocusState& focus);

}  // namespace kvscope
