#include "viz/geometry/sequences_layout.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"
#include "viz/geometry/cell_grid.h"
#include "viz/geometry/step_axis.h"

namespace kvscope::viz {
namespace {

// All in px at font scale 1.
constexpr double kGutter = 86;
constexpr double kAxisHeight = 18, kNoteHeight = 17;
constexpr double kLeastCell = 5;        // narrower cells cannot be distinguished: a page is drawn as one bar
constexpr double kLeastCellHeight = 8;  // the same for lower cells
constexpr double kLeastPage = 4;        // narrower bars are drawn as one line
constexpr double kLeastPageHeight = 5;
constexpr double kLeastLine = 2;          // lower rows are drawn in bands
constexpr double kLeastSingle = 10;       // rows at least this high are drawn one by one, however many
constexpr double kPad = 3, kPageGap = 6;  // of boxes with cells
constexpr double kRowGapShare = 0.27, kMostRowGap = 20;
constexpr double kGapAbove = 0.75;  // share of the row's gap above its box, for the row's annotations

// The horizontal scale at a zoom.
struct Scale {
  double cell, cell_gap, pad, pitch, gap;
};

// `cells`: whether tokens may be cells, where these are wide enough; if false, pages are bars of any width. Monotonic
// apart from the rounding to whole pixels, so that bisection finds the widest scale that fits.
Scale scale_for(double zoom, std::int64_t page_size, double font_scale, bool cells) {
  const double wanted = zoom * kNaturalCell * font_scale;
  const auto tokens = static_cast<double>(page_size);
  const double least = std::ceil(kLeastCell * font_scale);
  const double around = 2 * kPad + kPageGap;
  if (cells && wanted >= least) {
    const double cell = std::floor(wanted);
    return {cell, cell >= 8 ? 2.0 : 1.0, kPad, tokens * cell + around, kPageGap};
  }
  const double pitch = wanted * (tokens + around / least);
  const double whole = pitch >= kLeastPage ? std::floor(pitch) : pitch;
  const double gap = pitch >= kLeastPage ? std::clamp(std::round(0.1 * whole), 1.0, 4.0) : 0.0;
  return {(whole - gap) / tokens, 0, 0, whole, gap};
}

double content_width(const Scale& scale, std::int64_t pages) {
  return static_cast<double>(pages) * scale.pitch - scale.gap;
}

// The largest zoom, at most `most`, with which all pages fit.
double fitting_zoom(double width, const SequencesExtent& extent, double font_scale, bool cells, double most) {
  const auto fits = [&](double zoom) {
    const Scale scale = scale_for(zoom, extent.page_size, font_scale, cells);
    return content_width(scale, extent.pages) <= width;
  };
  if (fits(most)) return most;
  double small = 0, large = most;
  for (int i = 0; i < 60; ++i) {
    const double middle = (small + large) / 2;
    (fits(middle) ? small : large) = middle;
  }
  return small;
}

double whole_pitch(double pitch) {
  return pitch >= kLeastPage ? std::floor(pitch) : pitch;
}

SequencesDetail detail_of(const SequencesLayout& layout, double font_scale) {
  const bool many = layout.visible_rows().size() > kMostRows && layout.row_pitch < kLeastSingle * font_scale;
  if (many || layout.box_height < kLeastLine) return SequencesDetail::density;
  if (layout.cell_gap > 0 && layout.box_height - 2 * layout.pad_above >= kLeastCellHeight * font_scale) {
    return layout.writing == Writing::none ? SequencesDetail::cells : SequencesDetail::numbers;
  }
  if (layout.page_pitch >= kLeastPage && layout.box_height >= kLeastPageHeight) return SequencesDetail::pages;
  return SequencesDetail::lines;
}

// What the text in rows and cells needs at least. [px]
struct Least {
  double cell = 0, row = 0;
};

// Number of rows in a strip of that height.
void place_rows(SequencesLayout& layout, double height, double font_scale, const Least& least) {
  const double natural = kNaturalRow * std::max(1.0, layout.fit) * font_scale;
  const double fitting = whole_pitch(std::min(natural, height / static_cast<double>(calm_rows(layout.extent.rows))));
  layout.row_pitch = std::max(fitting, whole_pitch(kNaturalRow * font_scale * layout.zoom));
  if (layout.zoom <= layout.fit) layout.row_pitch = fitting;
  layout.row_pitch = std::max(layout.row_pitch, std::ceil(least.row));
  double gap = std::min(kRowGapShare * layout.row_pitch, kMostRowGap * font_scale);
  if (layout.row_pitch >= kLeastPage) gap = std::max(std::round(gap), 1.0);
  layout.box_top = layout.row_pitch >= kLeastPage ? std::floor(kGapAbove * gap) : 0;
  layout.box_height = layout.row_pitch - gap;
  layout.pad_above = std::clamp(std::floor(layout.box_height / 6), 0.0, layout.pad);
}

}  // namespace

Writing writing_of(QSizeF cell, std::int64_t digits, double font_scale) {
  const double along = static_cast<double>(digits) * kDigitWidth * font_scale, thick = kDigitHeight * font_scale;
  if (cell.width() >= along + 3 && cell.height() >= thick + 3) return Writing::across;
  if (cell.width() >= thick + 1 && cell.height() >= along + 3) return Writing::upwards;
  return Writing::none;
}

double number_px(QSizeF cell, std::int64_t digits, Writing writing, double font_scale) {
  if (writing == Writing::none) return 0;
  const bool across = writing == Writing::across;
  // Numbers of adjacent cells must not look like one number.
  const double along = across ? cell.width() - 6 : cell.height() - 3;
  const double thick = across ? cell.height() - 3 : cell.width() - 1;
  const double room = std::min(along / (static_cast<double>(digits) * kDigitWidth), thick / kDigitHeight);
  return std::floor(std::clamp(room * kNumber, kNumber * font_scale, kLargestNumber * font_scale) + 1e-9);
}

std::int64_t calm_rows(std::int64_t rows) {
  if (rows <= 16) return std::max<std::int64_t>(rows, 1);
  std::int64_t power = 16;
  while (2 * power < rows) power *= 2;
  // power < rows <= 2 * power: the rounding steps are power / 8.
  const std::int64_t eighth = power / 8;
  return round_up(rows, eighth);
}

std::int64_t calm_pages(std::int64_t needed, std::int64_t longest) {
  needed = std::max<std::int64_t>(needed, 1);
  std::int64_t calm = std::max(needed, longest);
  for (std::int64_t whole = calm; whole > 0; whole = (whole + 1) / 2) {
    if (whole < needed) break;
    calm = whole;
    const std::int64_t three_quarters = (3 * whole + 3) / 4;
    if (three_quarters >= needed) calm = three_quarters;
    if (whole == 1) break;
  }
  return calm;
}

namespace {

SequencesLayout laid_out(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport, double font_scale,
                         bool cells, const Least& least) {
  SequencesLayout layout;
  layout.extent = {std::max<std::int64_t>(extent.rows, 1), std::max<std::int64_t>(extent.pages, 1),
                   std::max<std::int64_t>(extent.page_size, 1), extent.note};
  const double left = std::ceil(body.left()), top = std::ceil(body.top());
  const double gutter = std::min(std::round(kGutter * font_scale), std::floor(body.width() / 3));
  layout.gutter = QRectF(left, top, gutter, std::max(body.bottom() - top, 0.0));
  layout.strip = QRectF(left + gutter, top, std::max(body.right() - left - gutter, 1.0), layout.gutter.height());

  const double row = layout.strip.height() / static_cast<double>(calm_rows(layout.extent.rows));
  const double square = row * (1 - kRowGapShare) / (kNaturalCell * font_scale);
  layout.fit = fitting_zoom(layout.strip.width(), layout.extent, font_scale, cells, std::clamp(square, 1.0, kMostFit));
  layout.fit = std::max(layout.fit, (std::ceil(least.cell) + 1e-9) / (kNaturalCell * font_scale));
  layout.zoom = viewport.zoom > layout.fit ? std::min(viewport.zoom, std::max(kMostZoom, layout.fit)) : layout.fit;
  const Scale scale = scale_for(layout.zoom, layout.extent.page_size, font_scale, cells);
  layout.cell = scale.cell;
  layout.cell_gap = scale.cell_gap;
  layout.pad = scale.pad;
  layout.page_pitch = scale.pitch;
  layout.page_gap = scale.gap;

  const std::int64_t number_digits = digits(layout.extent.pages * layout.extent.page_size - 1);
  const auto written = [&] {
    return layout.cell_gap > 0 ? writing_of({layout.cell - layout.cell_gap, layout.box_height - 2 * layout.pad_above},
                                            number_digits, font_scale)
                               : Writing::none;
  };
  // The note and the axis under the rows reduce the height of the rows.
  const auto take = [&](double height) {
    const double taken = std::min(height * font_scale, layout.strip.height() / 2);
    layout.strip.setHeight(layout.strip.height() - taken);
    layout.gutter.setHeight(layout.strip.height());
    return taken;
  };
  if (extent.note) layout.note = QRectF(left, 0, body.right() - left, take(kNoteHeight));
  place_rows(layout, layout.strip.height(), font_scale, least);
  layout.writing = written();
  // Without numbers in the cells there is an axis. If rounding then makes a box high enough for numbers, they are still
  // omitted.
  if (layout.writing == Writing::none) {
    layout.axis = QRectF(layout.strip.left(), 0, layout.strip.width(), take(kAxisHeight));
    place_rows(layout, layout.strip.height(), font_scale, least);
  }
  layout.number_px = number_px({layout.cell - layout.cell_gap, layout.box_height - 2 * layout.pad_above}, number_digits,
                               layout.writing, font_scale);
  layout.content =
      QSizeF(content_width(scale, layout.extent.pages), static_cast<double>(layout.extent.rows) * layout.row_pitch);
  const bool fits = layout.zoom <= layout.fit && least.row == 0;
  layout.offset = fits ? QPointF(0, 0) : clamp_offset(viewport.offset, layout.content, layout.strip.size());
  if (layout.row_pitch >= kLeastPage) layout.offset.setY(std::round(layout.offset.y()));
  if (layout.page_pitch >= kLeastPage) layout.offset.setX(std::round(layout.offset.x()));
  layout.detail = detail_of(layout, font_scale);
  if (layout.detail == SequencesDetail::density) {
    layout.band = static_cast<std::int64_t>(std::ceil(std::max(1.0, kBand * font_scale / layout.row_pitch)));
  }
  const double under =
      std::min(layout.strip.bottom(), layout.strip.top() - layout.offset.y() + layout.content.height());
  layout.note.moveTop(under);
  layout.axis.moveTop(under + layout.note.height());
  return layout;
}

SequencesLayout with_least(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport,
                           double font_scale, const Least& least) {
  const SequencesLayout layout = laid_out(body, extent, viewport, font_scale, true, least);
  const bool shows_cells = layout.detail == SequencesDetail::numbers || layout.detail == SequencesDetail::cells;
  // Rows too low for cells: bars do not need whole pixels per token and use the full width.
  return layout.cell_gap > 0 && !shows_cells ? laid_out(body, extent, viewport, font_scale, false, least) : layout;
}

// The room for the texts of a layout at font scale 1 when they are larger.
Least least_for(const SequencesLayout& usual, double font_scale) {
  const auto row = [](double cells_height) {
    return (cells_height + 2 * kPad + 2) / (1 - kRowGapShare);  // 2: rounding of the gap and of the row
  };
  Least least;
  if (usual.row_pitch >= kNextLabel) least.row = kNextLabel * font_scale;
  if (usual.box_top >= kRoomForNote) {
    // 1 for each of two roundings: of the gap and of the part above the box.
    least.row = ((kRoomForNote * font_scale + 1) / kGapAbove + 1) / kRowGapShare;
  }
  if (usual.detail == SequencesDetail::cells) {
    least.cell = kLeastCell * font_scale;
    least.row = std::max(least.row, row(kLeastCellHeight * font_scale));
  } else if (usual.detail == SequencesDetail::numbers) {
    const auto number_digits = static_cast<double>(digits(usual.extent.pages * usual.extent.page_size - 1));
    const double along = number_digits * kDigitWidth * font_scale + 3, thick = kDigitHeight * font_scale;
    const bool across = usual.writing == Writing::across;
    least.cell = (across ? along : thick + 1) + 2;  // 2: the gap between cells
    least.row = std::max(least.row, row(across ? thick + 3 : along));
  }
  return least;
}

}  // namespace

SequencesLayout sequences_layout(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport,
                                 double font_scale) {
  Least least;
  if (font_scale > 1) least = least_for(with_least(body, extent, {}, 1, {}), font_scale);
  return with_least(body, extent, viewport, font_scale, least);
}

bool SequencesLayout::scrolls() const {
  return content.width() > strip.width() || content.height() > strip.height();
}

Lane SequencesLayout::lane(double x) const {
  Lane lane{x, strip.top(), std::min(strip.bottom(), strip.top() - offset.y() + content.height())};
  if (cell_gap <= 0) return lane;
  const std::optional<SequencesSpot> spot = at({std::clamp(x - cell / 2, strip.left(), strip.right()), strip.top()});
  if (!spot || spot->label) return lane;
  const std::int64_t token = spot->page * extent.page_size + spot->slot;
  lane.at = x_of(token) + cell - cell_gap / 2;
  return lane;
}

Lane SequencesLayout::lane_below(const QRectF& token) const {
  const auto row = static_cast<std::int64_t>(std::floor((token.center().y() - strip.top() + offset.y()) / row_pitch));
  const double box = row_rect(row).top() + box_top + box_height, end = row_rect(row).bottom();
  return {(box + end) / 2, strip.left(), strip.right()};
}

double SequencesLayout::x_of(std::int64_t token) const {
  const std::int64_t page = token / extent.page_size, slot = token % extent.page_size;
  return strip.left() - offset.x() + static_cast<double>(page) * page_pitch + pad + static_cast<double>(slot) * cell;
}

QRectF SequencesLayout::row_rect(std::int64_t row) const {
  return {strip.left(), strip.top() - offset.y() + static_cast<double>(row) * row_pitch, strip.width(), row_pitch};
}

QRectF SequencesLayout::label_rect(std::int64_t row) const {
  return {gutter.left(), row_rect(row).top() + box_top, gutter.width(), box_height};
}

QRectF SequencesLayout::page_box(std::int64_t row, std::int64_t page) const {
  return {strip.left() - offset.x() + static_cast<double>(page) * page_pitch, row_rect(row).top() + box_top,
          page_pitch - page_gap, box_height};
}

QRectF SequencesLayout::run_rect(std::int64_t row, std::int64_t first, std::int64_t last) const {
  const double left = x_of(first), right = x_of(last - 1) + cell - cell_gap;
  return {left, row_rect(row).top() + box_top + pad_above, right - left, box_height - 2 * pad_above};
}

QRectF SequencesLayout::token_cell(std::int64_t row, std::int64_t token) const {
  return run_rect(row, token, token + 1);
}

IndexRange SequencesLayout::visible_rows() const {
  const auto first = static_cast<std::int64_t>(std::floor(offset.y() / row_pitch));
  const auto last = static_cast<std::int64_t>(std::ceil((offset.y() + strip.height()) / row_pitch));
  return {std::clamp<std::int64_t>(first, 0, extent.rows), std::clamp<std::int64_t>(last, 0, extent.rows)};
}

IndexRange SequencesLayout::visible_pages() const {
  const auto first = static_cast<std::int64_t>(std::floor(offset.x() / page_pitch));
  const auto last = static_cast<std::int64_t>(std::ceil((offset.x() + strip.width()) / page_pitch));
  return {std::clamp<std::int64_t>(first, 0, extent.pages), std::clamp<std::int64_t>(last, 0, extent.pages)};
}

IndexRange SequencesLayout::visible_bands() const {
  const IndexRange rows = visible_rows();
  return {rows.first / band, ceil_div(rows.last, band)};
}

IndexRange SequencesLayout::rows_of_band(std::int64_t band_index) const {
  return {std::clamp<std::int64_t>(band_index * band, 0, extent.rows),
          std::clamp<std::int64_t>((band_index + 1) * band, 0, extent.rows)};
}

QRectF SequencesLayout::band_rect(std::int64_t band_index) const {
  const IndexRange rows = rows_of_band(band_index);
  const double top = row_rect(rows.first).top();
  return {strip.left(), top, strip.width(), row_rect(rows.last).top() - top};
}

std::optional<SequencesSpot> SequencesLayout::at(QPointF point) const {
  if (!gutter.united(strip).contains(point)) return std::nullopt;
  const bool label = point.x() < strip.left();
  SequencesSpot spot{static_cast<std::int64_t>(std::floor((point.y() - strip.top() + offset.y()) / row_pitch)), label,
                     0, 0};
  if (spot.row < 0 || spot.row >= extent.rows) return std::nullopt;
  if (label) return spot;
  const double x = std::max(point.x() - strip.left() + offset.x() + page_gap / 2, 0.0);
  spot.page = static_cast<std::int64_t>(std::floor(x / page_pitch));
  const double inside = x - static_cast<double>(spot.page) * page_pitch - page_gap / 2 - pad;
  spot.slot = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(inside / cell)), 0, extent.page_size - 1);
  return spot;
}

Viewport zoomed_sequences(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport,
                          double font_scale, double factor, QPointF at) {
  const SequencesLayout before = sequences_layout(body, extent, viewport, font_scale);
  const double zoom = std::min(before.zoom * factor, std::max(kMostZoom, before.fit));
  if (zoom <= before.fit) return {};
  const SequencesLayout after = sequences_layout(body, extent, {zoom, {0, 0}}, font_scale);
  // Real-valued position in the content: pages and fraction of a page, rows and fraction of a row.
  const QPointF inside = at - before.strip.topLeft();
  const QPointF place((inside.x() + before.offset.x()) / before.page_pitch,
                      (inside.y() + before.offset.y()) / before.row_pitch);
  const QPointF wanted(place.x() * after.page_pitch - inside.x(), place.y() * after.row_pitch - inside.y());
  return {zoom, clamp_offset(wanted, after.content, after.strip.size())};
}

std::vector<AxisTick> axis_ticks(const SequencesLayout& layout, double least_distance) {
  const double per_token = layout.page_pitch / static_cast<double>(layout.extent.page_size);
  const int most = std::max(static_cast<int>(layout.strip.width() / least_distance), 1);
  const auto step = static_cast<std::int64_t>(nice_step(layout.strip.width() / per_token, most, 1));
  std::vector<AxisTick> ticks;
  const IndexRange pages = layout.visible_pages();
  const std::int64_t last = pages.last * layout.extent.page_size;
  for (std::int64_t token = round_up(pages.first * layout.extent.page_size, step); token < last; token += step) {
    const double x = layout.x_of(token);
    if (x >= layout.strip.left() - 0.5 && x <= layout.strip.right()) ticks.push_back({token, x});
  }
  return ticks;
}

}  // namespace kvscope::viz
