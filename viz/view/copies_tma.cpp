// Boxes of TMA, issue by issue, and the bytes that their barrier waits for.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/geometry/tma_layout.h"
#include "viz/playback/tile_state.h"
#include "viz/view/copies_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kBoxName = 12, kCoordinates = 11, kMapText = 11, kBarrierText = 12, kNarrowestState = 60,
                 kLowestCoordinate = 9;  // [px] at font scale 1

QString tma_tr(const char* text) {
  return QCoreApplication::translate("TmaCopies", text);
}

// Row of the tile that is the box's first; boxes of a page follow one another in the tile.
std::int64_t first_row(const Tile& tile, const TileCopy& copy) {
  if (copy.chunks > 0) return tile.chunks[static_cast<std::size_t>(copy.first_chunk)].row;
  return tile.map ? copy.sub_tile * tile.map->box_rows : 0;
}

TmaSize size_of(const Tile& tile) {
  TmaSize size;
  size.boxes = std::ssize(tile.copies);
  size.rows = tile.gathers() ? tile.rows_of_copy() : tile.map ? tile.map->box_rows : tile.rows();
  size.rows = std::clamp<std::int64_t>(size.rows, 1, std::max<std::int64_t>(tile.rows(), 1));
  std::int64_t same = 0;
  for (const TileCopy& copy : tile.copies) same += copy.sub_tile == tile.copies.front().sub_tile ? 1 : 0;
  size.across = std::max<std::int64_t>(same, 1);
  if (tile.source.map) size.axes = std::ssize(tile.source.map->axes);
  size.offers = std::ranges::any_of(tile.source.offers, [](const TileOffer& o) { return o.why_not.empty(); });
  return size;
}

TmaLayout layout_of(const QRectF& body, const Scene& scene) {
  return tma_layout(size_of(*scene.tile), body, scene.font_scale);
}

// A row of a box is there when its last chunk is.
Arrival arrival_of_row(const Scene& scene, std::int64_t box, std::int64_t row) {
  const Tile& tile = *scene.tile;
  const TileCopy& copy = tile.copies[static_cast<std::size_t>(box)];
  const std::int64_t wide = tile.map ? tile.map->box_columns : tile.columns();
  const std::int64_t last = std::min(copy.column + wide, tile.columns()) - 1;
  if (const auto chunk = tile.chunk_of({first_row(tile, copy) + row, last})) {
    return arrival_of_chunk(tile, *scene.tile_now, *chunk);
  }
  return arrival_of_copy(tile, *scene.tile_now, box);
}

// How much of a row of the box is the head's: the columns past its end are zeros.
double data_share(const Tile& tile, const TileCopy& copy) {
  if (!tile.memory || !tile.map || tile.map->box_columns < 1) return 1;
  const std::int64_t left = tile.memory->head_size - tile.memory->first_column - copy.column;
  return std::clamp(static_cast<double>(left) / static_cast<double>(tile.map->box_columns), 0.0, 1.0);
}

std::int64_t landed_bytes(const Scene& scene, const TileCopy& copy) {
  return std::clamp(scene.tile_now->landed - copy.first_chunk, std::int64_t{0}, copy.chunks) * kTileChunkBytes;
}

// Coordinate in the map of a row of the tile that is gathered; -1, which is filled with zeros, for one without a token.
std::int64_t gathered_row(const Tile& tile, std::int64_t row) {
  const auto page = tile.page_of(row);
  return page ? tile.pages[static_cast<std::size_t>(*page)].row + tile.slot_of(row) : -1;
}

// "(0, 1, 768)": columns, heads, rows; of a gather the column and its four rows.
QString coordinates_of(const Tile& tile, const TileCopy& copy) {
  const std::int64_t first = tile.source.map ? tile.source.map->first_column
                             : tile.memory   ? tile.memory->first_column
                                             : 0;
  const std::int64_t column = first + copy.column;
  if (!tile.gathers()) {
    return QStringLiteral("(%1, %2, %3)").arg(column).arg(tile.opened.head.value).arg(copy.row);
  }
  QString text = QStringLiteral("(%1").arg(column);
  for (std::int64_t row = 0; row < tile.rows_of_copy(); ++row) {
    text += QStringLiteral(", %1").arg(gathered_row(tile, first_row(tile, copy) + row));
  }
  return text + QLatin1Char(')');
}

// The row coordinates of a gather, each on its row.
void paint_gathered_rows(QPainter& painter, const TmaLayout& at, std::int64_t n, const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (at.pitch < scene.px(kLowestCoordinate)) return;
  const QFont mono = mono_font(scene.px(kCoordinates - 1.5));
  const std::int64_t first = first_row(tile, tile.copies[static_cast<std::size_t>(n)]);
  for (std::int64_t row = 0; row < at.size.rows; ++row) {
    const std::int64_t of_map = gathered_row(tile, first + row);
    const QString text = of_map < 0 ? tma_tr("−1: zeros") : tma_tr("row %1").arg(of_map);
    const QRectF rect = at.row_rect(n, row).adjusted(4, 0, -4, 0);
    if (text_width(mono, text) > rect.width()) continue;
    const QColor ink = tile_ink(*scene.theme, tile, first + row, arrival_of_row(scene, n, row));
    draw_text_in(painter, mono, ink, rect, Qt::AlignLeft, text);
    // A low frame has no heading.
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(n)];
    const QString name = tma_tr("gather %1").arg(copy.number);
    if (row > 0 || !at.boxes[static_cast<std::size_t>(n)].heading.isEmpty()) continue;
    if (text_width(mono, text) + text_width(mono, name) + scene.px(8) > rect.width()) continue;
    draw_text_in(painter, mono, ink, rect, Qt::AlignRight, name);
  }
}

void paint_box(QPainter& painter, const TmaLayout& at, std::int64_t n, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TmaBox& box = at.boxes[static_cast<std::size_t>(n)];
  const TileCopy& copy = tile.copies[static_cast<std::size_t>(n)];
  const Arrival arrival = arrival_of_copy(tile, *scene.tile_now, n);
  painter.fillRect(box.frame, theme.surface);
  painter.setPen(QPen(arrival == Arrival::moving ? theme.accent : theme.card_border, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box.frame.adjusted(0.5, 0.5, -0.5, -0.5));
  const double data = data_share(tile, copy);
  for (std::int64_t row = 0; row < at.size.rows; ++row) {
    QRectF rect = at.row_rect(n, row);
    const Arrival of_row = arrival_of_row(scene, n, row);
    if (data < 1) {
      const QRectF zeros = rect.adjusted(std::round(rect.width() * data), 0, 0, 0);
      painter.fillRect(zeros, of_row == Arrival::there ? theme.cell_free : theme.surface);
      rect.setRight(zeros.left());
    }
    if (!rect.isEmpty()) paint_tile_cell(painter, rect, theme, tile, first_row(tile, copy) + row, of_row);
  }
  if (tile.gathers()) paint_gathered_rows(painter, at, n, scene);
  if (box.heading.isEmpty()) return;
  const QFont name = ui_font(scene.px(kBoxName), QFont::DemiBold), mono = mono_font(scene.px(kCoordinates));
  const QString words_of = (tile.gathers() ? tma_tr("gather %1") : tma_tr("box %1")).arg(copy.number);
  const QString number = text_width(name, words_of) <= box.heading.width() ? words_of : QString::number(copy.number);
  draw_text_in(painter, name, theme.text, box.heading, Qt::AlignLeft, number);
  const QRectF beside = box.heading.adjusted(text_width(name, number) + scene.px(10), 0, 0, 0);
  const QString at_map = coordinates_of(tile, copy);
  if (text_width(mono, at_map) <= beside.width()) {
    draw_text_in(painter, mono, theme.text_quiet, beside, Qt::AlignLeft, at_map);
  }
  const QFont words = ui_font(scene.px(kBoxName - 0.5));
  const QString bytes = number_text(copy.bytes);
  const auto say = [&](const QColor& color, const QString& text) {
    if (box.state.width() < scene.px(kNarrowestState)) return;
    draw_text_in(painter, words, color, box.state, Qt::AlignLeft, elided(words, text, box.state.width()));
  };
  if (arrival == Arrival::there) {
    say(theme.text_accent, copy.filled > 0 ? tma_tr("landed · %1 B, %2 B of zeros").arg(bytes, number_text(copy.filled))
                                           : tma_tr("landed · %1 B").arg(bytes));
  } else if (arrival == Arrival::moving) {
    say(theme.accent, tma_tr("in flight · %1 of %2 B").arg(number_text(landed_bytes(scene, copy)), bytes));
  } else {
    say(theme.text_quiet, tma_tr("not issued · %1 B").arg(bytes));
  }
}

void paint_map(QPainter& painter, const QRectF& rect, const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (!tile.map) return;
  const trace::TileMap& map = *tile.map;
  const QFont mono = mono_font(scene.px(kMapText));
  const double line = rect.height() / 2;
  const QString columns = number_text(map.columns), heads = number_text(map.heads), rows = number_text(map.rows);
  const QString box = tma_tr("box %1 × %2 × %3").arg(map.box_columns).arg(map.box_heads).arg(map.box_rows);
  const QString bytes = number_text(map.box_columns * map.box_heads * map.box_rows * tile.element_bytes());
  const QStringList of_map{tma_tr("map %1 columns × %2 heads × %3 rows").arg(columns, heads, rows),
                           tma_tr("map %1 × %2 × %3").arg(columns, heads, rows)};
  const QStringList of_box{tma_tr("%1 = %2 B").arg(box, bytes), box};
  const QRectF first(rect.left(), rect.top(), rect.width(), line);
  draw_text_in(painter, mono, scene.theme->text_quiet, first, Qt::AlignLeft,
               first_that_fits(mono, of_map, rect.width()));
  draw_text_in(painter, mono, scene.theme->text_quiet, first.translated(0, line - 2), Qt::AlignLeft,
               first_that_fits(mono, of_box, rect.width()));
}

// The other paths for which the panel has room.
std::vector<PanelCell> offers_of(const TmaLayout& at, const QRectF& body, const Scene& scene) {
  if (at.offers.isEmpty()) return {};
  std::vector<PanelCell> offers = offer_cells(scene.tile->source, at.offers, scene);
  const auto is_outside = [&](const PanelCell& offer) { return offer.rect.bottom() > body.bottom() + 1; };
  offers.erase(std::remove_if(offers.begin(), offers.end(), is_outside), offers.end());
  return offers;
}

void paint_barrier(QPainter& painter, const TmaLayout& at, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const TileState& now = *scene.tile_now;
  const QFont name = ui_font(scene.px(kBarrierText), QFont::DemiBold), words = ui_font(scene.px(kBarrierText));
  const QFont mono = mono_font(scene.px(kBarrierText));
  const QRectF title(at.barrier.left(), at.barrier.top(), at.barrier.width(), at.bar.top() - at.barrier.top());
  draw_text_in(painter, name, theme.text, title, Qt::AlignLeft, tma_tr("barrier"));
  const std::int64_t phase = scene.tile->expects.empty() ? 0 : scene.tile->expects.back().phase;
  draw_text_in(painter, mono, theme.text_quiet,
               title.adjusted(text_width(name, tma_tr("barrier")) + scene.px(14), 0, 0, 0), Qt::AlignLeft,
               tma_tr("phase %1").arg(phase));
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.cell_line);
  const double round = at.bar.height() / 2;
  painter.drawRoundedRect(at.bar, round, round);
  if (now.expected > 0 && now.arrived > 0) {
    const double share = std::min(1.0, static_cast<double>(now.arrived) / static_cast<double>(now.expected));
    painter.setBrush(now.complete ? theme.text_accent : theme.series[0]);
    painter.drawRoundedRect(
        QRectF(at.bar.topLeft(), QSizeF(std::max(at.bar.width() * share, at.bar.height()), at.bar.height())), round,
        round);
  }
  painter.restore();
  const double line = scene.px(19);
  QRectF at_line(at.barrier_text.left(), at.barrier_text.top(), at.barrier_text.width(), line);
  const auto say = [&](const QFont& font, const QColor& color, const QString& text) {
    if (at_line.bottom() > at.barrier_text.bottom() + 1) return;
    draw_text_in(painter, font, color, at_line, Qt::AlignLeft, elided(font, text, at_line.width()));
    at_line.translate(0, line);
  };
  if (now.expected == 0) {
    say(words, theme.text_quiet, tma_tr("no thread has told it how many bytes to expect"));
    return;
  }
  const auto told = std::ranges::count_if(scene.tile->expect_events, [&](std::int64_t e) { return e < now.event; });
  const QString bytes = tma_tr("%1 of %2 B").arg(number_text(now.arrived), number_text(now.expected));
  const QString arrived = tma_tr("%1 of %2 arrived").arg(told).arg(scene.tile->expects.size());
  say(mono, theme.text, first_that_fits(mono, {bytes + QStringLiteral(" · ") + arrived, bytes}, at_line.width()));
  if (now.complete) {
    say(words, theme.text_accent,
        first_that_fits(words, {tma_tr("complete: the warps may read"), tma_tr("complete")}, at_line.width()));
    return;
  }
  const std::int64_t warps = scene.tile->fragments ? scene.tile->fragments->warps : 1;
  say(words, theme.text_quiet,
      warps > 1 ? tma_tr("warps 0–%1 wait for it").arg(warps - 1) : tma_tr("the warps wait for it"));
  say(words, theme.warning,
      first_that_fits(words, {tma_tr("a read now would be a race"), tma_tr("reading now: a race")}, at_line.width()));
}

}  // namespace

QString tma_subtitle(const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (tile.gathers())
    return tma_tr("TMA · gather4 · %1 of 4 rows × %2").arg(tile.copies.size()).arg(tile.map->box_columns);
  if (!tile.map) return tma_tr("TMA · boxes: %1").arg(tile.copies.size());
  const QString box = QStringLiteral("%1 × %2").arg(tile.map->box_rows).arg(tile.map->box_columns);
  return tile.copies.size() == 1 ? tma_tr("TMA · one box · %1").arg(box)
                                 : tma_tr("TMA · %1 boxes · %2 each").arg(tile.copies.size()).arg(box);
}

QString tma_summary(const Scene& scene) {
  const TileState& now = *scene.tile_now;
  const QString issued = (scene.tile->gathers() ? tma_tr("%1 of %2 gathers issued") : tma_tr("%1 of %2 boxes issued"))
                             .arg(now.issued)
                             .arg(scene.tile->copies.size());
  const QString arrived = number_text(now.arrived), expected = number_text(now.expected);
  return now.complete ? tma_tr("%1, all %2 B landed").arg(issued, expected)
                      : tma_tr("%1, %2 of %3 B landed").arg(issued, arrived, expected);
}

void paint_tma(QPainter& painter, const QRectF& body, const Scene& scene) {
  const TmaLayout at = layout_of(body, scene);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (at.axes) {
    const TileSource& source = scene.tile->source;
    paint_map_axes(painter, map_of(*source.map, source, false, at.map, scene), source, false, scene);
  } else if (!at.map.isEmpty()) {
    paint_map(painter, at.map, scene);
  }
  for (std::int64_t n = 0; n < std::ssize(at.boxes); ++n) paint_box(painter, at, n, scene);
  if (!at.barrier.isEmpty()) paint_barrier(painter, at, scene);
  paint_offers(painter, offers_of(at, body, scene), scene);
  painter.restore();
}

void paint_tma_overlay(QPainter& painter, const QRectF& body, const Scene& scene) {
  const TmaLayout at = layout_of(body, scene);
  if (!at.axes) return;
  const TileSource& source = scene.tile->source;
  const MapLayout axes = map_of(*source.map, source, false, at.map, scene);
  paint_map_marks(painter, axes, *scene.tile, scene.pinned_lit, scene.theme->accent);
  if (!scene.hovered.none()) paint_map_marks(painter, axes, *scene.tile, scene.hovered_lit, scene.theme->hover);
}

std::vector<PanelCell> tma_cells(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TmaLayout at = layout_of(body, scene);
  std::vector<PanelCell> cells;
  for (std::int64_t n = 0; n < std::ssize(at.boxes); ++n) {
    const std::int64_t first = first_row(tile, tile.copies[static_cast<std::size_t>(n)]);
    for (std::int64_t row = 0; row < at.size.rows && first + row < tile.rows(); ++row) {
      const QRectF rect = at.row_rect(n, row).intersected(body);
      if (!rect.isEmpty()) cells.push_back({rect, of_tile_row(first + row), {}});
    }
  }
  if (at.axes) add_map_cells(map_of(*tile.source.map, tile.source, false, at.map, scene), cells);
  for (const PanelCell& offer : offers_of(at, body, scene)) cells.push_back(offer);
  return cells;
}

// The chunk's columns in its row of the box.
TilePlaces tma_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TmaLayout at = layout_of(body, scene);
  const std::int64_t wide = tile.map ? tile.map->box_columns : tile.columns();
  TilePlaces places;
  for (const std::int64_t n : chunks) {
    const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(n)];
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(chunk.copy)];
    const std::int64_t row = chunk.row - first_row(tile, copy);
    const bool drawn = chunk.row >= 0 && row >= 0 && row < at.size.rows;
    places.push_back(drawn ? std::optional(part_of_row(at.row_rect(chunk.copy, row), chunk.column - copy.column,
                                                       tile.chunk_columns(), wide))
                           : std::nullopt);
  }
  return places;
}

}  // namespace kvscope::viz
