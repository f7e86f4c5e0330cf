// The registers panel of a tile that no register takes: wgmma reads it from shared memory through a descriptor. The
// descriptor in words, the core matrices that it addresses, and the operands of all products as pieces of the tile.
#pragma once

#include <optional>
#include <vector>

#include <QtGui/QPainter>

#include "viz/geometry/operand_layout.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

// Whether the panel shows operands: the tile has some, and no read fills registers.
[[nodiscard]] bool shows_operands(const Tile& tile);

// Nothing: the trace was recorded without lanes.
[[nodiscard]] std::optional<OperandLayout> operand_now(const QRectF& body, const Scene& scene);

void paint_operand(QPainter& painter, const OperandLayout& at, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> operand_cells(const OperandLayout& at, const QRectF& body, const Scene& scene);
[[nodiscard]] Selection operand_hit(const OperandLayout& at, QPointF point, const Scene& scene);
[[nodiscard]] std::optional<QRectF> operand_anchor(const OperandLayout& at, const LitTile& lit, const Scene& scene);

}  // namespace kvscope::viz
