// Painting of a pool with so many blocks that each is about one pixel or less: the blocks are written directly into an
// image. A pixel shared by several blocks has their mean color, so that the picture shows density.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <QtGui/QPainter>

#include "viz/geometry/pool_layout.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// Calls visit(first, span of blocks) for the visible blocks in order, in runs within one row of the grid.
template <class Visit>
void for_each_visible_run(const CowArray<BlockState>& blocks, const PoolLayout& layout, Visit&& visit) {
  const CellRange seen = layout.grid.visible();
  const std::int64_t columns = layout.grid.columns;
  const std::int64_t first_seen = seen.first_row * columns, end_seen = seen.end_row * columns;
  blocks.for_each_chunk([&](std::int64_t chunk, std::span<const BlockState> states) {
    const auto end = std::min(chunk + static_cast<std::int64_t>(states.size()), end_seen);
    for (std::int64_t block = std::max(chunk, first_seen); block < end;) {
      const std::int64_t row_start = block / columns * columns;
      const std::int64_t from = std::max(block, row_start + seen.first_column);
      const std::int64_t to = std::min(end, row_start + seen.end_column);
      if (from < to) {
        visit(from, states.subspan(static_cast<std::size_t>(from - chunk), static_cast<std::size_t>(to - from)));
      }
      block = row_start + columns;
    }
  });
}

// Beside a compared run, the blocks that both store alike are dimmed.
void paint_pool_pixels(QPainter& painter, const PoolLayout& layout, const Scene& scene);

// Marks the blocks filled in this step: a dot on each block, larger than the block.
void paint_pool_pixel_marks(QPainter& painter, const PoolLayout& layout, std::span<const BlockIdx> filled,
                            const Theme& theme);

}  // namespace kvscope::viz
