#include "viz/view/sequences_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <QtGui/QImage>
#include <QtGui/QPaintEngine>

#include "core/base/checked.h"
#include "viz/view/cell_numbers.h"
#include "viz/view/cell_paint.h"
#include "viz/view/cell_painter.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {
namespace {

constexpr double kFaintest = 0.18;            // opacity of a place where one row of very many holds a token
constexpr std::int64_t kMostLookedUp = 1500;  // rows whose blocks are looked up

// Calls visit(row, page, look, tokens in it) for the visible pages of each row.
template <class Visit>
void for_each_page(const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene, Visit&& visit) {
  const IndexRange shown = layout.visible_rows(), pages = layout.visible_pages();
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const SequenceRow row = sequence_row(scene, rows.seq(r));
    for (std::int64_t page = pages.first; page < std::min(pages.last, row.pages); ++page) {
      visit(r, page, page_look(scene.state(), row.seq, page), page_tokens(row, page, layout.extent.page_size));
    }
  }
}

// The part of the strip with content, down to the last row and right to the end of the longest: only this is painted.
QRectF used(const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  QRectF all;
  const IndexRange shown = layout.visible_rows();
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const std::int64_t pages = scene.state().sequences[rows.seq(r).value].pages.size();
    if (pages > 0) all |= layout.page_box(r, 0) | layout.page_box(r, pages - 1);
  }
  return all & layout.strip;
}

// --- a look at any width ---------------------------------------------------------------------------------------------

// Long bars of one height with their pattern, for cells that are too narrow for a pattern each. On pixels a piece of
// the pattern is painted once and repeated.
class Bars {
 public:
  Bars(QPainter& painter, double height, const Theme& theme)
      : painter_(painter), height_(height), theme_(theme), scale_(painter.deviceTransform().m11()) {
    copies_ = painter.paintEngine()->type() == QPaintEngine::Raster && scale_ > 0;
  }
  void fill(const QRectF& rect, Look look) {
    if (height_ < kSmallestPattern || look == kFreeLook) {
      painter_.fillRect(rect, look_small(theme_, look));
    } else if (copies_) {
      painter_.setBrushOrigin(QPointF(0, rect.top()));
      painter_.fillRect(rect, brush(look));
    } else {
      paint_cell(painter_, rect, look, 1, theme_);
    }
  }

 private:
  // Patterns repeat every 4 or 6 px, so pieces of 48 px join seamlessly. The margin removes the cell's round corners.
  static constexpr double kPiece = 48, kAround = 12;

  const QBrush& brush(Look look) {
    QBrush& brush = brushes_[look];
    if (brush.style() == Qt::NoBrush) {
      QImage piece(QSizeF(kPiece * scale_, std::ceil(height_ * scale_)).toSize(), QImage::Format_RGB32);
      QPainter painter(&piece);
      painter.scale(scale_, scale_);
      paint_cell(painter, {-kAround, -kAround, kPiece + 2 * kAround, height_ + 2 * kAround}, look, 1, theme_);
      painter.end();
      brush = QBrush(piece);
      brush.setTransform(QTransform::fromScale(1 / scale_, 1 / scale_));
    }
    return brush;
  }

  QPainter& painter_;
  double height_;
  const Theme& theme_;
  double scale_;
  bool copies_ = false;
  std::array<QBrush, kLooks> brushes_;
};

// --- cells -----------------------------------------------------------------------------------------------------------

// The visible slots of a page.
IndexRange visible_slots(const SequencesLayout& layout, std::int64_t page) {
  const double first = layout.x_of(page * layout.extent.page_size);
  const auto slot = [&](double x) { return static_cast<std::int64_t>(std::floor((x - first) / layout.cell)); };
  return {std::clamp<std::int64_t>(slot(layout.strip.left()), 0, layout.extent.page_size),
          std::clamp<std::int64_t>(slot(layout.strip.right()) + 1, 0, layout.extent.page_size)};
}

void paint_boxes(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  const double radius = std::min(4.0, layout.box_height / 5);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  for_each_page(layout, rows, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t) {
    painter.setPen(QPen(look_fill(*scene.theme, look), 1.25));
    painter.drawRoundedRect(layout.page_box(row, page).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
  });
  painter.restore();
}

// Tokens outside the attention window are dimmed like the empty part of a block: they are stored but no longer read.
void paint_left_behind(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  QColor wash = scene.theme->card;
  wash.setAlphaF(static_cast<float>(kEmptyShare));
  const IndexRange shown = layout.visible_rows();
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const std::int64_t behind = left_behind(scene.facts(), scene.state().sequences[rows.seq(r).value].tokens);
    if (behind > 0) painter.fillRect(layout.run_rect(r, 0, behind) & layout.strip, wash);
  }
}

// Cells too narrow for a pattern each: a page's tokens are painted as one bar, which is then cut into cells.
void paint_narrow_cells(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows,
                        const Scene& scene) {
  const std::int64_t page_size = layout.extent.page_size;
  Bars bars(painter, layout.token_cell(0, 0).height(), *scene.theme);
  for_each_page(layout, rows, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
    const std::int64_t first = page * page_size;
    if (tokens > 0) bars.fill(layout.run_rect(row, first, first + tokens), look);
    if (tokens < page_size) bars.fill(layout.run_rect(row, first + tokens, first + page_size), kFreeLook);
    const IndexRange slots = visible_slots(layout, page);
    for (std::int64_t slot = slots.first; slot < std::min(slots.last, page_size - 1); ++slot) {
      const QRectF cell = layout.token_cell(row, first + slot);
      painter.fillRect(QRectF(cell.right(), cell.top(), layout.cell_gap, cell.height()), scene.theme->card);
    }
  });
  paint_left_behind(painter, layout, rows, scene);
  paint_boxes(painter, layout, rows, scene);
}

void paint_cells(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  if (layout.cell - layout.cell_gap < kSmallestPattern) return paint_narrow_cells(painter, layout, rows, scene);
  const QRectF area = used(layout, rows, scene);
  if (area.isEmpty()) return;
  const std::int64_t page_size = layout.extent.page_size;
  {
    CellPainter cells(painter, area, *scene.theme);
    cells.set_cell_size(layout.token_cell(0, 0).size());
    for_each_page(layout, rows, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
      const IndexRange slots = visible_slots(layout, page);
      for (std::int64_t slot = slots.first; slot < slots.last; ++slot) {
        cells.cell(layout.token_cell(row, page * page_size + slot).topLeft(), slot < tokens ? look : kFreeLook);
      }
    });
  }
  paint_left_behind(painter, layout, rows, scene);
  paint_boxes(painter, layout, rows, scene);
  if (layout.detail != SequencesDetail::numbers) return;
  CellNumbers numbers(painter, mono_font(layout.number_px), layout.writing);
  for_each_page(layout, rows, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
    const IndexRange slots = visible_slots(layout, page);
    const Theme& theme = *scene.theme;
    const QColor fill = look_fill(theme, look), empty = look_empty(theme, look);
    const QColor ink = look_ink(theme, look), quiet = theme.ink_on(empty);
    const std::int64_t read_from = left_behind(scene.facts(), scene.state().sequences[rows.seq(row).value].tokens);
    for (std::int64_t slot = slots.first; slot < std::min(slots.last, tokens); ++slot) {
      const std::int64_t token = page * page_size + slot;
      const bool read = token >= read_from;
      numbers.write(layout.token_cell(row, token), token, read ? ink : quiet, read ? fill : empty);
    }
  });
}

// --- bars and lines --------------------------------------------------------------------------------------------------

// Calls visit(first, one past the last) for each run of equal looks.
template <class Visit>
void for_each_run(const std::vector<Look>& looks, Visit&& visit) {
  for (std::size_t begin = 0; begin < looks.size();) {
    std::size_t end = begin;
    while (end < looks.size() && looks[end] == looks[begin]) ++end;
    visit(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    begin = end;
  }
}

// Bars wide enough for a pattern each, painted like the blocks of the pool.
void paint_wide_pages(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  const QRectF area = used(layout, rows, scene);
  if (area.isEmpty()) return;
  const auto page_size = static_cast<double>(layout.extent.page_size);
  CellPainter cells(painter, area, *scene.theme);
  cells.set_cell_size(layout.page_box(0, 0).size());
  for_each_page(layout, rows, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
    cells.cell(layout.page_box(row, page).topLeft(), look, static_cast<double>(tokens) / page_size);
  });
}

// Narrow bars: adjacent pages of one look are painted as one long bar, which is then cut into pages; the empty part of
// the last page is painted separately.
void paint_narrow_pages(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows,
                        const Scene& scene) {
  Bars bars(painter, layout.box_height, *scene.theme);
  const IndexRange shown = layout.visible_rows(), pages = layout.visible_pages();
  std::vector<Look> looks;
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const SequenceRow row = sequence_row(scene, rows.seq(r));
    looks.clear();
    for (std::int64_t page = pages.first; page < std::min(pages.last, row.pages); ++page) {
      looks.push_back(page_look(scene.state(), row.seq, page));
    }
    for_each_run(looks, [&](std::int64_t first, std::int64_t last) {
      bars.fill(layout.page_box(r, pages.first + first) | layout.page_box(r, pages.first + last - 1),
                looks[static_cast<std::size_t>(first)]);
    });
    for (std::int64_t page = pages.first; page < pages.first + std::ssize(looks); ++page) {
      const QRectF box = layout.page_box(r, page);
      painter.fillRect(QRectF(box.right(), box.top(), layout.page_gap, box.height()), scene.theme->card);
      const std::int64_t tokens = page_tokens(row, page, layout.extent.page_size);
      if (tokens == layout.extent.page_size) continue;
      const double full = box.width() * static_cast<double>(tokens) / static_cast<double>(layout.extent.page_size);
      painter.fillRect(box.adjusted(full, 0, 0, 0),
                       look_empty(*scene.theme, looks[static_cast<std::size_t>(page - pages.first)]));
    }
  }
}

// The page shown in each column of pixels of the strip. All rows have the same columns, so it is computed once.
class Columns {
 public:
  explicit Columns(const SequencesLayout& layout)
      : layout_(layout), count_(static_cast<std::int32_t>(std::ceil(layout.strip.width()))) {
    for (std::int32_t column = 0; column < count_; ++column) {
      const double x = static_cast<double>(column) + 0.5 + layout.offset.x();
      const auto page = static_cast<std::int64_t>(x / layout.page_pitch);
      if (pages_.empty() || pages_.back().page != page) pages_.push_back({page, column});
    }
  }
  [[nodiscard]] std::int32_t count() const { return count_; }
  // One past the column of the sequence's last token.
  [[nodiscard]] std::int32_t end_of(const SequenceState& of) const {
    return of.tokens > 0 ? columns_to(layout_.x_of(of.tokens - 1) + layout_.cell) : 0;
  }

  // Calls visit(first, one past the last, look) for each run of columns of one look, from the strip's left edge to the
  // row's last page.
  template <class Visit>
  void for_each_run(const State& state, SeqIdx seq, Visit&& visit) const {
    const SequenceState& of = state.sequences[seq.value];
    const PageTable& pages = of.pages;
    if (pages.size() == 0) return;
    const Look own = owner_look(seq.value);
    const std::int32_t filled = end_of(of);
    const std::int32_t all = std::max(filled, columns_to(layout_.page_box(0, pages.size() - 1).right()));
    std::int32_t first = 0;
    Look look = kFreeLook;
    const auto block_of = [&](std::size_t shown) { return pages[std::min(pages_[shown].page, pages.size() - 1)]; };
    for (std::size_t i = 0; i < pages_.size() && pages_[i].column < filled; ++i) {
      const Page& shown = pages_[i];
      if (i + kAhead < pages_.size()) state.blocks.prefetch(block_of(i + kAhead));
      const std::int32_t block = block_of(i);
      const bool assigned = block >= 0 && block < state.blocks.size();
      const Look next = !assigned ? kPaddingLook : state.blocks[block].ref_count > 1 ? kSharedLook : own;
      if (next == look) continue;
      if (shown.column > first) visit(first, shown.column, look);
      first = shown.column;
      look = next;
    }
    if (filled > first) visit(first, filled, look);
    if (all > filled) visit(filled, all, kFreeLook);
  }

 private:
  static constexpr std::size_t kAhead = 16;  // prefetch distance in pages: their blocks are anywhere in the pool
  struct Page {
    std::int64_t page = 0;
    std::int32_t column = 0;  // the first column that shows it
  };
  [[nodiscard]] std::int32_t columns_to(double x) const {
    return static_cast<std::int32_t>(std::ceil(std::clamp(x - layout_.strip.left(), 0.0, layout_.strip.width())));
  }
  const SequencesLayout& layout_;
  std::int32_t count_;
  std::vector<Page> pages_;  // ascending
};

void paint_lines(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  Bars bars(painter, layout.box_height, *scene.theme);
  const Columns columns(layout);
  const IndexRange shown = layout.visible_rows();
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const QRectF box = layout.page_box(r, 0);
    columns.for_each_run(scene.state(), rows.seq(r), [&](std::int32_t first, std::int32_t end, Look look) {
      bars.fill({layout.strip.left() + first, box.top(), static_cast<double>(end - first), box.height()}, look);
    });
  }
}

// --- bands -----------------------------------------------------------------------------------------------------------

// How many rows of a band change at each column of pixels: +1 where a token begins to be there, -1 where it ends.
class Steps {
 public:
  explicit Steps(std::int32_t columns) : changes_(static_cast<std::size_t>(columns) + 1, 0) {}
  void add(std::int32_t first, std::int32_t end) {
    ++changes_[static_cast<std::size_t>(first)];
    --changes_[static_cast<std::size_t>(end)];
  }
  void clear() { std::ranges::fill(changes_, 0); }
  [[nodiscard]] std::int32_t change(std::int32_t column) const { return changes_[static_cast<std::size_t>(column)]; }

 private:
  std::vector<std::int32_t> changes_;
};

// One bar per band. Its color tells the share of the band's rows that hold a token there, and the share in shared
// blocks. Lengths are those of all rows; blocks are looked up in at most kMostLookedUp rows, evenly spaced.
void paint_density(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  const Columns columns(layout);
  QImage image(columns.count(), 1, QImage::Format_RGB32);
  Steps held(columns.count()), shared(columns.count());
  const IndexRange bands = layout.visible_bands();
  for (std::int64_t band = bands.first; band < bands.last; ++band) {
    IndexRange of = layout.rows_of_band(band);
    of.last = std::min(of.last, rows.count());
    if (of.size() <= 0) break;
    held.clear();
    shared.clear();
    std::int32_t longest = 0;
    for (std::int64_t row = of.first; row < of.last; ++row) {
      const std::int32_t end = columns.end_of(scene.state().sequences[rows.seq(row).value]);
      held.add(0, end);
      longest = std::max(longest, end);
    }
    const std::int64_t chosen = std::min(of.size(), ceil_div(kMostLookedUp, bands.size()));
    for (std::int64_t i = 0; i < chosen; ++i) {
      const auto add = [&](std::int32_t first, std::int32_t end, Look look) {
        if (look == kSharedLook) shared.add(first, end);
      };
      columns.for_each_run(scene.state(), rows.seq(of.first + i * of.size() / chosen), add);
    }
    auto* const line = reinterpret_cast<QRgb*>(image.scanLine(0));
    std::int32_t holding = 0, sharing = 0;
    QRgb color = 0;
    for (std::int32_t column = 0; column < longest; ++column) {
      const bool changed = held.change(column) != 0 || shared.change(column) != 0 || column == 0;
      holding += held.change(column);
      sharing += shared.change(column);
      if (changed) {
        color = density_color(*scene.theme, static_cast<double>(holding) / static_cast<double>(of.size()),
                              static_cast<double>(sharing) / static_cast<double>(chosen))
                    .rgb();
      }
      line[column] = color;
    }
    const QRectF whole = layout.band_rect(band);
    const double gap = layout.band == 1 ? 1 : 0;  // bands of several rows adjoin each other
    const double top = std::round(whole.top()), bottom = std::max(std::round(whole.bottom()) - gap, top + 1);
    const QRectF bar(whole.left(), top, longest, bottom - top);
    painter.drawImage(bar, image, QRectF(0, 0, longest, 1));
  }
}

}  // namespace

QColor density_color(const Theme& theme, double held, double shared) {
  if (held <= 0) return theme.card;
  const auto mixed = [](const QColor& a, const QColor& b, double share) {
    const auto channel = [share](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
    return QColor(channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue()));
  };
  const QColor full = mixed(theme.owner[0], theme.shared, std::clamp(shared / held, 0.0, 1.0));
  return mixed(theme.card, full, kFaintest + (1 - kFaintest) * std::min(held, 1.0));
}

void paint_tokens(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  switch (layout.detail) {
    case SequencesDetail::numbers:
    case SequencesDetail::cells:
      return paint_cells(painter, layout, rows, scene);
    case SequencesDetail::pages:
      if (layout.page_pitch - layout.page_gap >= kSmallestPattern) {
        paint_wide_pages(painter, layout, rows, scene);
      } else {
        paint_narrow_pages(painter, layout, rows, scene);
      }
      return paint_left_behind(painter, layout, rows, scene);
    case SequencesDetail::lines:
      paint_lines(painter, layout, rows, scene);
      return paint_left_behind(painter, layout, rows, scene);
    case SequencesDetail::density:
      return paint_density(painter, layout, rows, scene);
  }
}

}  // namespace kvscope::viz
