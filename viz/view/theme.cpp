#include "viz/view/theme.h"

#include <cmath>

namespace kvscope::viz {
namespace {

constexpr int kPatterns = 4;
constexpr double kReadable = 4.5;  // WCAG 2, level AA, for text

// A search chose the owners' colors and the shared color: it changed a muted palette as little as possible until every
// pair differs for each kind of color blindness.        // held by tests/viz/view/theme_test.cpp
Theme dark_theme() {
  Theme t;
  t.kind = ThemeKind::dark;
  t.surface = QColor(0x12, 0x14, 0x19);
  t.card = QColor(0x1a, 0x1d, 0x24);
  t.card_border = QColor(0x2c, 0x30, 0x3a);
  t.text = QColor(0xea, 0xec, 0xf1);
  t.text_quiet = QColor(0x92, 0x99, 0xa8);
  t.text_accent = QColor(0x7f, 0xdb, 0xa8);
  t.cell_free = QColor(0x25, 0x29, 0x32);
  t.free_line = QColor(0x6c, 0x72, 0x84);
  t.free_small = QColor(0x32, 0x37, 0x41);
  t.cell_line = QColor(0x36, 0x3b, 0x47);
  t.accent = QColor(0xff, 0xcf, 0x5c);
  t.hover = QColor(0xff, 0xf1, 0xcc);
  t.shared = QColor(0x96, 0x50, 0xd0);
  t.cached = QColor(0x4a, 0x51, 0x61);
  t.null_page = QColor(0x0b, 0x0c, 0x0f);
  t.warning = QColor(0xff, 0x7b, 0x72);
  t.owner = {QColor(0x76, 0xa1, 0xe2), QColor(0xd2, 0x93, 0x3d), QColor(0x61, 0xd6, 0x9a), QColor(0xcc, 0x5a, 0x6e),
             QColor(0x18, 0x96, 0xa6), QColor(0xa6, 0xd3, 0x5e), QColor(0xe3, 0x9e, 0xc7), QColor(0x98, 0x79, 0x50)};
  t.series = {QColor(0x5b, 0x97, 0xd8), QColor(0xd8, 0x9a, 0x45), QColor(0x52, 0xc9, 0x8f), QColor(0x8f, 0x97, 0xa8),
              QColor(0xd6, 0x5f, 0x74), QColor(0x2f, 0x9f, 0xa8), QColor(0xa4, 0xd0, 0x5c), QColor(0xe3, 0x9c, 0xc4)};
  return t;
}

Theme light_theme() {
  Theme t;
  t.kind = ThemeKind::light;
  t.surface = QColor(0xf3, 0xf4, 0xf7);
  t.card = QColor(0xff, 0xff, 0xff);
  t.card_border = QColor(0xd9, 0xdd, 0xe4);
  t.text = QColor(0x1b, 0x1f, 0x27);
  t.text_quiet = QColor(0x5d, 0x66, 0x75);
  t.text_accent = QColor(0x14, 0x76, 0x4a);
  t.cell_free = QColor(0xec, 0xee, 0xf2);
  t.free_line = QColor(0x78, 0x78, 0x78);
  t.free_small = QColor(0xdf, 0xe1, 0xe6);
  t.cell_line = QColor(0xcb, 0xd0, 0xd9);
  t.accent = QColor(0xa8, 0x63, 0x00);
  t.hover = QColor(0x7a, 0x4a, 0x00);
  t.shared = QColor(0x8f, 0x54, 0xcf);
  t.cached = QColor(0xbf, 0xc6, 0xd2);
  t.null_page = QColor(0x3b, 0x41, 0x4d);
  t.warning = QColor(0xc2, 0x2f, 0x2a);
  t.owner = {QColor(0x1e, 0x67, 0xab), QColor(0xd6, 0x91, 0x22), QColor(0x50, 0xbb, 0x79), QColor(0xbb, 0x3b, 0x5e),
             QColor(0x1f, 0x8b, 0x97), QColor(0x92, 0xc1, 0x43), QColor(0xcf, 0x86, 0xb8), QColor(0x7c, 0x5c, 0x3c)};
  t.series = {QColor(0x2f, 0x74, 0xbf), QColor(0xb5, 0x70, 0x0d), QColor(0x1c, 0x85, 0x53), QColor(0x6a, 0x73, 0x83),
              QColor(0xc4, 0x3f, 0x5a), QColor(0x14, 0x7f, 0x8a), QColor(0x5f, 0x8c, 0x12), QColor(0xb3, 0x4f, 0x8a)};
  return t;
}

// The dark theme's owners on black, with borders and quiet text as strong as text: text has at least 7:1 (level AAA).
Theme high_contrast_theme() {
  Theme t = dark_theme();
  t.kind = ThemeKind::high_contrast;
  t.surface = QColor(0x00, 0x00, 0x00);
  t.card = QColor(0x00, 0x00, 0x00);
  t.card_border = QColor(0xff, 0xff, 0xff);
  t.text = QColor(0xff, 0xff, 0xff);
  t.text_quiet = QColor(0xe2, 0xe5, 0xea);
  t.text_accent = QColor(0x7d, 0xff, 0xb4);
  t.cell_free = QColor(0x16, 0x18, 0x1d);
  t.free_line = QColor(0x8e, 0x90, 0x92);
  t.free_small = QColor(0x38, 0x3a, 0x3d);
  t.cell_line = QColor(0x5c, 0x62, 0x6d);
  t.accent = QColor(0xff, 0xff, 0x00);
  t.hover = QColor(0x00, 0xff, 0xff);
  t.null_page = QColor(0x00, 0x00, 0x00);
  t.warning = QColor(0xff, 0x9a, 0x92);
  return t;
}

// Relative luminance of WCAG 2: linear light, weighted.
double luminance(const QColor& color) {
  const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

}  // namespace

QColor with_alpha(QColor color, double alpha) {
  color.setAlphaF(static_cast<float>(alpha));
  return color;
}

OwnerStyle Theme::owner_style(std::int64_t seq) const {
  const auto colors = static_cast<std::int64_t>(owner.size());
  return {owner[static_cast<std::size_t>(seq % colors)], static_cast<Pattern>(seq / colors % kPatterns)};
}

double contrast(const QColor& a, const QColor& b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

QColor Theme::ink_on(const QColor& fill) const {
  const QColor soft(0x10, 0x12, 0x16), white(0xff, 0xff, 0xff), black(0, 0, 0);
  const QColor better = contrast(soft, fill) >= contrast(white, fill) ? soft : white;
  // On fills of middle lightness neither of the two reads: black or white has 4.58:1 on every fill.
  if (contrast(better, fill) >= kReadable) return better;
  return contrast(black, fill) >= kReadable ? black : white;
}

const Theme& theme(ThemeKind kind) {
  static const Theme kDark = dark_theme();
  static const Theme kLight = light_theme();
  static const Theme kHighContrast = high_contrast_theme();
  switch (kind) {
    case ThemeKind::light:
      return kLight;
    case ThemeKind::high_contrast:
      return kHighContrast;
    case ThemeKind::dark:
      break;
  }
  return kDark;
}

}  // namespace kvscope::viz
