// A described cache as addresses: the bit of each element of K and V, by block, slot, head and element of the head. The
// same view reads a cache for attention, writes it in another layout, and prints where a token is.
//
// Layout nhd, [13, 4, 2, 6] of f32: K is one piece, elements 0 to 5 of each head, with strides of 1536, 384, 192 and 32
// bits for block, slot, head and element. vllm_legacy, [13, 2, 3, 4, 2]: element d is at (d / 2) * 256 + (d % 2) * 32.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layout_description.h"
#include "core/golden/layouts/scale_order.h"

namespace kvscope::golden {

struct CacheSizes {
  std::int64_t blocks = 0, page_size = 0, heads = 0;  // without pages: blocks of one token
  std::int64_t head_size = 0, value_size = 0;         // [elements] of K and V
  std::int64_t layers = 1;
  std::int64_t run = 0;                   // axis x
  std::int64_t latent = 0;                // of an MLA row in two tensors; the rest is rope
  std::int64_t k_group = 0, v_group = 0;  // elements of K and V that share a block scale
  ScaleOrder k_order = ScaleOrder::linear, v_order = ScaleOrder::linear;  // of block scales
};

// Bits. Element d of a head, 0 <= d < count, is at
//   offset + block * by_block + slot * by_slot + head * by_head + (d / run) * by_run + (d % run) * by_element
//
// Block scales in another order (scale_order.h): scale g of slot s is where scale (p % G) of slot (p / G) would be, for
// its place p and G scales of a slot. Example: G = 2, interleaved, scale 1 of slot 2 has p = 6, the place of scale 0 of
// slot 3.
struct CacheWalk {
  std::int64_t offset = 0, by_block = 0, by_slot = 0, by_head = 0;
  std::int64_t run = 1, by_run = 0, by_element = 0;
  ScaleOrder order = ScaleOrder::linear;
  std::int64_t groups = 0;  // scales of a slot; only for other orders
  [[nodiscard]] std::int64_t at(std::int64_t block, std::int64_t slot, std::int64_t head, std::int64_t d) const {
    if (order != ScaleOrder::linear) {
      const std::int64_t place = scale_place(order, slot, d, groups);
      slot = place / groups;
      d = place % groups;
    }
    return offset + block * by_block + slot * by_slot + head * by_head + d / run * by_run + d % run * by_element;
  }
};

// Elements [first, first + count) of a head, or, for scales, of the groups [first / each, ...).
struct CachePiece {
  std::size_t tensor = 0;  // of the form
  DType dtype = DType::f32;
  std::int64_t first = 0, count = 0;
  std::int64_t each = 1;  // scales: elements of a group
  CacheWalk walk;
};

struct CacheSide {
  std::vector<CachePiece> elements, scales;
};

struct CacheView {
  CacheSizes sizes;
  bool values_in_keys = false;
  CacheSide k, v;  // v is empty when values_in_keys
};

// The form, and an optional tensor of block scales for each tensor of elements: k_block_scale, v_block_scale,
// kv_block_scale, with the axes of the elements and `group` for the last one. Not for forms that have other scales.
[[nodiscard]] CacheForm with_block_scales(const CacheForm& form);

// The shape that a tensor of the form has for these sizes. `packed`: two elements of e2m1 in a byte.
[[nodiscard]] std::vector<std::int64_t> shape_for(const CacheTensor& tensor, const CacheSizes& sizes, DType stored);

// The view of one layer. `stored[i]`: the type of the elements of tensor i of the form; absent tensors of block scales
// are marked by `present`. Precondition: the tensors have the shapes of shape_for().
[[nodiscard]] CacheView view_of(const CacheForm& form, const CacheSizes& sizes, std::int64_t layer,
                                const std::vector<DType>& stored, const std::vector<bool>& present);

// The letters of the axes of K without its elements, for scales: "NPH", "N2HP" (layout_scales.h).
[[nodiscard]] std::string scale_axes(const CacheForm& form);

// Copies `bits` bits (4, or a multiple of 8) from one bit address to another.
void copy_bits(const std::byte* from, std::int64_t from_bit, std::byte* to, std::int64_t to_bit, std::int64_t bits);

}  // namespace kvscope::golden
