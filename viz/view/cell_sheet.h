// Caches of painted images: cells of one size in every look, the glyphs of a font, badges, frames. Each thread has
// separate caches, because pictures are exported on another thread while the window paints.
//
//   Prepared& prepared = Prepared::of_this_thread();
//   prepared.cells(theme, {42, 42}, 2)->full(look)     // 42 x 42 device pixels
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtGui/QColor>
#include <QtGui/QFont>
#include <QtGui/QImage>

#include "viz/view/cell_paint.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// Each look as a full and as an empty cell on the card's color: opaque, so that copying needs no blending. Painted at
// first use. A cell that is 30 % full is the left 30 % of the full image and the rest of the empty one.
class CellSheet {
 public:
  // `device`: size in device pixels; `scale`: device pixels per pixel of the painter.
  CellSheet(const Theme& theme, QSize device, double scale) : theme_(&theme), device_(device), scale_(scale) {}
  [[nodiscard]] QSize device() const { return device_; }
  // [device.height][device.width]
  [[nodiscard]] const QRgb* full(Look look) { return picture(full_[look], look, 1); }
  [[nodiscard]] const QRgb* empty(Look look) { return picture(empty_[look], look, 0); }

 private:
  const QRgb* picture(std::vector<QRgb>& pixels, Look look, double filled) {
    if (pixels.empty()) paint(pixels, look, filled);
    return pixels.data();
  }
  void paint(std::vector<QRgb>& pixels, Look look, double filled) const;
  const Theme* theme_;
  QSize device_;
  double scale_;
  std::array<std::vector<QRgb>, kLooks> full_, empty_;
};

// A character's coverage, one byte per device pixel.
struct Glyph {
  int width = 0, height = 0;
  int left = 0, top = 0;               // from the pen's position on the baseline to the image's top left corner
  double advance = 0;                  // of the pen to the next character
  std::vector<std::uint8_t> coverage;  // [height][width]
};

class GlyphSheet {
 public:
  static constexpr char kFirst = ' ', kLast = '~';
  GlyphSheet(const QFont& font, double scale);
  [[nodiscard]] int cap_height() const { return cap_height_; }
  [[nodiscard]] const Glyph* find(char c);  // null if c is not printable ASCII

 private:
  [[nodiscard]] Glyph made(char c) const;
  QFont font_;
  double scale_;
  int cap_height_;
  std::array<std::unique_ptr<Glyph>, kLast - kFirst + 1> glyphs_;
};

// The colors for a text on a cell.
struct Inks {
  QColor fill, empty;        // background left and right of the fill level
  QColor on_fill, on_empty;  // text color on each of them
  QColor on_card;            // the fill color, adjusted for text beside the cell, on the card
  bool pattern = false;      // whether the cell has a pattern, which is removed under the text
};
using InksOfLooks = std::array<Inks, kLooks>;

// A cache with at most kMost entries. Zooming adds a new size every few frames: when the cache is full it is cleared,
// and the next repaint adds the few entries in use again.
template <class Key, class Value, std::size_t kMost>
class Kept {
 public:
  template <class Make>
  std::shared_ptr<Value> get(const Key& key, Make&& make) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (values_.size() >= kMost) values_.clear();
    return values_[key] = std::make_shared<Value>(make());
  }

 private:
  std::map<Key, std::shared_ptr<Value>> values_;
};

class Prepared {
 public:
  static Prepared& of_this_thread();
  // Themes are identified by their address; they exist as long as the program.
  std::shared_ptr<CellSheet> cells(const Theme& theme, QSize device, double scale);
  std::shared_ptr<GlyphSheet> glyphs(const QFont& font, double scale);
  std::shared_ptr<const QImage> badge(std::int64_t count, double px, double scale);
  // Of paint_difference, transparent inside. `device`: size in device pixels.
  std::shared_ptr<const QImage> frame(const Theme& theme, QSize device, double scale);
  std::shared_ptr<const InksOfLooks> inks(const Theme& theme);

  std::vector<QRgb> pixels;  // used by one painter at a time; reusing memory is faster than allocating a megabyte

 private:
  Kept<std::tuple<const Theme*, int, int, double>, CellSheet, 12> cells_;
  Kept<std::tuple<QString, int, int, double>, GlyphSheet, 24> glyphs_;  // family, px, weight, scale
  Kept<std::tuple<std::int64_t, double, double>, QImage, 200> badges_;  // count, px, scale
  Kept<std::tuple<const Theme*, int, int, double>, QImage, 12> frames_;
  Kept<const Theme*, InksOfLooks, 8> inks_;
};

}  // namespace kvscope::viz
