// One attention problem: queries, the paged K and V they read, and every convention as an explicit option.
// The reference and all candidates take the same struct; it owns no memory.
//
//   scores[i, h, t] = scale * dot(q[i, h], k[t, h / group])       then soft cap, ALiBi, bias, mask
//   o[i, h]         = sum_t softmax(scores)[t] * v[t, h / group]   group = query_heads / kv_heads
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/attention/score_bias.h"
#include "core/base/dtype.h"
#include "core/scenario/scenario.h"

namespace kvscope::attention {

// K or V of one layer as rows in blocks. The offset of element (block, slot, head, dim) is
//   block * block_stride + slot * token_stride + head * head_stride + dim
// Token t of sequence b is slot t % page_size of block table[b * table_stride + t / page_size]. MAX's 4-D view, NHD,
// HND and plain [B, S, H, D] tensors all have this form.
struct PagedRows {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t blocks = 0;     // extent of the block axis: an entry that is read and >= blocks is an IndexError
  std::int64_t page_size = 0;  // [tokens]
  std::int64_t heads = 0;
  std::int64_t head_size = 0;                                        // elements read of each head
  std::int64_t block_stride = 0, token_stride = 0, head_stride = 0;  // [elements]

  const std::uint32_t* table = nullptr;  // [batch, table_stride]; entries past a sequence's pages are never read
  std::int64_t table_stride = 0;         // [entries]

  // Quantized: value = element * scale[block, slot, head, dim / granularity]; scales == nullptr: none.
  const std::byte* scales = nullptr;
  DType scale_dtype = DType::f32;
  std::int64_t granularity = 0;                                                        // [elements]
  std::int64_t scale_block_stride = 0, scale_token_stride = 0, scale_head_stride = 0;  // [scales]
  const std::uint32_t* scales_table = nullptr;  // as `table`; nullptr: the same table
  std::int64_t scales_table_stride = 0;         // [entries] of `scales_table`; 0: `table_stride`
  std::int64_t scale_blocks = 0;                // extent of the scales' block axis; 0: `blocks`
};

enum class LseBase : std::uint8_t { natural, two };
// The lse of a row without any key; its o is 0.
enum class EmptyRow : std::uint8_t { minus_infinity, plus_infinity };

struct Options {
  MaskKind mask = MaskKind::causal;
  CausalAlignment alignment = CausalAlignment::bottom_right;
  std::int64_t window_left = -1;   // sliding_window: keys before the query's position, inclusive count; -1: no limit
  std::int64_t window_right = 0;   // sliding_window: keys after it; -1: no limit
  std::int64_t chunk = 0;          // chunked: a query sees the keys of its chunk of this many positions, up to itself
  double scale = 1.0;              // always explicit
  std::optional<double> soft_cap;  // score -> cap * tanh(score / cap), before ALiBi and mask
  std::span<const double> alibi_slopes;  // [query_heads]; empty: none. score += slope * (key position - query position)
  ScoreBias bias;                        // score += bias, after ALiBi; it may hide keys that the mask shows
  std::span<const double> sinks;         // [query_heads] logits that join the denominator only; empty: none
  LseBase lse_base = LseBase::natural;
  EmptyRow empty_row = EmptyRow::minus_infinity;
};

struct Problem {
  std::int64_t batch = 0;
  std::int64_t query_heads = 0;
  const std::byte* q = nullptr;  // [total_queries, query_heads, head_size], row-major; head_size = k.head_size
  DType q_dtype = DType::f32;
  // [batch + 1]: queries of sequence b are rows [offsets[b], offsets[b + 1])
  std::span<const std::int64_t> query_offsets;
  std::span<const std::int64_t> key_lengths;  // [batch]: keys of sequence b, this step's tokens included
  PagedRows k;
  PagedRows v;  // v.head_size is the output's; MLA: the data of k with fewer elements read
  Options options;

  [[nodiscard]] std::int64_t total_queries() const { return query_offsets.empty() ? 0 : query_offsets.back(); }
  // The first row of q of sequence `b` in [0, batch], and the keys of sequence `b` in [0, batch). Not checked.
  [[nodiscard]] std::int64_t first_query(std::int64_t b) const { return query_offsets.data()[b]; }
  [[nodiscard]] std::int64_t keys(std::int64_t b) const { return key_lengths.data()[b]; }
};

}  // namespace kvscope::attention
