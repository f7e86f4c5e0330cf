// The colors of all panels, for a dark and a light surface, and for high contrast (on black). Owners differ in hue,
// lightness and pattern, and have a label if there is room; hue is never the only difference.
#pragma once

#include <array>
#include <cstdint>

#include <QtGui/QBrush>
#include <QtGui/QColor>
#include <QtGui/QFont>

namespace kvscope::viz {

enum class ThemeKind : std::uint8_t { dark, light, high_contrast };
inline constexpr std::array kThemeKinds{ThemeKind::dark, ThemeKind::light, ThemeKind::high_contrast};

// A pattern drawn over an owner's color. With eight colors and four patterns, 32 consecutive owners differ.
enum class Pattern : std::uint8_t { plain, dots, horizontal, vertical };
// Shared blocks have the shared color, a diagonal hatch and a badge with their reference count.

struct OwnerStyle {
  QColor fill;
  Pattern pattern = Pattern::plain;
};

[[nodiscard]] QColor with_alpha(QColor color, double alpha);

struct Theme {
  ThemeKind kind = ThemeKind::dark;
  QColor surface;  // behind the cards
  QColor card;
  QColor card_border;
  QColor text;         // titles, labels
  QColor text_quiet;   // subtitles, axes, numbers of free blocks
  QColor text_accent;  // results in words
  QColor cell_free;    // a free block, an empty slot
  QColor free_line;    // its outline: 3:1 to the card and to cell_free
  QColor free_small;   // its color if it is too small for one: quieter than any block in use
  QColor cell_line;
  QColor accent;  // the selection and its links
  QColor hover;
  QColor shared;  // blocks of several sequences
  QColor cached;  // blocks without an owner whose content is kept
  QColor null_page;
  QColor warning;  // preemptions, faults
  std::array<QColor, 8> owner;
  std::array<QColor, 8> series;  // curves

  [[nodiscard]] bool on_dark() const { return kind != ThemeKind::light; }  // light text on a dark surface
  [[nodiscard]] OwnerStyle owner_style(std::int64_t seq) const;            // seq >= 0
  // Nearly black or white, whichever reads better on `fill`; black where neither has a WCAG contrast of 4.5.
  [[nodiscard]] QColor ink_on(const QColor& fill) const;
};

[[nodiscard]] const Theme& theme(ThemeKind kind);

// WCAG 2 contrast ratio, 1..21.
[[nodiscard]] double contrast(const QColor& a, const QColor& b);

// Fonts embedded at build time: Inter for words, JetBrains Mono for digits and formulas. load_fonts() registers them
// once and returns false if one of them is missing. Precondition (caller): every program and test that paints calls it
// first.
[[nodiscard]] bool load_fonts();
[[nodiscard]] QFont ui_font(double px, QFont::Weight weight = QFont::Normal);
[[nodiscard]] QFont mono_font(double px, QFont::Weight weight = QFont::Normal);

}  // namespace kvscope::viz
