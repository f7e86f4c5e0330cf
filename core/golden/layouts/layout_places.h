// Where a token is in a layout: the tensor, byte and strides of its K and V, for a cache of given sizes.
//
// Example: nhd, 6 blocks of 4 tokens, 2 heads of 8 bf16. Token 5 of a sequence on blocks 5, 0, 2 is slot 1 of block 0.
// K of head 1 is at k_cache byte ((0 * 4 + 1) * 2 + 1) * 16 = 48; the next head is 16 bytes on, the next slot 32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/golden/layouts/layout_description.h"

namespace kvscope::golden {

struct PlaceRequest {
  std::int64_t blocks = 6, page_size = 4, heads = 2, head_size = 8, value_size = 8, layers = 1;
  std::int64_t layer = 0, sequence = 0, token = 5;
  std::vector<std::int64_t> table{5, 0, 2};  // blocks of the sequence's pages; not used by layouts without a table
  DType dtype = DType::bf16;
};

// Consecutive bytes of one head of the token.
struct PlaceRun {
  std::string tensor;
  char k_or_v = 'k';
  bool scales = false;
  std::int64_t head = 0, first = 0, count = 0;  // elements of the head
  std::int64_t byte = 0, bytes = 0;
};

struct PlaceStrides {
  std::string tensor;
  char k_or_v = 'k';
  std::string shape;                                     // "bf16 [6, 4, 2, 8]"
  std::int64_t block = 0, slot = 0, head = 0, next = 0;  // [bytes]; next: of the next element
};

struct TokenPlace {
  std::string at;  // "block 0, slot 1", "sequence 0, position 5", "slot 1"
  std::vector<PlaceRun> runs;
  std::vector<PlaceStrides> strides;
};

// IndexError for a token past the table's pages, and InputError for sizes that the layout cannot have.
[[nodiscard]] TokenPlace place_of_token(const LayoutDescription& layout, const PlaceRequest& request);

}  // namespace kvscope::golden
