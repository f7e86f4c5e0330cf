// Reduces the colors of a picture to a small palette. Large areas of one color keep it exactly, because pictures of
// cells mostly consist of such areas; the blended colors at edges and letters share the other entries, chosen by median
// cut.
//
// Median cut: a box initially holds all colors. The box with the largest error is repeatedly cut in two across its
// longest side, with half of its pixels in each part, until there are as many boxes as entries. The entry of a box is
// its mean.
//
//   red    ______________________        two boxes of 3 and 4 pixels,
//          | ..   |    ..      . |       cut where the pixel counts balance
//          |  .   |      .       |
//          |______|______________|  green
#pragma once

#include <cstdint>
#include <vector>

#include <QtGui/QRgb>

namespace kvscope::viz {

struct ColorCount {
  QRgb color = 0;           // 0xffRRGGBB
  std::int64_t pixels = 0;  // pixels of that color
};

// At most `most` different colors, 1 <= most <= 256; exactly the given ones if there are at most that many. The palette
// does not depend on the order of `counts`.
[[nodiscard]] std::vector<QRgb> palette_of(std::vector<ColorCount> counts, std::size_t most);

// Index of the color nearest to `color`: by squared distance in RGB, the first of equals. Precondition: not empty.
[[nodiscard]] std::size_t nearest_color(const std::vector<QRgb>& palette, QRgb color);

}  // namespace kvscope::viz
