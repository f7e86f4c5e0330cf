#include "viz/geometry/registers_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "viz/geometry/cell_grid.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kChipLine = 23, kChip = 18, kChipWidth = 34, kAxisLine = 15, kWordsLine = 19, kNarrowWords = 240,
                 kCaptionLine = 18;
constexpr double kAroundWords = 7, kPieceLine = 26, kLowestPiece = 7, kLine = 20, kLowestLine = 10.5;
constexpr double kRegisterDigit = 6, kBesideNames = 8, kLeastNames = 34, kWaveName = 40, kMoreLine = 14;
constexpr double kCellGap = 1, kBreak = 4;  // [px] between cells, and between groups of lanes
constexpr std::int64_t kFewestInGroup = 4;  // lines or cells between two breaks: fewer are not set apart
constexpr std::int64_t kFewestLines = 6;    // with fewer in sight the panel omits what is around the grid
constexpr double kBesidePieces = 2;         // [px]

const TileFill& fill_of(const Tile& tile, std::int64_t fill) {
  return tile.fills[static_cast<std::size_t>(fill)];
}

const TileRead& read_of(const Tile& tile, std::int64_t read) {
  return tile.reads[static_cast<std::size_t>(read)];
}

// The fill of the read that holds the element; nothing when another read holds it.
std::optional<std::int64_t> fill_in(const Tile& tile, std::int64_t read, TileElement element) {
  for (const std::int32_t fill : tile.fills_of(element)) {
    if (fill_of(tile, fill).read == read) return fill;
  }
  return std::nullopt;
}

// Where a group of lanes or registers ends: each n with a break between n - 1 and n. `at(n)`: the register.
template <class At>
std::vector<std::int64_t> breaks(std::int64_t count, const At& at) {
  std::vector<std::int64_t> found;
  std::optional<std::int64_t> apart;
  for (std::int64_t n = 1; n < count; ++n) {
    const std::optional<TileRegister> before = at(n - 1), here = at(n);
    if (!before || !here) continue;
    const bool next_register = here->lane == before->lane && here->index == before->index + 1;
    const std::int64_t lanes = here->lane - before->lane;
    const bool next_lane = here->index == before->index && lanes > 0 && lanes == apart.value_or(lanes);
    if (next_lane) apart = lanes;
    if (!next_lane && !next_register) found.push_back(n);
  }
  std::int64_t last = 0, least = count;
  for (const std::int64_t n : found) least = std::min(least, n - last), last = n;
  if (!found.empty()) least = std::min(least, count - last);
  return least < kFewestInGroup ? std::vector<std::int64_t>{} : found;
}

// Spans on whole pixels: `count` from `first` on with `size` px each and a break before each of `breaks`.
std::vector<RegisterSpan> spans(double begin, double size, std::int64_t first, std::int64_t count,
                                const std::vector<std::int64_t>& breaks) {
  std::vector<RegisterSpan> all;
  double shift = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    if (n > 0 && std::ranges::binary_search(breaks, first + n)) shift += kBreak;
    const double from = std::round(begin + static_cast<double>(n) * size) + shift;
    const double to = std::round(begin + static_cast<double>(n + 1) * size) + shift;
    all.push_back({from, std::max(from + 1, to - kCellGap)});
  }
  return all;
}

std::optional<std::int64_t> span_at(const std::vector<RegisterSpan>& spans, double at) {
  for (std::size_t n = 0; n < spans.size(); ++n) {
    if (at >= spans[n].begin && at < spans[n].end + kCellGap) return static_cast<std::int64_t>(n);
  }
  return std::nullopt;
}

// Reads of the wave, and those of other waves that read other parts of the tile.
std::vector<std::int64_t> pieces_of(const Tile& tile, std::int64_t wave) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> at;  // by row and column
  for (std::int64_t n = 0; n < std::ssize(tile.reads); ++n) {
    const TileRead& read = read_of(tile, n);
    if (read.fills == 0) continue;
    const auto [place, is_new] = at.try_emplace({read.row, read.column}, n);
    if (!is_new && read.wave == wave && read_of(tile, place->second).wave != wave) place->second = n;
  }
  std::vector<std::int64_t> reads;
  for (const auto& [place, read] : at) reads.push_back(read);
  std::ranges::sort(reads);
  return reads;
}

struct Heights {
  double chips = 0, axis = 0, more = 0, words = 0, caption = 0, pieces = 0, line = 0;
  std::int64_t lines = 0;  // that are shown
};

// A low panel omits, in this order: the pieces, the words, the axis, the waves.
Heights heights(QSizeF size, std::int64_t lines, double breaks, std::int64_t piece_lines, bool chips,
                double font_scale) {
  const double words = (size.width() < kNarrowWords * font_scale ? 3 : 2) * kWordsLine;
  Heights of;
  for (int drop = 0; drop <= 4; ++drop) {
    of = {};
    of.chips = chips && drop < 4 ? kChipLine * font_scale : 0;
    of.axis = drop < 3 ? kAxisLine * font_scale : 0;
    of.words = drop < 2 ? (words + 2 * kAroundWords) * font_scale : 0;
    of.caption = drop < 1 ? kCaptionLine * font_scale : 0;
    const double room = size.height() - of.chips - of.axis - of.words - of.caption - breaks;
    const auto down = static_cast<double>(lines), across = static_cast<double>(piece_lines);
    const double least_pieces = drop < 1 ? across * kLowestPiece : 0;
    const double best_pieces = drop < 1 ? across * kPieceLine * font_scale : 0;
    const double best_lines = down * kLine * font_scale, least_lines = down * kLowestLine * font_scale;
    // Between the least and the best of both, in the same proportion.
    const double share = std::clamp(
        (room - least_lines - least_pieces) / std::max(best_lines - least_lines + best_pieces - least_pieces, 1.0), 0.0,
        1.0);
    of.pieces = least_pieces + share * (best_pieces - least_pieces);
    of.line = (least_lines + share * (best_lines - least_lines)) / down;
    const auto fit = [&](double free) { return static_cast<std::int64_t>(free / of.line + 1e-9); };
    of.lines = std::clamp<std::int64_t>(fit(room - of.pieces), 1, lines);
    if (of.lines < lines && drop < 3) {
      of.more = kMoreLine * font_scale;
      of.lines = std::clamp<std::int64_t>(fit(room - of.pieces - of.more), 1, lines);
    }
    if (of.lines >= std::min(lines, kFewestLines)) return of;
  }
  return of;
}

}  // namespace

std::int64_t RegistersLayout::line(const Tile& tile, std::int64_t n) const {
  const TileRead& of = read_of(tile, read);
  return (turned ? of.column : of.row) + first_line + n;
}

std::int64_t RegistersLayout::across(const Tile& tile, std::int64_t unit) const {
  const TileRead& of = read_of(tile, read);
  return (turned ? of.row : of.column) + unit * per_cell;
}

std::optional<QRectF> RegistersLayout::element(const Tile& tile, TileElement element) const {
  const TileRead& of = read_of(tile, read);
  const std::int64_t down = (turned ? element.column - of.column : element.row - of.row) - first_line;
  const std::int64_t along = turned ? element.row - of.row : element.column - of.column;
  const std::int64_t unit = along / per_cell;
  if (down < 0 || down >= lines_shown() || along < 0 || unit >= std::ssize(units)) return std::nullopt;
  const RegisterSpan& y = shown[static_cast<std::size_t>(down)];
  const RegisterSpan& x = units[static_cast<std::size_t>(unit)];
  const auto cut = [&](std::int64_t part) {
    return x.begin + std::round((x.end - x.begin) * static_cast<double>(part) / static_cast<double>(per_cell));
  };
  const double left = cut(along % per_cell);
  return QRectF(left, y.begin, cut(along % per_cell + 1) - left, y.end - y.begin);
}

std::optional<QRectF> RegistersLayout::cell(const Tile& tile, std::int64_t fill) const {
  if (fill_of(tile, fill).read != read) return std::nullopt;
  std::optional<QRectF> all;
  for (const TileElement& of : elements(fill_of(tile, fill))) {
    const auto part = element(tile, of);
    if (part) all = all ? all->united(*part) : *part;
  }
  return all;
}

std::optional<std::int64_t> RegistersLayout::fill_at(const Tile& tile, QPointF at) const {
  const auto down = span_at(shown, at.y()), unit = span_at(units, at.x());
  if (!down || !unit) return std::nullopt;
  const std::int64_t line_of = line(tile, *down), first = across(tile, *unit);
  const RegisterSpan& x = units[static_cast<std::size_t>(*unit)];
  const std::int64_t part = std::min<std::int64_t>(
      per_cell - 1, static_cast<std::int64_t>((at.x() - x.begin) / (x.end - x.begin) * static_cast<double>(per_cell)));
  return fill_in(tile, read, turned ? TileElement{first + part, line_of} : TileElement{line_of, first + part});
}

std::optional<std::int64_t> RegistersLayout::piece_at(QPointF at) const {
  for (const RegisterPiece& piece : pieces) {
    if (piece.rect.contains(at)) return piece.read;
  }
  return std::nullopt;
}

std::optional<std::int64_t> RegistersLayout::wave_at(QPointF at) const {
  for (const RegisterWave& of : waves) {
    if (of.rect.contains(at)) return of.wave;
  }
  return std::nullopt;
}

bool overwritten(const Tile& tile, const TileState& now, std::int64_t read) {
  const TileRead& of = read_of(tile, read);
  for (std::int64_t n = read + 1; n < now.reads; ++n) {
    const TileRead& later = read_of(tile, n);
    if (later.wave == of.wave && later.step != of.step && later.first_register < of.first_register + of.registers &&
        of.first_register < later.first_register + later.registers) {
      return true;
    }
  }
  return false;
}

RegistersLayout registers_layout(const Tile& tile, std::int64_t read, std::optional<TileElement> focus, double scrolled,
                                 const QRectF& body, double font_scale) {
  const TileRead& of = read_of(tile, read);
  RegistersLayout layout;
  layout.read = read;
  layout.wave = of.wave;
  layout.turned = fill_of(tile, of.first_fill).down;
  std::int64_t per_cell = layout.turned ? of.rows : of.columns;
  for (std::int64_t n = of.first_fill; n < of.first_fill + of.fills; ++n) {
    const TileFill& fill = fill_of(tile, n);
    per_cell = std::gcd(per_cell, fill.down == layout.turned ? fill.elements : 1);
  }
  layout.per_cell = per_cell;
  layout.lines = layout.turned ? of.columns : of.rows;
  const std::int64_t units = (layout.turned ? of.rows : of.columns) / per_cell;

  const auto at = [&](std::int64_t line, std::int64_t unit) -> std::optional<TileRegister> {
    const std::int64_t along = unit * per_cell;
    const auto fill = fill_in(
        tile, read,
        layout.turned ? TileElement{of.row + along, of.column + line} : TileElement{of.row + line, of.column + along});
    return fill ? std::optional(fill_of(tile, *fill).reg) : std::nullopt;
  };
  const auto line_breaks = breaks(layout.lines, [&](std::int64_t n) { return at(n, 0); });
  const auto unit_breaks = breaks(units, [&](std::int64_t n) { return at(0, n); });

  const std::vector<std::int64_t> pieces = pieces_of(tile, of.wave);
  std::vector<std::int64_t> piece_rows;
  for (const std::int64_t piece : pieces) piece_rows.push_back(read_of(tile, piece).row);
  std::ranges::sort(piece_rows);
  const std::int64_t piece_lines = std::unique(piece_rows.begin(), piece_rows.end()) - piece_rows.begin();
  const Heights high = heights(body.size(), layout.lines, kBreak * static_cast<double>(line_breaks.size()), piece_lines,
                               tile.waves() > 1, font_scale);

  double y = body.top();
  if (high.chips > 0) {
    layout.wave_name = QRectF(body.left(), y, kWaveName * font_scale, kChip * font_scale);
    const double from = layout.wave_name.right(), room = body.right() - from;
    const double width = std::min(kChipWidth * font_scale, room / static_cast<double>(tile.waves()));
    for (std::int64_t wave = 0; wave < tile.waves(); ++wave) {
      layout.waves.push_back({wave, QRectF(std::round(from + static_cast<double>(wave) * width), y,
                                           std::max(std::floor(width) - 3, 1.0), kChip * font_scale)});
    }
    y += high.chips;
  }
  const std::int64_t most = layout.turned ? of.column + of.columns + (tile.memory ? tile.memory->first_column : 0)
                                          : tile.token_of(of.row + of.rows).value;
  const double names = std::min(std::max(digits(most) * kRegisterDigit + kBesideNames, kLeastNames) * font_scale,
                                std::round(body.width() / 4));
  const double left = std::ceil(body.left() + names);
  const double width = body.right() - left - kBreak * static_cast<double>(unit_breaks.size());
  layout.units = spans(left, width / static_cast<double>(units), 0, units, unit_breaks);
  if (high.axis > 0) layout.axis = QRectF(left, y, body.right() - left, high.axis);
  y = std::ceil(y + high.axis);

  // Scrolled to the focus, which is in the middle when there is more before and behind it.
  std::int64_t first = 0;
  if (focus) {
    const std::int64_t line = layout.turned ? focus->column - of.column : focus->row - of.row;
    if (line >= high.lines) first = line - high.lines / 2;
  }
  first += std::llround(scrolled);
  layout.first_line = std::clamp<std::int64_t>(first, 0, layout.lines - high.lines);
  layout.shown = spans(y, high.line, layout.first_line, high.lines, line_breaks);
  const double bottom = layout.shown.back().end;
  layout.grid = QRectF(QPointF(left, y), QPointF(layout.units.back().end, bottom));
  layout.names = QRectF(QPointF(body.left(), y), QPointF(left, bottom));
  y = bottom;
  if (high.more > 0) layout.more = QRectF(body.left(), y, body.width(), high.more);
  y += high.more;
  if (high.words > 0) {
    const double around = kAroundWords * font_scale;
    layout.words = QRectF(body.left(), y + around, body.width(), high.words - 2 * around);
    y += high.words;
  }
  if (high.pieces <= 0) return layout;
  layout.caption = QRectF(body.left(), y, body.width(), high.caption);
  const QRectF all(body.left(), std::ceil(y + high.caption), body.width(), std::floor(high.pieces) - 1);
  for (const std::int64_t piece : pieces) {
    const TileRead& one = read_of(tile, piece);
    const auto x_of = [&](std::int64_t column) {
      return std::round(all.left() + all.width() * static_cast<double>(column) / static_cast<double>(tile.columns()));
    };
    const auto y_of = [&](std::int64_t row) {
      return std::round(all.top() + all.height() * static_cast<double>(row) / static_cast<double>(tile.rows()));
    };
    const QPointF from(x_of(one.column), y_of(one.row));
    const QPointF to(x_of(one.column + one.columns), y_of(one.row + one.rows));
    const double gap_x = std::min(kBesidePieces, (to.x() - from.x()) / 4);
    const double gap_y = std::min(kBesidePieces, (to.y() - from.y()) / 4);
    layout.pieces.push_back({piece, QRectF(from, QPointF(to.x() - gap_x, to.y() - gap_y))});
  }
  return layout;
}

}  // namespace kvscope::viz
