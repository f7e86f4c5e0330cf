#include "viz/geometry/pool_layout.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"

namespace kvscope::viz {
namespace {

constexpr double kSmallestNumberCell = 24, kSmallestWordCell = 44;  // [px] at font scale 1
constexpr double kRoomyCell = 56;                                   // [px] number and words fit completely
constexpr double kSmallestNumber = 9, kLargestBlockNumber = 15;     // [px] font
constexpr double kMonoAdvance = 0.6;                                // width of a digit / font size: JetBrains Mono
constexpr double kNumberPadding = 6;                                // [px] left plus right of a number
constexpr double kCapHeight = 0.73;                                 // height of a digit / font size: JetBrains Mono
constexpr double kWords = 0.85;                                     // font of words / font of numbers
constexpr double kUsualWords = 6;                                   // typical length in characters: "s31 p4"
constexpr double kBadge = 0.85, kBadgeWidth = 1.9;                  // badge font / number font, width / its font

constexpr double kLargestGap = 4;  // [px] between two cells
constexpr double kWidened = 1.25;  // cells of larger text are at most this much wider than they need to be

struct Fit {
  std::int64_t columns = 1;
  double pitch = 0;  // [px]
};

double pitch_with(std::int64_t cells, std::int64_t columns, QSizeF area, double largest) {
  const std::int64_t rows = ceil_div(cells, columns);
  const double width = area.width() / static_cast<double>(columns), height = area.height() / static_cast<double>(rows);
  return snapped_pitch(std::min({width, height, largest}));
}

// The best number of columns that is a multiple of `step`. With more columns, the width available to a cell falls and
// the available height grows, so the best number is one of the two multiples around the point where they are equal.
Fit best_fit(std::int64_t cells, std::int64_t step, QSizeF area, double largest) {
  const auto too_wide = [&](std::int64_t columns) {
    const std::int64_t rows = ceil_div(cells, columns);
    return area.width() / static_cast<double>(columns) > area.height() / static_cast<double>(rows);
  };
  std::int64_t low = 1, high = cells / step;  // bounds of the first multiple whose cells are not too wide
  if (high < 1) return {};
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (too_wide(middle * step)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const std::int64_t fewer = std::max<std::int64_t>(low - 1, 1) * step, more = low * step;
  const double fewer_pitch = pitch_with(cells, fewer, area, largest),
               more_pitch = pitch_with(cells, more, area, largest);
  return fewer_pitch > more_pitch ? Fit{fewer, fewer_pitch} : Fit{more, more_pitch};
}

// Round numbers of columns make block numbers easy to follow: multiples of 16, else of 8, unless the cells would become
// much smaller and lose room for their texts.
Fit fit(std::int64_t cells, QSizeF area, double font_scale) {
  const double largest = kLargestFitCell * std::max(1.0, font_scale);
  Fit best = best_fit(cells, 1, area, largest);
  const Fit eights = best_fit(cells, 8, area, largest), sixteens = best_fit(cells, 16, area, largest);
  if (eights.pitch >= std::min(0.75 * best.pitch, kRoomyCell)) best = eights;
  // Small cells have no numbers, so their size matters more than a round number of columns.
  if (sixteens.pitch >= (best.pitch < kSmallestNumberCell ? 0.95 : 0.85) * best.pitch) best = sixteens;
  return best;
}

// The pitch that the texts of cells at font scale 1 need when they are larger; 0 for cells without texts.
double least_pitch(const PoolLayout& usual, double font_scale) {
  if (usual.detail == PoolDetail::words) return std::ceil(std::min(usual.grid.pitch.width(), kRoomyCell) * font_scale);
  if (usual.detail != PoolDetail::numbers) return 0;
  const double number = digits(usual.blocks) * kMonoAdvance * kSmallestNumber * font_scale;
  return std::ceil(std::max(kSmallestNumberCell * font_scale, number + kNumberPadding + kLargestGap));
}

// Fewer columns than fit() gives, of cells of at least this pitch; the rows may need more height than there is.
Fit fit_width(std::int64_t cells, double pitch, QSizeF area) {
  std::int64_t columns = std::max<std::int64_t>(static_cast<std::int64_t>(area.width() / pitch), 1);
  if (columns >= 8) columns = columns / 8 * 8;
  columns = std::min(columns, cells);
  const double widest = area.width() / static_cast<double>(columns);
  return {columns, std::max(snapped_pitch(std::min(widest, kWidened * pitch)), pitch)};
}

double largest_pitch(const PoolLayout& layout, double font_scale) {
  return std::max(layout.fit_pitch, kLargestPoolCell * std::max(1.0, font_scale));
}

double zoom_in_force(const PoolLayout& layout, const Viewport& viewport, double font_scale) {
  return std::clamp(viewport.zoom, layout.fit_pitch, largest_pitch(layout, font_scale));
}

}  // namespace

std::optional<std::int64_t> PoolLayout::block_at(QPointF point) const {
  const std::optional<CellPlace> at = grid.at(point);
  if (!at) return std::nullopt;
  const std::int64_t block = at->row * grid.columns + at->column;
  if (block > blocks) return std::nullopt;
  return block;
}

PoolCellText PoolLayout::text_places(const QRectF& cell) const {
  const double padding = std::clamp(std::round(cell.width() * 0.1), 3.0, 6.0);
  const double left = cell.left() + padding;
  PoolCellText places;
  places.number = {left, cell.top() + padding + std::round(kCapHeight * number_px)};
  places.words = {left, cell.bottom() - padding};
  places.badge = cell.bottomRight() - QPointF(2, 2);
  places.room = cell.width() - 2 * padding;
  places.room_beside_badge = cell.width() - padding - kBadgeWidth * badge_px - 4;
  return places;
}

QRectF PoolLayout::slot_rect(const QRectF& cell, std::int64_t slot, std::int64_t slots) const {
  const double width = cell.width() / static_cast<double>(slots);
  const double left = cell.left() + static_cast<double>(slot) * width;
  // At least two pixels wide, and inside the cell even for the last of very many slots.
  const double shown = std::max(2.0, width);
  const PoolCellText places = text_places(cell);
  const double top = places.number.y() + 4;
  const double bottom = detail == PoolDetail::words ? places.words.y() - words_px - 2 : cell.bottom() - 3;
  return {std::min(left, cell.right() - shown), top, shown, std::max(2.0, bottom - top)};
}

std::int64_t PoolLayout::neighbor(std::int64_t block, std::int64_t columns, std::int64_t rows) const {
  const std::int64_t next = block + columns + rows * grid.columns;
  return next < 0 || next > blocks ? block : next;
}

namespace {

PoolLayout with_pitch(std::int64_t blocks, const QRectF& body, const Viewport& viewport, double font_scale,
                      double least) {
  PoolLayout layout;
  layout.blocks = blocks;
  CellGrid& grid = layout.grid;
  grid.area = whole_pixels(body);
  Fit whole = fit(blocks + 1, grid.area.size(), font_scale);
  if (whole.pitch < least) whole = fit_width(blocks + 1, least, grid.area.size());
  layout.fit_pitch = whole.pitch;
  grid.columns = whole.columns;
  grid.rows = (blocks + 1 + grid.columns - 1) / grid.columns;
  const double pitch = snapped_pitch(zoom_in_force(layout, viewport, font_scale));
  grid.pitch = {pitch, pitch};
  grid.offset = grid_offset(viewport.offset, grid);

  // The preferred font size, or smaller if the largest number would not fit.
  const double number_digits = digits(blocks) * kMonoAdvance, room = pitch - grid.gap().width() - kNumberPadding;
  const double smallest = kSmallestNumber * font_scale;
  const double number_px = std::clamp(pitch * 0.26, smallest, kLargestBlockNumber * font_scale);
  layout.number_px = std::clamp(std::floor(room / number_digits), smallest, number_px);
  const PoolCellText places = layout.text_places({0, 0, pitch - grid.gap().width(), pitch - grid.gap().width()});
  const double words_px =
      std::min(std::round(kWords * layout.number_px), std::floor(places.room / (kUsualWords * kMonoAdvance)));
  layout.words_px = std::max(smallest - 1, words_px);
  layout.badge_px = std::round(kBadge * layout.number_px);
  if (pitch < kSmallestCell) {
    layout.detail = PoolDetail::pixels;
  } else if (pitch < kSmallestNumberCell * font_scale || room < number_digits * layout.number_px) {
    layout.detail = PoolDetail::cells;
  } else {
    layout.detail = pitch < kSmallestWordCell * font_scale ? PoolDetail::numbers : PoolDetail::words;
  }
  return layout;
}

}  // namespace

PoolLayout pool_layout(std::int64_t blocks, const QRectF& body, const Viewport& viewport, double font_scale) {
  const double least = font_scale > 1 ? least_pitch(with_pitch(blocks, body, {}, 1, 0), font_scale) : 0;
  return with_pitch(blocks, body, viewport, font_scale, least);
}

Viewport pool_zoomed(const PoolLayout& layout, const QRectF& body, const Viewport& viewport, double font_scale,
                     double factor, QPointF at) {
  const double to = std::min(zoom_in_force(layout, viewport, font_scale) * factor, largest_pitch(layout, font_scale));
  if (to <= layout.fit_pitch) return {};
  // The new grid without an offset; only its pitch is used here.
  const PoolLayout after = pool_layout(layout.blocks, body, {to, {0, 0}}, font_scale);
  const QPointF offset = offset_after_zoom(layout.grid, after.grid, at);
  return {to, clamp_offset(offset, after.grid.content(), after.grid.area.size())};
}

Viewport pool_scrolled(const PoolLayout& layout, const Viewport& viewport, QPointF by) {
  // Starts from the unrounded offset, because a slow touchpad gesture moves by less than a pixel at a time.
  const QSizeF content = layout.grid.content(), window = layout.grid.area.size();
  return {viewport.zoom, clamp_offset(clamp_offset(viewport.offset, content, window) + by, content, window)};
}

Viewport pool_revealing(const PoolLayout& layout, const Viewport& viewport, std::int64_t block) {
  const QPointF offset = offset_to_reveal(layout.grid, layout.place(block));
  return offset == layout.grid.offset ? viewport : Viewport{viewport.zoom, offset};
}

}  // namespace kvscope::viz
