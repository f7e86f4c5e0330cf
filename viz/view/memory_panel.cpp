// The rows of the pool that the tile is copied from, block by block, with the stride drawn as the jump it is.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/geometry/memory_layout.h"
#include "viz/playback/tile_state.h"
#include "viz/view/legend_flow.h"
#include "viz/view/memory_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kBlockName = 12.5, kRowNumber = 9, kMemoryWords = 11, kTableCell = 24, kNestHeight = 12, kFooter = 12;
constexpr double kLowestNumber = 10;       // [px] of a row that its number fits in
constexpr double kNarrowestHead = 22;      // [px] of a head that is drawn beside the others
constexpr std::int64_t kMostNested = 128;  // cells of the drawing of one block

std::vector<MemoryPart> parts_of(const Tile& tile) {
  if (!tile.memory || tile.pages.empty()) return {{0, tile.rows()}};
  std::vector<MemoryPart> parts;
  const std::int64_t size = tile.memory->page_size, first = tile.opened.first_token.value;
  for (const trace::TilePage& page : tile.pages) {
    const std::int64_t from = std::max<std::int64_t>(page.page.value * size - first, 0);
    const std::int64_t end = std::min((page.page.value + 1) * size - first, tile.rows());
    parts.push_back({from, end - from});
  }
  return parts;
}

class MemoryPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(MemoryPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::memory; }
  [[nodiscard]] QString title() const override { return tr("Block pool"); }
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] TilePlaces chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                        const Scene& scene) const override;

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;

 private:
  static MemoryLayout layout(const QRectF& body, const Scene& scene) {
    return memory_layout(parts_of(*scene.tile), body, scene.font_scale,
                         {scales_width(scene), row_bytes_space(*scene.tile, scene)});
  }
  static void paint_table(QPainter& painter, const QRectF& line, const Scene& scene);
  static void paint_label(QPainter& painter, const QRectF& rect, double bottom, std::int64_t page, const Scene& scene);
  static void paint_nest(QPainter& painter, const QRectF& rect, const QColor& color, const Scene& scene);
  static QRectF own_head(const QRectF& row, const Scene& scene);
  static void paint_number(QPainter& painter, const QRectF& rect, std::int64_t row, const Scene& scene);
  static void paint_row(QPainter& painter, const QRectF& rect, std::int64_t row, const Scene& scene);
  static void paint_jump(QPainter& painter, const QRectF& rect, std::int64_t page, const Scene& scene);
};

QString MemoryPanel::tile_subtitle(const Scene& scene) const {
  const auto blocks = scene.tile->pages.size();
  if (blocks == 0) return {};
  return blocks == 1 ? tr("one block: the rows of the tile") : tr("%1 blocks: the rows of the tile").arg(blocks);
}

QString MemoryPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (!tile.memory) {
    return tr(
        "The trace does not contain the pool's layout; of a kernel, 'ptx run --tile page_size=…,layers=…,kinds=…' "
        "adds it.");
  }
  const std::int64_t empty = tile.rows() - tile.opened.tokens;
  const trace::TileMemory& of = *tile.memory;
  const QString stride = tr("%1 rows a block: %2 × %3 layers × %4 slots")
                             .arg(number_text(of.stride), of.kinds == 2 ? tr("K and V") : tr("one tensor"))
                             .arg(of.layers)
                             .arg(of.page_size);
  const QString rows = empty > 0 ? tr("%1; %2 rows of the tile hold no token").arg(stride).arg(empty) : stride;
  const auto& scales = scene.tile->source.scales;
  return scales ? rows + QStringLiteral("; ") + scales_summary(*scales) : rows;
}

// --- painting --------------------------------------------------------------------------------------------------------

void MemoryPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const MemoryLayout at = layout(body, scene);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (scales_width(scene) > 0) painter.setClipRect(body, Qt::IntersectClip);
  if (!at.table.isEmpty()) paint_table(painter, at.table, scene);
  if (!at.heading.isEmpty()) paint_scales_heading(painter, at.heading, scene);
  for (std::size_t n = 0; n < at.groups.size(); ++n) {
    const auto page = static_cast<std::int64_t>(n);
    for (std::int64_t row = at.parts[n].first; row < at.parts[n].first + at.parts[n].rows; ++row) {
      paint_row(painter, *at.row_rect(row), row, scene);
    }
    if (!at.groups[n].scales.isEmpty()) paint_scales(painter, at, n, scene);
    if (page >= std::ssize(tile.pages)) continue;
    paint_label(painter, at.groups[n].label, body.bottom(), page, scene);
    if (!at.groups[n].jump.isEmpty()) paint_jump(painter, at.groups[n].jump, page, scene);
  }
  painter.restore();
}

void MemoryPanel::paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  const std::int64_t empty = scene.tile->rows() - scene.tile->opened.tokens;
  const QFont font = ui_font(scene.px(kFooter));
  const auto& scales = scene.tile->source.scales;
  const QString text = scales                            ? scales_summary(*scales)
                       : empty > 0 && scene.tile->memory ? tr("%1 rows of the tile hold no token").arg(empty)
                                                         : tile_summary(scene);
  paint_footer_text(painter, footer, font, scene.theme->text_quiet, text, scene.font_scale);
}

// "lookup_table[3]", then the block of each page; those of the tile in its color.
void MemoryPanel::paint_table(QPainter& painter, const QRectF& line, const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (tile.pages.empty()) return;
  const QFont mono = mono_font(scene.px(kMemoryWords));
  const QString name = QStringLiteral("lookup_table[%1]").arg(tile.opened.seq.value);
  draw_text_in(painter, mono, scene.theme->text_quiet, line, Qt::AlignLeft, name);
  const double left = line.left() + text_width(mono, name) + scene.px(10);
  const std::int64_t seq = tile.opened.seq.value;
  const PageTable* const table = seq < scene.state().sequences.size() ? &scene.state().sequences[seq].pages : nullptr;
  const std::int64_t first_of_tile = tile.pages.front().page.value, last_of_tile = tile.pages.back().page.value;
  std::int64_t end = std::max(last_of_tile + 1, table != nullptr ? table->size() : 0);
  std::int64_t widest = 0;
  for (const trace::TilePage& page : tile.pages) widest = std::max(widest, page.block.value);
  const double cell = std::max(scene.px(kTableCell), text_width(mono, QString::number(widest)) + scene.px(8));
  const auto most = std::max<std::int64_t>(static_cast<std::int64_t>((line.right() - left) / cell), 1);
  const std::int64_t start = table != nullptr ? 0 : first_of_tile;
  const std::int64_t first =
      std::clamp<std::int64_t>(last_of_tile + 1 - most, start, std::max<std::int64_t>(end - most, start));
  end = std::min(end, first + most);
  double x = line.right() - cell * static_cast<double>(end - first);
  for (std::int64_t page = first; page < end; ++page, x += cell) {
    const bool in_tile = page >= first_of_tile && page <= last_of_tile;
    // A kernel's trace has no lookup table: only the pages of the tile are known.
    const std::int64_t block = in_tile ? tile.pages[static_cast<std::size_t>(page - first_of_tile)].block.value
                               : table != nullptr && page < table->size() ? (*table)[page]
                                                                          : -1;
    const QRectF rect = QRectF(x, line.top() + 2, cell - 3, line.height() - 4);
    const QColor fill = in_tile ? tile_page_color(*scene.theme, page - first_of_tile) : scene.theme->cell_free;
    painter.fillRect(rect, fill);
    draw_text_in(painter, mono, in_tile ? scene.theme->ink_on(fill) : scene.theme->text_quiet, rect, Qt::AlignHCenter,
                 block < 0 ? QString(QChar(u'–')) : QString::number(block));
  }
}

// `bottom`: of the panel; a line below it would be cut.
void MemoryPanel::paint_label(QPainter& painter, const QRectF& rect, double bottom, std::int64_t page,
                              const Scene& scene) {
  const Tile& tile = *scene.tile;
  const trace::TilePage& of = tile.pages[static_cast<std::size_t>(page)];
  const QFont name = ui_font(scene.px(kBlockName), QFont::DemiBold), mono = mono_font(scene.px(kRowNumber + 1.5));
  const MemoryPart part = parts_of(tile)[static_cast<std::size_t>(page)];
  const std::int64_t first = of.row + (tile.opened.first_token.value + part.first) % tile.memory->page_size;
  const double line = scene.px(16), room = rect.width() - scene.px(6);
  double y = rect.top() + scene.px(11);
  const auto write = [&](const QFont& font, const QColor& color, const QStringList& texts) {
    if (y > std::min(rect.bottom() + scene.px(4), bottom - scene.px(2))) return;
    draw_text(painter, font, color, {rect.left(), y}, first_that_fits(font, texts, room));
    y += line;
  };
  const QString rows = QStringLiteral("%1–%2").arg(first).arg(first + part.rows - 1);
  write(name, scene.theme->text, {tr("block %1").arg(of.block.value), QString::number(of.block.value)});
  write(mono, scene.theme->text_quiet, {tr("rows %1").arg(rows), rows, tr("%1 …").arg(first)});
  write(mono, scene.theme->text_quiet, {tr("page %1").arg(of.page.value)});
  if (y + scene.px(2 * kNestHeight + 16) > rect.bottom()) return;
  paint_nest(painter, QRectF(rect.left(), y, room - scene.px(8), scene.px(2 * kNestHeight)),
             tile_page_color(*scene.theme, page), scene);
  const QString layer = tr("layer %1").arg(tile.opened.layer.value);
  const QString tensor = tile.opened.value ? QStringLiteral("V") : QStringLiteral("K");
  draw_text(painter, mono, scene.theme->text_quiet, {rect.left(), y + scene.px(2 * kNestHeight + 14)},
            first_that_fits(mono, {tr("%1, %2").arg(tensor, layer), layer}, room));
}

// A block of the 6-D pool: K above V, one cell for each layer, the tile's filled.
void MemoryPanel::paint_nest(QPainter& painter, const QRectF& rect, const QColor& color, const Scene& scene) {
  const trace::TileMemory& of = *scene.tile->memory;
  const std::int64_t layers = std::max<std::int64_t>(of.layers, 1), kinds = std::clamp<std::int64_t>(of.kinds, 1, 2);
  if (layers * kinds > kMostNested) return;
  const double wide = rect.width() / static_cast<double>(layers), high = rect.height() / static_cast<double>(kinds);
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const QRectF cell(rect.left() + wide * static_cast<double>(layer), rect.top() + high * static_cast<double>(kind),
                        wide - (wide > 4 ? 1 : 0), high - 1);
      const bool here =
          layer == scene.tile->opened.layer.value && (kinds == 1 || (kind == 1) == scene.tile->opened.value);
      painter.fillRect(cell, here ? color : scene.theme->cell_free);
    }
  }
}

// The tile's head in a row of all heads; the whole row where heads are too narrow to be drawn apart.
QRectF MemoryPanel::own_head(const QRectF& row, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const std::int64_t heads = tile.memory ? std::max<std::int64_t>(tile.memory->heads, 1) : 1;
  const double head = row.width() / static_cast<double>(heads);
  if (heads == 1 || head < kNarrowestHead) return row;
  return {row.left() + head * static_cast<double>(tile.opened.head.value), row.top(), head - 1, row.height()};
}

// The whole row of the view: the tile's head in the row's color, the others beside it where there is room.
void MemoryPanel::paint_row(QPainter& painter, const QRectF& rect, std::int64_t row, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const std::int64_t heads = tile.memory ? std::max<std::int64_t>(tile.memory->heads, 1) : 1;
  const double head = rect.width() / static_cast<double>(heads);
  const bool apart = heads > 1 && head >= kNarrowestHead;
  for (std::int64_t n = 0; apart && n < heads; ++n) {
    if (n == tile.opened.head.value) continue;
    painter.fillRect(QRectF(rect.left() + head * static_cast<double>(n), rect.top(), head - 1, rect.height()),
                     scene.theme->cell_free);
  }
  const QRectF own = own_head(rect, scene);
  const Arrival arrival = tile.holds_token(row) ? Arrival::there : Arrival::outlined;
  paint_tile_cell(painter, own, *scene.theme, tile, row, arrival);
  const auto page = tile.page_of(row);
  if (rect.height() < scene.px(kLowestNumber) || !page) return;
  const MemoryPart part = parts_of(tile)[static_cast<std::size_t>(*page)];
  const bool edge = row == part.first || row == std::min(part.first + part.rows, tile.opened.tokens) - 1;
  if (edge) paint_number(painter, own, row, scene);
}

// The row's number in the view, at the left of its rectangle.
void MemoryPanel::paint_number(QPainter& painter, const QRectF& rect, std::int64_t row, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const trace::TilePage& of = tile.pages[static_cast<std::size_t>(*tile.page_of(row))];
  draw_text_in(painter, mono_font(scene.px(kRowNumber)), tile_ink(*scene.theme, tile, row, Arrival::there),
               rect.adjusted(4, 0, 0, 0), Qt::AlignLeft, QString::number(of.row + tile.slot_of(row)));
}

void MemoryPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return;
  const MemoryLayout at = layout(body, scene);
  // Which row's bytes are shown follows the selection.
  if (!at.bytes.isEmpty()) paint_row_bytes(painter, at.bytes, scene);
  TilePanel::paint_overlay(painter, body, scene);
  painter.save();
  painter.setClipRect(body, Qt::IntersectClip);  // the byte of a scale is higher than a low row
  paint_lit_scale(painter, at, scene);
  painter.restore();
  if (!scene.lit().tile.row) return;
  const std::int64_t row = *scene.lit().tile.row;
  const auto rect = at.row_rect(row);
  if (rect && rect->height() >= scene.px(kLowestNumber) && scene.tile->page_of(row)) {
    paint_number(painter, own_head(*rect, scene), row, scene);
  }
}

void MemoryPanel::paint_jump(QPainter& painter, const QRectF& rect, std::int64_t page, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const trace::TilePage &from = tile.pages[static_cast<std::size_t>(page)],
                        &to = tile.pages[static_cast<std::size_t>(page) + 1];
  const double line = scene.px(14);
  const double at = std::min(rect.left() + scene.px(112), rect.center().x());
  painter.setPen(QPen(scene.theme->text_quiet, 1, Qt::DashLine));
  painter.drawLine(QPointF(at, rect.top() + 2), QPointF(at, rect.bottom() - 3));
  if (rect.height() < line) return;
  const QFont mono = mono_font(scene.px(kMemoryWords - 0.5));
  const std::int64_t rows = to.row - from.row, blocks = to.block - from.block;
  const auto signed_text = [](std::int64_t n) {
    return (n < 0 ? QString(QChar(u'−')) : QStringLiteral("+")) + number_text(std::abs(n));
  };
  const double room = at - rect.left() - 6;
  draw_text(painter, mono, scene.theme->text, {rect.left(), rect.top() + line},
            elided(mono, tr("%1 rows").arg(signed_text(rows)), room));
  if (rect.height() < 2 * line + 4) return;
  draw_text(painter, mono, scene.theme->text_quiet, {rect.left(), rect.top() + 2 * line},
            elided(mono, tr("%1 × %2").arg(signed_text(blocks), number_text(tile.memory->stride)), room));
}

// --- what is where ---------------------------------------------------------------------------------------------------

std::vector<PanelCell> MemoryPanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const MemoryLayout at = layout(body, scene);
  std::vector<PanelCell> cells;
  for (const MemoryPart& part : at.parts) {
    for (std::int64_t row = part.first; row < part.first + part.rows; ++row) {
      const QRectF rect = own_head(*at.row_rect(row), scene).intersected(body);
      if (rect.isEmpty()) continue;
      cells.push_back(
          {rect, tile.holds_token(row) ? of_token(tile.opened.seq, tile.token_of(row)) : of_tile_row(row), {}});
    }
  }
  add_scale_cells(at, body, scene, cells);
  if (!at.bytes.isEmpty()) add_row_bytes_cells(at.bytes, body, scene, cells);
  return cells;
}

// The columns of a chunk in its row; nothing for zeros, which no row holds.
TilePlaces MemoryPanel::chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                     const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const MemoryLayout at = layout(body, scene);
  const std::int64_t head = tile.memory ? tile.memory->head_size : tile.columns();
  const std::int64_t first = tile.memory ? tile.memory->first_column : 0;
  TilePlaces places;
  for (const std::int64_t n : chunks) {
    const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(n)];
    const auto row = chunk.row >= 0 && chunk.pool >= 0 ? at.row_rect(chunk.row) : std::nullopt;
    places.push_back(
        row ? std::optional(part_of_row(own_head(*row, scene), first + chunk.column, tile.chunk_columns(), head))
            : std::nullopt);
  }
  return places;
}

}  // namespace

std::unique_ptr<Panel> make_memory_panel() {
  return std::make_unique<MemoryPanel>();
}

}  // namespace kvscope::viz
