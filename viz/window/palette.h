// The few colours that a picture of many is shown with. Flat areas keep their colour exactly, because a picture of
// cells is made of them; the blends at edges and letters share what is left, by median cut.
//
// Median cut: a box holds all colours; the box that errs most is cut in two across its longest side, where half of its
// pixels lie on either hand, until there are as many boxes as colours are wanted. A box is shown as its mean.
//
//   red    ______________________        two boxes of 3 and 4 pixels,
//          | ..   |    ..      . |       cut where the weights balance
//          |  .   |      .       |
//          |______|______________|  green
#pragma once

#include <cstdint>
#include <vector>

#include <QtGui/QRgb>

namespace kvscope::viz {

struct ColourCount {
  QRgb colour = 0;          // 0xffRRGGBB
  std::int64_t pixels = 0;  // of that colour
};

// At most `most` colours, 1 <= most <= 256, each once; exactly the given ones when they are no more than that. The same
// counts give the same palette, whatever their order.
[[nodiscard]] std::vector<QRgb> palette_of(std::vector<ColourCount> counts, std::size_t most);

// Index of the colour nearest to `colour`: squared distance in RGB, the first of equals. Precondition: not empty.
[[nodiscard]] std::size_t nearest_colour(const std::vector<QRgb>& palette, QRgb colour);

}  // namespace kvscope::viz
