#include "viz/view/cell_overlay.h"

#include <algorithm>
#include <cmath>

#include <QtGui/QPainterPath>

#include "viz/view/cell_paint.h"
#include "viz/view/theme.h"

namespace kvscope::viz {
namespace {

// More outlines than this are painted without smooth corners, for speed: with thousands of them it is not visible.
constexpr std::size_t kSmoothOutlines = 80;

// Minimum pitch for a second line inside the first. [px]
constexpr double kSmallestSecondLine = 14;

bool in(const CellRange& range, CellPlace place) {
  return place.column >= range.first_column && place.column < range.end_column && place.row >= range.first_row &&
         place.row < range.end_row;
}

// Minimum size of a run of cells in a row whose content is visible inside a frame of 2 px.
constexpr double kSmallestFrame = 10;  // [px]
bool can_be_framed(const QRectF& run) {
  return run.width() >= kSmallestFrame && run.height() >= kSmallestFrame;
}

// Merges adjacent cells of a row into one rectangle.
QVector<QRectF> runs_of(const CellGrid& grid, const std::vector<CellPlace>& cells) {
  QVector<QRectF> runs;
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t end = i + 1;
    while (end < cells.size() && cells[end].row == cells[i].row && cells[end].column == cells[end - 1].column + 1) {
      ++end;
    }
    QRectF run = grid.rect(cells[i]).united(grid.rect(cells[end - 1]));
    // A block that shares its pixel with others is highlighted with at least one pixel.
    run.setSize(run.size().expandedTo(QSizeF(1, 1)));
    runs.append(run);
    i = end;
  }
  return runs;
}

// Cells too small for an outline are filled. A run of them that is large enough for a frame keeps its colors and gets
// one frame.
void fill_runs(QPainter& painter, const QVector<QRectF>& runs, double width, const QColor& color) {
  QVector<QRectF> small;
  for (const QRectF& run : runs) {
    if (!can_be_framed(run)) {
      small.append(run);
      continue;
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(color, width, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(run.adjusted(width / 2, width / 2, -width / 2, -width / 2));
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawRects(small);
}

// Among thousands of colors a highlight is hard to see: everything except the framed runs is dimmed.
void step_back(QPainter& painter, const CellGrid& grid, const QVector<QRectF>& runs, const QColor& wash) {
  if (std::ranges::none_of(runs, can_be_framed)) return painter.fillRect(grid.area, wash);
  QPainterPath others;
  others.addRect(grid.area);
  for (const QRectF& run : runs) {
    if (can_be_framed(run)) others.addRect(run);
  }
  others.setFillRule(Qt::OddEvenFill);
  painter.fillPath(others, wash);
}

// The outline of a highlighted cell, inside its rectangle, so that it stays within the panel. The second line, in the
// card's color, separates the first from a fill of a similar color.
struct Outline {
  QColor line;
  double width = 1;  // [px]
  QColor second;     // invisible: none
  QColor wash;       // over the fill; invisible: none
};

void outline_cells(QPainter& painter, const CellGrid& grid, const std::vector<CellPlace>& cells, const Outline& how) {
  const auto rects = [&](double inset) {
    QVector<QRectF> inside;
    for (const CellPlace& cell : cells) inside.append(grid.rect(cell).adjusted(inset, inset, -inset, -inset));
    return inside;
  };
  const bool smooth = cells.size() <= kSmoothOutlines;
  painter.setRenderHint(QPainter::Antialiasing, smooth);
  const auto draw = [&](const QVector<QRectF>& of, const QPen& pen, const QBrush& brush) {
    painter.setPen(pen);
    painter.setBrush(brush);
    if (!smooth) return painter.drawRects(of);
    for (const QRectF& rect : of) painter.drawRoundedRect(rect, corner(rect), corner(rect));
  };
  if (how.wash.alpha() > 0) draw(rects(0), Qt::NoPen, how.wash);
  if (how.second.alpha() > 0) draw(rects(how.width + 0.5), QPen(how.second, 1), Qt::NoBrush);
  // Without antialiasing Qt draws a line of 2 px one pixel above and to the left of the given coordinates.
  draw(rects(smooth ? how.width / 2 : 1), QPen(how.line, smooth ? how.width : std::floor(how.width)), Qt::NoBrush);
}

}  // namespace

void paint_lit(QPainter& painter, const CellGrid& grid, const LitCells& lit, LitHow how, const Theme& theme) {
  const CellRange seen = grid.visible();
  std::vector<CellPlace> cells;
  std::copy_if(lit.cells.begin(), lit.cells.end(), std::back_inserter(cells),
               [&](CellPlace place) { return in(seen, place); });
  const bool pinned = how == LitHow::pinned;
  const QColor color = pinned ? theme.accent : theme.hover;
  painter.save();
  painter.setClipRect(grid.area, Qt::IntersectClip);
  const QColor none(Qt::transparent);
  if (grid.shorter_pitch() < kSmallestOutline) {
    const QVector<QRectF> runs = runs_of(grid, cells);
    if (!lit.one && !cells.empty()) step_back(painter, grid, runs, with_alpha(theme.card, 0.72));
    fill_runs(painter, runs, pinned ? 2 : 1, color);
    if (lit.one && in(seen, *lit.one)) {
      // A visible frame around a cell that is too small to see.
      const QRectF rect = grid.rect(*lit.one);
      painter.fillRect(rect.united(QRectF(rect.center() - QPointF(1, 1), QSizeF(2, 2))), color);
      const QRectF frame = QRectF(rect.center() - QPointF(5, 5), QSizeF(10, 10)).united(rect);
      paint_outline(painter, frame.adjusted(1.5, 1.5, -1.5, -1.5), QPen(theme.card, 1));
      paint_outline(painter, frame, QPen(color, pinned ? 2 : 1.25));
    }
  } else {
    const bool room = grid.shorter_pitch() >= kSmallestSecondLine;
    const QColor second = room && pinned ? theme.card : none;
    const QColor wash = pinned ? none : with_alpha(color, 0.18);
    outline_cells(painter, grid, cells, {color, pinned ? 2.0 : 1.0, second, wash});
    if (lit.one && in(seen, *lit.one)) {
      if (pinned) paint_outline(painter, grid.rect(*lit.one).adjusted(-1, -1, 1, 1), QPen(with_alpha(color, 0.3), 3));
      outline_cells(painter, grid, {*lit.one}, {color, pinned ? 2.5 : 1.75, second, wash});
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
