#include "viz/geometry/tma_layout.h"

#include <algorithm>
#include <cmath>

#include "viz/geometry/map_layout.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kMapHeight = 36, kBarrierHeight = 116, kBarHeight = 12, kBarrierTitle = 24;
constexpr double kBoxHeading = 24, kState = 22, kBetween = 8, kInset = 8;
constexpr double kHighestBoxRow = 12, kBoxGapFrom = 3, kTallBox = 74, kTallBody = 220;
constexpr double kBodyOfAxes = 300, kBodyOfOffers = 300, kOffers = 24, kBelowMap = 6;

}  // namespace

TmaLayout tma_layout(const TmaSize& size, const QRectF& body, double font_scale) {
  TmaLayout layout;
  layout.size = size;
  QRectF area = body;
  if (body.height() >= kTallBody * font_scale) {
    const double barrier = std::round(kBarrierHeight * font_scale);
    layout.axes = size.axes > 0 && body.height() >= kBodyOfAxes * font_scale;
    const double map = layout.axes ? map_height(static_cast<std::size_t>(size.axes), font_scale) + kBelowMap
                                   : std::round(kMapHeight * font_scale);
    layout.map = QRectF(body.left(), body.top(), body.width(), map);
    double bottom = body.bottom();
    if (size.offers && body.height() >= kBodyOfOffers * font_scale) {
      const double offers = std::round(kOffers * font_scale);
      layout.offers = QRectF(body.left(), bottom - offers, body.width(), offers);
      bottom = layout.offers.top();
    }
    layout.barrier = QRectF(body.left(), bottom - barrier, body.width(), barrier);
    const double title = std::round(kBarrierTitle * font_scale);
    layout.bar = QRectF(body.left(), layout.barrier.top() + title, body.width(), std::round(kBarHeight * font_scale));
    layout.barrier_text = QRectF(QPointF(body.left(), layout.bar.bottom() + 4), layout.barrier.bottomRight());
    area =
        QRectF(body.left(), layout.map.bottom(), body.width(), layout.barrier.top() - layout.map.bottom() - kBetween);
  }
  if (size.boxes < 1 || size.rows < 1) return layout;
  const std::int64_t across = std::clamp<std::int64_t>(size.across, 1, size.boxes);
  const std::int64_t down = (size.boxes + across - 1) / across;
  // Gaps shrink with the boxes: there are at most 40 in a body of 60 px.
  const double below = std::min(kBetween, area.height() / static_cast<double>(4 * down));
  const double height = (area.height() - below * static_cast<double>(down - 1)) / static_cast<double>(down);
  const double between = std::min(kBetween, area.width() / static_cast<double>(4 * across));
  const double width = (area.width() - between * static_cast<double>(across - 1)) / static_cast<double>(across);
  const bool tall = height >= kTallBox * font_scale;
  const double heading = tall ? std::round(kBoxHeading * font_scale) : 0,
               state = tall ? std::round(kState * font_scale) : 0;
  const double inset = std::min(tall ? kInset : std::min(2.0, height / 8), width / 8);
  const double room = height - heading - state - inset - (tall ? 0 : inset);
  const double fit = room / static_cast<double>(size.rows);
  layout.pitch = fit >= kBoxGapFrom ? std::floor(std::min(fit, kHighestBoxRow * font_scale)) : fit;
  layout.gap = layout.pitch >= kBoxGapFrom ? 1 : 0;
  const double rows = layout.pitch * static_cast<double>(size.rows);
  const double frame = heading + rows + inset + (tall ? 0 : inset);
  for (std::int64_t n = 0; n < size.boxes; ++n) {
    const double left = area.left() + static_cast<double>(n % across) * (width + between);
    const double top = area.top() + static_cast<double>(n / across) * (frame + state + below);
    TmaBox box;
    box.frame = QRectF(left, top, width, frame);
    if (tall) {
      box.heading = QRectF(left + inset, top, width - 2 * inset, heading);
      box.state = QRectF(left + inset, top + frame, width - 2 * inset, state);
    }
    box.rows = QRectF(left + inset, top + (tall ? heading : inset), width - 2 * inset, rows);
    layout.boxes.push_back(box);
  }
  return layout;
}

QRectF TmaLayout::row_rect(std::int64_t box, std::int64_t row) const {
  const QRectF& rows = boxes[static_cast<std::size_t>(box)].rows;
  return {rows.left(), rows.top() + pitch * static_cast<double>(row), rows.width(), pitch - gap};
}

std::optional<TmaLayout::Place> TmaLayout::at(QPointF point) const {
  for (std::size_t n = 0; n < boxes.size(); ++n) {
    const TmaBox& box = boxes[n];
    if (!box.frame.contains(point)) continue;
    Place place{static_cast<std::int64_t>(n), -1};
    if (box.rows.contains(point)) {
      place.row = std::min(static_cast<std::int64_t>((point.y() - box.rows.top()) / pitch), size.rows - 1);
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace kvscope::viz
