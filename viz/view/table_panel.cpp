// The lookup table as the kernel reads it: the block of each page of each sequence, including the unused entries, which
// point at the null page.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <QtCore/QCoreApplication>
#include <QtGui/QImage>

#include "viz/geometry/table_layout.h"
#include "viz/playback/kernel_table.h"
#include "viz/view/cell_overlay.h"
#include "viz/view/cell_paint.h"
#include "viz/view/cell_painter.h"
#include "viz/view/cell_sheet.h"
#include "viz/view/panel.h"
#include "viz/view/sharing.h"
#include "viz/view/text.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

QString table_tr(const char* text, const char* comment = nullptr, int n = -1) {
  return QCoreApplication::translate("TablePanel", text, comment, n);
}

QFont name_font(const Scene& scene) {
  return ui_font(scene.px(12), QFont::Medium);
}
QFont page_font(const Scene& scene) {
  return mono_font(scene.px(11));
}

QString name_of(SeqIdx seq) {
  return table_tr("seq %1").arg(seq.value);
}

KernelTable table_of(const Scene& scene) {
  return kernel_table(scene.state(), scene.facts());
}

// The names are computed for the largest sequence number of the run, so that the table does not move when a sequence
// arrives. Padded columns change in steps of 8.
TableSize size_of(const Scene& scene, const KernelTable& table) {
  const Facts& facts = scene.facts();
  const QString widest = name_of(SeqIdx{std::max<std::int64_t>(facts.sequences - 1, 0)});
  return {std::ssize(table.rows), table.columns, facts.blocks, text_width(name_font(scene), widest)};
}

// The table and its layout.
struct Standing : KernelTable {
  TableLayout layout;

  Standing(const QRectF& body, const Scene& scene)
      : KernelTable(table_of(scene)),
        layout(table_layout(size_of(scene, *this), body, scene.viewport_of(PanelId::table), scene.font_scale)) {}
  [[nodiscard]] SeqIdx seq(std::int64_t row) const { return rows[static_cast<std::size_t>(row)]; }
  [[nodiscard]] std::optional<std::int64_t> row_of(SeqIdx seq) const {
    const auto found = std::ranges::lower_bound(rows, seq);
    if (found == rows.end() || *found != seq) return std::nullopt;
    return found - rows.begin();
  }
};

// The blocks that were assigned to a page in this step, ascending: their entries are new.
std::vector<BlockIdx> new_entries(const Marks& marks) {
  std::vector<BlockIdx> blocks = marks.allocated;
  blocks.insert(blocks.end(), marks.copied.begin(), marks.copied.end());
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

Look entry_look(const State& state, std::int32_t block) {
  return block < 0 ? kPaddingLook : block_look(state.blocks[block]);
}

// With padding, an unused entry holds a number, as the others do; without, there is nothing.
Look unused_look(const Scene& scene) {
  return is_padded(scene.facts()) ? kFreeLook : kPaddingLook;
}

QString name_alone(const Scene& scene, SeqIdx seq, std::int64_t page) {
  const std::int32_t block = scene.state().sequences[seq.value].pages[page];
  if (block < 0 && is_padded(scene.facts())) {
    return table_tr("sequence %1 page %2, not assigned: the null page, block %3")
        .arg(seq.value)
        .arg(page)
        .arg(scene.facts().blocks);
  }
  if (block < 0) return table_tr("sequence %1 page %2, not assigned").arg(seq.value).arg(page);
  const BlockState& of = scene.state().blocks[block];
  const QString tokens = table_tr("%1 of %2 tokens").arg(of.filled).arg(scene.facts().page_size);
  if (of.ref_count > 1) {
    return table_tr("sequence %1 page %2, block %3 shared by %4 sequences, %5")
        .arg(seq.value)
        .arg(page)
        .arg(block)
        .arg(of.ref_count)
        .arg(tokens);
  }
  return table_tr("sequence %1 page %2, block %3, %4").arg(seq.value).arg(page).arg(block).arg(tokens);
}

QString cell_name(const Scene& scene, SeqIdx seq, std::int64_t page) {
  const QString name = name_alone(scene, seq, page);
  return scene.differs(seq, PageIdx{page}) ? table_tr("%1; differs in the other run").arg(name) : name;
}

class TablePanel final : public Panel {
 public:
  [[nodiscard]] PanelId id() const override { return PanelId::table; }
  [[nodiscard]] QString title() const override { return table_tr("Lookup table"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<Lane> column_lane(double x, const QRectF& body, const Scene& scene) const override {
    return viz::column_lane(Standing(body, scene).layout.grid, x, body.top());
  }
  [[nodiscard]] std::optional<Lane> arriving_lane(const QRectF& cell, const QRectF& body,
                                                  const Scene& scene) const override {
    return row_lane_above(Standing(body, scene).layout.grid, cell, body.left());
  }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;
};

QString TablePanel::subtitle(const Scene& scene) const {
  if (scene.facts().cache == CacheKind::continuous) {
    return table_tr("sequence → its one block: a continuous cache has a single column");
  }
  if (scene.compared != nullptr) return table_tr("marked where they differ · sequence, page → block");
  const KernelTable table = table_of(scene);
  if (is_padded(scene.facts()) && !table.rows.empty()) {
    return table_tr("sequence, page → block · %1 columns; unused ones hold the null page, %2")
        .arg(number_text(table.columns))
        .arg(scene.facts().blocks);
  }
  return table_tr("sequence, page → block · a dot where no page is assigned");
}

QString TablePanel::summary(const Scene& scene) const {
  if (scene.facts().detail != trace::Detail::full) return table_tr("The content of blocks is not in this trace.");
  const KernelTable table = table_of(scene);
  std::int64_t entries = 0;
  for (const SeqIdx seq : table.rows) entries += scene.state().sequences[seq.value].pages.size();
  return table_tr("Rows: %1; pages of the longest: %2; entries that point at a block: %3 of %4.")
      .arg(table.rows.size())
      .arg(table.pages)
      .arg(entries)
      .arg(std::ssize(table.rows) * table.columns);
}

// --- painting --------------------------------------------------------------------------------------------------------

void paint_edges(QPainter& painter, const Standing& now, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const TableLayout& layout = now.layout;
  const CellRange seen = layout.grid.visible();
  painter.save();
  const QFont digits = page_font(scene);
  // The middle of a partly scrolled column may be outside the panel.
  const QRectF numbers = layout.page_numbers.adjusted(-layout.page_number_width / 2, 0, 0, 0);
  painter.setClipRect(numbers & (layout.page_numbers | layout.names), Qt::IntersectClip);
  const std::int64_t first_page = (seen.first_column + layout.page_step - 1) / layout.page_step * layout.page_step;
  for (std::int64_t page = first_page; page < seen.end_column; page += layout.page_step) {
    draw_text_in(painter, digits, theme.text_quiet, layout.page_number_rect(page), Qt::AlignHCenter,
                 QString::number(page));
  }
  painter.restore();
  painter.save();
  painter.setClipRect(layout.names.adjusted(0, layout.page_numbers.top() - layout.names.top(), 0, 0),
                      Qt::IntersectClip);
  const QFont font = name_font(scene);
  for (const std::int64_t row : layout.named_rows()) {
    const SeqIdx seq = now.seq(row);
    const QColor& color = Prepared::of_this_thread().inks(theme)->at(owner_look(seq.value)).on_card;
    draw_text_in(painter, font, color, layout.name_rect(row), Qt::AlignLeft, name_of(seq));
  }
  painter.restore();
}

// Prefetch distance in entries: the blocks of a row are anywhere in the pool.
constexpr std::int64_t kRowsAhead = 16;

// One image pixel per entry, scaled to the size of the entries.
void paint_table_pixels(QPainter& painter, const Standing& now, const Scene& scene) {
  const TableLayout& layout = now.layout;
  const State& state = scene.state();
  const CellRange seen = layout.grid.visible();
  const std::array colors{small_looks(*scene.theme, false), small_looks(*scene.theme, true)};
  QImage image(static_cast<int>(seen.columns()), static_cast<int>(seen.rows()), QImage::Format_RGB32);
  for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
    const SeqIdx seq = now.seq(row);
    const PageTable& pages = state.sequences[seq.value].pages;
    const auto color = [&](std::int64_t page, Look look) {
      return colors[scene.compared != nullptr && !scene.differs(seq, PageIdx{page})][look];
    };
    auto* const line = reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(row - seen.first_row)));
    const std::int64_t assigned = std::clamp(pages.size(), seen.first_column, seen.end_column);
    for (std::int64_t page = seen.first_column; page < assigned; ++page) {
      state.blocks.prefetch(pages[page + kRowsAhead]);
      line[page - seen.first_column] = color(page, entry_look(state, pages[page]));
    }
    for (std::int64_t page = assigned; page < seen.end_column; ++page) {
      line[page - seen.first_column] = color(page, kPaddingLook);
    }
  }
  const QRectF target = layout.grid.whole_rect({seen.first_column, seen.first_row})
                            .united(layout.grid.whole_rect({seen.end_column - 1, seen.end_row - 1}));
  painter.save();
  painter.setClipRect(layout.grid.area, Qt::IntersectClip);
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.drawImage(target, image);
  // Lines between rows that are high enough to have them.
  if (layout.grid.pitch.height() >= kSmallestOutline) {
    for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
      painter.fillRect(layout.row_line(row), scene.theme->card);
    }
  }
  painter.restore();
}

void paint_table_cells(QPainter& painter, const Standing& now, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const TableLayout& layout = now.layout;
  const State& state = scene.state();
  const std::vector<BlockIdx> fresh = new_entries(scene.marks());
  const QFont font = mono_font(layout.number_px);
  const double digit = label_width(font, "0");
  const CellRange seen = layout.grid.visible();
  const std::string null_page = std::to_string(scene.facts().blocks);
  const bool sentinels = is_padded(scene.facts()) && layout.detail == TableDetail::numbers;
  const auto write = [&](CellPainter& cells, const QRectF& rect, const std::string& text, Look look) {
    cells.label_on(layout.number_at(rect, static_cast<double>(text.size()) * digit), text, rect, look, 1);
  };
  CellPainter cells(painter, layout.grid.area, theme);
  cells.set_cell_size(layout.grid.rect({0, 0}).size());
  cells.set_font(font);
  for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
    const SeqIdx seq = now.seq(row);
    const PageTable& pages = state.sequences[seq.value].pages;
    for (std::int64_t page = seen.first_column; page < seen.end_column; ++page) {
      const std::int32_t number = pages[page];
      const QRectF rect = layout.grid.rect({page, row});
      if (number < 0) {
        cells.cell(rect.topLeft(), unused_look(scene));
        if (sentinels) write(cells, rect, null_page, kFreeLook);
        continue;
      }
      const BlockState& block = state.blocks[number];
      const Look look = block_look(block);
      // No fill level here: the pool shows it, and it would make the number in the middle less legible.
      cells.cell(rect.topLeft(), look);
      if (layout.detail == TableDetail::numbers) write(cells, rect, std::to_string(number), look);
      const bool is_new = block.owner == seq.value && std::binary_search(fresh.begin(), fresh.end(), BlockIdx{number});
      if (is_new) cells.just_now(rect, JustNow::filled);
    }
  }
  if (scene.compared == nullptr) return;
  for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
    for (std::int64_t page = seen.first_column; page < seen.end_column; ++page) {
      if (scene.differs(now.seq(row), PageIdx{page})) cells.difference(layout.grid.rect({page, row}).topLeft());
    }
  }
}

void TablePanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  if (now.rows.empty()) {
    const QString text = scene.facts().detail == trace::Detail::full
                             ? table_tr("No sequence is in the cache at this step.")
                             : table_tr("Which block holds which page is not in this trace.");
    return paint_message(painter, body, text, *scene.theme, scene.font_scale);
  }
  if (now.layout.detail == TableDetail::pixels) {
    paint_table_pixels(painter, now, scene);
  } else {
    paint_table_cells(painter, now, scene);
  }
  paint_edges(painter, now, scene);
}

void TablePanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  if (now.rows.empty()) return;
  const auto paint = [&](const Lit& lit, LitHow how) {
    LitCells cells;
    SeqIdx last{-1};
    std::optional<std::int64_t> row;
    for (const TablePlace& place : lit.places) {
      if (place.seq != last) row = now.row_of(place.seq);
      last = place.seq;
      if (row) cells.cells.push_back({place.page.value, *row});
    }
    if (lit.seq) row = now.row_of(*lit.seq);
    if (lit.seq && lit.page && row) cells.one = CellPlace{lit.page->value, *row};
    paint_lit(painter, now.layout.grid, cells, how, *scene.theme);
    if (!lit.seq || !row) return;
    painter.fillRect(now.layout.name_mark(*row), how == LitHow::pinned ? scene.theme->accent : scene.theme->hover);
  };
  paint(scene.pinned_lit, LitHow::pinned);
  // Not on a pinned cell: the wash would hide its number.
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered_lit, LitHow::hovered);
}

void TablePanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  const std::vector<SeqIdx> owners = table_of(scene).rows;
  if (owners.empty()) return;
  std::vector<LegendEntry> kinds;
  if (can_share(scene.facts())) kinds.push_back({kSharedLook, table_tr("shared")});
  const QString null_page = table_tr("unused: the null page");
  kinds.push_back({unused_look(scene),
                   is_padded(scene.facts()) ? table_tr("%1, %2").arg(null_page).arg(scene.facts().blocks) : null_page});
  paint_legend(painter, footer, owners, kinds, *scene.theme, scene.font_scale);
}

// --- positions of objects --------------------------------------------------------------------------------------------

Selection TablePanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  if (now.rows.empty()) return {};
  if (const std::optional<std::int64_t> row = now.layout.name_at(at)) return of_sequence(now.seq(*row));
  const std::optional<CellPlace> place = now.layout.grid.at(at);
  return place ? of_page(now.seq(place->row), PageIdx{place->column}) : Selection{};
}

std::optional<QRectF> TablePanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (!lit.seq || !lit.page) return std::nullopt;
  const Standing now(body, scene);
  const std::optional<std::int64_t> row = now.row_of(*lit.seq);
  if (!row) return std::nullopt;
  const CellGrid& grid = now.layout.grid;
  const QRectF seen = grid.rect({lit.page->value, *row}).intersected(grid.area);
  if (seen.isEmpty()) return std::nullopt;
  return seen;
}

Selection TablePanel::moved(const Selection& from, Move move, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  if (now.rows.empty()) return from;
  const auto rows = std::ssize(now.rows);
  const std::int64_t columns = std::max<std::int64_t>(now.columns, 1);
  const auto cell = [&](std::int64_t row, std::int64_t page) {
    return of_page(now.seq(std::clamp<std::int64_t>(row, 0, rows - 1)),
                   PageIdx{std::clamp<std::int64_t>(page, 0, columns - 1)});
  };
  if (move == Move::first) return cell(0, 0);
  if (move == Move::last) return cell(rows - 1, columns - 1);
  // A shared block has several cells: the arrow keys start at the first one.
  const Lit lit = resolve(scene.state(), scene.facts(), from);
  std::optional<TablePlace> place;
  if (lit.seq && lit.page) place = TablePlace{*lit.seq, *lit.page};
  if (!place) {
    if (!lit.places.empty()) return of_page(lit.places.front().seq, lit.places.front().page);
    return lit.seq && now.row_of(*lit.seq) ? of_page(*lit.seq, PageIdx{0}) : cell(0, 0);
  }
  const std::optional<std::int64_t> row = now.row_of(place->seq);
  if (!row) return cell(0, 0);
  const std::int64_t page = place->page.value;
  switch (move) {
    case Move::left:
      return cell(*row, page - 1);
    case Move::right:
      return cell(*row, page + 1);
    case Move::up:
      return cell(*row - 1, page);
    default:
      return cell(*row + 1, page);
  }
}

Viewport TablePanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::table);
  const KernelTable table = table_of(scene);
  if (table.rows.empty() || factor == 1) return viewport;
  return table_zoomed(size_of(scene, table), body, viewport, scene.font_scale, factor, at);
}

Viewport TablePanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::table);
  const Standing now(body, scene);
  return now.rows.empty() ? viewport : table_scrolled(now.layout, viewport, by);
}

Viewport TablePanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::table);
  const Standing now(body, scene);
  const Lit lit = resolve(scene.state(), scene.facts(), object);
  SeqIdx seq{-1};
  PageIdx page{0};
  if (lit.seq) {
    seq = *lit.seq;
    page = lit.page.value_or(PageIdx{0});
  } else if (!lit.places.empty()) {
    seq = lit.places.front().seq;
    page = lit.places.front().page;
  }
  const std::optional<std::int64_t> row = now.row_of(seq);
  return row ? table_revealing(now.layout, viewport, {page.value, *row}) : viewport;
}

std::vector<PanelCell> TablePanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> found;
  const Standing now(body, scene);
  const TableLayout& layout = now.layout;
  if (now.rows.empty() || layout.detail == TableDetail::pixels) return found;
  const CellRange seen = layout.grid.visible();
  for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
    const SeqIdx seq = now.seq(row);
    for (std::int64_t page = seen.first_column; page < seen.end_column; ++page) {
      if (found.size() >= limit) return found;
      found.push_back({layout.grid.rect({page, row}).intersected(layout.grid.area), of_page(seq, PageIdx{page}),
                       cell_name(scene, seq, page)});
    }
  }
  return found;
}

}  // namespace

std::unique_ptr<Panel> make_table_panel() {
  return std::make_unique<TablePanel>();
}

}  // namespace kvscope::viz
