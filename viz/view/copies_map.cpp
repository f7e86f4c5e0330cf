// The tensor map of a tile, axis by axis: the extent of each axis, the parts of it that the boxes copy, and the rules
// that it breaks.
#include <algorithm>

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>

#include "viz/view/copies_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kAxisText = 11, kNoteText = 11.5, kMapHeading = 10;  // [px] at font scale 1
constexpr int kWrapped = static_cast<int>(Qt::AlignLeft | Qt::AlignTop) | Qt::TextWordWrap;

QString map_tr(const char* text) {
  return QCoreApplication::translate("TensorMap", text);
}

// Without blanks, and without the unit, in a narrow card.
QStringList headings() {
  return {map_tr("extent · box · stride"), map_tr("extent·box·stride")};
}
QStringList numbers_of(const TileMapAxis& axis) {
  const QString extent = number_text(axis.extent), box = number_text(axis.box), stride = number_text(axis.stride);
  return {map_tr("%1 · %2 · %3 B").arg(extent, box, stride), map_tr("%1·%2·%3 B").arg(extent, box, stride),
          map_tr("%1·%2·%3").arg(extent, box, stride)};
}

QString note_of(const TileSource& source, std::optional<std::int64_t> axis) {
  QStringList lines;
  for (const TileFault& fault : source.faults) {
    if (fault.axis != axis) continue;
    const QString message = QString::fromStdString(fault.message);
    lines.push_back(fault.place.empty() ? message
                                        : QStringLiteral("%1: %2").arg(QString::fromStdString(fault.place), message));
  }
  return lines.join(QLatin1Char('\n'));
}

QString verdict_of(const TileSource& source) {
  const auto takes = std::ranges::count(source.engines, true, &TileEngine::takes);
  const QString kernels =
      source.engines.empty() ? QString() : map_tr(" · %1 of %2 kernels use TMA").arg(takes).arg(source.engines.size());
  if (!source.faults.empty()) return map_tr("rules broken: %1").arg(source.faults.size()) + kernels;
  return map_tr("no rule is broken") + kernels;
}

// The row of the matrix that a row of the tile is; nothing: it holds no token.
std::optional<std::int64_t> matrix_row(const Tile& tile, std::int64_t row) {
  const auto page = tile.page_of(row);
  if (!page) return std::nullopt;
  return tile.pages[static_cast<std::size_t>(*page)].row + tile.slot_of(row);
}

}  // namespace

MapLayout map_of(const TileMapPlan& map, const TileSource& source, bool rules, const QRectF& body, const Scene& scene) {
  const QFont mono = mono_font(scene.px(kAxisText));
  double numbers = text_width(ui_font(scene.px(kMapHeading)), headings().front());
  for (const TileMapAxis& axis : map.axes) numbers = std::max(numbers, text_width(mono, numbers_of(axis).front()));
  std::vector<double> notes;
  const QFontMetricsF metrics(ui_font(scene.px(kNoteText)));
  for (std::int64_t axis = 0; axis <= std::ssize(map.axes); ++axis) {
    const bool whole = axis == std::ssize(map.axes);
    const QString note = rules ? note_of(source, whole ? std::nullopt : std::optional(axis)) : QString();
    const QRectF room(0, 0, std::max(body.width() - scene.px(8), 1.0), 1e6);
    notes.push_back(note.isEmpty() ? 0 : metrics.boundingRect(room, kWrapped, note).height() + scene.px(4));
  }
  return map_layout(notes, numbers + 2, body, scene.font_scale);
}

void paint_map_axes(QPainter& painter, const MapLayout& at, const TileSource& source, bool rules, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const TileMapPlan& map = *source.map;
  const QFont mono = mono_font(scene.px(kAxisText)), words = ui_font(scene.px(kNoteText));
  const QFont heading = ui_font(scene.px(kMapHeading));
  draw_text_in(painter, heading, theme.text_quiet, at.heading, Qt::AlignLeft,
               first_that_fits(heading, headings(), at.heading.width()));
  for (std::size_t n = 0; n < map.axes.size(); ++n) {
    const MapLine& line = at.lines[n];
    const TileMapAxis& axis = map.axes[n];
    const bool broken = source.broken(static_cast<std::int64_t>(n));
    const QColor color = broken ? theme.warning : theme.text_quiet;
    // A mark and not color alone.
    const QString name = (broken ? QStringLiteral("✗ ") : QString()) + QString::fromStdString(axis.name);
    draw_text_in(painter, mono, broken ? theme.warning : theme.text, line.name, Qt::AlignLeft,
                 elided(mono, name, line.name.width()));
    draw_text_in(painter, mono, color, line.numbers, Qt::AlignLeft,
                 first_that_fits(mono, numbers_of(axis), line.numbers.width()));
    if (!line.bar.isEmpty()) {
      painter.fillRect(line.bar, theme.cell_line);
      const auto extent = static_cast<double>(axis.extent), box = static_cast<double>(axis.box);
      if (scene.tile == nullptr) {
        painter.fillRect(at.part(n, 0, box, extent), broken ? theme.warning : theme.series[0]);
      } else {
        const Tile& tile = *scene.tile;
        const bool columns = n == 0, rows = n + 1 == map.axes.size();
        for (const TileCopy& copy : tile.copies) {
          if (columns) {
            painter.fillRect(at.part(n, static_cast<double>(map.first_column + copy.column), box, extent),
                             theme.series[0]);
          } else if (!rows) {
            painter.fillRect(at.part(n, static_cast<double>(tile.opened.head.value), 1, extent), theme.series[0]);
          }
        }
        for (std::int64_t row = 0; rows && row < tile.opened.tokens; ++row) {
          const auto of_matrix = matrix_row(tile, row);
          if (!of_matrix) continue;
          painter.fillRect(at.part(n, static_cast<double>(*of_matrix), 1, extent),
                           tile_page_color(theme, tile.page_of(row).value_or(0)));
        }
      }
      if (broken) {
        painter.setPen(QPen(theme.warning, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(line.bar.adjusted(-0.5, -0.5, 0.5, 0.5));
      }
    }
    if (!rules || line.note.isEmpty()) continue;
    painter.setFont(words);
    painter.setPen(theme.text);
    painter.drawText(line.note, kWrapped, note_of(source, static_cast<std::int64_t>(n)));
  }
  const MapLine& whole = at.lines.back();
  const bool legal = source.faults.empty();
  draw_text_in(painter, words, legal ? theme.text_accent : theme.warning, whole.name, Qt::AlignLeft,
               whole_parts(words, verdict_of(source), whole.name.width()));
  if (!rules || whole.note.isEmpty()) return;
  painter.setFont(words);
  painter.setPen(theme.text);
  painter.drawText(whole.note, kWrapped, note_of(source, std::nullopt));
}

void paint_map_marks(QPainter& painter, const MapLayout& at, const Tile& tile, const Lit& lit, const QColor& color) {
  if (!tile.source.map || !lit.tile.row) return;
  const TileMapPlan& map = *tile.source.map;
  const auto mark = [&](std::size_t axis, std::int64_t from, std::int64_t count) {
    const QRectF part = at.part(axis, static_cast<double>(from), static_cast<double>(count),
                                static_cast<double>(map.axes[axis].extent));
    if (!part.isEmpty()) painter.fillRect(part.adjusted(0, -2, 0, 2), color);
  };
  if (const auto row = matrix_row(tile, *lit.tile.row)) mark(map.axes.size() - 1, *row, 1);
  if (!lit.tile.chunk) return;
  const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(*lit.tile.chunk)];
  if (chunk.column >= 0) mark(0, map.first_column + chunk.column, tile.chunk_columns());
}

void add_map_cells(const MapLayout& at, std::vector<PanelCell>& cells) {
  for (std::size_t n = 0; n < at.lines.size(); ++n) {
    cells.push_back({at.lines[n].whole(), of_tile_axis(static_cast<std::int64_t>(n)), {}});
  }
}

}  // namespace kvscope::viz
