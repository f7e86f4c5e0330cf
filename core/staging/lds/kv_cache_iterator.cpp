#include "core/staging/lds/kv_cache_iterator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {

KVCacheIterator::KVCacheIterator(const KVOperand& operand, const KVCacheWalk& walk, TokIdx end, SeqIdx batch_idx,
                                 HeadIdx kv_head_idx)
    : operand_(operand), walk_(walk), end_(end), batch_idx_(batch_idx), kv_head_idx_(kv_head_idx) {
  const std::int64_t page = operand_.page_size(), heads = operand_.num_heads(), size = operand_.head_size();
  walk_.cache_depth = walk.cache_depth.value_or(walk.depth);
  std::vector<Fault> faults;
  const auto require = [&](bool holds, const char* where, std::string message) {
    if (!holds) faults.push_back({where, std::move(message)});
  };
  require(walk.tile_size > 0, "tile_size", fmt::format("{} is not positive: give 1 or more", walk.tile_size));
  require(walk.depth > 0, "depth", fmt::format("{} is not positive: give 1 or more", walk.depth));
  require(walk.head_dim_offset >= 0, "head_dim_offset",
          fmt::format("{} is negative: give 0 or more", walk.head_dim_offset));
  require(walk.kv_num_heads == heads, "kv_num_heads",
          fmt::format("{} is not the {}'s: use {}", walk.kv_num_heads, operand_.kind(), heads));
  require(*walk_.cache_depth == size, "cache_depth",
          fmt::format("{} is not the head size of the {}: use {}", *walk_.cache_depth, operand_.kind(), size));
  require(walk.depth <= size - walk.head_dim_offset, "depth",
          fmt::format("columns [{}, {}) are not inside a head of {}", walk.head_dim_offset,
                      walk.head_dim_offset + walk.depth, size));
  require(operand_.row_stride() == heads * size && operand_.column_stride() == 1, "k_cache",
          fmt::format("rows are {} elements apart and columns {}, not the packed {} and 1 that the copy assumes: copy "
                      "the tensor into row-major order",
                      operand_.row_stride(), operand_.column_stride(), heads * size));
  require(page == 0 || walk.tile_size < 1 || page % walk.tile_size == 0, "tile_size",
          fmt::format("{} tokens do not divide a page of {}: a tile must be in one page, use a divisor", walk.tile_size,
                      page));
  if (!faults.empty()) throw GeometryError("KVCacheIterator", std::move(faults));
}

AnyView<2> KVCacheIterator::tile() const {
  const std::int64_t rows = std::clamp<std::int64_t>(end_ - tile_start_row_, 0, walk_.tile_size);
  const Shape<2> strides{walk_.kv_num_heads * *walk_.cache_depth, 1};
  if (rows == 0) return {nullptr, dtype(), {0, walk_.depth}, strides};
  // With pages the whole tile is requested, as in the kernels; without pages rows may end inside the last tile.
  std::byte* first =
      operand_.tile(walk_.tile_size, rows, batch_idx_, tile_start_row_, kv_head_idx_, DimIdx{walk_.head_dim_offset});
  return {first, dtype(), {rows, walk_.depth}, strides};
}

AnyView<2> KVCacheIterator::next_tile() {
  const AnyView<2> view = tile();
  increment();
  return view;
}

}  // namespace kvscope
