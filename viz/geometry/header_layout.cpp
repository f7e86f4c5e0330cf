#include "viz/geometry/header_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kBarShare = 0.3;                       // of the width
constexpr double kShortestBar = 96, kLongestBar = 470;  // [px] at font scale 1
constexpr double kBarThickness = 6, kHandle = 7, kGripHeight = 28;
constexpr double kBesideBar = 14;                    // between bar and counter; twice this between words and bar
constexpr double kBesideTitle = 16;                  // between name and facts
constexpr double kFewestFacts = 80;                  // minimum width; narrower facts are omitted
constexpr double kTwoLines = 70;                     // minimum height for the facts on a second line
constexpr double kSecondLine = 30, kUnderTitle = 8;  // height of that line; its distance into the first

}  // namespace

HeaderLayout header_layout(const QRectF& whole, double font_scale, double title_width, double counter_width) {
  const bool two_lines = whole.height() >= kTwoLines * font_scale;
  const QRectF body = two_lines ? whole.adjusted(0, 0, 0, -kSecondLine * font_scale) : whole;
  const double longest = std::max(kShortestBar, std::min(kBarShare * body.width(), kLongestBar * font_scale));
  const double counter = std::min(counter_width, body.width() / 4);
  const double length = std::min(longest, std::max(body.width() - counter - kBesideBar, 0.0) / 2);
  HeaderLayout layout;
  layout.handle = kHandle * font_scale;
  layout.counter = QRectF(body.right() - counter, body.top(), counter, body.height());
  const double thick = kBarThickness * font_scale;
  layout.bar =
      QRectF(layout.counter.left() - kBesideBar * font_scale - length, body.center().y() - thick / 2, length, thick);
  layout.grip = layout.bar.adjusted(-layout.handle, 0, layout.handle, 0);
  layout.grip.setTop(std::max(body.top(), body.center().y() - kGripHeight * font_scale / 2));
  layout.grip.setBottom(std::min(body.bottom(), body.center().y() + kGripHeight * font_scale / 2));
  const double words = std::max(layout.grip.left() - kBesideBar * font_scale - body.left(), 0.0);
  layout.title = QRectF(body.left(), body.top(), std::min(title_width, words), body.height());
  const double facts = words - layout.title.width() - kBesideTitle * font_scale;
  if (two_lines) {
    layout.facts =
        QRectF(body.left(), body.bottom() - kUnderTitle * font_scale, body.width(), kSecondLine * font_scale);
  } else if (facts >= kFewestFacts * font_scale) {
    layout.facts = QRectF(layout.title.right() + kBesideTitle * font_scale, body.top(), facts, body.height());
  }
  return layout;
}

std::int64_t step_at(const HeaderLayout& layout, double x, std::int64_t steps) {
  const double share = (x - layout.bar.left()) / std::max(layout.bar.width(), 1.0);
  return static_cast<std::int64_t>(std::floor(std::clamp(share, 0.0, 1.0) * static_cast<double>(steps - 1) + 0.5));
}

double step_x(const HeaderLayout& layout, std::int64_t step, std::int64_t steps) {
  if (steps < 2) return layout.bar.right();  // the only step is the last one
  return layout.bar.left() + layout.bar.width() * static_cast<double>(std::clamp<std::int64_t>(step, 0, steps - 1)) /
                                 static_cast<double>(steps - 1);
}

std::vector<double> bar_ticks(const HeaderLayout& layout, std::span<const std::int32_t> counts) {
  std::vector<double> ticks;
  const auto steps = static_cast<std::int64_t>(counts.size());
  for (std::int64_t k = 0; k < steps; ++k) {
    if (counts[static_cast<std::size_t>(k)] == 0) continue;
    const double x = std::floor(step_x(layout, k, steps));
    if (ticks.empty() || ticks.back() != x) ticks.push_back(x);
  }
  return ticks;
}

}  // namespace kvscope::viz
