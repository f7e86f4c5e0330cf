#include "viz/window/palette.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

// A colour that fills more than one part in kFlatShare of a picture is a flat area. Up to three quarters of a palette
// are kept for those.
constexpr std::int64_t kFlatShare = 2000;

int channel(QRgb colour, int which) {
  return which == 0 ? qRed(colour) : which == 1 ? qGreen(colour) : qBlue(colour);
}

// Colours that will share one entry.
struct Box {
  std::span<ColourCount> colours;
  std::int64_t pixels = 0;
  double error = 0;  // sum over its pixels of the squared distance to their mean, along the longest side
  int side = 0;      // the channel of that side
};

Box box_of(std::span<ColourCount> colours) {
  Box box{colours, 0, -1, 0};
  for (const ColourCount& c : colours) box.pixels += c.pixels;
  for (int side = 0; side < 3; ++side) {
    double sum = 0, squares = 0;
    for (const ColourCount& c : colours) {
      const auto weight = static_cast<double>(c.pixels);
      const double value = channel(c.colour, side);
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

// Where half of the pixels lie before; both parts hold a colour.
std::size_t balance_of(const Box& box) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i + 1 < box.colours.size(); ++i) {
    before += box.colours[i].pixels;
    if (before * 2 >= box.pixels) return i + 1;
  }
  return box.colours.size() - 1;
}

std::pair<Box, Box> cut(const Box& box) {
  std::ranges::sort(box.colours, [&](const ColourCount& a, const ColourCount& b) {
    return std::pair(channel(a.colour, box.side), a.colour) < std::pair(channel(b.colour, box.side), b.colour);
  });
  const std::size_t at = balance_of(box);
  return {box_of(box.colours.first(at)), box_of(box.colours.subspan(at))};
}

QRgb mean_of(const Box& box) {
  std::array<std::int64_t, 3> sum{};
  for (const ColourCount& c : box.colours) {
    for (int side = 0; side < 3; ++side) sum[static_cast<std::size_t>(side)] += c.pixels * channel(c.colour, side);
  }
  const auto mean = [&](std::size_t side) { return static_cast<int>((sum[side] + box.pixels / 2) / box.pixels); };
  return qRgb(mean(0), mean(1), mean(2));
}

void median_cut(std::span<ColourCount> colours, std::size_t most, std::vector<QRgb>& palette) {
  if (colours.empty() || most == 0) return;
  std::vector<Box> boxes{box_of(colours)};
  while (boxes.size() < most) {
    const auto worst = std::ranges::max_element(boxes, [](const Box& a, const Box& b) {
      return (a.colours.size() > 1 ? a.error : -1) < (b.colours.size() > 1 ? b.error : -1);
    });
    if (worst->colours.size() < 2) break;
    const auto [left, right] = cut(*worst);
    *worst = left;
    boxes.push_back(right);
  }
  for (const Box& box : boxes) palette.push_back(mean_of(box));
}

}  // namespace

std::vector<QRgb> palette_of(std::vector<ColourCount> counts, std::size_t most) {
  KVSCOPE_ASSERT(most >= 1 && most <= 256);
  // Most frequent first; equals by their colour, so that the order of counting does not matter.
  std::ranges::sort(counts, [](const ColourCount& a, const ColourCount& b) {
    return a.pixels != b.pixels ? a.pixels > b.pixels : a.colour < b.colour;
  });
  std::vector<QRgb> palette;
  std::size_t flat = counts.size();
  if (counts.size() > most) {
    std::int64_t pixels = 0;
    for (const ColourCount& c : counts) pixels += c.pixels;
    flat = 0;
    while (flat < most - most / 4 && counts[flat].pixels * kFlatShare > pixels) ++flat;
  }
  for (std::size_t i = 0; i < flat; ++i) palette.push_back(counts[i].colour);
  median_cut(std::span(counts).subspan(flat), most - flat, palette);
  std::ranges::sort(palette);
  palette.erase(std::unique(palette.begin(), palette.end()), palette.end());
  return palette;
}

std::size_t nearest_colour(const std::vector<QRgb>& palette, QRgb colour) {
  std::size_t nearest = 0;
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < palette.size() && least > 0; ++i) {
    const int red = qRed(palette[i]) - qRed(colour), green = qGreen(palette[i]) - qGreen(colour),
              blue = qBlue(palette[i]) - qBlue(colour);
    const int distance = red * red + green * green + blue * blue;
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace kvscope::viz
