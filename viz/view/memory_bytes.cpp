// The bytes of one row of an MLA cache: its content, and behind it the rope values, which may be of another type.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/playback/tile_selection.h"
#include "viz/view/memory_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kBytesText = 11, kOffsetText = 8.5, kSwatch = 9;  // [px] at font scale 1
constexpr double kWidestGap = 1, kNarrowestGap = 2.5;              // [px] between values, if a byte is as wide as this
constexpr double kUnstaged = 0.4;                                  // how much of the color other bytes have
constexpr std::int64_t kBytesOfCell = 16;

QString bytes_tr(const char* text) {
  return QCoreApplication::translate("MemoryBytes", text);
}

std::int64_t shown_row(const Scene& scene) {
  const LitTile& lit = scene.lit().tile;
  const std::int64_t row = lit.row ? *lit.row : !lit.rows.empty() ? lit.rows.front() : 0;
  return scene.tile->holds_token(row) ? row : 0;
}

// Content has the row's color; the part behind it the next page's, so that it differs from it in every theme.
QColor color_of(const Scene& scene, std::int64_t row, std::size_t part) {
  const std::int64_t page = scene.tile->page_of(row).value_or(0);
  return part == 0 ? tile_page_color(*scene.theme, page) : tile_page_color(*scene.theme, page + 2);
}

QString words_of(const TileRowPart& part) {
  return bytes_tr("%1 B %2, %3")
      .arg(number_text(part.bytes), QString::fromStdString(part.name),
           QString::fromStdString(part.dtype));
}

}  // namespace

double row_bytes_space(const Tile& tile, const Scene& scene) {
  return tile.source.row.parts.empty() ? 0 : row_bytes_height(tile.source.row.bytes(), scene.font_scale);
}

void paint_row_bytes(QPainter& painter, const QRectF& area, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TileRowBytes& row = tile.source.row;
  const std::int64_t shown = shown_row(scene);
  const RowBytesLayout at = row_bytes_layout(row.bytes(), area, scene.font_scale);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setClipRect(area.adjusted(-1, -1, 1, 1), Qt::IntersectClip);
  painter.fillRect(area, theme.card);
  // "row 6:  [] 512 B content, e4m3  [] 128 B rope, bf16"
  const QFont words = ui_font(scene.px(kBytesText));
  double x = at.title.left();
  const auto write = [&](const QString& text, const QColor& color) {
    const QRectF rest(x, at.title.top(), std::max(at.title.right() - x, 0.0), at.title.height());
    const QString fits = elided(words, text, rest.width());
    draw_text_in(painter, words, color, rest, Qt::AlignLeft, fits);
    x += text_width(words, fits) + scene.px(6);
  };
  write(bytes_tr("row %1").arg(shown), theme.text);
  for (std::size_t n = 0; n < row.parts.size(); ++n) {
    const double side = scene.px(kSwatch);
    const QRectF swatch(x, at.title.center().y() - side / 2, side, side);
    if (swatch.right() < at.title.right()) painter.fillRect(swatch, color_of(scene, shown, n));
    x += side + scene.px(4);
    write(words_of(row.parts[n]), theme.text_quiet);
  }
  const QFont mono = mono_font(scene.px(kOffsetText));
  for (std::int64_t first = 0; first < row.bytes(); first += 2 * kBytesOfLine) {
    const QRectF line = at.rect(first, 1);
    draw_text_in(painter, mono, theme.text_quiet,
                 QRectF(area.left(), line.top() - 2, at.offset - scene.px(4), line.height() + 4), Qt::AlignRight,
                 number_text(first));
  }
  const double gap = at.byte >= kNarrowestGap ? kWidestGap : 0;
  for (std::size_t n = 0; n < row.parts.size(); ++n) {
    const TileRowPart& part = row.parts[n];
    const QColor color = color_of(scene, shown, n);
    for (std::int64_t byte = part.first; byte < part.first + part.bytes; byte += part.value_bytes) {
      const QRectF rect = at.rect(byte, part.value_bytes).adjusted(0, 0, -gap, 0);
      painter.fillRect(rect, column_of_byte(tile, byte) ? color : with_alpha(color, kUnstaged));
    }
  }
  painter.restore();
}

void add_row_bytes_cells(const QRectF& area, const QRectF& body, const Scene& scene, std::vector<PanelCell>& cells) {
  const TileRowBytes& row = scene.tile->source.row;
  const RowBytesLayout at = row_bytes_layout(row.bytes(), area, scene.font_scale);
  for (std::int64_t first = 0; first < row.bytes(); first += kBytesOfCell) {
    const QRectF rect = at.rect(first, std::min(kBytesOfCell, row.bytes() - first)).intersected(body);
    if (!rect.isEmpty()) cells.push_back({rect, of_tile_bytes(shown_row(scene), first), {}});
  }
}

}  // namespace kvscope::viz
