// Moves a cache from one layout to another, byte for byte: every element keeps its bits, and only its address changes.
//
// If both layouts have a pool, the pool is kept: slot s of block n of the input is slot s of block n of the result,
// unowned slots and unread entries included. Otherwise (caches without a table, or pages of another size that the
// input's tokens do not fill in order), the tokens of each sequence are packed into new blocks; unowned slots are 0.
//
// Example: nhd with pages of 4 to sglang: K of block 5, slot 1 becomes k_buffer[21], and the table [[5, 0]] of a
// sequence of 6 tokens becomes kv_indices 20, 21, 22, 23, 0, 1.
//
// Tensors that are not part of the cache, such as q and its offsets, are copied as they are; the outputs of a golden
// bundle are left out, because they describe the input's blocks. q changes its axes if only one of the layouts has
// heads first. Scales per block or token are moved with their tokens. Block scales keep their order, or become linear
// if the pages of the result do not hold whole runs of it. The columns of attn_mask become those of keys if they count
// positions.
//
// The manifest of the result states how to read it, as that of a bundle of inputs does (golden_inputs.h): the layout,
// types and sizes, and the conventions if the input's manifest states them. It has the page size of the input, so that
// a conversion back finds it. If the tensors fit several forms of the layout, it describes the one that was written:
// vllm's kv_cache [2, 2, P, H, D] is [N, 2, P, H, D] or [2, N, P, H, D].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct ConvertOptions {
  LayoutOptions from;                     // layout, layer, types; mask and scale are not used
  std::optional<std::int64_t> layer;      // only this one; default: all, or 0 if the result has no axis for layers
  const LayoutDescription* to = nullptr;  // must outlive the call
  std::optional<std::int64_t> page_size;  // default: that of the input, or of its manifest, or 16
};

struct Conversion {
  Bundle bundle;
  bool kept_pool = false;
  bool made_scales_linear = false;  // block scales of K, V or both had another order
  std::int64_t sequences = 0, tokens = 0, heads = 0, head_size = 0, layers = 0;
  std::int64_t page_size = 0;  // of the result; positions of a cache without a table
};

// InputError naming `source`, with all faults of the input, and the reason if the layout cannot hold this cache.
[[nodiscard]] Conversion convert_cache(const Bundle& bundle, const ConvertOptions& options, std::string_view source);

}  // namespace kvscope::golden
