// Shared memory: rows of 16-byte chunks over the banks, each chunk in the color of its row, with the swizzle and
// without it; below them the wavefronts of one read.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <QtCore/QCoreApplication>

#include "viz/geometry/shared_layout.h"
#include "viz/playback/tile_reads.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kSharedAxis = 8.5, kLineLabel = 9, kChunkLabel = 9.5, kLowestLabel = 8, kSharedCaption = 11,
                 kVerdictText = 12;
constexpr double kSmallestInk = 7;        // [px] at any font scale: smaller letters cannot be read
constexpr std::int64_t kSharedWord = 4;   // [bytes]
constexpr std::int64_t kBanksOfCell = 4;  // of 16 bytes
constexpr double kFewestLabelPixels = 8;  // [px] of a line that labels are written on

// What is stored where at one moment: chunks by 16-byte slot, -1 for none.
struct SharedImageNow {
  std::vector<std::int32_t> stored;  // as it is
  std::vector<std::int32_t> plain;   // without the swizzle
  std::int64_t line_bytes = 128;

  [[nodiscard]] std::int64_t per_line() const { return line_bytes / kTileChunkBytes; }
  [[nodiscard]] std::int64_t lines() const {
    return (static_cast<std::int64_t>(stored.size()) + per_line() - 1) / per_line();
  }
  [[nodiscard]] std::int32_t chunk(const SharedLayout::Place& place) const {
    const auto slot = static_cast<std::size_t>(place.line * per_line() + place.chunk);
    const std::vector<std::int32_t>& all = place.off ? plain : stored;
    return slot < all.size() ? all[slot] : -1;
  }
};

// Bytes that several copies write hold the last one that has landed; before that the first that will.
SharedImageNow image_now(const Scene& scene) {
  const Tile& tile = *scene.tile;
  SharedImageNow image;
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
  image.plain.assign(image.stored.size(), -1);
  for (std::size_t slot = 0; slot < image.stored.size(); ++slot) {
    const auto to =
        static_cast<std::size_t>(tile.unswizzled(static_cast<std::int64_t>(slot) * kTileChunkBytes) / kTileChunkBytes);
    if (to < image.plain.size()) image.plain[to] = image.stored[slot];
  }
  return image;
}

bool is_swizzled(const Tile& tile) {
  return tile.shared && tile.shared->swizzle_bits > 0;
}

class SharedPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(SharedPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::shared; }
  [[nodiscard]] QString title() const override { return tr("Shared memory"); }
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> link_anchor(const Lit& lit, const QRectF& body,
                                                  const Scene& scene) const override;
  [[nodiscard]] TilePlaces chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                        const Scene& scene) const override;
  [[nodiscard]] TilePlaces fill_places(std::span<const std::int64_t> fills, const QRectF& body,
                                       const Scene& scene) const override;
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] bool paints_scroll_bar() const override { return true; }
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;

 private:
  struct Standing {  // where everything is and what is there
    SharedImageNow image;
    SharedLayout at;
  };
  static Standing standing(const QRectF& body, const Scene& scene);
  static QString line_label(const SharedImageNow& image, std::int64_t line, const Tile& tile);
  static void paint_axis(QPainter& painter, const QRectF& rect, const SharedLayout& at, const Scene& scene);
  static void paint_more(QPainter& painter, const SharedLayout& at, const Scene& scene);
  static void paint_lit(QPainter& painter, const Standing& now, const LitTile& lit, bool pinned, const Scene& scene);
  static void paint_read(QPainter& painter, const Standing& now, const ShownRead& shown, const Scene& scene);
  static void paint_strip(QPainter& painter, const QRectF& strip, const BankPhaseUse& group, std::int64_t wavefronts,
                          const Scene& scene);
  static void paint_verdict(QPainter& painter, const QRectF& rect, const ShownRead& shown, const Scene& scene);
};

QString SharedPanel::tile_subtitle(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (!tile.shared) return tr("%1 B").arg(number_text(tile.opened.bytes));
  return QString::fromStdString(swizzle_formula(tile));
}

QString SharedPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const QString landed =
      tr("%1 of %2 chunks landed").arg(number_text(scene.tile_now->landed), number_text(std::ssize(tile.chunks)));
  if (!tile.shared) return landed;
  return tr("%1 · rows of %2 B over %3 banks").arg(landed).arg(tile.shared->row_bytes).arg(tile.shared->banks);
}

// The tokens of a line: "64", or "64–67" where a line holds several rows.
QString SharedPanel::line_label(const SharedImageNow& image, std::int64_t line, const Tile& tile) {
  std::int64_t first = -1, last = -1;
  for (std::int64_t n = 0; n < image.per_line(); ++n) {
    const std::int32_t chunk = image.chunk({line, n, false});
    if (chunk < 0) continue;
    const std::int64_t row = tile.chunks[static_cast<std::size_t>(chunk)].row;
    if (row < 0) continue;
    first = first < 0 ? row : std::min(first, row);
    last = std::max(last, row);
  }
  if (first < 0) return {};
  const std::int64_t from = tile.token_of(first).value, to = tile.token_of(last).value;
  return from == to ? QString::number(from) : QStringLiteral("%1–%2").arg(from).arg(to);
}

SharedPanel::Standing SharedPanel::standing(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  Standing now{image_now(scene), {}};
  SharedSize size;
  if (tile.shared && !tile.chunks.empty()) {
    size.lines = now.image.lines();
    size.chunks = now.image.per_line();
    const std::int64_t band = tile.shared->rows * tile.shared->row_bytes;
    if (band < tile.opened.bytes && band % now.image.line_bytes == 0) size.band_lines = band / now.image.line_bytes;
    const QFont font = mono_font(scene.px(kLineLabel));
    size.label_width = std::max(text_width(font, line_label(now.image, 0, tile)),
                                text_width(font, line_label(now.image, size.lines - 1, tile)));
    const std::int64_t widest = tile.chunk_columns() > 0 ? tile.columns() / tile.chunk_columns() - 1 : 0;
    size.chunk_width = text_width(mono_font(scene.px(kLowestLabel)), QStringLiteral("c%1").arg(widest));
    size.compare = is_swizzled(tile);
    size.reads = !tile.lane_reads.empty();
  }
  now.at = shared_layout(size, body, scene.viewport_of(PanelId::shared), scene.font_scale);
  return now;
}

// --- the grids -------------------------------------------------------------------------------------------------------

void SharedPanel::paint_axis(QPainter& painter, const QRectF& rect, const SharedLayout& at, const Scene& scene) {
  const QFont font = mono_font(scene.px(kSharedAxis));
  const double cell = rect.width() / static_cast<double>(at.size.chunks);
  const QFont name = ui_font(scene.px(kSharedAxis));
  if (rect.left() == at.grid.left() && text_width(name, tr("bank")) + scene.px(5) <= at.labels.width()) {
    draw_text_in(painter, name, scene.theme->text_quiet,
                 QRectF(at.labels.left(), rect.top(), at.labels.width() - scene.px(5), rect.height()), Qt::AlignRight,
                 tr("bank"));
  }
  // Every group of banks, or its first bank only, or every second one.
  const std::int64_t banks = at.size.chunks * kBanksOfCell;
  const bool whole = text_width(font, QStringLiteral("%1–%2").arg(banks - 4).arg(banks - 1)) + 4 <= cell;
  const double first = text_width(font, QString::number(banks)) + 3;
  const std::int64_t step = whole || first <= cell ? 1 : first <= 2 * cell ? 2 : 4;
  for (std::int64_t n = 0; n < at.size.chunks; n += step) {
    const QRectF where(rect.left() + cell * static_cast<double>(n), rect.top(), cell - 1, rect.height());
    const std::int64_t bank = n * kBanksOfCell;
    draw_text_in(painter, font, scene.theme->text_quiet, where, whole ? Qt::AlignHCenter : Qt::AlignLeft,
                 whole ? QStringLiteral("%1–%2").arg(bank).arg(bank + kBanksOfCell - 1) : QString::number(bank));
  }
}

void SharedPanel::paint_more(QPainter& painter, const SharedLayout& at, const Scene& scene) {
  if (!at.bar.isEmpty()) painter.fillRect(at.bar, scene.theme->text_quiet);
  if (at.more.isEmpty()) return;
  const QFont font = ui_font(scene.px(kSharedCaption));
  const QString lines = tr("lines %1–%2 of %3").arg(at.first_line()).arg(at.end_line() - 1).arg(at.size.lines);
  const QStringList texts = at.bar.isEmpty() ? QStringList{tr("zoom in to read the chunks"), tr("zoom in")}
                                             : QStringList{tr("%1 · scroll or zoom out").arg(lines), lines};
  draw_text_in(painter, font, scene.theme->text_quiet, at.more, Qt::AlignLeft,
               first_that_fits(font, texts, at.more.width()));
}

void SharedPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const auto [image, at] = standing(body, scene);
  const QFont words = ui_font(scene.px(kSharedCaption));
  if (at.size.lines == 0) {
    draw_text_in(
        painter, ui_font(scene.px(12)), theme.text_quiet, QRectF(body.left(), body.top(), body.width(), scene.px(18)),
        Qt::AlignLeft,
        elided(ui_font(scene.px(12)), tr("The trace does not contain the chunks of shared memory."), body.width()));
    return;
  }
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (!at.caption.isEmpty()) {
    draw_text_in(painter, words, theme.text, at.caption, Qt::AlignLeft,
                 elided(words, tr("as stored"), at.caption.width()));
    draw_text_in(painter, words, theme.text_quiet, at.caption_off, Qt::AlignLeft,
                 elided(words, tr("without the swizzle"), at.caption_off.width()));
  }
  if (!at.banks.isEmpty()) paint_axis(painter, at.banks, at, scene);
  if (!at.banks_off.isEmpty()) paint_axis(painter, at.banks_off, at, scene);
  paint_more(painter, at, scene);
  painter.setClipRect(QRectF(body.left(), at.grid.top(), body.width(), at.grid.height()), Qt::IntersectClip);
  const bool written = at.pitch >= kFewestLabelPixels;
  const QFont digits = mono_font(std::min(scene.px(kLineLabel), at.pitch));
  // The largest font with which every label fits.
  double size = std::min(scene.px(kChunkLabel), at.pitch - 1);
  const double cell = at.grid.width() / static_cast<double>(at.size.chunks);
  const double widest = at.size.chunk_width / scene.px(kLowestLabel);
  if (widest > 0) size = std::min(size, (cell - 3) / widest);
  const QFont chunk_font = mono_font(std::max(size, 1.0));
  const bool named = written && size >= kSmallestInk && tile.chunk_columns() > 0;
  QString shown;
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    const QString label = written ? line_label(image, line, tile) : QString();
    if (label != shown || (at.size.band_lines > 0 && line % at.size.band_lines == 0)) {
      draw_text_in(painter, digits, theme.text_quiet, at.label_rect(line).adjusted(0, 0, -scene.px(5), 0),
                   Qt::AlignRight, label);
    }
    shown = label;
    for (const bool off : {false, true}) {
      if (off && at.grid_off.isEmpty()) continue;
      for (std::int64_t n = 0; n < at.size.chunks; ++n) {
        const SharedLayout::Place place{line, n, off};
        const std::int32_t index = image.chunk(place);
        if (index < 0) continue;
        const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(index)];
        const Arrival arrival = arrival_of_chunk(tile, *scene.tile_now, index);
        const QRectF rect = at.cell_rect(place);
        paint_tile_cell(painter, rect, theme, tile, chunk.row, arrival);
        if (!named || chunk.column < 0 || !tile.holds_token(chunk.row)) continue;
        draw_text_in(painter, chunk_font, tile_ink(theme, tile, chunk.row, arrival), rect, Qt::AlignHCenter,
                     QStringLiteral("c%1").arg(chunk.column / tile.chunk_columns()));
      }
    }
  }
  painter.restore();
}

// --- what is selected, and its read ----------------------------------------------------------------------------------

void SharedPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return;
  const Standing now = standing(body, scene);
  if (now.at.size.lines == 0) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  const std::optional<ShownRead> shown = shown_read(*scene.tile, *scene.tile_now, scene.lit().tile);
  if (shown) {
    paint_read(painter, now, *shown, scene);
  } else if (!now.at.verdict.isEmpty()) {
    const QFont font = ui_font(scene.px(kVerdictText));
    const std::string why = no_registers(*scene.tile);
    const QString text = why.empty() ? tr("The trace does not contain the reads of lanes.")
                                     : tr("Nothing reads it: %1.").arg(QString::fromStdString(why));
    painter.setFont(font);
    painter.setPen(scene.theme->text_quiet);
    painter.drawText(now.at.verdict, static_cast<int>(Qt::AlignLeft | Qt::AlignTop) | Qt::TextWordWrap, text);
  }
  painter.setClipRect(now.at.grid.united(now.at.grid_off).adjusted(-2, -2, 2, 2), Qt::IntersectClip);
  paint_lit(painter, now, scene.pinned_lit.tile, true, scene);
  if (!scene.hovered.none() && scene.hovered != scene.pinned)
    paint_lit(painter, now, scene.hovered_lit.tile, false, scene);
  painter.restore();
}

// One outline for adjacent chunks of a line.
void SharedPanel::paint_lit(QPainter& painter, const Standing& now, const LitTile& lit, bool pinned,
                            const Scene& scene) {
  if (lit.chunks.empty()) return;
  const SharedLayout& at = now.at;
  const auto is_lit_at = [&](const SharedLayout::Place& place) {
    const std::int32_t chunk = now.image.chunk(place);
    return chunk >= 0 && std::ranges::binary_search(lit.chunks, std::int64_t{chunk});
  };
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    for (const bool off : {false, true}) {
      if (off && at.grid_off.isEmpty()) continue;
      for (std::int64_t n = 0; n < at.size.chunks; ++n) {
        if (!is_lit_at({line, n, off})) continue;
        const QRectF first = at.cell_rect({line, n, off});
        while (n + 1 < at.size.chunks && is_lit_at({line, n + 1, off})) ++n;
        paint_tile_outline(painter, first.united(at.cell_rect({line, n, off})), *scene.theme, pinned);
      }
    }
  }
}

void SharedPanel::paint_read(QPainter& painter, const Standing& now, const ShownRead& shown, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const SharedLayout& at = now.at;
  const BankUse with = bank_use(tile, shown.read, true), without = bank_use(tile, shown.read, false);
  if (shown.group >= std::ssize(with.phases) || shown.group >= std::ssize(without.phases)) return;
  const BankPhaseUse& group = with.phases[static_cast<std::size_t>(shown.group)];
  const BankPhaseUse& plain = without.phases[static_cast<std::size_t>(shown.group)];
  // The cells that the group takes, in both grids.
  std::vector<std::int64_t> slots;
  for (const BankWord& word : group.words) slots.push_back(word.byte / kTileChunkBytes);
  std::ranges::sort(slots);
  const auto same = std::ranges::unique(slots);
  slots.erase(same.begin(), same.end());
  painter.save();
  painter.setClipRect(at.grid.united(at.grid_off), Qt::IntersectClip);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme.text, 1.5));
  for (const std::int64_t slot : slots) {
    for (const bool off : {false, true}) {
      if (off && at.grid_off.isEmpty()) continue;
      const std::int64_t place = off ? tile.unswizzled(slot * kTileChunkBytes) / kTileChunkBytes : slot;
      const QRectF rect = at.cell_rect({place / at.size.chunks, place % at.size.chunks, off});
      painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
    }
  }
  painter.restore();
  if (!at.strip.isEmpty()) {
    const std::int64_t most = std::max({group.wavefronts, is_swizzled(tile) ? plain.wavefronts : 1, std::int64_t{1}});
    const QFont words = ui_font(scene.px(kSharedCaption));
    const TileRead& read = tile.reads[static_cast<std::size_t>(shown.read)];
    const std::vector<std::int64_t> lanes = lanes_of(group);
    const QString number = tr("read %1 of %2").arg(read.number + 1).arg(tile.reads.size());
    const QStringList titles{tr("%1, lanes %2").arg(number, QString::fromStdString(ranges(lanes))),
                             tr("%1, %2 lanes").arg(number).arg(lanes.size()), number};
    draw_text_in(painter, words, theme.text, at.strip_title, Qt::AlignLeft,
                 first_that_fits(words, titles, at.strip_title.width()));
    paint_strip(painter, at.strip, group, most, scene);
    if (!at.strip_off.isEmpty()) {
      draw_text_in(painter, words, theme.text_quiet, at.strip_title_off, Qt::AlignLeft,
                   elided(words, tr("without the swizzle"), at.strip_title_off.width()));
      paint_strip(painter, at.strip_off, plain, most, scene);
    }
  }
  if (!at.verdict.isEmpty()) paint_verdict(painter, at.verdict, shown, scene);
}

// Bank by wavefront: a word in the color of its row, in the wavefront that delivers it; one cell for the adjacent
// words of a lane, with its number where there is room.
void SharedPanel::paint_strip(QPainter& painter, const QRectF& strip, const BankPhaseUse& group,
                              std::int64_t wavefronts, const Scene& scene) {
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

void SharedPanel::paint_verdict(QPainter& painter, const QRectF& rect, const ShownRead& shown, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const QFont words = ui_font(scene.px(kVerdictText)), strong = ui_font(scene.px(kVerdictText), QFont::DemiBold);
  const BankUse with = bank_use(tile, shown.read, true), without = bank_use(tile, shown.read, false);
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
    return use.phases.size() > 1 ? tr("· %1 for all lanes").arg(use.wavefronts) : QString();
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
  if (is_swizzled(tile)) {
    const QString plain = QString::fromStdString(banks_in_words(tile, without.phases[group]));
    QString text = tr("without the swizzle: %1").arg(plain);
    if (text_width(words, text) > rect.width()) text = tr("without: %1").arg(plain);
    write(second, {{text, &words, theme.text_quiet}, {all_lanes(without), &words, theme.text_quiet}});
  } else {
    write(second, {{conflict ? tr("there is no swizzle: lanes of one bank wait for one another")
                             : tr("there is no swizzle, and this read needs none"),
                    &words, theme.text_quiet}});
  }
}

// --- what is where ---------------------------------------------------------------------------------------------------

std::vector<PanelCell> SharedPanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const auto [image, at] = standing(body, scene);
  std::vector<PanelCell> cells;
  if (at.size.lines == 0) return cells;
  for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
    for (std::int64_t n = 0; n < at.size.chunks; ++n) {
      const SharedLayout::Place place{line, n, false};
      const std::int32_t index = image.chunk(place);
      if (index < 0) continue;
      const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(index)];
      const QRectF rect = at.cell_rect(place).intersected(at.grid);
      if (chunk.row < 0 || chunk.column < 0 || rect.isEmpty()) continue;
      cells.push_back({rect, of_tile_chunk({chunk.row, chunk.column}), {}});
    }
  }
  return cells;
}

Selection SharedPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return {};
  const Standing now = standing(body, scene);
  const auto place = now.at.at(at);
  const std::int32_t index = place ? now.image.chunk(*place) : -1;
  if (index < 0) return {};
  const TileChunk& chunk = scene.tile->chunks[static_cast<std::size_t>(index)];
  return chunk.row < 0 || chunk.column < 0 ? Selection{} : of_tile_chunk({chunk.row, chunk.column});
}

// The whole line of the first chunk that is lit and visible: links end beside it and cross no other chunk.
std::optional<QRectF> SharedPanel::link_anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  const std::optional<QRectF> cell = anchor(lit, body, scene);
  if (!cell) return std::nullopt;
  const SharedLayout at = standing(body, scene).at;
  const double right = at.grid_off.isEmpty() ? at.grid.right() : at.grid_off.right();
  return QRectF(at.labels.left(), cell->top(), right - at.labels.left(), cell->height());
}

TilePlaces SharedPanel::chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                     const Scene& scene) const {
  const SharedLayout at = standing(body, scene).at;
  TilePlaces places;
  for (const std::int64_t n : chunks) {
    const std::int64_t slot = scene.tile->chunks[static_cast<std::size_t>(n)].shared / kTileChunkBytes;
    const QRectF rect =
        at.size.lines > 0 ? at.cell_rect({slot / at.size.chunks, slot % at.size.chunks, false}) : QRectF();
    places.push_back(rect.intersects(at.grid) ? std::optional(rect.intersected(at.grid)) : std::nullopt);
  }
  return places;
}

// A register comes from a part of a chunk: its elements of a row, or the first one of those of a column.
TilePlaces SharedPanel::fill_places(std::span<const std::int64_t> fills, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  std::vector<std::int64_t> chunks;
  for (const std::int64_t n : fills) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    if (const auto chunk = tile.chunk_of({fill.row, fill.column})) chunks.push_back(*chunk);
  }
  const TilePlaces of_chunks = chunk_places(chunks, body, scene);
  TilePlaces places;
  std::size_t next = 0;
  for (const std::int64_t n : fills) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    places.emplace_back();
    if (!tile.chunk_of({fill.row, fill.column})) continue;
    const auto first = tile.chunks[static_cast<std::size_t>(chunks[next])].column;
    if (const auto& whole = of_chunks[next++]) {
      places.back() = part_of_row(*whole, fill.column - first, fill.down ? 1 : fill.elements, tile.chunk_columns());
    }
  }
  return places;
}

Viewport SharedPanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr || factor == 1) return viewport;
  const SharedLayout layout = standing(body, scene).at;
  return layout.size.lines == 0 ? viewport : shared_zoomed(layout, factor, at);
}

Viewport SharedPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr) return viewport;
  const SharedLayout layout = standing(body, scene).at;
  return layout.size.lines == 0 ? viewport : shared_scrolled(layout, viewport, by);
}

Viewport SharedPanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const Viewport& viewport = scene.viewport_of(PanelId::shared);
  if (scene.tile == nullptr) return viewport;
  const Lit lit = resolve(scene.state(), scene.facts(), scene.tile, object);
  const auto [image, at] = standing(body, scene);
  if (at.size.lines == 0 || lit.tile.chunks.empty()) return viewport;
  const std::int64_t byte = scene.tile->chunks[static_cast<std::size_t>(lit.tile.chunks.front())].shared;
  return shared_revealing(at, viewport, byte / image.line_bytes);
}

}  // namespace

std::unique_ptr<Panel> make_shared_panel() {
  return std::make_unique<SharedPanel>();
}

}  // namespace kvscope::viz
