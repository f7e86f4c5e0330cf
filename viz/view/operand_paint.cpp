#include "viz/view/operand_paint.h"

#include <algorithm>

#include <QtCore/QCoreApplication>

#include "viz/playback/tile_state.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kOperandText = 12, kOperandDigits = 9, kOperandNote = 11;  // [px] at font scale 1

QString operand_tr(const char* text) {
  return QCoreApplication::translate("OperandPaint", text);
}

const TileOperand& shown_of(const Tile& tile, const OperandLayout& at) {
  return tile.operands[static_cast<std::size_t>(at.operand)];
}

// Index into Tile::chunks of the one that the operand's chunk reads.
std::optional<std::int64_t> chunk_read(const Tile& tile, std::int64_t n) {
  return tile.chunk_at(tile.operand_chunks[static_cast<std::size_t>(n)].shared);
}

Arrival arrival_of_operand_chunk(const Scene& scene, std::int64_t n) {
  if (n < scene.tile_now->operand_chunks) return Arrival::there;
  const Tile& tile = *scene.tile;
  for (const TileOperand& operand : tile.operands) {
    if (n >= operand.first_chunk && n < operand.first_chunk + operand.chunks) {
      return operand.read < scene.tile_now->reads ? Arrival::moving : Arrival::outlined;
    }
  }
  return Arrival::outlined;
}

// What the two offsets of a descriptor mean depends on its mode (PTX ISA, canonical layouts).
QStringList descriptor_lines(const Tile& tile, const OperandLayout& at) {
  const trace::OperandRead& of = shown_of(tile, at).of;
  const QString what = of.operand == 0 ? operand_tr("rows of A") : operand_tr("columns of B");
  QStringList lines;
  lines << operand_tr("%1 of product %2 of %3: %4 %5, %6 along k")
               .arg(of.operand == 0 ? QStringLiteral("A") : QStringLiteral("B"))
               .arg(at.operand + 1)
               .arg(tile.operands.size())
               .arg(of.lines)
               .arg(what)
               .arg(of.depth);
  lines << operand_tr("start %1 · leading %2 · stride %3 B · %4 · %5")
               .arg(number_text(of.start), number_text(of.leading), number_text(of.stride),
                    of.span == 0 ? operand_tr("no swizzle") : operand_tr("%1B swizzle").arg(of.span),
                    of.mn_major ? operand_tr("MN-major") : operand_tr("K-major"));
  const QString next_lines = of.mn_major ? operand_tr("8 elements of k") : operand_tr("8 lines");
  if (of.span > 0 && !of.mn_major) {
    lines << operand_tr("the next %1 begin %2 B further; leading is not used").arg(next_lines, number_text(of.stride));
  } else {
    const bool swapped = of.mn_major && of.span == 0;  // MN-major without a swizzle exchanges the two
    const std::int64_t lines_by = swapped ? of.leading : of.stride, along_by = swapped ? of.stride : of.leading;
    const QString along =
        of.span > 0 ? operand_tr("%1 B along the row").arg(of.span) : operand_tr("16 B along the row");
    lines << operand_tr("the next %1 begin %2 B further, the next %3 %4 B further")
                 .arg(next_lines, number_text(lines_by), along, number_text(along_by));
  }
  return lines;
}

void paint_words(QPainter& painter, const OperandLayout& at, const Scene& scene) {
  if (at.words.isEmpty()) return;
  const Theme& theme = *scene.theme;
  const QStringList lines = descriptor_lines(*scene.tile, at);
  const double high = at.words.height() / 4;
  for (qsizetype n = 0; n < lines.size(); ++n) {
    const QFont font =
        n == 1 ? mono_font(scene.px(kOperandNote))
               : ui_font(scene.px(n == 0 ? kOperandText : kOperandNote), n == 0 ? QFont::DemiBold : QFont::Normal);
    const QRectF line(at.words.left(), at.words.top() + high * static_cast<double>(n), at.words.width(), high);
    draw_text_in(painter, font, n == 0 ? theme.text : theme.text_quiet, line, Qt::AlignLeft,
                 elided(font, lines[n], line.width()));
  }
}

void paint_axes(QPainter& painter, const OperandLayout& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const trace::OperandRead& of = shown_of(tile, at).of;
  const QFont digits = mono_font(scene.px(kOperandDigits));
  const QString along =
      of.mn_major ? (of.operand == 0 ? QStringLiteral("m") : QStringLiteral("n")) : QStringLiteral("k");
  for (std::int64_t n = 0; n < at.across && !at.axis.isEmpty(); ++n) {
    const QRectF cell = at.rect(0, n);
    const QString name = QStringLiteral("%1 %2").arg(along).arg(n * at.per_chunk);
    if (text_width(digits, name) > cell.width()) break;
    draw_text_in(painter, digits, scene.theme->text_quiet,
                 QRectF(cell.left(), at.axis.top(), cell.width(), at.axis.height()), Qt::AlignLeft, name);
  }
  for (std::int64_t n = 0; n < at.down; n += kCoreMatrixLines) {  // the first line of each core matrix
    const QRectF cell = at.rect(n, 0);
    const QRectF name(at.names.left(), cell.top() - 1, at.names.width() - 4, scene.px(kOperandDigits + 2));
    draw_text_in(painter, digits, scene.theme->text_quiet, name, Qt::AlignRight, QString::number(n));
  }
}

void paint_grid(QPainter& painter, const OperandLayout& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileOperand& of = shown_of(tile, at);
  const QFont digits = mono_font(std::min(scene.px(kOperandDigits), at.line - 1));
  for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
    const QRectF rect = at.rect_of(tile, n);
    const auto chunk = chunk_read(tile, n);
    const std::int64_t row = chunk ? tile.chunks[static_cast<std::size_t>(*chunk)].row : -1;
    const Arrival arrival = arrival_of_operand_chunk(scene, n);
    paint_tile_cell(painter, rect, *scene.theme, tile, row, arrival);
    if (!chunk || tile.chunk_columns() == 0 || at.line < scene.px(kOperandDigits) || !tile.holds_token(row)) continue;
    const QString text = QStringLiteral("%1 · c%2")
                             .arg(tile.token_of(row).value)
                             .arg(tile.chunks[static_cast<std::size_t>(*chunk)].column / tile.chunk_columns());
    if (text_width(digits, text) + 4 > rect.width()) continue;
    draw_text_in(painter, digits, tile_ink(*scene.theme, tile, row, arrival), rect, Qt::AlignHCenter, text);
  }
}

void paint_pieces(QPainter& painter, const OperandLayout& at, const Scene& scene) {
  if (at.pieces.empty()) return;
  const Tile& tile = *scene.tile;
  const QFont words = ui_font(scene.px(kOperandNote));
  draw_text_in(painter, words, scene.theme->text_quiet, at.caption, Qt::AlignLeft,
               elided(words, operand_tr("operands of %1 products, as parts of the tile").arg(tile.operands.size()),
                      at.caption.width()));
  for (const OperandPiece& piece : at.pieces) {
    const TileRead& read =
        tile.reads[static_cast<std::size_t>(tile.operands[static_cast<std::size_t>(piece.operand)].read)];
    const Arrival arrival =
        arrival_of_read(tile, *scene.tile_now, tile.operands[static_cast<std::size_t>(piece.operand)].read);
    paint_tile_cell(painter, piece.rect, *scene.theme, tile, read.row, arrival);
    if (piece.operand != at.operand) continue;
    painter.setPen(QPen(scene.theme->text, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(piece.rect.adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

void paint_lit_chunks(QPainter& painter, const OperandLayout& at, const LitTile& lit, bool pinned, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileOperand& of = shown_of(tile, at);
  for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
    const auto chunk = chunk_read(tile, n);
    if (!chunk || !std::ranges::binary_search(lit.chunks, *chunk)) continue;
    paint_tile_outline(painter, at.rect_of(tile, n), *scene.theme, pinned);
  }
}

Selection chunk_selection(const Tile& tile, std::int64_t n) {
  const auto chunk = chunk_read(tile, n);
  if (!chunk) return {};
  const TileChunk& of = tile.chunks[static_cast<std::size_t>(*chunk)];
  return of.row < 0 || of.column < 0 ? Selection{} : of_tile_chunk({of.row, of.column});
}

}  // namespace

bool shows_operands(const Tile& tile) {
  return !tile.operands.empty() && tile.fills.empty();
}

std::optional<OperandLayout> operand_now(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const auto operand = shown_operand(tile, *scene.tile_now, scene.pinned_lit.tile);
  if (!operand || tile.operands[static_cast<std::size_t>(*operand)].chunks == 0) return std::nullopt;
  return operand_layout(tile, *operand, body, scene.font_scale);
}

void paint_operand(QPainter& painter, const OperandLayout& at, const Scene& scene) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  paint_words(painter, at, scene);
  paint_axes(painter, at, scene);
  paint_grid(painter, at, scene);
  paint_pieces(painter, at, scene);
  paint_lit_chunks(painter, at, scene.pinned_lit.tile, true, scene);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) {
    paint_lit_chunks(painter, at, scene.hovered_lit.tile, false, scene);
  }
  painter.restore();
}

std::vector<PanelCell> operand_cells(const OperandLayout& at, const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileOperand& of = shown_of(tile, at);
  std::vector<PanelCell> cells;
  const auto add = [&](const QRectF& rect, const Selection& object) {
    const QRectF seen = rect.intersected(body);
    if (!seen.isEmpty() && !object.none()) cells.push_back({seen, object, {}});
  };
  for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
    add(at.rect_of(tile, n), chunk_selection(tile, n));
  }
  for (const OperandPiece& piece : at.pieces) {
    if (piece.operand == at.operand) continue;
    add(piece.rect, chunk_selection(tile, tile.operands[static_cast<std::size_t>(piece.operand)].first_chunk));
  }
  return cells;
}

Selection operand_hit(const OperandLayout& at, QPointF point, const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (const auto chunk = at.chunk_at(tile, point)) return chunk_selection(tile, *chunk);
  const auto piece = at.piece_at(point);
  if (!piece || tile.operands[static_cast<std::size_t>(*piece)].chunks == 0) return {};
  return chunk_selection(tile, tile.operands[static_cast<std::size_t>(*piece)].first_chunk);
}

std::optional<QRectF> operand_anchor(const OperandLayout& at, const LitTile& lit, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const TileOperand& of = shown_of(tile, at);
  for (std::int64_t n = of.first_chunk; n < of.first_chunk + of.chunks; ++n) {
    const auto chunk = chunk_read(tile, n);
    if (chunk && std::ranges::binary_search(lit.chunks, *chunk)) return at.rect_of(tile, n);
  }
  return std::nullopt;
}

}  // namespace kvscope::viz
