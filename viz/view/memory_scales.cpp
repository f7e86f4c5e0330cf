// The scales of a quantized cache beside the rows that they belong to.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/playback/tile_state.h"
#include "viz/view/memory_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kScaleCell = 9, kScaleText = 9, kCaption = 10, kBesideCells = 4;  // [px] at font scale 1
constexpr double kLowestText = 10;      // [px] of a row that a number fits in
constexpr std::int64_t kMostCells = 4;  // of a row; more are one cell

QString scales_tr(const char* text) {
  return QCoreApplication::translate("MemoryScales", text);
}

std::int64_t cells_of(const TileScales& scales) {
  return scales.count <= kMostCells ? scales.count : 1;
}

QRectF cell_rect(const QRectF& row, std::int64_t n, const Scene& scene) {
  const double wide = std::min(scene.px(kScaleCell), row.width() / static_cast<double>(kMostCells));
  return {row.left() + wide * static_cast<double>(n), row.top(), wide - 1, row.height()};
}

// Right of the cells, at least as high as a line of text.
QRectF scale_byte_rect(const QRectF& row, const Scene& scene) {
  const double high = std::max(row.height(), scene.px(kLowestText));
  const double left = cell_rect(row, cells_of(*scene.tile->source.scales) - 1, scene).right() + 2;
  return {left, row.center().y() - high / 2, row.right() - left, high};
}

void paint_scale_byte(QPainter& painter, const QRectF& row, std::int64_t of_tile, const QColor& color,
                      const Scene& scene) {
  const QFont mono = mono_font(scene.px(kScaleText));
  const QRectF text = scale_byte_rect(row, scene);
  const std::int64_t place = scene.tile->source.scales->place[static_cast<std::size_t>(of_tile)];
  draw_text_in(painter, mono, color, text, Qt::AlignRight, elided(mono, number_text(place), text.width()));
}

}  // namespace

double scales_width(const Scene& scene) {
  const auto& scales = scene.tile->source.scales;
  if (!scales || scales->place.empty()) return 0;
  const std::int64_t last = std::ranges::max(scales->place);
  const double cells = scene.px(kScaleCell) * static_cast<double>(cells_of(*scales));
  return std::ceil(cells + scene.px(kBesideCells) + text_width(mono_font(scene.px(kScaleText)), number_text(last)));
}

QString scales_summary(const TileScales& scales) {
  const QString dtype = QString::fromStdString(scales.dtype);
  return scales.count == 1 ? scales_tr("1 %1 scale a row").arg(dtype)
                           : scales_tr("%1 %2 scales a row, one for %3 elements")
                                 .arg(scales.count)
                                 .arg(dtype)
                                 .arg(scales.granularity);
}

void paint_scales_heading(QPainter& painter, const QRectF& heading, const Scene& scene) {
  const QFont font = ui_font(scene.px(kCaption));
  const QString dtype = QString::fromStdString(scene.tile->source.scales->dtype);
  const QString text = first_that_fits(
      font, {scales_tr("%1 scales, at byte").arg(dtype), scales_tr("%1 scales").arg(dtype), dtype}, heading.width());
  draw_text_in(painter, font, scene.theme->text_quiet, heading, Qt::AlignRight, text);
}

void paint_scales(QPainter& painter, const MemoryLayout& at, std::size_t group, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileScales& scales = *tile.source.scales;
  const MemoryPart& part = at.parts[group];
  const std::int64_t count = cells_of(scales);
  // The byte of every row, or of one in as many as a line of text covers.
  const auto apart = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(scene.px(kLowestText) / at.pitch)), 1);
  for (std::int64_t row = part.first; row < part.first + part.rows; ++row) {
    const auto rect = at.scale_rect(row);
    if (!rect || row >= std::ssize(scales.place)) continue;
    for (std::int64_t n = 0; n < count; ++n) {
      paint_tile_cell(painter, cell_rect(*rect, n, scene), *scene.theme, tile, row, Arrival::there);
    }
    if ((row - part.first) % apart == 0) paint_scale_byte(painter, *rect, row, scene.theme->text_quiet, scene);
  }
}

void paint_lit_scale(QPainter& painter, const MemoryLayout& at, const Scene& scene) {
  const auto& scales = scene.tile->source.scales;
  const LitTile& lit = scene.lit().tile;
  if (!scales || !lit.row || *lit.row >= std::ssize(scales->place)) return;
  const auto rect = at.scale_rect(*lit.row);
  if (!rect) return;
  painter.fillRect(scale_byte_rect(*rect, scene), scene.theme->card);
  paint_scale_byte(painter, *rect, *lit.row, scene.theme->text, scene);
}

void add_scale_cells(const MemoryLayout& at, const QRectF& body, const Scene& scene, std::vector<PanelCell>& cells) {
  const auto& scales = scene.tile->source.scales;
  if (!scales) return;
  const std::int64_t count = cells_of(*scales);
  for (std::int64_t row = 0; row < std::ssize(scales->place); ++row) {
    const auto rect = at.scale_rect(row);
    for (std::int64_t n = 0; rect && n < count; ++n) {
      // The number beside the last cell belongs to it too.
      QRectF cell = cell_rect(*rect, n, scene);
      if (n + 1 == count) cell.setRight(rect->right());
      cell = cell.intersected(body);
      if (!cell.isEmpty()) cells.push_back({cell, of_tile_scale(row, scales->first + n), {}});
    }
  }
}

}  // namespace kvscope::viz
