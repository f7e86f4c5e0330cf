#include "viz/view/cell_overlay.h"

#include <algorithm>

#include "viz/view/cell_paint.h"

namespace kvscope::viz {
namespace {

// More outlines than this are painted without smooth corners: nobody sees the corners of thousands.
constexpr std::size_t kSmoothOutlines = 600;

bool in(const CellRange& range, CellPlace place) {
  return place.column >= range.first_column && place.column < range.end_column && place.row >= range.first_row &&
         place.row < range.end_row;
}

QColor washed(QColor colour, double alpha) {
  colour.setAlphaF(static_cast<float>(alpha));
  return colour;
}

// Cells that are too small for an outline: filled, neighbours in a row as one rectangle.
void fill_cells(QPainter& painter, const CellGrid& grid, const std::vector<CellPlace>& cells, const QColor& colour) {
  QVector<QRectF> runs;
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t end = i + 1;
    while (end < cells.size() && cells[end].row == cells[i].row && cells[end].column == cells[end - 1].column + 1) {
      ++end;
    }
    QRectF run = grid.rect(cells[i]).united(grid.rect(cells[end - 1]));
    // A block that shares its pixel with others still has one to light up.
    run.setSize(run.size().expandedTo(QSizeF(1, 1)));
    runs.append(run);
    i = end;
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawRects(runs);
}

void outline_cells(QPainter& painter, const CellGrid& grid, const std::vector<CellPlace>& cells, const QPen& pen,
                   const QColor& wash) {
  if (cells.size() > kSmoothOutlines) {
    QVector<QRectF> rects;
    for (const CellPlace& cell : cells) rects.append(grid.rect(cell).adjusted(0, 0, -1, -1));
    painter.setPen(QPen(pen.color(), 1));
    painter.setBrush(wash);
    painter.drawRects(rects);
    return;
  }
  for (const CellPlace& cell : cells) {
    const QRectF rect = grid.rect(cell);
    if (wash.alpha() > 0) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(wash);
      painter.drawRoundedRect(rect, corner(rect), corner(rect));
    }
    paint_outline(painter, rect, pen);
  }
}

}  // namespace

void paint_lit(QPainter& painter, const CellGrid& grid, const LitCells& lit, LitHow how, const Theme& theme) {
  const CellRange seen = grid.visible();
  std::vector<CellPlace> cells;
  std::copy_if(lit.cells.begin(), lit.cells.end(), std::back_inserter(cells),
               [&](CellPlace place) { return in(seen, place) && place != lit.one; });
  const bool pinned = how == LitHow::pinned;
  const QColor colour = pinned ? theme.accent : theme.hover;
  painter.save();
  painter.setClipRect(grid.area.adjusted(-2, -2, 2, 2), Qt::IntersectClip);
  if (grid.shorter_pitch() < kSmallestOutline) {
    fill_cells(painter, grid, cells, colour);
    if (lit.one && in(seen, *lit.one)) {
      const QRectF rect = grid.rect(*lit.one);
      // A frame that can be seen around a block that hardly can.
      const QRectF frame = QRectF(rect.center() - QPointF(5, 5), QSizeF(10, 10)).united(rect);
      painter.setPen(Qt::NoPen);
      painter.fillRect(rect.united(QRectF(rect.center() - QPointF(1, 1), QSizeF(2, 2))), colour);
      paint_outline(painter, frame, QPen(colour, pinned ? 2 : 1.25));
    }
  } else {
    outline_cells(painter, grid, cells, QPen(colour, pinned ? 1.75 : 1.25),
                  pinned ? QColor(Qt::transparent) : washed(colour, 0.16));
    if (lit.one && in(seen, *lit.one)) {
      const QRectF rect = grid.rect(*lit.one);
      const QRectF around = rect.adjusted(-1, -1, 1, 1);
      if (pinned) {
        paint_outline(painter, around, QPen(washed(colour, 0.28), 5));
        paint_outline(painter, around, QPen(colour, 2.25));
      } else {
        outline_cells(painter, grid, {*lit.one}, QPen(Qt::NoPen), washed(colour, 0.22));
        paint_outline(painter, around, QPen(colour, 1.5));
      }
    }
  }
  painter.restore();
}

void paint_message(QPainter& painter, const QRectF& body, const QString& text, const Theme& theme, double font_scale) {
  painter.save();
  painter.setFont(ui_font(13 * font_scale));
  painter.setPen(theme.text_quiet);
  painter.drawText(body, Qt::AlignCenter | Qt::TextWordWrap, text);
  painter.restore();
}

}  // namespace kvscope::viz
