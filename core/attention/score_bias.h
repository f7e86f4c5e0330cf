// Numbers added to the scores, by sequence, query head, query and key: an additive mask such as attn_mask of PyTorch's
// SDPA. Minus infinity hides a key from a query head, which no interval of mask.h can do by head.
//
//   element (b, h, i, t) is data[b * sequence_stride + h * head_stride + i * query_stride + first_key[b] +
//                                t * key_stride]
// for query i and key t of sequence b. A stride of 0 shares the numbers. A sequence may have a query stride of its own,
// and keys without biases, before those that the numbers are for. In an integer type, 0 hides the key and any other
// number adds nothing; `bits` counts bits instead of elements, lowest first. A float of at most hidden_bias hides the
// key too: engines write the lowest number of a type for minus infinity, or -10000.
//
// A hidden key has the weight 0, is not counted as a key of its row, and its bias is not a score: smax leaves it out.
// K and V of hidden keys are read, so they must be finite. A row whose keys are all hidden is a row without keys.
//
// Example: f32 [2, 3, 5] for 2 query heads, 3 queries and 5 keys, shared by all sequences: strides 0, 15 and 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/base/convert.h"
#include "core/base/dtype.h"

namespace kvscope::attention {

inline constexpr double kHiddenBias = -1e4;

// kHiddenBias as a number of the type: bf16 has steps of 64 there, and -10000 becomes -9984.
[[nodiscard]] constexpr double hidden_bias(DType dtype) {
  return dtype == DType::bf16 ? -9984 : kHiddenBias;
}

struct ScoreBias {
  const std::byte* data = nullptr;  // null: none
  DType dtype = DType::f32;
  std::int64_t sequence_stride = 0, head_stride = 0, query_stride = 0;  // [elements]
  std::span<const std::int64_t> first_key;                              // [batch]; empty: 0 for all
  std::int64_t key_stride = 1;                                          // [elements]
  std::span<const std::int64_t> query_strides;                          // [batch], instead of query_stride
  std::span<const std::int64_t> origin;                                 // [batch]; keys before it have no bias
  bool bits = false;                                                    // strides and first_key are in bits

  [[nodiscard]] bool empty() const { return data == nullptr; }

  // Minus infinity for a hidden key. Not checked: the indices must be within the tensor.
  [[nodiscard]] double at(std::int64_t sequence, std::int64_t head, std::int64_t query, std::int64_t key) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    if (!origin.empty() && key < origin.data()[sequence]) return 0;
    const std::int64_t start = first_key.empty() ? 0 : first_key.data()[sequence];
    const std::int64_t row = query_strides.empty() ? query_stride : query_strides.data()[sequence];
    const std::int64_t element =
        sequence * sequence_stride + head * head_stride + query * row + start + key * key_stride;
    if (bits) return (static_cast<int>(data[element / 8]) >> element % 8 & 1) != 0 ? 0 : kHidden;
    const double x = load_as_double(dtype, data + element * size_of(dtype));
    if (!is_float(dtype)) return x != 0 ? 0 : kHidden;
    return x <= hidden_bias(dtype) ? kHidden : x;
  }
};

}  // namespace kvscope::attention
