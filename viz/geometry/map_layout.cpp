#include "viz/geometry/map_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kMapLine = 16, kMapName = 58, kMapBar = 8, kMapApart = 8;  // [px] at font scale 1
constexpr double kNarrowestBar = 24, kNarrowestPart = 2;                    // [px]

}  // namespace

MapLayout map_layout(const std::vector<double>& notes, double numbers, const QRectF& body, double font_scale) {
  MapLayout layout;
  const double line = std::round(kMapLine * font_scale), name = kMapName * font_scale, apart = kMapApart * font_scale;
  const double bar = std::max(body.width() - name - numbers - apart, 0.0);
  const bool has_bar = bar >= kNarrowestBar;
  const double left_of_numbers = has_bar ? body.left() + name + bar + apart : body.left() + name;
  layout.heading = QRectF(left_of_numbers, body.top(), body.right() - left_of_numbers, line);
  double top = layout.heading.bottom();
  for (std::size_t n = 0; n < notes.size(); ++n) {
    MapLine of;
    if (n + 1 == notes.size()) {
      of.name = QRectF(body.left(), top, body.width(), line);
    } else {
      of.name = QRectF(body.left(), top, name, line);
      const double high = std::round(kMapBar * font_scale);
      if (has_bar) of.bar = QRectF(body.left() + name, top + std::round((line - high) / 2), bar, high);
      of.numbers = QRectF(left_of_numbers, top, layout.heading.width(), line);
    }
    top += line;
    if (notes[n] > 0) of.note = QRectF(body.left() + apart, top, body.width() - apart, notes[n]);
    top += notes[n];
    layout.lines.push_back(of);
  }
  layout.bottom = top;
  return layout;
}

QRectF MapLayout::part(std::size_t axis, double from, double count, double extent) const {
  const QRectF& bar = lines[axis].bar;
  if (bar.isEmpty() || extent <= 0) return {};
  const double wide = std::clamp(count / extent * bar.width(), kNarrowestPart, bar.width());
  const double left = std::clamp(from / extent, 0.0, 1.0) * bar.width();
  return {bar.left() + std::min(left, bar.width() - wide), bar.top(), wide, bar.height()};
}

double map_height(std::size_t axes, double font_scale) {
  return static_cast<double>(axes + 2) * std::round(kMapLine * font_scale);
}

}  // namespace kvscope::viz
