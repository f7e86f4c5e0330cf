// Where the panels stand: a board of cards for each view, from its size alone.
//
//   overview                      sequences        pool             timeline
//   +-----------------------+     +-----------+    +-----+-----+    +-----------+
//   | header                |     | header    |    | header    |    | header    |
//   +-----------------------+     +-----------+    +-----+-----+    +-----------+
//   | sequences             |     |           |    |     |     |    |           |
//   +-----------+-----------+     | sequences |    |pool |table|    | timeline  |
//   | pool      | table     |     |           |    |     |     |    |           |
//   +-----------+-----------+     +-----------+    +-----+-----+    +-----------+
//   | timeline              |
//   +-----------------------+
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

enum class View : std::uint8_t { overview, sequences, pool, timeline };
inline constexpr std::array kViews{View::overview, View::sequences, View::pool, View::timeline};
[[nodiscard]] std::string_view name(View view);  // as --view takes it
[[nodiscard]] std::optional<View> find_view(std::string_view name);

enum class PanelId : std::uint8_t { header, sequences, pool, table, timeline };
inline constexpr std::size_t kPanels = 5;

// A card and what it leaves to its panel under the title and above the footer line.
struct Place {
  PanelId panel = PanelId::header;
  QRectF card;  // [px]
  QRectF body;  // [px] inside the card; the header has no card: both are the same
};

// Sizes in px at font scale 1; all grow with the font.
inline constexpr double kMargin = 20, kGap = 14, kPadding = 16, kTitleHeight = 36, kFooterHeight = 30,
                        kHeaderHeight = 52;
inline constexpr QSizeF kSmallestBoard{480, 320};

// Cards in reading order. They fill `size`, never overlap and keep kGap between them; below kSmallestBoard the board
// keeps that size and is cut off.
[[nodiscard]] std::vector<Place> board(View view, QSizeF size, double font_scale);

}  // namespace kvscope::viz
