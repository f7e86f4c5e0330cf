// The operand that a matrix instruction reads from shared memory by itself: its core matrices, and all operands of the
// tile as pieces of it.
//
//   words             the descriptor
//        k 0    k 8   axis: first element of each column of cells
//    64 |    | |    |
//    65 |    | |    | one cell for each 16 bytes; eight below one another are a core matrix
//   ...
//    71 |    | |    |
//                     a gap after each core matrix
//    72 |    | |    |
//   pieces
//
// K-major: rows of A or columns of B down, k across. MN-major: k down, the others across.
// Example: 64 columns x 16 k of bf16, K-major: 64 lines of 2 cells, 8 x 2 core matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

inline constexpr std::int64_t kCoreMatrixLines = 8;

struct OperandPiece {
  std::int64_t operand = 0;  // index into Tile::operands
  QRectF rect;
};

struct OperandLayout {
  std::int64_t operand = 0;            // index into Tile::operands
  std::int64_t down = 0, across = 0;   // cells
  std::int64_t per_chunk = 1;          // elements
  QRectF words, axis, names, grid;     // [px]; axis and names are empty where there is no room
  QRectF caption;                      // above the pieces
  std::vector<OperandPiece> pieces;    // empty where there is no room
  double line = 1, cell = 1, gap = 0;  // [px] of a line and of a column; after each core matrix

  [[nodiscard]] QRectF rect(std::int64_t line, std::int64_t column) const;
  // The cell of one of Tile::operand_chunks.
  [[nodiscard]] QRectF rect_of(const Tile& tile, std::int64_t chunk) const;
  [[nodiscard]] std::optional<std::int64_t> chunk_at(const Tile& tile, QPointF at) const;  // of Tile::operand_chunks
  [[nodiscard]] std::optional<std::int64_t> piece_at(QPointF at) const;                    // of Tile::operands
};

// The operand that is shown: with chunks in `lit` the last that has begun if it reads one of them, else the first that
// does; without, the last that has begun, or the first. Nothing: no operand.
[[nodiscard]] std::optional<std::int64_t> shown_operand(const Tile& tile, const TileState& now, const LitTile& lit);

// Precondition: the operand has chunks.
[[nodiscard]] OperandLayout operand_layout(const Tile& tile, std::int64_t operand, const QRectF& body,
                                           double font_scale);

}  // namespace kvscope::viz
