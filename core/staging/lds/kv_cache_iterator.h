// Iterates over one head of one sequence tile by tile, in the order in which a KVBuffer copies.
//
//   token    0          64         128   150       tile_size 64, end 150
//            |-- 64 ----|-- 64 ----|- 22 -|        fourth tile: empty
//
// A tile is a 2-D view [rows, depth] of the operand's memory: element (r, c) is r * kv_num_heads * cache_depth + c
// elements after the first; the rows of a tensor operand must be packed that way. tile_size divides the page, and each
// tile fits in one page: the cursor need not be a multiple of tile_size, but cursor % page + tile_size <= page.
// Example: page 64, tile_size 16: a tile may begin at token 20 and may not at token 50. Past the end the kernels still
// form a pointer; the model returns an empty view without looking at the table.
// Example: rope part of a latent cache: depth 64, cache_depth 576, head_dim_offset 512: rows of 64 that are 576 apart,
// the first column is 512.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/layout/strided_view.h"
#include "core/staging/lds/kv_operand.h"

namespace kvscope {

struct KVCacheWalk {
  std::int64_t tile_size = 0;                 // [tokens]
  std::int64_t kv_num_heads = 0;              // H of the operand
  std::int64_t depth = 0;                     // [columns] of a tile
  std::optional<std::int64_t> cache_depth{};  // D of the operand; default depth
  std::int64_t head_dim_offset = 0;
};

class KVCacheIterator {
 public:
  // Begins at token 0; `end` is the first token that is not read. GeometryError, all faults at once: sizes that are not
  // positive, heads or columns that the operand does not have, rows of a tensor that are not packed, pages that are not
  // whole tiles.
  KVCacheIterator(const KVOperand& operand, const KVCacheWalk& walk, TokIdx end, SeqIdx batch_idx, HeadIdx kv_head_idx);

  // The tile at the cursor, which does not move. Rows: max(0, min(tile_size, end - tile_start_row)). IndexError when
  // one of its tokens is outside the operand, or its page was never assigned. GeometryError when the tile leaves its
  // page.
  [[nodiscard]] AnyView<2> tile() const;  // [rows, depth], strides [kv_num_heads * cache_depth, 1]
  // The same, and advances the cursor by tile_size, also past the end.
  AnyView<2> next_tile();
  void increment() { tile_start_row_ += walk_.tile_size; }

  [[nodiscard]] TokIdx tile_start_row() const { return tile_start_row_; }
  void set_tile_start_row(TokIdx row) { tile_start_row_ = row; }  // kernels: the mask's first column
  [[nodiscard]] TokIdx end() const { return end_; }
  [[nodiscard]] SeqIdx batch_idx() const { return batch_idx_; }
  [[nodiscard]] HeadIdx kv_head_idx() const { return kv_head_idx_; }
  [[nodiscard]] DType dtype() const { return operand_.dtype(); }

 private:
  KVOperand operand_;
  KVCacheWalk walk_;
  TokIdx tile_start_row_{0};
  TokIdx end_;
  SeqIdx batch_idx_;
  HeadIdx kv_head_idx_;
};

}  // namespace kvscope
