// The axes of a tensor map, one line for each: its name, a bar as long as its extent, and its numbers; below it what is
// wrong with it. A last line is about the map as a whole.
//
//                               extent · box · stride
//   columns  [=============]    64 · 64 · 2 B
//   heads    [      |======]     2 · 1 · 128 B
//   rows     [  |   |      ]  2064 · 16 · 256 B
//            stride: 40 B is not a multiple of 16 B
//   no rule is broken
#pragma once

#include <vector>

#include <QtCore/QRectF>

namespace kvscope::viz {

struct MapLine {
  QRectF name, bar, numbers;  // [px] beside one another; the last line has a name alone, as wide as the map
  QRectF note;                // [px] below them; empty without a note
  [[nodiscard]] QRectF whole() const { return name.united(bar).united(numbers).united(note); }
};

struct MapLayout {
  QRectF heading;              // [px] above the numbers
  std::vector<MapLine> lines;  // of each axis and one more, the map as a whole
  double bottom = 0;           // [px] below all of them

  // The part [from, from + count) of `extent` on the bar of an axis, at least 2 px wide.
  [[nodiscard]] QRectF part(std::size_t axis, double from, double count, double extent) const;
};

// `notes`: heights of the notes [px], of each axis and of the map as a whole. `numbers`: [px] their width.
[[nodiscard]] MapLayout map_layout(const std::vector<double>& notes, double numbers, const QRectF& body,
                                   double font_scale);

// The height of a map without notes. [px]
[[nodiscard]] double map_height(std::size_t axes, double font_scale);

}  // namespace kvscope::viz
