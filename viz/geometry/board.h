// The layout of the panels: a board of cards for each view, computed from the board's size alone.
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
//
//   tile
//   +-------------------------------------+
//   | header                              |
//   +-------------------------------------+
//   | tile_sequence                       |
//   +--------+--------+--------+----------+
//   | memory | copies | shared | registers|
//   +--------+--------+--------+----------+
//   | tile_events                         |
//   +-------------------------------------+
//   | chain                               |
//   +-------------------------------------+
//
//   attention
//   +-------------------------------------+
//   | header                              |
//   +------------------------+------------+
//   | sequences              | pool       |
//   +------------------------+------------+
//   | attention_flow | attention_errors   |
//   +----------------+--------------------+
//   | attention_output                    |
//   +-------------------------------------+
//
// Panels that are side by side here are put into two columns, or one below the other, where the text is too large for
// the width. The height that a view then needs is that of whole_size(); a window scrolls over it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

enum class View : std::uint8_t { overview, sequences, pool, timeline, tile, attention };
inline constexpr std::array kViews{View::overview, View::sequences, View::pool,
                                   View::timeline, View::tile,      View::attention};
// Whether the view shows a run as a whole: a second one can be beside it. A tile and a flow are those of one run.
[[nodiscard]] constexpr bool shows_run(View view) {
  return view != View::tile && view != View::attention;
}
[[nodiscard]] std::string_view name(View view);  // the value that the option --view takes
[[nodiscard]] std::optional<View> find_view(std::string_view name);

enum class PanelId : std::uint8_t {
  header,
  sequences,
  pool,
  table,
  timeline,
  tile_sequence,     // the tokens of the tile's sequence
  memory,            // the rows of the pool that hold them
  copies,            // boxes of TMA, or copies of waves through LDS
  shared,            // shared memory by rows and banks
  registers,         // lanes by registers
  tile_events,       // what happened when
  chain,             // one sentence: from the token to the register
  attention_flow,    // the tiled flow of one query, tile by tile
  attention_errors,  // a candidate's errors over sequences, heads, queries and dims
  attention_output,  // the query's output by dim, against the golden
};
inline constexpr std::size_t kPanels = 15;
// The header and the chain are lines without a card, a title and a footer.
[[nodiscard]] constexpr bool has_card(PanelId panel) {
  return panel != PanelId::header && panel != PanelId::chain;
}

// A card, and the body that its panel paints into, between the title and the footer line.
//
//   +------------------------+
//   | title                  |
//   |  +------------------+  |
//   |  | body             |  |
//   |  +------------------+  |
//   |  footer                |
//   +------------------------+
struct Place {
  PanelId panel = PanelId::header;
  QRectF card;    // [px]
  QRectF body;    // [px] inside the card; without a card it equals `card`
  QRectF title;   // [px] as wide as the body; empty without a card: the panel paints its own title
  QRectF footer;  // [px] as wide as the body; empty in a card lower than kFooterCard
};

// Sizes in px. Heights of lines of text are given at font scale 1 and scale with the font; the space around cards is
// constant.
inline constexpr double kMargin = 20, kGap = 14, kPadding = 16, kTitleHeight = 36, kFooterHeight = 30,
                        kHeaderHeight = 52, kChainHeight = 52;
// Limits on the height of a card: below kLowCard the title and footer are lower, below kFooterCard there is no footer,
// and below kLowestCard the card is omitted (its panel can still be shown in its separate view).
inline constexpr double kLowCard = 150, kFooterCard = 120, kLowestCard = 76;
// With larger text than normal, a card narrower than kNarrowCard and at least kTallCard high has its subtitle below its
// title and a footer of two lines, and a header narrower than kNarrowHeader has two lines.
inline constexpr double kNarrowCard = 1000, kTallCard = 190, kNarrowHeader = 1000;
inline constexpr double kSubtitleHeight = 22, kFactsHeight = 30;
inline constexpr double kLowTitleHeight = 28, kLowFooterHeight = 24;
inline constexpr QSizeF kSmallestBoard{480, 320};

// `room`, or higher where the view needs more height to show each of its panels with title, body and footer. Sizes in
// px.
// Example: the overview at 1366x768: 1366x768 at font scale 1, 1366x1507 at 1.6.
[[nodiscard]] QSizeF whole_size(View view, QSizeF room, double font_scale);

// Cards in reading order, on whole pixels. They fill `size`, do not overlap and are kGap apart. If `size` is smaller
// than kSmallestBoard, the layout is that of kSmallestBoard and is clipped. If it is lower than whole_size(), cards are
// lower, without footers, or omitted.
// Example: the overview at 1600x1000: header 20,0 1560x52, sequences 20,52 1560x279, pool 20,345 773x432.
[[nodiscard]] std::vector<Place> board(View view, QSizeF size, double font_scale);

}  // namespace kvscope::viz
