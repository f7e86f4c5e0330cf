// The highlighted cells of a grid: those of the pinned object and those of the hovered one. Both may be visible at
// once: pinned cells have a full accent line, hovered ones a thin line and a wash.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/geometry/cell_grid.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

enum class LitHow : std::uint8_t { pinned, hovered };

struct LitCells {
  std::vector<CellPlace> cells;  // in reading order: adjacent ones in a row are painted as one
  std::optional<CellPlace> one;  // the selected cell among them, painted most prominently
};

// Paints outlines if the pitch is at least kSmallestOutline, filled cells below that; only inside the grid's area.
void paint_lit(QPainter& painter, const CellGrid& grid, const LitCells& lit, LitHow how, const Theme& theme);

// A few lines in the middle of a panel without content, with the reason.
void paint_message(QPainter& painter, const QRectF& body, const QString& text, const Theme& theme, double font_scale);

}  // namespace kvscope::viz
