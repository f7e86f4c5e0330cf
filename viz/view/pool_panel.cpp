// The block pool: every block and the null page in one grid, from one pixel each to cells with number, fill level,
// owner and reference count.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <QtCore/QCoreApplication>

#include "viz/geometry/pool_layout.h"
#include "viz/view/cell_overlay.h"
#include "viz/view/cell_paint.h"
#include "viz/view/cell_painter.h"
#include "viz/view/panel.h"
#include "viz/view/pool_pixels.h"
#include "viz/view/sharing.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

const QString kBetweenParts = QString::fromUtf8(" · ");

QString tr(const char* text, const char* comment = nullptr, int n = -1) {
  return QCoreApplication::translate("PoolPanel", text, comment, n);
}

// The blocks that changed in the current step. For a block that was both filled and emptied, the state decides.
struct MarkedBlocks {
  std::vector<BlockIdx> filled, emptied;  // ascending, each once
};

MarkedBlocks marked_blocks(const State& state, const Marks& marks) {
  std::vector<BlockIdx> filled = marks.allocated, emptied = marks.released;
  filled.insert(filled.end(), marks.copied.begin(), marks.copied.end());
  for (const trace::TokensWritten& written : marks.written) filled.push_back(written.block);
  emptied.insert(emptied.end(), marks.evicted.begin(), marks.evicted.end());
  const auto sort_unique = [](std::vector<BlockIdx>& blocks) {
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  };
  sort_unique(filled);
  sort_unique(emptied);
  const auto is_held = [&](BlockIdx block) { return state.blocks[block.value].ref_count > 0; };
  MarkedBlocks marked;
  for (const BlockIdx block : filled) {
    if (is_held(block) || !std::binary_search(emptied.begin(), emptied.end(), block)) marked.filled.push_back(block);
  }
  std::set_difference(emptied.begin(), emptied.end(), marked.filled.begin(), marked.filled.end(),
                      std::back_inserter(marked.emptied));
  return marked;
}

// The share of a block that holds tokens; 1 for looks without a fill level.
double filled_share(const BlockState& block, const Facts& facts) {
  if (block.owner < 0 || facts.page_size <= 0) return 1;
  return static_cast<double>(block.filled) / static_cast<double>(facts.page_size);
}

// "s3 p2": the page that a block holds, with its sequence if it is not shared.
std::string page_words(const BlockState& block) {
  if (block.owner < 0) return {};
  const std::string page = "p" + std::to_string(block.page);
  return block.ref_count > 1 ? page : "s" + std::to_string(block.owner) + " " + page;
}

// Calls visit(number, its cell, block, look) for the visible blocks, the null page last.
template <class Visit>
void for_each_cell(const PoolLayout& layout, const Scene& scene, Visit&& visit) {
  for_each_visible_run(scene.state().blocks, layout, [&](std::int64_t first, std::span<const BlockState> run) {
    // One computation of the position per run: there may be tens of thousands of adjacent cells.
    QRectF cell = layout.rect(first);
    for (const BlockState& block : run) {
      visit(first++, cell, block, block_look(block));
      cell.translate(layout.grid.pitch.width(), 0);
    }
  });
  const QRectF last = layout.rect(layout.blocks);
  if (last.intersects(layout.grid.area)) visit(layout.blocks, last, BlockState{}, kNullPageLook);
}

QString name_alone(std::int64_t number, const Scene& scene) {
  if (number == scene.facts().blocks) return tr("block %1, the null page").arg(number);
  const BlockState& block = scene.state().blocks[number];
  if (block.owner < 0) return tr("block %1, free").arg(number);
  const QString of = tr("%1 of %2 tokens").arg(block.filled).arg(scene.facts().page_size);
  if (block.ref_count > 1) {
    return tr("block %1, page %2 shared by %3 sequences, %4").arg(number).arg(block.page).arg(block.ref_count).arg(of);
  }
  return (block.cached ? tr("block %1, cached, last sequence %2 page %3, %4") : tr("block %1, sequence %2 page %3, %4"))
      .arg(number)
      .arg(block.owner)
      .arg(block.page)
      .arg(of);
}

QString name_of(std::int64_t number, const Scene& scene) {
  const QString name = name_alone(number, scene);
  return scene.differs(BlockIdx{number}) ? tr("%1; differs in the other run").arg(name) : name;
}

class PoolPanel final : public Panel {
 public:
  [[nodiscard]] PanelId id() const override { return PanelId::pool; }
  [[nodiscard]] QString title() const override { return tr("Block pool"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<Lane> column_lane(double x, const QRectF& body, const Scene& scene) const override {
    return viz::column_lane(layout(body, scene).grid, x, body.top());
  }
  [[nodiscard]] std::optional<Lane> leaving_lane(const QRectF& cell, const QRectF& body,
                                                 const Scene& scene) const override {
    return row_lane_below(layout(body, scene).grid, cell, body.left());
  }
  [[nodiscard]] std::optional<Lane> arriving_lane(const QRectF& cell, const QRectF& body,
                                                  const Scene& scene) const override {
    return row_lane_above(layout(body, scene).grid, cell, body.left());
  }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  // Blocks are known only if the trace has block events.
  static bool has_blocks(const Scene& scene) {
    return scene.facts().detail == trace::Detail::full && scene.facts().blocks > 0;
  }
  static PoolLayout layout(const QRectF& body, const Scene& scene) {
    return pool_layout(scene.facts().blocks, body, scene.viewport_of(PanelId::pool), scene.font_scale);
  }
  static void paint_cells(QPainter& painter, const PoolLayout& layout, const Scene& scene);
};

QString PoolPanel::subtitle(const Scene& scene) const {
  const Facts& facts = scene.facts();
  const State& state = scene.state();
  if (facts.detail != trace::Detail::full) {
    return tr("%1 blocks; their content is not in this trace").arg(number_text(facts.blocks));
  }
  const QString counts = tr("%1 of %2 blocks used, %3 cached, %4 free")
                             .arg(number_text(state.used_blocks), number_text(facts.blocks),
                                  number_text(state.cached_blocks), number_text(state.free_blocks()));
  // First, because a narrow card drops the last parts.
  if (scene.compared != nullptr) return tr("marked where they differ") + kBetweenParts + counts;
  return counts + kBetweenParts + tr("owner color") + kBetweenParts + tr("reference count");
}

QString PoolPanel::summary(const Scene& scene) const {
  if (!has_blocks(scene)) return subtitle(scene);
  const State& state = scene.state();
  const Marks& marks = scene.marks();
  const QString now = tr("Blocks used: %1 of %2; cached: %3; free: %4.")
                          .arg(number_text(state.used_blocks), number_text(scene.facts().blocks),
                               number_text(state.cached_blocks), number_text(state.free_blocks()));
  if (state.step.value < 0) return now;
  return now + QLatin1Char(' ') +
         tr("In step %1: allocated %2, shared %3, copied %4, released %5, evicted %6.")
             .arg(state.step.value)
             .arg(marks.allocated.size())
             .arg(marks.shared.size())
             .arg(marks.copied.size())
             .arg(marks.released.size())
             .arg(marks.evicted.size());
}

// --- painting --------------------------------------------------------------------------------------------------------

void PoolPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_blocks(scene)) {
    const QString text = scene.facts().detail == trace::Detail::full
                             ? tr("This trace has no events of blocks.")
                             : tr("This trace has events of steps and requests, not of blocks.\n"
                                  "Record it with blocks:\nkvscope run SCENARIO --out DIR --trace full");
    return paint_message(painter, body, text, *scene.theme, scene.font_scale);
  }
  const PoolLayout at = layout(body, scene);
  if (at.detail != PoolDetail::pixels) {
    paint_cells(painter, at, scene);
  } else {
    paint_pool_pixels(painter, at, scene);
    const MarkedBlocks marked = marked_blocks(scene.state(), scene.marks());
    paint_pool_pixel_marks(painter, at, marked.filled, *scene.theme);
  }
}

void PoolPanel::paint_cells(QPainter& painter, const PoolLayout& layout, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const Facts& facts = scene.facts();
  const bool numbers = layout.detail == PoolDetail::numbers || layout.detail == PoolDetail::words;
  const QFont number_font = mono_font(layout.number_px);
  CellPainter cells(painter, layout.grid.area, theme);
  cells.set_cell_size(layout.rect(0).size());
  cells.set_font(number_font);

  for_each_cell(layout, scene, [&](std::int64_t number, const QRectF& rect, const BlockState& block, Look look) {
    const double filled = filled_share(block, facts);
    cells.cell(rect.topLeft(), look, filled);
    if (!numbers) return;
    const std::string text = std::to_string(number);
    cells.label_on(layout.text_places(rect).number, text, rect, look, filled);
    if (block.ref_count > 1) cells.badge(layout.text_places(rect).badge, block.ref_count, layout.badge_px);
  });
  if (layout.detail == PoolDetail::words) {
    const QFont font = mono_font(layout.words_px);
    const double advance = label_width(font, "0");
    cells.set_font(font);
    for_each_cell(layout, scene, [&](std::int64_t, const QRectF& rect, const BlockState& block, Look look) {
      const PoolCellText places = layout.text_places(rect);
      const std::string words = look == kNullPageLook ? "null" : page_words(block);
      const double room = block.ref_count > 1 ? places.room_beside_badge : places.room;
      if (advance * static_cast<double>(words.size()) > room) return;
      cells.label_on(places.words, words, rect, look, filled_share(block, facts));
    });
  }

  const MarkedBlocks marked = marked_blocks(scene.state(), scene.marks());
  const auto mark = [&](const std::vector<BlockIdx>& blocks, JustNow what) {
    for (const BlockIdx block : blocks) {
      const QRectF rect = layout.rect(block.value);
      if (rect.intersects(layout.grid.area)) cells.just_now(rect, what);
    }
  };
  mark(marked.filled, JustNow::filled);
  mark(marked.emptied, JustNow::emptied);
  if (scene.compared == nullptr) return;
  for_each_cell(layout, scene, [&](std::int64_t number, const QRectF& rect, const BlockState&, Look) {
    if (scene.differs(BlockIdx{number})) cells.difference(rect.topLeft());
  });
}

void PoolPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_blocks(scene)) return;
  const PoolLayout at = layout(body, scene);
  const auto paint = [&](const Lit& lit, LitHow how) {
    LitCells cells;
    cells.cells.reserve(lit.blocks.size());
    for (const BlockIdx block : lit.blocks) cells.cells.push_back(at.place(block.value));
    if (lit.block) cells.one = at.place(lit.block->value);
    paint_lit(painter, at.grid, cells, how, *scene.theme);
    if (!lit.block || !lit.slot || at.detail < PoolDetail::numbers) return;
    const QRectF slot = at.slot_rect(at.rect(lit.block->value), *lit.slot, scene.facts().page_size);
    painter.save();
    painter.setClipRect(at.grid.area, Qt::IntersectClip);
    painter.fillRect(slot.adjusted(-1, -1, 1, 1), scene.theme->null_page);
    painter.fillRect(slot, how == LitHow::pinned ? scene.theme->accent : scene.theme->hover);
    painter.restore();
  };
  paint(scene.pinned_lit, LitHow::pinned);
  // Not on a pinned cell: the wash would hide its number.
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered_lit, LitHow::hovered);
}

void PoolPanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  if (!has_blocks(scene)) return;
  std::vector<SeqIdx> owners;
  for (const SeqIdx seq : scene.state().live) {
    if (scene.state().sequences[seq.value].pages.size() == 0) continue;
    owners.push_back(seq);
  }
  std::vector<LegendEntry> kinds;
  if (can_share(scene.facts())) kinds.push_back({kSharedLook, tr("shared")});
  const Look cached = cached_look(owners.empty() ? 0 : owners.front().value);
  if (can_find(scene.facts())) kinds.push_back({cached, tr("cached")});
  kinds.push_back({kFreeLook, tr("free")});
  kinds.push_back({kNullPageLook, tr("null page")});
  paint_legend(painter, footer, owners, kinds, *scene.theme, scene.font_scale);
}

// --- positions of objects --------------------------------------------------------------------------------------------

Selection PoolPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (!has_blocks(scene)) return {};
  const std::optional<std::int64_t> block = layout(body, scene).block_at(at);
  return block ? of_block(BlockIdx{*block}) : Selection{};
}

std::optional<QRectF> PoolPanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (!has_blocks(scene) || !lit.block || lit.block->value > scene.facts().blocks) return std::nullopt;
  const PoolLayout at = layout(body, scene);
  const QRectF seen = at.rect(lit.block->value).intersected(at.grid.area);
  if (seen.isEmpty()) return std::nullopt;
  return seen;
}

Selection PoolPanel::moved(const Selection& from, Move move, const QRectF& body, const Scene& scene) const {
  if (!has_blocks(scene)) return from;
  const PoolLayout at = layout(body, scene);
  const Lit lit = resolve(scene.state(), scene.facts(), from);
  if (move == Move::last) return of_block(BlockIdx{at.blocks});
  if (move == Move::first) return of_block(BlockIdx{0});
  // A sequence has many blocks: the arrow keys start at its first one.
  if (!lit.block) return of_block(lit.blocks.empty() ? BlockIdx{0} : lit.blocks.front());
  const std::int64_t block = lit.block->value;
  switch (move) {
    case Move::left:
      return of_block(BlockIdx{at.neighbor(block, -1, 0)});
    case Move::right:
      return of_block(BlockIdx{at.neighbor(block, 1, 0)});
    case Move::up:
      return of_block(BlockIdx{at.neighbor(block, 0, -1)});
    default:
      return of_block(BlockIdx{at.neighbor(block, 0, 1)});
  }
}

Viewport PoolPanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::pool);
  if (!has_blocks(scene) || factor == 1) return viewport;
  return pool_zoomed(layout(body, scene), body, viewport, scene.font_scale, factor, at);
}

Viewport PoolPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::pool);
  return has_blocks(scene) ? pool_scrolled(layout(body, scene), viewport, by) : viewport;
}

Viewport PoolPanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::pool);
  if (!has_blocks(scene)) return viewport;
  const Lit lit = resolve(scene.state(), scene.facts(), object);
  if (!lit.block && lit.blocks.empty()) return viewport;
  const BlockIdx block = lit.block ? *lit.block : lit.blocks.front();
  return pool_revealing(layout(body, scene), viewport, block.value);
}

std::vector<PanelCell> PoolPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> found;
  if (!has_blocks(scene)) return found;
  const PoolLayout at = layout(body, scene);
  if (at.detail == PoolDetail::pixels) return found;
  const CellRange seen = at.grid.visible();
  for (std::int64_t row = seen.first_row; row < seen.end_row; ++row) {
    for (std::int64_t column = seen.first_column; column < seen.end_column; ++column) {
      const std::int64_t block = row * at.grid.columns + column;
      if (block > at.blocks || found.size() >= limit) return found;
      found.push_back({at.rect(block).intersected(at.grid.area), of_block(BlockIdx{block}), name_of(block, scene)});
    }
  }
  return found;
}

}  // namespace

std::unique_ptr<Panel> make_pool_panel() {
  return std::make_unique<PoolPanel>();
}

}  // namespace kvscope::viz
