// What the memory panel draws beside the rows and below them: their scales (memory_scales.cpp) and the bytes of one row
// (memory_bytes.cpp). All of these are called with a tile; without scales or parts of a row they do nothing.
#pragma once

#include <vector>

#include "viz/geometry/memory_layout.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

// Scales of the tile's rows: one cell for each, and the byte of the first one where a row is high enough for it.
[[nodiscard]] double scales_width(const Scene& scene);  // [px]; 0 without scales
[[nodiscard]] QString scales_summary(const TileScales& scales);
void paint_scales_heading(QPainter& painter, const QRectF& heading, const Scene& scene);
void paint_scales(QPainter& painter, const MemoryLayout& at, std::size_t group, const Scene& scene);
void paint_lit_scale(QPainter& painter, const MemoryLayout& at, const Scene& scene);  // its byte, above all others
void add_scale_cells(const MemoryLayout& at, const QRectF& body, const Scene& scene, std::vector<PanelCell>& cells);

// The bytes of the lit row, of the tile's first one if none is lit: a cell for each value, as wide as its bytes.
[[nodiscard]] double row_bytes_space(const Tile& tile, const Scene& scene);  // [px]; 0: the row has no parts
void paint_row_bytes(QPainter& painter, const QRectF& area, const Scene& scene);
void add_row_bytes_cells(const QRectF& area, const QRectF& body, const Scene& scene, std::vector<PanelCell>& cells);

}  // namespace kvscope::viz
