// How a cell looks, wherever it stands: a block of the pool, a page of a sequence, a cell of the lookup table. Fill,
// pattern, the empty rest of a block that is not full, badges, labels and the legend.
//
//   Look look = block_look(state.blocks[18]);            // owned by sequence 3
//   paint_cell(painter, rect, look, 5.0 / 16, theme);    // 5 of 16 tokens: the left 31 % bright, the rest darker
//
// These functions are exact at every size and stay lines and curves in an SVG or a PDF. Thousands of cells of one size
// go through cell_painter.h, which paints with these functions once and copies.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/playback/state.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// A look as a small number, so that colours and prepared pictures are tables indexed by it.
//
//   0 free   1 shared   2 null page   3 padding   4..35 owners   36..67 cached, by their last owner
using Look = std::uint8_t;
inline constexpr Look kFreeLook = 0;      // a free block, an empty slot
inline constexpr Look kSharedLook = 1;    // of several sequences: its own colour and a diagonal hatch
inline constexpr Look kNullPageLook = 2;  // block N: crossed out
inline constexpr Look kPaddingLook = 3;   // a cell of the lookup table without a block
inline constexpr int kOwnerLooks = 32;    // eight colours times four patterns, then they repeat
inline constexpr Look kFirstOwnerLook = 4;
inline constexpr Look kFirstCachedLook = kFirstOwnerLook + kOwnerLooks;  // dashed outline in the last owner's colour
inline constexpr int kLooks = kFirstCachedLook + kOwnerLooks;

// Inline: a million blocks are looked at in one repaint.
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

// What stands for the look where there is one pixel for it, and behind its pattern where there is more.
[[nodiscard]] QColor look_fill(const Theme& theme, Look look);
// Of what is written on it; quiet on a free block.
[[nodiscard]] QColor look_ink(const Theme& theme, Look look);
// Of the part of a block that holds no token: between the fill and the card, so much of the latter.
inline constexpr double kEmptyShare = 0.62;
[[nodiscard]] QColor look_empty(const Theme& theme, Look look);
// Whether a pattern is painted over its fill where there is room for one.
[[nodiscard]] bool has_pattern(const Theme& theme, Look look);
// Whether the part of it that holds no token is painted darker.
[[nodiscard]] inline bool has_level(Look look) {
  return look == kSharedLook || look >= kFirstOwnerLook;
}
// `colour`, moved towards the text colour until it reads on `behind` (WCAG contrast 4.5): "seq 3" in its owner's
// colour.
[[nodiscard]] QColor readable(const Theme& theme, const QColor& colour, const QColor& behind);

// Below this a pattern is noise. [px] of the shorter side
inline constexpr double kSmallestPattern = 8;

// `filled`: the share of it, from the left, that holds tokens; counts for looks of owners, shared and cached.
void paint_cell(QPainter& painter, const QRectF& rect, Look look, double filled, const Theme& theme);
// The outline of a cell with the same corners.
void paint_outline(QPainter& painter, const QRectF& rect, const QPen& pen);
// [px] radius of a cell's corners.
[[nodiscard]] double corner(const QRectF& rect);

// A reference count: a dark round badge with white digits of `px`, its bottom right corner `at`.
void paint_badge(QPainter& painter, QPointF at, std::int64_t count, double px);
[[nodiscard]] QSizeF badge_size(std::int64_t count, double px);

// What just happened to an object in the current step.
enum class JustNow : std::uint8_t { filled, emptied };  // allocated, copied, written; released, evicted
// filled: a small corner in accent at the top right; emptied: a hollow ring there.
void paint_just_now(QPainter& painter, const QRectF& cell, JustNow what, const Theme& theme);

// The line under a panel: little cells and their names. `kinds` are always there; of `owners` as many as there is room
// for before them ("seq 3"), and how many are left out. Returns the width used. [px]
struct LegendEntry {
  Look look = kFreeLook;
  QString name;
};
double paint_legend(QPainter& painter, const QRectF& line, std::span<const SeqIdx> owners,
                    std::span<const LegendEntry> kinds, const Theme& theme, double font_scale);

}  // namespace kvscope::viz
