// Shared memory: rows of 16-byte chunks over the banks, each chunk in the color of its row, with the swizzle and
// without it; below them the wavefronts of one read.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <QtCore/QCoreApplication>

#include "viz/geometry/shared_layout.h"
#include "viz/playback/tile_layouts.h"
#include "viz/playback/tile_reads.h"
#include "viz/playback/tile_state.h"
#include "viz/view/cell_paint.h"
#include "viz/view/shared_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kLineLabel = 9, kChunkLabel = 9.5, kTallChip = 20;
constexpr double kSmallestInk = 7;        // [px] at any font scale: smaller letters cannot be read
constexpr std::int64_t kBanksOfCell = 4;  // of 16 bytes
constexpr double kFewestLabelPixels = 8;  // [px] of a line that labels are written on

class SharedPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(SharedPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::shared; }
  [[nodiscard]] QString title() const override { return tr("Shared memory"); }
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> link_anchor(const Lit& lit, const QRectF& body,
                                                  const Scene& scene) const override;
  [[nodiscard]] TilePlaces chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                        const Scene& scene) const override;
  [[nodiscard]] TilePlaces fill_places(std::span<const std::int64_t> fills, const QRectF& body,
                                       const Scene& scene) const override;
  [[nodiscard]] bool zooms(const Scene& scene) const override { return scene.tile != nullptr; }
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] bool paints_scroll_bar() const override { return true; }
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;

 private:
  [[nodiscard]] SharedNow now_of(const QRectF& body, const Scene& scene) const {
    return shared_now(layouts_.of(*scene.tile), body, scene);
  }
  static void paint_axis(QPainter& painter, const QRectF& rect, const SharedLayout& at, const Scene& scene);
  static void paint_more(QPainter& painter, const SharedLayout& at, const Scene& scene);
  static void paint_chips(QPainter& painter, const SharedNow& now, const Scene& scene);
  static void paint_lit(QPainter& painter, const SharedNow& now, const LitTile& lit, bool pinned, const Scene& scene);

  mutable SharedLayouts layouts_;
};

QString SharedPanel::tile_subtitle(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (!tile.shared) return tr("%1 B").arg(number_text(tile.opened.bytes));
  return QString::fromStdString(swizzle_formula(tile));
}

QString SharedPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const QString landed =
      tr("%1 of %2 chunks landed").arg(number_text(scene.tile_now->landed), number_text(std::ssize(tile.chunks)));
  if (!tile.shared) return landed;
  return tr("%1 · rows of %2 B over %3 banks").arg(landed, number_text(tile.shared->row_bytes)).arg(tile.shared->banks);
}

// --- the grids -------------------------------------------------------------------------------------------------------

void SharedPanel::paint_axis(QPainter& painter, const QRectF& rect, const SharedLayout& at, const Scene& scene) {
  const QFont font = mono_font(scene.px(kSharedAxis));
  const double cell = rect.width() / static_cast<double>(at.size.chunks);
  const QFont name = ui_font(scene.px(kSharedAxis));
  if (rect.left() == at.grid.left() && text_width(name, tr("bank")) + scene.px(5) <= at.labels.width()) {
    draw_text_in(painter, name, scene.theme->text_quiet,
                 QRectF(at.labels.left(), rect.top(), at.labels.width() - scene.px(5), rect.height()), Qt::AlignRight,
                 tr("bank"));
  }
  // Every group of banks, or its first bank only, or every second one.
  const std::int64_t banks = at.size.chunks * kBanksOfCell;
  const bool whole = text_width(font, QStringLiteral("%1–%2").arg(banks - 4).arg(banks - 1)) + 4 <= cell;
  const double first = text_width(font, QString::number(banks)) + 3;
  const std::int64_t step = whole || first <= cell ? 1 : first <= 2 * cell ? 2 : 4;
  for (std::int64_t n = 0; n < at.size.chunks; n += step) {
    const QRectF where(rect.left() + cell * static_cast<double>(n), rect.top(), cell - 1, rect.height());
    const std::int64_t bank = n * kBanksOfCell;
    draw_text_in(painter, font, scene.theme->text_quiet, where, whole ? Qt::AlignHCenter : Qt::AlignLeft,
                 whole ? QStringLiteral("%1–%2").arg(bank).arg(bank + kBanksOfCell - 1) : QString::number(bank));
  }
}

// Ways to store the tile, each with the wavefronts of all reads; the tile's own is outlined, the one beside it filled.
void SharedPanel::paint_chips(QPainter& painter, const SharedNow& now, const Scene& scene) {
  const Theme& theme = *scene.theme;
  if (now.at.chips.empty()) return;
  const QFont font = ui_font(scene.px(kSharedChipText));
  draw_text_in(painter, font, theme.text_quiet, now.at.chips_name, Qt::AlignLeft,
               elided(font, tr("wavefronts"), now.at.chips_name.width()));
  for (std::size_t n = 0; n < now.at.chips.size(); ++n) {
    const QRectF& chip = now.at.chips[n];
    const TileLayout& layout = now.all->layouts[n];
    const LayoutCost& cost = now.all->costs[n];
    const bool beside = now.other_index == n;
    const QColor& fill = beside ? theme.cell_line : theme.cell_free;
    painter.fillRect(chip, fill);
    if (layout.stored) {
      painter.setPen(QPen(theme.text, 1));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(chip.adjusted(0.5, 0.5, -0.5, -0.5));
    }
    const QString name = QString::fromStdString(layout.name);
    const QString count = number_text(cost.wavefronts);
    const QColor ink = readable(theme, cost.wavefronts > cost.ideal ? theme.warning : theme.text_accent, fill);
    const double room = chip.width() - 4;
    if (chip.height() > scene.px(kTallChip)) {
      const QRectF upper(chip.left(), chip.top() + 1, chip.width(), chip.height() / 2 - 1);
      draw_text_in(painter, font, theme.text, upper, Qt::AlignHCenter, elided(font, name, room));
      draw_text_in(painter, font, ink, upper.translated(0, upper.height()), Qt::AlignHCenter, count);
      continue;
    }
    const QStringList texts{tr("%1: %2 wavefronts").arg(name, count), chip_text(layout, cost), count};
    draw_text_in(painter, font, ink, chip, Qt::AlignHCenter, first_that_fits(font, texts, room));
  }
}

void SharedPanel::paint_more(QPainter& painter, const SharedLayout& at, const Scene& scene) {
  if (!at.bar.isEmpty()) painter.fillRect(at.bar, scene.theme->text_quiet);
  if (at.more.isEmpty()) return;
  const QFont font = ui_font(scene.px(kSharedWords));
  const QString lines = tr("lines %1–%2 of %3").arg(at.first_line()).arg(at.end_line() - 1).arg(at.size.lines);
  QStringList texts = at.bar.isEmpty() ? QStringList{tr("zoom in to read the chunks"), tr("zoom in")}
                                       : QStringList{tr("%1 · scroll or zoom out").arg(lines), lines};
  if (!scene.in_window) texts = {at.bar.isEmpty() ? QString() : lines};
  draw_text_in(painter, font, scene.theme->text_quiet, at.more, Qt::AlignLeft,
               first_that_fits(font, texts, at.more.width()));
}

void SharedPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const SharedNow now = now_of(body, scene);
  const SharedImage& image = now.image;
  const SharedLayout& at = now.at;
  const QFont words = ui_font(scene.px(kSharedWords));
  if (at.size.lines == 0) {
    draw_text_in(
        painter, ui_font(scene.px(12)), theme.text_quiet, QRectF(body.left(), body.top(), body.width(), scene.px(18)),
        Qt::AlignLeft,
        elided(ui_font(scene.px(12)), tr("The trace does not contain the chunks of shared memory."), body.width()));
    return;
  }
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (!at.caption.isEmpty()) {
    draw_text_in(painter, words, theme.text, at.caption, Qt::AlignLeft,
                 elided(words, tr("as stored"), at.caption.width()));
    draw_text_in(painter, words, theme.text_quiet, at.caption_off, Qt::AlignLeft,
                 elided(words, now.other_name(), at.caption_off.width()));
  }
  paint_chips(painter, now, scene);
  if (!at.banks.isEmpty()) paint_axis(painter, at.banks, at, scene);
  if (!at.banks_off.isEmpty()) paint_axis(painter, at.banks_off, at, scene);
  paint_more(painter, at, scene);
  painter.setClipRect(QRectF(body.left(), at.grid.top(), body.width(), at.grid.height()), Qt::IntersectClip);
  const bool written = at.pitch >= kFewestLabelPixels;
  const QFont digits = mono_font(std::min(scene.px(kLineLabel), at.pitch));
  // The largest font with which every label fits.
  double size = std::min(scene.px(kChunkLabel), at.pitch - 1);
  const double cell = at.grid.width() / static_cast<double>(at.size.chunks);
  const double widest = at.size.chunk_width / scene.px(kLowestChunkLabel);
  if (widest > 0) size = std::min(size, (cell - 3) / widest);
  const QFont chunk_font = mono_font(std::max(size, 1.0));
  const bool named = written && size >= kSmallestInk && tile.chunk_columns() > 0;
  QString shown;
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    const QString label = written ? image.label(line, tile) : QString();
    if (label != shown || (at.size.band_lines > 0 && line % at.size.band_lines == 0)) {
      draw_text_in(painter, digits, theme.text_quiet, at.label_rect(line).adjusted(0, 0, -scene.px(5), 0),
                   Qt::AlignRight, label);
    }
    shown = label;
    for (const bool off : {false, true}) {
      if (off && at.grid_off.isEmpty()) continue;
      for (std::int64_t n = 0; n < at.size.chunks; ++n) {
        const SharedLayout::Place place{line, n, off};
        const std::int32_t index = image.chunk(place);
        if (index < 0) continue;
        const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(index)];
        const Arrival arrival = arrival_of_chunk(tile, *scene.tile_now, index);
        const QRectF rect = at.cell_rect(place);
        paint_tile_cell(painter, rect, theme, tile, chunk.row, arrival);
        if (!named || chunk.column < 0 || !tile.holds_token(chunk.row)) continue;
        draw_text_in(painter, chunk_font, tile_ink(theme, tile, chunk.row, arrival), rect, Qt::AlignHCenter,
                     QStringLiteral("c%1").arg(chunk.column / tile.chunk_columns()));
      }
    }
  }
  painter.restore();
}

// --- what is selected, and its read ----------------------------------------------------------------------------------

void SharedPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return;
  const SharedNow now = now_of(body, scene);
  if (now.at.size.lines == 0) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  const std::optional<ShownRead> shown = shown_read(*scene.tile, *scene.tile_now, scene.lit().tile);
  if (shown) {
    paint_shared_read(painter, now, *shown, scene);
  } else if (!now.at.verdict.isEmpty()) {
    const QFont font = ui_font(scene.px(kSharedVerdictText));
    const std::string why = no_registers(*scene.tile);
    const QString text = why.empty() ? tr("The trace does not contain the reads of lanes.")
                                     : tr("Nothing reads it: %1.").arg(QString::fromStdString(why));
    painter.setFont(font);
    painter.setPen(scene.theme->text_quiet);
    painter.drawText(now.at.verdict, static_cast<int>(Qt::AlignLeft | Qt::AlignTop) | Qt::TextWordWrap, text);
  }
  painter.setClipRect(now.at.grid.united(now.at.grid_off).adjusted(-2, -2, 2, 2), Qt::IntersectClip);
  paint_lit(painter, now, scene.pinned_lit.tile, true, scene);
  if (!scene.hovered.none() && scene.hovered != scene.pinned)
    paint_lit(painter, now, scene.hovered_lit.tile, false, scene);
  painter.restore();
}

// One outline for adjacent chunks of a line.
void SharedPanel::paint_lit(QPainter& painter, const SharedNow& now, const LitTile& lit, bool pinned,
                            const Scene& scene) {
  if (lit.chunks.empty()) return;
  const SharedLayout& at = now.at;
  const auto is_lit_at = [&](const SharedLayout::Place& place) {
    const std::int32_t chunk = now.image.chunk(place);
    return chunk >= 0 && std::ranges::binary_search(lit.chunks, std::int64_t{chunk});
  };
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    for (const bool off : {false, true}) {
      if (off && at.grid_off.isEmpty()) continue;
      for (std::int64_t n = 0; n < at.size.chunks; ++n) {
        if (!is_lit_at({line, n, off})) continue;
        const QRectF first = at.cell_rect({line, n, off});
        while (n + 1 < at.size.chunks && is_lit_at({line, n + 1, off})) ++n;
        paint_tile_outline(painter, first.united(at.cell_rect({line, n, off})), *scene.theme, pinned);
      }
    }
  }
}

// --- what is where ---------------------------------------------------------------------------------------------------

std::vector<PanelCell> SharedPanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const SharedNow now = now_of(body, scene);
  const SharedImage& image = now.image;
  const SharedLayout& at = now.at;
  std::vector<PanelCell> cells;
  if (at.size.lines == 0) return cells;
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    for (std::int64_t n = 0; n < at.size.chunks; ++n) {
      const SharedLayout::Place place{line, n, false};
      const std::int32_t index = image.chunk(place);
      if (index < 0) continue;
      const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(index)];
      const QRectF rect = at.cell_rect(place).intersected(at.grid);
      if (chunk.row < 0 || chunk.column < 0 || rect.isEmpty()) continue;
      cells.push_back({rect, of_tile_chunk({chunk.row, chunk.column}), {}});
    }
  }
  for (std::size_t n = 0; n < at.chips.size(); ++n) {
    cells.push_back({at.chips[n], of_tile_layout(static_cast<std::int64_t>(n)), {}});
  }
  return cells;
}

Selection SharedPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return {};
  const SharedNow now = now_of(body, scene);
  for (std::size_t n = 0; n < now.at.chips.size(); ++n) {
    if (now.at.chips[n].contains(at)) return of_tile_layout(static_cast<std::int64_t>(n));
  }
  const auto place = now.at.at(at);
  const std::int32_t index = place ? now.image.chunk(*place) : -1;
  if (index < 0) return {};
  const TileChunk& chunk = scene.tile->chunks[static_cast<std::size_t>(index)];
  return chunk.row < 0 || chunk.column < 0 ? Selection{} : of_tile_chunk({chunk.row, chunk.column});
}

// The whole line of the first chunk that is lit and visible: links end beside it and cross no other chunk.
std::optional<QRectF> SharedPanel::link_anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  const std::optional<QRectF> cell = anchor(lit, body, scene);
  if (!cell) return std::nullopt;
  const SharedLayout at = now_of(body, scene).at;
  const double right = at.grid_off.isEmpty() ? at.grid.right() : at.grid_off.right();
  return QRectF(at.labels.left(), cell->top(), right - at.labels.left(), cell->height());
}

TilePlaces SharedPanel::chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                     const Scene& scene) const {
  const SharedLayout at = now_of(body, scene).at;
  TilePlaces places;
  for (const std::int64_t n : chunks) {
    const std::int64_t slot = scene.tile->chunks[static_cast<std::size_t>(n)].shared / kTileChunkBytes;
    const QRectF rect =
        at.size.lines > 0 ? at.cell_rect({slot / at.size.chunks, slot % at.size.chunks, false}) : QRectF();
    places.push_back(rect.intersects(at.grid) ? std::optional(rect.intersected(at.grid)) : std::nullopt);
  }
  return places;
}

// A register comes from a part of a chunk: its elements of a row, or the first one of those of a column.
TilePlaces SharedPanel::fill_places(std::span<const std::int64_t> fills, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  std::vector<std::int64_t> chunks;
  for (const std::int64_t n : fills) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    if (const auto chunk = tile.chunk_of({fill.row, fill.column})) chunks.push_back(*chunk);
  }
  const TilePlaces of_chunks = chunk_places(chunks, body, scene);
  TilePlaces places;
  std::size_t next = 0;
  for (const std::int64_t n : fills) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    places.emplace_back();
    if (!tile.chunk_of({fill.row, fill.column})) continue;
    const auto first = tile.chunks[static_cast<std::size_t>(chunks[next])].column;
    if (const auto& whole = of_chunks[next++]) {
      places.back() = part_of_row(*whole, fill.column - first, fill.down ? 1 : fill.elements, tile.chunk_columns());
    }
  }
  return places;
}

Viewport SharedPanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr || factor == 1) return viewport;
  const SharedLayout layout = now_of(body, scene).at;
  return layout.size.lines == 0 ? viewport : shared_zoomed(layout, factor, at);
}

Viewport SharedPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr) return viewport;
  const SharedLayout layout = now_of(body, scene).at;
  return layout.size.lines == 0 ? viewport : shared_scrolled(layout, viewport, by);
}

Viewport SharedPanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr) return viewport;
  const Lit lit = resolve(scene.state(), scene.facts(), scene.tile, object);
  const SharedNow now = now_of(body, scene);
  const SharedImage& image = now.image;
  const SharedLayout& at = now.at;
  if (at.size.lines == 0 || lit.tile.chunks.empty()) return viewport;
  const std::int64_t byte = scene.tile->chunks[static_cast<std::size_t>(lit.tile.chunks.front())].shared;
  return shared_revealing(at, viewport, byte / image.line_bytes);
}

}  // namespace

std::unique_ptr<Panel> make_shared_panel() {
  return std::make_unique<SharedPanel>();
}

}  // namespace kvscope::viz
