// The look of a cell, independent of its position: a block of the pool, a page of a sequence, a cell of the lookup
// table. Fill, pattern, the empty part of a partly filled block, badges, labels and the legend.
//
//   Look look = block_look(state.blocks[18]);            // owned by sequence 3
//   paint_cell(painter, rect, look, 5.0 / 16, theme);    // 5 of 16 tokens: the left 31 % bright, the rest darker
//
// These functions are exact at every size and emit lines and curves for SVG and PDF. For thousands of cells of one size
// use cell_painter.h, which paints each look once with these functions and then copies it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/playback/state.h"
#include "viz/view/legend_flow.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// A look as a small number: the index into tables of colors and prepared pictures.
//
//   0 free   1 shared   2 null page   3 padding   4..35 owners   36..67 cached, by their last owner
using Look = std::uint8_t;
inline constexpr Look kFreeLook = 0;      // a free block, an empty slot
inline constexpr Look kSharedLook = 1;    // a block of several sequences: a separate color and a diagonal hatch
inline constexpr Look kNullPageLook = 2;  // block N: crossed out
inline constexpr Look kPaddingLook = 3;   // a cell of the lookup table without a block
inline constexpr int kOwnerLooks = 32;    // eight colors times four patterns, then they repeat
inline constexpr Look kFirstOwnerLook = 4;
inline constexpr Look kFirstCachedLook = kFirstOwnerLook + kOwnerLooks;  // dashed outline in the last owner's color
inline constexpr int kLooks = kFirstCachedLook + kOwnerLooks;

// Inline, because one repaint evaluates these for a million blocks.
[[nodiscard]] inline Look owner_look(std::int64_t seq) {  // seq >= 0
  return static_cast<Look>(kFirstOwnerLook + seq % kOwnerLooks);
}
[[nodiscard]] inline Look cached_look(std::int64_t last_owner) {  // last_owner >= 0
  return static_cast<Look>(kFirstCachedLook + last_owner % kOwnerLooks);
}
[[nodiscard]] inline Look block_look(const BlockState& block) {
  if (block.ref_count > 1) return kSharedLook;
  if (block.owner < 0) return kFreeLook;
  return block.ref_count == 1 ? owner_look(block.owner) : block.cached ? cached_look(block.owner) : kFreeLook;
}

// The fill color: of a cell of one pixel, and behind the pattern of a larger one.
[[nodiscard]] QColor look_fill(const Theme& theme, Look look);
// The fill color of a cell too small for an outline: a free block has the color of its outline.
[[nodiscard]] QColor look_small(const Theme& theme, Look look);
// look_small() of every look, for images. Dimmed: of objects that two compared runs store alike, beside those that
// differ.
[[nodiscard]] std::array<QRgb, kLooks> small_looks(const Theme& theme, bool dimmed);
// The text color on the fill; quiet on a free block.
[[nodiscard]] QColor look_ink(const Theme& theme, Look look);
// The color of the part of a block that holds no token: a mix of the fill and the card, with kEmptyShare of the card.
inline constexpr double kEmptyShare = 0.62;
[[nodiscard]] QColor look_empty(const Theme& theme, Look look);
// Whether a pattern is painted over its fill if the cell is large enough.
[[nodiscard]] bool has_pattern(const Theme& theme, Look look);
// Whether the part of it that holds no token is painted darker.
[[nodiscard]] inline bool has_level(Look look) {
  return look == kSharedLook || look >= kFirstOwnerLook;
}
// `color`, moved towards the text color until its WCAG contrast with `behind` is 4.5: for "seq 3" in its owner's color.
[[nodiscard]] QColor readable(const Theme& theme, const QColor& color, const QColor& behind);

// Minimum length of the shorter side for a pattern. [px]
inline constexpr double kSmallestPattern = 8;

// `filled`: the share of the cell, from the left, that holds tokens; used for the looks of owners, shared and cached.
void paint_cell(QPainter& painter, const QRectF& rect, Look look, double filled, const Theme& theme);
// The outline of a cell with the same corners.
void paint_outline(QPainter& painter, const QRectF& rect, const QPen& pen);
// [px] radius of a cell's corners.
[[nodiscard]] double corner(const QRectF& rect);

// A reference count: a dark round badge with white digits of size `px` and its bottom right corner at `at`.
void paint_badge(QPainter& painter, QPointF at, std::int64_t count, double px);
[[nodiscard]] QSizeF badge_size(std::int64_t count, double px);

// The change of an object in the current step.
enum class JustNow : std::uint8_t { filled, emptied };  // allocated, copied or written; released or evicted
// filled: a small corner in the accent color at the top right; emptied: a hollow ring there.
void paint_just_now(QPainter& painter, const QRectF& cell, JustNow what, const Theme& theme);

// The frame of an object that the compared run stores differently. It is inside the cell and has the color of text, and
// inside it a line in the card's color: it is visible on every look, without a hue.
void paint_difference(QPainter& painter, const QRectF& cell, const Theme& theme);

// The legend under a panel: small cells and their names. It has all `kinds`, or dots for those without room; before
// them as many of `owners` ("seq 3") as fit, and the number of omitted ones. Returns the width of its longest line.
// [px] The second form is for a legend that has further items.
struct LegendEntry {
  Look look = kFreeLook;
  QString name;
};
double paint_legend(QPainter& painter, const QRectF& footer, std::span<const SeqIdx> owners,
                    std::span<const LegendEntry> kinds, const Theme& theme, double font_scale);
void paint_legend(QPainter& painter, LegendFlow& flow, std::span<const SeqIdx> owners,
                  std::span<const LegendEntry> kinds, const Theme& theme, double font_scale);

}  // namespace kvscope::viz
