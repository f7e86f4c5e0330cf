// What is painted once and copied from then on: cells of one size in every look, the glyphs of a font, badges. Kept for
// each thread that paints, because pictures are exported while the window shows another.
//
//   Prepared& prepared = Prepared::of_this_thread();
//   prepared.cells(theme, {42, 42}, 2)->full(look)     // 42 x 42 pixels of the surface
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

// Each look full and empty, on the card's colour: opaque, so that a copy is a copy of memory. Painted when first asked
// for. A cell that is 30 % full is the left 30 % of one and the rest of the other.
class CellSheet {
 public:
  // `device`: size in pixels of the surface, `scale` of them in one of the painter's.
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

// A character's coverage, one byte a pixel of the surface.
struct Glyph {
  int width = 0, height = 0;
  int left = 0, top = 0;               // from where the pen stands on the baseline to the picture's corner
  double advance = 0;                  // of the pen
  std::vector<std::uint8_t> coverage;  // [height][width]
};

class GlyphSheet {
 public:
  static constexpr char kFirst = ' ', kLast = '~';
  GlyphSheet(const QFont& font, double scale);
  [[nodiscard]] int cap_height() const { return cap_height_; }
  [[nodiscard]] const Glyph* find(char c);  // nothing for what is not printable ASCII

 private:
  [[nodiscard]] Glyph made(char c) const;
  QFont font_;
  double scale_;
  int cap_height_;
  std::array<std::unique_ptr<Glyph>, kLast - kFirst + 1> glyphs_;
};

// The colours around a text that stands on a cell.
struct Inks {
  QColor fill, empty;        // under it, left and right of the level
  QColor on_fill, on_empty;  // of the text there
  QColor on_card;            // the fill as the colour of text beside it, on the card
  bool pattern = false;      // must not be under it
};
using InksOfLooks = std::array<Inks, kLooks>;

// Zooming makes a new size every few frames: past kMost all are dropped, and the few that are in use come back with the
// next repaint.
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
  // Themes are told apart by their address: they live as long as the program.
  std::shared_ptr<CellSheet> cells(const Theme& theme, QSize device, double scale);
  std::shared_ptr<GlyphSheet> glyphs(const QFont& font, double scale);
  std::shared_ptr<const QImage> badge(std::int64_t count, double px, double scale);
  std::shared_ptr<const InksOfLooks> inks(const Theme& theme);

  std::vector<QRgb> pixels;  // lent to one painter at a time: a fresh megabyte is slower than a used one

 private:
  Kept<std::tuple<const Theme*, int, int, double>, CellSheet, 12> cells_;
  Kept<std::tuple<QString, int, int, double>, GlyphSheet, 24> glyphs_;  // family, px, weight, scale
  Kept<std::tuple<std::int64_t, double, double>, QImage, 200> badges_;  // count, px, scale
  Kept<const Theme*, InksOfLooks, 8> inks_;
};

}  // namespace kvscope::viz
