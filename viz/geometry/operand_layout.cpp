#include "viz/geometry/operand_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kOperandWords = 76, kOperandAxis = 14, kOperandNames = 34, kOperandPieces = 70, kOperandCaption = 18,
                 kHighestOperandLine = 14, kOperandGap = 4;
constexpr double kLowestOperandGrid = 60;

const TileOperand& operand_of(const Tile& tile, std::int64_t operand) {
  return tile.operands[static_cast<std::size_t>(operand)];
}

}  // namespace

QRectF OperandLayout::rect(std::int64_t at_line, std::int64_t column) const {
  const double top =
      grid.top() + static_cast<double>(at_line) * line + gap * static_cast<double>(at_line / kCoreMatrixLines);
  const double left = grid.left() + static_cast<double>(column) * (cell + gap);
  return {left, top, cell, std::max(line - (line >= 4 ? 1 : 0), 0.5)};
}

QRectF OperandLayout::rect_of(const Tile& tile, std::int64_t chunk) const {
  const TileOperandChunk& of = tile.operand_chunks[static_cast<std::size_t>(chunk)];
  const bool mn_major = operand_of(tile, operand).of.mn_major;
  return mn_major ? rect(of.k, of.line / per_chunk) : rect(of.line, of.k / per_chunk);
}

std::optional<std::int64_t> OperandLayout::chunk_at(const Tile& tile, QPointF at) const {
  if (!grid.contains(at)) return std::nullopt;
  const TileOperand& of = operand_of(tile, operand);
  for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
    if (rect_of(tile, n).adjusted(0, 0, 0, 1).contains(at)) return n;
  }
  return std::nullopt;
}

std::optional<std::int64_t> OperandLayout::piece_at(QPointF at) const {
  for (const OperandPiece& piece : pieces) {
    if (piece.rect.contains(at)) return piece.operand;
  }
  return std::nullopt;
}

std::optional<std::int64_t> shown_operand(const Tile& tile, const TileState& now, const LitTile& lit) {
  if (tile.operands.empty()) return std::nullopt;
  std::int64_t begun = 0;
  for (std::int64_t n = 0; n < std::ssize(tile.operands); ++n) {
    if (operand_of(tile, n).read < now.reads) begun = n;
  }
  const auto reads = [&](std::int64_t operand) {
    const TileOperand& of = operand_of(tile, operand);
    for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
      const auto chunk = tile.chunk_at(tile.operand_chunks[static_cast<std::size_t>(n)].shared);
      if (chunk && std::ranges::binary_search(lit.chunks, *chunk)) return true;
    }
    return false;
  };
  if (lit.chunks.empty() || reads(begun)) return begun;
  for (std::int64_t n = 0; n < std::ssize(tile.operands); ++n) {
    if (reads(n)) return n;
  }
  return begun;
}

OperandLayout operand_layout(const Tile& tile, std::int64_t operand, const QRectF& body, double font_scale) {
  const TileOperand& of = operand_of(tile, operand);
  OperandLayout at;
  at.operand = operand;
  at.per_chunk = std::max<std::int64_t>(tile.chunk_columns(), 1);
  const std::int64_t along = of.of.mn_major ? of.of.lines : of.of.depth;
  at.down = of.of.mn_major ? of.of.depth : of.of.lines;
  at.across = (along + at.per_chunk - 1) / at.per_chunk;
  const auto px = [&](double n) { return std::round(n * font_scale); };
  double top = body.top(), bottom = body.bottom();
  const auto room = [&](double height) { return bottom - top - height >= px(kLowestOperandGrid); };
  if (room(px(kOperandWords))) {
    at.words = QRectF(body.left(), top, body.width(), px(kOperandWords));
    top += px(kOperandWords);
  }
  const bool with_pieces = tile.rows() > 0 && tile.columns() > 0 && room(px(kOperandPieces + kOperandCaption));
  if (with_pieces) bottom -= px(kOperandPieces + kOperandCaption);
  if (room(px(kOperandAxis))) {
    at.axis = QRectF(body.left() + px(kOperandNames), top, body.width() - px(kOperandNames), px(kOperandAxis));
    top += px(kOperandAxis);
  }
  const std::int64_t gaps = (at.down - 1) / kCoreMatrixLines;
  const double free = bottom - top;
  at.gap = std::min(px(kOperandGap), free / static_cast<double>(4 * (gaps + 1)));
  at.line =
      std::min((free - at.gap * static_cast<double>(gaps)) / static_cast<double>(at.down), px(kHighestOperandLine));
  if (at.line >= 2) at.line = std::floor(at.line);
  const double left = body.left() + px(kOperandNames), width = body.right() - left;
  at.cell = (width - at.gap * static_cast<double>(at.across - 1)) / static_cast<double>(at.across);
  const double high = at.line * static_cast<double>(at.down) + at.gap * static_cast<double>(gaps);
  at.grid = QRectF(left, top, width, high);
  at.names = QRectF(body.left(), top, px(kOperandNames), high);
  if (!with_pieces) return at;
  at.caption = QRectF(body.left(), at.grid.bottom() + 4, body.width(), px(kOperandCaption));
  const QRectF all(body.left(), at.caption.bottom(), body.width(), px(kOperandPieces) - 6);
  for (std::int64_t n = 0; n < std::ssize(tile.operands); ++n) {
    const TileRead& read = tile.reads[static_cast<std::size_t>(operand_of(tile, n).read)];
    if (read.rows == 0) continue;
    const auto share = [](std::int64_t part, std::int64_t whole, double size) {
      return std::round(size * static_cast<double>(part) / static_cast<double>(whole));
    };
    const QPointF from(all.left() + share(read.column, tile.columns(), all.width()),
                       all.top() + share(read.row, tile.rows(), all.height()));
    const QPointF to(all.left() + share(read.column + read.columns, tile.columns(), all.width()),
                     all.top() + share(read.row + read.rows, tile.rows(), all.height()));
    at.pieces.push_back({n, QRectF(from, to).adjusted(0, 0, -1, -1)});
  }
  return at;
}

}  // namespace kvscope::viz
