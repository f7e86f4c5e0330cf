#include "viz/view/shared_paint.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kSharedLabel = 9;       // [px] at font scale 1
constexpr std::int64_t kSharedWord = 4;  // [bytes]

QString shared_tr(const char* text) {
  return QCoreApplication::translate("SharedPanel", text);
}

// Bytes that several copies write hold the last one that has landed; before that the first that will.
SharedImage image_now(const Scene& scene, const std::optional<TileLayout>& other) {
  const Tile& tile = *scene.tile;
  SharedImage image;
  if (!tile.shared) return image;
  image.line_bytes = std::max<std::int64_t>(tile.shared->banks * kSharedWord, kTileChunkBytes);
  std::int64_t end = tile.opened.bytes;
  for (const TileChunk& chunk : tile.chunks) end = std::max(end, chunk.shared + kTileChunkBytes);
  image.stored.assign(static_cast<std::size_t>((end + kTileChunkBytes - 1) / kTileChunkBytes), -1);
  for (std::int64_t n = 0; n < std::ssize(tile.chunks); ++n) {
    std::int32_t& slot =
        image.stored[static_cast<std::size_t>(tile.chunks[static_cast<std::size_t>(n)].shared / kTileChunkBytes)];
    if (slot < 0 || n < scene.tile_now->landed) slot = static_cast<std::int32_t>(n);
  }
  if (!other) return image;
  for (std::size_t slot = 0; slot < image.stored.size(); ++slot) {
    const auto to = static_cast<std::size_t>(placed(tile, *other, static_cast<std::int64_t>(slot) * kTileChunkBytes) /
                                             kTileChunkBytes);
    if (to >= image.other.size()) image.other.resize(to + 1, -1);
    image.other[to] = image.stored[slot];
  }
  return image;
}

// Bank by wavefront: a word in the color of its row, in the wavefront that delivers it; one cell for the adjacent
// words of a lane, with its number where there is room.
void paint_strip(QPainter& painter, const QRectF& strip, const BankPhaseUse& group, std::int64_t wavefronts,
                 const Scene& scene) {
  struct Cell {
    std::int64_t wavefront = 0, bank = 0, end = 0, lane = -1, row = -1;
  };
  const Tile& tile = *scene.tile;
  const auto banks = std::ssize(group.of_bank);
  std::vector<Cell> cells;
  for (const BankWord& word : group.words) {
    const auto chunk = tile.chunk_at(word.byte);
    const std::int64_t row = chunk ? tile.chunks[static_cast<std::size_t>(*chunk)].row : -1;
    const bool same_bank = !cells.empty() && cells.back().bank == word.bank;
    cells.push_back({same_bank ? cells.back().wavefront + 1 : 0, word.bank, word.bank + 1,
                     word.lanes.empty() ? -1 : word.lanes.front(), row});
  }
  std::ranges::sort(cells, {}, [](const Cell& cell) { return std::pair(cell.wavefront, cell.bank); });
  const auto rect_of = [&](const Cell& cell) {
    const QRectF first = strip_rect(strip, banks, wavefronts, cell.bank, cell.wavefront);
    return first.united(strip_rect(strip, banks, wavefronts, cell.end - 1, cell.wavefront));
  };
  for (std::int64_t wavefront = 0; wavefront < wavefronts; ++wavefront) {
    painter.fillRect(rect_of({wavefront, 0, banks, -1, -1}), scene.theme->cell_free);
  }
  for (std::size_t n = 0; n < cells.size();) {
    Cell cell = cells[n++];
    while (n < cells.size() && cells[n].wavefront == cell.wavefront && cells[n].bank == cell.end &&
           cells[n].lane == cell.lane && cells[n].row == cell.row) {
      ++cell.end;
      ++n;
    }
    const QRectF rect = rect_of(cell).adjusted(0, 0, -1, 0);
    const bool token = tile.holds_token(cell.row);
    if (token) {
      paint_tile_cell(painter, rect, *scene.theme, tile, cell.row, Arrival::there);
    } else {
      painter.fillRect(rect, scene.theme->cached);  // zeros are words too
    }
    const QString lane = QStringLiteral("L%1").arg(cell.lane);
    const QFont font = mono_font(scene.px(kSharedAxis));
    if (rect.height() < scene.px(kSharedAxis) || text_width(font, lane) + 2 > rect.width()) continue;
    draw_text_in(
        painter, font,
        token ? tile_ink(*scene.theme, tile, cell.row, Arrival::there) : scene.theme->ink_on(scene.theme->cached), rect,
        Qt::AlignHCenter, lane);
  }
}

void paint_verdict(QPainter& painter, const SharedNow& now, const ShownRead& shown, const Scene& scene) {
  const QRectF& rect = now.at.verdict;
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const QFont words = ui_font(scene.px(kSharedVerdictText)),
              strong = ui_font(scene.px(kSharedVerdictText), QFont::DemiBold);
  const BankUse with = bank_use(tile, shown.read, true);
  const auto group = static_cast<std::size_t>(shown.group);
  // Parts that do not fit are left out from the end; the first one is cut.
  struct Part {
    QString text;
    const QFont* font;
    QColor color;
  };
  const auto write = [&](const QRectF& line, const std::vector<Part>& parts) {
    double x = line.left();
    for (const Part& part : parts) {
      const double wide = text_width(*part.font, part.text);
      if (x + wide > line.right() && x > line.left()) return;
      draw_text_in(painter, *part.font, part.color, QRectF(x, line.top(), line.right() - x, line.height()),
                   Qt::AlignLeft, elided(*part.font, part.text, line.right() - x));
      x += wide + scene.px(6);
    }
  };
  const bool conflict = with.phases[group].wavefronts > 1;
  const QRectF first(rect.left(), rect.top(), rect.width(), rect.height() / 2);
  const auto all_lanes = [&](const BankUse& use) {
    return use.phases.size() > 1 ? shared_tr("· %1 for all lanes").arg(use.wavefronts) : QString();
  };
  const QString takes = QString::fromStdString(taken_in_words(tile, shown));
  const QString result = QString::fromStdString(banks_in_words(tile, with.phases[group]));
  std::vector<Part> parts = {{takes + QStringLiteral(":"), &words, theme.text},
                             {result, &strong, conflict ? theme.warning : theme.text_accent},
                             {all_lanes(with), &words, theme.text_quiet}};
  const auto fits = [&] {
    return text_width(words, parts[0].text) + text_width(strong, result) + scene.px(6) <= rect.width();
  };
  // The result is more than the instruction's name, and than what was taken.
  if (!fits()) parts[0].text = takes.mid(takes.indexOf(QStringLiteral(" takes ")) + 7) + QStringLiteral(":");
  if (!fits()) parts.erase(parts.begin());
  write(first, parts);
  const QRectF second = first.translated(0, rect.height() / 2);
  if (now.other) {
    const BankUse other = bank_use(tile, shown.read, *now.other);
    const QString result_of = QString::fromStdString(banks_in_words(tile, other.phases[group]));
    QString text = QStringLiteral("%1: %2").arg(now.other_name(), result_of);
    if (text_width(words, text) > rect.width()) {
      text = QStringLiteral("%1: %2").arg(QString::fromStdString(now.other->name), result_of);
    }
    const bool fewer = other.wavefronts < with.wavefronts;
    write(second,
          {{text, &words, fewer ? theme.text_accent : theme.text_quiet}, {all_lanes(other), &words, theme.text_quiet}});
  } else {
    write(second, {{conflict ? shared_tr("there is no swizzle: lanes of one bank wait for one another")
                             : shared_tr("there is no swizzle, and this read needs none"),
                    &words, theme.text_quiet}});
  }
}

}  // namespace

QString chip_text(const TileLayout& layout, const LayoutCost& cost) {
  return QStringLiteral("%1: %2").arg(QString::fromStdString(layout.name), number_text(cost.wavefronts));
}

const SharedLayouts& SharedLayouts::of(const Tile& tile) {
  if (serial != 0 && serial == tile.serial) return *this;
  serial = tile.serial;
  layouts = tile_layouts(tile);
  costs.clear();
  for (const TileLayout& layout : layouts) costs.push_back(layout_cost(tile, layout));
  return *this;
}

std::int64_t SharedImage::lines() const {
  return (static_cast<std::int64_t>(std::max(stored.size(), other.size())) + per_line() - 1) / per_line();
}

std::int32_t SharedImage::chunk(const SharedLayout::Place& place) const {
  const auto slot = static_cast<std::size_t>(place.line * per_line() + place.chunk);
  const std::vector<std::int32_t>& all = place.off ? other : stored;
  return slot < all.size() ? all[slot] : -1;
}

QString SharedImage::label(std::int64_t line, const Tile& tile) const {
  std::int64_t first = -1, last = -1;
  for (std::int64_t n = 0; n < per_line(); ++n) {
    const std::int32_t index = chunk({line, n, false});
    if (index < 0) continue;
    const std::int64_t row = tile.chunks[static_cast<std::size_t>(index)].row;
    if (row < 0) continue;
    first = first < 0 ? row : std::min(first, row);
    last = std::max(last, row);
  }
  if (first < 0) return {};
  const std::int64_t from = tile.token_of(first).value, to = tile.token_of(last).value;
  return from == to ? QString::number(from) : QStringLiteral("%1–%2").arg(from).arg(to);
}

QString SharedNow::other_name() const {
  if (!other) return {};
  if (other->padding > 0) return shared_tr("with rows padded by %1 B").arg(other->padding);
  if (other->bits == 0) return shared_tr("without the swizzle");
  return shared_tr("with the %1 swizzle").arg(QString::fromStdString(other->name));
}

SharedNow shared_now(const SharedLayouts& all, const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  SharedNow now;
  now.all = &all;
  now.other_index = scene.tile_layout && *scene.tile_layout < all.layouts.size()
                        ? scene.tile_layout
                        : compared_layout(all.layouts, all.costs);
  if (now.other_index) {
    now.other = all.layouts[*now.other_index];
  } else if (tile.shared && tile.shared->swizzle_bits > 0) {
    now.other = TileLayout{"none", tile.shared->row_bytes, 0, 0, 0, 0, false};  // without reads: only the places
  }
  now.image = image_now(scene, now.other);
  SharedSize size;
  if (tile.shared && !tile.chunks.empty()) {
    size.lines = now.image.lines();
    size.chunks = now.image.per_line();
    const std::int64_t band = tile.shared->rows * tile.shared->row_bytes;
    if (band < tile.opened.bytes && band % now.image.line_bytes == 0) size.band_lines = band / now.image.line_bytes;
    const QFont font = mono_font(scene.px(kSharedLabel));
    size.label_width =
        std::max(text_width(font, now.image.label(0, tile)), text_width(font, now.image.label(size.lines - 1, tile)));
    const std::int64_t widest = tile.chunk_columns() > 0 ? tile.columns() / tile.chunk_columns() - 1 : 0;
    size.chunk_width = text_width(mono_font(scene.px(kLowestChunkLabel)), QStringLiteral("c%1").arg(widest));
    size.compare = now.other.has_value();
    size.reads = !tile.lane_reads.empty();
    size.layouts = std::ssize(all.layouts);
    const QFont chip = ui_font(scene.px(kSharedChipText));
    for (std::size_t n = 0; n < all.layouts.size(); ++n) {
      size.chip_width = std::max(size.chip_width, text_width(chip, chip_text(all.layouts[n], all.costs[n])));
    }
  }
  now.at = shared_layout(size, body, scene.viewport_of(PanelId::shared), scene.font_scale);
  return now;
}

void paint_shared_read(QPainter& painter, const SharedNow& now, const ShownRead& shown, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const SharedLayout& at = now.at;
  const BankUse with = bank_use(tile, shown.read, true);
  const BankUse besides = now.other ? bank_use(tile, shown.read, *now.other) : BankUse();
  if (shown.group >= std::ssize(with.phases)) return;
  const BankPhaseUse& group = with.phases[static_cast<std::size_t>(shown.group)];
  const BankPhaseUse* const other = now.other ? &besides.phases[static_cast<std::size_t>(shown.group)] : nullptr;
  // The cells that the group takes, in both grids.
  std::vector<std::int64_t> slots;
  for (const BankWord& word : group.words) slots.push_back(word.byte / kTileChunkBytes);
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  painter.save();
  painter.setClipRect(at.grid.united(at.grid_off), Qt::IntersectClip);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme.text, 1.5));
  for (const std::int64_t slot : slots) {
    for (const bool off : {false, true}) {
      if (off && (at.grid_off.isEmpty() || !now.other)) continue;
      const std::int64_t place = off ? placed(tile, *now.other, slot * kTileChunkBytes) / kTileChunkBytes : slot;
      const QRectF rect = at.cell_rect({place / at.size.chunks, place % at.size.chunks, off});
      painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
    }
  }
  painter.restore();
  if (!at.strip.isEmpty()) {
    const std::int64_t most = std::max({group.wavefronts, other != nullptr ? other->wavefronts : 1, std::int64_t{1}});
    const QFont words = ui_font(scene.px(kSharedWords));
    const TileRead& read = tile.reads[static_cast<std::size_t>(shown.read)];
    const std::vector<std::int64_t> lanes = lanes_of(group);
    const QString number = shared_tr("read %1").arg(read.number);
    const QStringList titles{shared_tr("%1, lanes %2").arg(number, QString::fromStdString(ranges(lanes))),
                             shared_tr("%1, %2 lanes").arg(number).arg(lanes.size()), number};
    draw_text_in(painter, words, theme.text, at.strip_title, Qt::AlignLeft,
                 first_that_fits(words, titles, at.strip_title.width()));
    paint_strip(painter, at.strip, group, most, scene);
    if (!at.strip_off.isEmpty() && other != nullptr) {
      draw_text_in(painter, words, theme.text_quiet, at.strip_title_off, Qt::AlignLeft,
                   elided(words, now.other_name(), at.strip_title_off.width()));
      paint_strip(painter, at.strip_off, *other, most, scene);
    }
  }
  if (!at.verdict.isEmpty()) paint_verdict(painter, now, shown, scene);
}

}  // namespace kvscope::viz
