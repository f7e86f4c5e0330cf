#include "viz/geometry/tile_sequence_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kNarrowest = 4, kWidest = 22;  // [px] of a token's cell, the latter at font scale 1
constexpr double kLeastTokenWidth = 1e-3;  // [px] tokens of a body that has no width have one too, so that none is lost
constexpr double kBetweenPages = 6, kEnd = 76, kLabel = 22, kLowestLabels = 54;  // [px]; the last three at scale 1
constexpr double kLane = 7, kLaneUnderBody = 4;  // [px] from the cells at scale 1; at most so far below the body

}  // namespace

SequenceStrip tile_sequence_layout(const SequenceStripSize& size, const QRectF& body, double font_scale) {
  SequenceStrip strip;
  strip.size = size;
  const std::int64_t page = std::max<std::int64_t>(size.page_size, 1);
  strip.size.page_size = page;
  const std::int64_t end = std::max({size.tokens, size.first + size.rows, std::int64_t{1}});
  strip.pages = (end + page - 1) / page;
  strip.between = kBetweenPages;
  const double end_width = std::min(kEnd * font_scale, body.width() / 6);
  const auto width_of = [&](std::int64_t pages, double cell) {
    return static_cast<double>(pages) * (static_cast<double>(page) * cell + strip.between) - strip.between;
  };
  // All pages, else the tile's and as many around them as are not narrower than kNarrowest.
  std::int64_t first = 0, last = strip.pages;
  double room = body.width();
  if (width_of(strip.pages, kNarrowest) > room) {
    first = size.first / page;
    last = std::clamp((size.first + std::max<std::int64_t>(size.rows, 1) + page - 1) / page, first + 1, strip.pages);
    room = body.width() - 2 * end_width;
    while (first > 0 || last < strip.pages) {
      if (width_of(last - first + 1, kNarrowest) > room) break;
      const bool left = first > 0 && (last >= strip.pages || (size.first / page - first) <= (last - size.first / page));
      left ? --first : ++last;
    }
  }
  strip.first_page = first;
  strip.end_page = last;
  const bool cut_before = first > 0, cut_after = last < strip.pages;
  const double left = body.left() + (cut_before ? end_width : 0);
  const double width = body.right() - left - (cut_after ? end_width : 0);
  const auto shown = static_cast<double>(last - first);
  strip.between = std::min(strip.between, width / (4 * shown));
  strip.cell = std::max(
      kLeastTokenWidth,
      std::min((width - strip.between * (shown - 1)) / (shown * static_cast<double>(page)), kWidest * font_scale));
  if (strip.cell >= kNarrowest) strip.cell = std::floor(strip.cell * 4) / 4;
  strip.label_height = body.height() >= kLowestLabels * font_scale ? std::round(kLabel * font_scale) : 0;
  const double height = std::max(body.height() - strip.label_height - 8, 4.0);
  strip.area = QRectF(left, body.top() + 4, width_of(last - first, strip.cell), height);
  strip.lane = std::min(strip.area.bottom() + std::round(kLane * font_scale), body.bottom() + kLaneUnderBody);
  if (cut_before) strip.before = QRectF(body.left(), strip.area.top(), end_width - kBetweenPages, height);
  if (cut_after) {
    strip.after = QRectF(strip.area.right() + kBetweenPages, strip.area.top(), end_width - kBetweenPages, height);
  }
  return strip;
}

QRectF SequenceStrip::page_rect(std::int64_t page) const {
  const double wide = static_cast<double>(size.page_size) * cell;
  return {area.left() + static_cast<double>(page - first_page) * (wide + between), area.top(), wide, area.height()};
}

std::optional<QRectF> SequenceStrip::token_rect(std::int64_t token) const {
  const std::int64_t page = token / size.page_size;
  if (token < 0 || page < first_page || page >= end_page) return std::nullopt;
  const QRectF of = page_rect(page);
  const double gap = cell >= 4 ? 1 : 0;
  return QRectF(of.left() + static_cast<double>(token % size.page_size) * cell, of.top(), cell - gap, of.height());
}

std::optional<std::int64_t> SequenceStrip::token_at(QPointF point) const {
  if (!area.contains(point)) return std::nullopt;
  const double wide = static_cast<double>(size.page_size) * cell;
  const double x = point.x() - area.left();
  const auto page = static_cast<std::int64_t>(x / (wide + between));
  const double inside = x - static_cast<double>(page) * (wide + between);
  if (inside >= wide || first_page + page >= end_page) return std::nullopt;
  const std::int64_t token = std::min(static_cast<std::int64_t>(inside / cell), size.page_size - 1);
  return (first_page + page) * size.page_size + token;
}

QRectF SequenceStrip::tile_rect() const {
  QRectF all;
  for (std::int64_t token : {size.first, size.first + std::max<std::int64_t>(size.rows, 1) - 1}) {
    token = std::clamp(token, first_page * size.page_size, end_page * size.page_size - 1);
    if (const auto rect = token_rect(token)) all = all.isNull() ? *rect : all.united(*rect);
  }
  return all;
}

}  // namespace kvscope::viz
