#include "viz/window/palette.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

// A color of more than 1 / kFlatShare of a picture's pixels is kept exactly. Up to three quarters of a palette are for
// such colors.
constexpr std::int64_t kFlatShare = 2000;

int channel(QRgb color, int which) {
  return which == 0 ? qRed(color) : which == 1 ? qGreen(color) : qBlue(color);
}

// A box: colors that will share one entry.
struct Box {
  std::span<ColorCount> colors;
  std::int64_t pixels = 0;
  double error = 0;  // sum over its pixels of the squared distance to their mean, along the longest side
  int side = 0;      // the channel of that side
};

Box box_of(std::span<ColorCount> colors) {
  Box box{colors, 0, -1, 0};
  for (const ColorCount& c : colors) box.pixels += c.pixels;
  for (int side = 0; side < 3; ++side) {
    double sum = 0, squares = 0;
    for (const ColorCount& c : colors) {
      const auto weight = static_cast<double>(c.pixels);
      const double value = channel(c.color, side);
      sum += weight * value;
      squares += weight * value * value;
    }
    const double error = squares - sum * sum / static_cast<double>(box.pixels);
    if (error > box.error) {
      box.error = error;
      box.side = side;
    }
  }
  return box;
}

// The index with half of the pixels before it; both parts have at least one color.
std::size_t balance_of(const Box& box) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i + 1 < box.colors.size(); ++i) {
    before += box.colors[i].pixels;
    if (before * 2 >= box.pixels) return i + 1;
  }
  return box.colors.size() - 1;
}

std::pair<Box, Box> cut(const Box& box) {
  std::ranges::sort(box.colors, [&](const ColorCount& a, const ColorCount& b) {
    return std::pair(channel(a.color, box.side), a.color) < std::pair(channel(b.color, box.side), b.color);
  });
  const std::size_t at = balance_of(box);
  return {box_of(box.colors.first(at)), box_of(box.colors.subspan(at))};
}

QRgb mean_of(const Box& box) {
  std::array<std::int64_t, 3> sum{};
  for (const ColorCount& c : box.colors) {
    for (int side = 0; side < 3; ++side) sum[static_cast<std::size_t>(side)] += c.pixels * channel(c.color, side);
  }
  const auto mean = [&](std::size_t side) { return static_cast<int>((sum[side] + box.pixels / 2) / box.pixels); };
  return qRgb(mean(0), mean(1), mean(2));
}

void median_cut(std::span<ColorCount> colors, std::size_t most, std::vector<QRgb>& palette) {
  if (colors.empty() || most == 0) return;
  std::vector<Box> boxes{box_of(colors)};
  while (boxes.size() < most) {
    const auto worst = std::ranges::max_element(boxes, [](const Box& a, const Box& b) {
      return (a.colors.size() > 1 ? a.error : -1) < (b.colors.size() > 1 ? b.error : -1);
    });
    if (worst->colors.size() < 2) break;
    const auto [left, right] = cut(*worst);
    *worst = left;
    boxes.push_back(right);
  }
  for (const Box& box : boxes) palette.push_back(mean_of(box));
}

}  // namespace

std::vector<QRgb> palette_of(std::vector<ColorCount> counts, std::size_t most) {
  KVSCOPE_ASSERT(most >= 1 && most <= 256);
  // Most frequent first; equal counts are ordered by color, so that the input's order does not matter.
  std::ranges::sort(counts, [](const ColorCount& a, const ColorCount& b) {
    return a.pixels != b.pixels ? a.pixels > b.pixels : a.color < b.color;
  });
  std::vector<QRgb> palette;
  std::size_t flat = counts.size();
  if (counts.size() > most) {
    std::int64_t pixels = 0;
    for (const ColorCount& c : counts) pixels += c.pixels;
    flat = 0;
    while (flat < most - most / 4 && counts[flat].pixels * kFlatShare > pixels) ++flat;
  }
  for (std::size_t i = 0; i < flat; ++i) palette.push_back(counts[i].color);
  median_cut(std::span(counts).subspan(flat), most - flat, palette);
  std::ranges::sort(palette);
  palette.erase(std::unique(palette.begin(), palette.end()), palette.end());
  return palette;
}

std::size_t nearest_color(const std::vector<QRgb>& palette, QRgb color) {
  std::size_t nearest = 0;
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < palette.size() && least > 0; ++i) {
    const int red = qRed(palette[i]) - qRed(color), green = qGreen(palette[i]) - qGreen(color),
              blue = qBlue(palette[i]) - qBlue(color);
    const int distance = red * red + green * green + blue * blue;
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace kvscope::viz
