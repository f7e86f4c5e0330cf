#include "viz/geometry/shared_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kSharedCaption = 15, kSharedBanks = 13, kSharedMore = 15, kSharedStripTitle = 16, kSharedStrip = 40,
                 kSharedVerdict = 35, kSharedBetween = 14, kSharedChip = 17, kSharedTallChip = 30, kSharedChipGap = 4,
                 kSharedChipName = 70, kSharedNarrowestChip = 70;
constexpr double kSharedLegible = 9, kSharedHighest = 18, kSharedAbove = 5, kSharedBandGap = 5, kSharedBar = 8;
constexpr double kSharedBesideLabel = 10;    // [px] a link ends left of a label
constexpr double kSharedLowestGrid = 60;     // [px] what is below the grid goes before the grid gets lower
constexpr double kSharedGapFrom = 4;         // [px] of a line
constexpr double kSharedNarrowestLabel = 6;  // [px] beside a chunk's label
constexpr double kSharedLowestStrip = 3;     // [px] of a wavefront
constexpr double kInChip = 7;                // [px] of its width that text leaves free

}  // namespace

double SharedLayout::top_of(std::int64_t line) const {
  const auto bands = size.band_lines > 0 ? static_cast<double>(line / size.band_lines) : 0;
  return pitch * static_cast<double>(line) + band_gap * bands;
}

double SharedLayout::content() const {
  return size.lines > 0 ? top_of(size.lines - 1) + pitch : 0;
}

QRectF SharedLayout::cell_rect(const Place& place) const {
  const QRectF& area = place.off ? grid_off : grid;
  const double width = area.width() / static_cast<double>(std::max<std::int64_t>(size.chunks, 1));
  const double left = std::round(area.left() + width * static_cast<double>(place.chunk));
  const double right = std::round(area.left() + width * static_cast<double>(place.chunk + 1));
  return {left, area.top() - offset + top_of(place.line), right - left - (width > kSharedGapFrom ? 1 : 0), pitch - gap};
}

QRectF SharedLayout::label_rect(std::int64_t line) const {
  return {labels.left(), grid.top() - offset + top_of(line), labels.width(), pitch - gap};
}

namespace {

// Nothing: in the gap after a band, or past the last line.
std::optional<std::int64_t> line_at(const SharedLayout& layout, double y) {
  const double in = y - layout.grid.top() + layout.offset;
  if (in < 0 || in >= layout.content()) return std::nullopt;
  const std::int64_t band_lines = layout.size.band_lines;
  if (band_lines == 0) return std::min(static_cast<std::int64_t>(in / layout.pitch), layout.size.lines - 1);
  const double band = layout.pitch * static_cast<double>(band_lines) + layout.band_gap;
  const auto bands = static_cast<std::int64_t>(in / band);
  const auto of_band = static_cast<std::int64_t>((in - band * static_cast<double>(bands)) / layout.pitch);
  if (of_band >= band_lines) return std::nullopt;
  return std::min(bands * band_lines + of_band, layout.size.lines - 1);
}

}  // namespace

std::optional<SharedLayout::Place> SharedLayout::at(QPointF point) const {
  const bool off = !grid_off.isEmpty() && grid_off.contains(point);
  if (!off && !grid.contains(point)) return std::nullopt;
  const auto line = line_at(*this, point.y());
  if (!line || size.chunks < 1) return std::nullopt;
  const QRectF& area = off ? grid_off : grid;
  const double width = area.width() / static_cast<double>(size.chunks);
  const auto chunk = static_cast<std::int64_t>((point.x() - area.left()) / width);
  return Place{*line, std::clamp<std::int64_t>(chunk, 0, size.chunks - 1), off};
}

std::optional<std::int64_t> SharedLayout::label_at(QPointF point) const {
  if (!labels.contains(point)) return std::nullopt;
  return line_at(*this, point.y());
}

std::int64_t SharedLayout::first_line() const {
  std::int64_t line = std::clamp<std::int64_t>(static_cast<std::int64_t>(offset / pitch), 0, size.lines);
  while (line > 0 && top_of(line) > offset) --line;
  while (line < size.lines && top_of(line) + pitch - gap <= offset) ++line;
  return line;
}

std::int64_t SharedLayout::end_line() const {
  const double bottom = offset + grid.height();
  std::int64_t line = std::clamp<std::int64_t>(static_cast<std::int64_t>(bottom / pitch) + 1, 0, size.lines);
  while (line > 0 && top_of(line - 1) >= bottom) --line;
  return line;
}

SharedLayout shared_layout(const SharedSize& size, const QRectF& body, const Viewport& viewport, double font_scale) {
  SharedLayout at;
  at.size = size;
  const auto px = [&](double n) { return std::round(n * font_scale); };
  double top = body.top(), bottom = body.bottom();
  const double label =
      std::min(size.label_width > 0 ? std::ceil(size.label_width) + px(kSharedBesideLabel) : 0, body.width() / 3);
  const auto room = [&](double height) { return bottom - top - height >= kSharedLowestGrid * font_scale; };
  const double width = body.width() - label - px(kSharedBar);
  const double between = px(kSharedBetween);
  const double half = std::floor((width - between) / 2);
  const double whole_cell = half / static_cast<double>(std::max<std::int64_t>(size.chunks, 1));
  const bool two = size.compare && whole_cell >= size.chunk_width + kSharedNarrowestLabel;
  const double grid_width = two ? half : width;
  const double left = body.left() + label, right = left + half + between;
  // From below: words first, because they say what the rest shows.
  if (size.lines > 0 && room(px(kSharedVerdict))) {
    at.verdict = QRectF(body.left(), bottom - px(kSharedVerdict), body.width(), px(kSharedVerdict));
    bottom = at.verdict.top() - 2;
  }
  if (size.reads && room(px(kSharedStripTitle + kSharedStrip + kSharedCaption + kSharedBanks + kSharedAbove))) {
    bottom -= px(kSharedStrip);
    const double strip_width = size.compare ? half : width;
    at.strip = QRectF(left, bottom, strip_width, px(kSharedStrip));
    if (size.compare) at.strip_off = QRectF(right, bottom, half, px(kSharedStrip));
    bottom -= px(kSharedStripTitle);
    at.strip_title = QRectF(left, bottom, strip_width, px(kSharedStripTitle));
    if (size.compare) at.strip_title_off = QRectF(right, bottom, half, px(kSharedStripTitle));
    bottom -= px(kSharedAbove);
  }
  if (size.layouts > 1 && room(px(kSharedChip + kSharedChipGap + kSharedCaption + kSharedBanks))) {
    const bool named =
        body.width() - px(kSharedChipName) >= px(kSharedNarrowestChip) * static_cast<double>(size.layouts);
    if (named) at.chips_name = QRectF(body.left(), top, px(kSharedChipName), px(kSharedChip));
    const double from_name = body.left() + at.chips_name.width();
    const double wide = (body.right() - px(kSharedBar) - from_name) / static_cast<double>(size.layouts);
    const bool tall =
        size.chip_width > wide - kInChip && room(px(kSharedTallChip + kSharedChipGap + kSharedCaption + kSharedBanks));
    const double high = px(tall ? kSharedTallChip : kSharedChip);
    at.chips_name.setHeight(named ? high : 0);
    for (std::int64_t n = 0; n < size.layouts; ++n) {
      const double from = std::round(wide * static_cast<double>(n)), to = std::round(wide * static_cast<double>(n + 1));
      at.chips.emplace_back(from_name + from, top, to - from - 3, high);
    }
    top += high + px(kSharedChipGap);
  }
  if (two && room(px(kSharedCaption))) {
    at.caption = QRectF(left, top, half, px(kSharedCaption));
    at.caption_off = QRectF(right, top, half, px(kSharedCaption));
    top += px(kSharedCaption);
  }
  if (room(px(kSharedBanks))) {
    at.banks = QRectF(left, top, grid_width, px(kSharedBanks));
    if (two) at.banks_off = QRectF(right, top, half, px(kSharedBanks));
    top += px(kSharedBanks);
  }
  if (size.lines < 1) return at;
  const std::int64_t bands = size.band_lines > 0 ? (size.lines - 1) / size.band_lines : 0;
  at.band_gap = size.band_lines > 0 ? px(kSharedBandGap) : 0;
  const auto fit_in = [&](double height) {
    return std::max(height - at.band_gap * static_cast<double>(bands), 1.0) / static_cast<double>(size.lines);
  };
  const double legible = px(kSharedLegible), highest = px(kSharedHighest);
  const double fit = fit_in(bottom - top);
  const bool all = fit >= legible;
  if (!all && room(px(kSharedMore))) {
    bottom -= px(kSharedMore);
    at.more = QRectF(left, bottom, body.right() - left, px(kSharedMore));
  }
  const double least = std::min(fit_in(bottom - top), legible);
  at.least_pitch = std::max(all ? std::floor(std::min(fit, highest)) : least, 0.05);
  at.most_pitch = std::max(highest, at.least_pitch);
  at.pitch = all ? at.least_pitch : legible;
  if (viewport.zoom > 0) at.pitch = std::clamp(viewport.zoom, at.least_pitch, at.most_pitch);
  at.gap = at.pitch >= kSharedGapFrom ? 1 : 0;
  const double most = std::max(bottom - top, 1.0);
  at.room = most;
  at.offset = std::round(std::clamp(viewport.offset.y(), 0.0, std::max(at.content() - most, 0.0)));
  double height = std::min(most, std::max(at.content(), 1.0));
  if (at.content() > most + 0.5) {  // down to the end of the last line that is whole
    auto line = std::min(static_cast<std::int64_t>((at.offset + most) / at.pitch), size.lines - 1);
    while (line > 0 && at.top_of(line) + at.pitch > at.offset + most + 0.01) --line;
    const double whole = at.top_of(line) + at.pitch - at.offset;
    if (whole > at.pitch) height = std::min(whole, most);
  }
  at.grid = QRectF(left, top, grid_width, height);
  if (two) at.grid_off = QRectF(right, top, half, height);
  at.labels = QRectF(body.left(), top, label, height);
  const bool scrolls = at.content() > most + 0.5;
  if (scrolls) {
    const double share = height / at.content(), long_bar = std::max(height * share, std::min(12.0, height));
    const double along = at.offset / (at.content() - most);
    at.bar = QRectF(body.right() - 4, top + (height - long_bar) * along, 4, long_bar);
  }
  // What was left over stays below the strips: they follow the grid.
  const double up = scrolls ? 0 : std::min(bottom - at.grid.bottom(), bottom - top);
  for (QRectF* rect : {&at.strip, &at.strip_off, &at.strip_title, &at.strip_title_off, &at.more, &at.verdict}) {
    if (!rect->isEmpty() && up > 0) rect->translate(0, -std::floor(up));
  }
  return at;
}

Viewport shared_scrolled(const SharedLayout& layout, const Viewport& viewport, QPointF by) {
  Viewport to = viewport;
  to.offset = {0, std::clamp(layout.offset + by.y(), 0.0, std::max(layout.content() - layout.room, 0.0))};
  return to;
}

Viewport shared_zoomed(const SharedLayout& layout, double factor, QPointF at) {
  SharedLayout to = layout;
  to.pitch = std::clamp(layout.pitch * factor, layout.least_pitch, layout.most_pitch);
  const double y = std::clamp(at.y() - layout.grid.top(), 0.0, layout.grid.height());
  // Gaps between bands keep their size; the place in the line is kept.
  const std::int64_t most = std::max<std::int64_t>(layout.size.lines - 1, 0);
  std::int64_t under = std::min(layout.first_line() + static_cast<std::int64_t>(y / layout.pitch) + 1, most);
  while (under > 0 && layout.top_of(under) - layout.offset > y) --under;
  const double in_line = std::min((y + layout.offset - layout.top_of(under)) / layout.pitch, 1.0);
  return {to.pitch, {0, std::max(to.top_of(under) + in_line * to.pitch - y, 0.0)}};
}

Viewport shared_revealing(const SharedLayout& layout, const Viewport& viewport, std::int64_t line) {
  Viewport to = viewport;
  const QRectF target(0, layout.top_of(line), 1, layout.pitch);
  const QPointF offset = offset_to_show({0, layout.offset}, target, QSizeF(1, layout.room), layout.pitch);
  to.offset = {0, std::clamp(offset.y(), 0.0, std::max(layout.content() - layout.room, 0.0))};
  return to;
}

QRectF strip_rect(const QRectF& strip, std::int64_t banks, std::int64_t wavefronts, std::int64_t bank,
                  std::int64_t wavefront) {
  const double width = strip.width() / static_cast<double>(std::max<std::int64_t>(banks, 1));
  const double fit = strip.height() / static_cast<double>(std::max<std::int64_t>(wavefronts, 1));
  const double height = fit >= kSharedLowestStrip ? std::floor(std::min(fit, strip.height() / 4)) : fit;
  const double left = std::round(strip.left() + width * static_cast<double>(bank));
  const double right = std::round(strip.left() + width * static_cast<double>(bank + 1));
  return {left, strip.top() + height * static_cast<double>(wavefront), right - left,
          height - (height >= kSharedLowestStrip ? 1 : 0)};
}

}  // namespace kvscope::viz
