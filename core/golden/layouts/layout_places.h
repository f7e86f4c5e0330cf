// Where a token is in a layout: the tensor, byte and strides of its K and V, and of their scales, for a cache of given
// sizes.
//
// Example: nhd, 6 blocks of 4 tokens, 2 heads of 8 bf16. Token 5 of a sequence on blocks 5, 0, 2 is slot 1 of block 0.
// K of head 1 is at k_cache byte ((0 * 4 + 1) * 2 + 1) * 16 = 48; the next head is 16 bytes on, the next slot 32.
//
// With groups of 4 and scales of e4m3, k_block_scale is [6, 4, 2, 2]: elements 4 to 7 of head 1 have the scale at byte
// ((0 * 4 + 1) * 2 + 1) * 2 + 1 = 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/golden/layouts/layout_description.h"
#include "core/golden/layouts/scale_order.h"

namespace kvscope::golden {

struct PlaceRequest {
  std::int64_t blocks = 6, page_size = 4, head_size = 8, value_size = 8, layers = 1;
  std::optional<std::int64_t> heads;  // default: 2, or 1 if the rows of the layout's first form are of one head
  std::int64_t layer = 0, sequence = 0, token = 5;
  std::vector<std::int64_t> table{5, 0, 2};  // blocks of the sequence's pages; not used by layouts without a table
  DType dtype = DType::bf16;
  // Scales. Block scales: a scale for each `group` elements of a head; 0: none.
  std::int64_t group = 0;
  ScaleOrder k_order = ScaleOrder::linear, v_order = ScaleOrder::linear;  // of block scales
  std::string scales;  // of k_scale and v_scale, one of scale_units(); "": none
  DType scale_dtype = DType::f32;
};

// "tensor", "head", "token", "token-head", "block", "block-head": what has a k_scale of its own.
[[nodiscard]] const std::vector<std::string>& scale_units();

// Consecutive bytes of one head of the token.
struct PlaceRun {
  std::string tensor;
  char k_or_v = 'k';
  bool scales = false;
  std::int64_t head = 0, first = 0,
               count = 0;  // elements of the head; scales: `count` of them, for groups from `first`
  std::int64_t each = 1;   // scales: elements of a group
  std::int64_t byte = 0, bytes = 0;
};

struct PlaceStrides {
  std::string tensor;
  char k_or_v = 'k';
  std::string shape;                                     // "bf16 [6, 4, 2, 8]"
  std::int64_t block = 0, slot = 0, head = 0, next = 0;  // [bytes]; next: of the next element
  bool half_bytes = false;                               // next is half a byte
  // Scales: `next` is that of the next group. In another order than linear, scale g of slot s is where the linear order
  // has its place p (scale_order.h): scale p % groups of slot p / groups.
  bool scales = false;
  std::int64_t each = 0, groups = 0;
  ScaleOrder order = ScaleOrder::linear;
  std::string unit;  // of k_scale: what has one of its own, "KV head"; "": block scales
};

struct TokenPlace {
  std::string at;  // "block 0, slot 1", "sequence 0, position 5", "slot 1"
  std::vector<PlaceRun> runs;
  std::vector<PlaceStrides> strides;
};

// IndexError for a token past the table's pages, and InputError for sizes that the layout cannot have.
[[nodiscard]] TokenPlace place_of_token(const LayoutDescription& layout, const PlaceRequest& request);

}  // namespace kvscope::golden
