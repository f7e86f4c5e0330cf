#include "viz/view/registers_paint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <QtCore/QCoreApplication>
#include <QtGui/QTextOption>

#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/cell_paint.h"
#include "viz/view/legend_flow.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kRegisterText = 10, kLeastRegisterText = 8.2, kRegisterAxisText = 10, kRegisterWords = 12.5;
constexpr double kRegisterCaption = 11.5, kRegisterLegendText = 12, kRegisterLegendCell = 11, kBesideRegisterLegend = 6,
                 kRegisterLegendGap = 16;
constexpr double kRegisterWordsLine = 19;        // [px] at font scale 1
constexpr double kSmallestRegisterWords = 0.75;  // of their size
constexpr double kSmallestRegisterLegend = 0.6;  // of its size
constexpr double kAroundRegisterLabel = 3;       // [px] of a cell that its label leaves free
constexpr double kOverwrittenShare = 0.3;        // how much is left of a register's fill that a later k-step replaced
constexpr double kRegisterAxisGap = 6;           // [px] between two numbers of the axis
constexpr std::array kRegisterLabels{0, 1, 2, 3};

class RegistersPaint {
  Q_DECLARE_TR_FUNCTIONS(RegistersPanel)

 public:
  static void waves(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void axes(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void grid(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void more(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void words(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void pieces(QPainter& painter, const RegistersNow& at, const Scene& scene);
  static void lit(QPainter& painter, const RegistersNow& at, const Scene& scene, const Lit& lit, bool pinned);
  static void legend(QPainter& painter, const QRectF& footer, const Scene& scene);

 private:
  static QString label(const Tile& tile, const TileFill& fill, int detail);
};

// "3", "3–6"
QString number_range(std::int64_t first, std::int64_t last) {
  return first == last ? QString::number(first) : QStringLiteral("%1–%2").arg(first).arg(last);
}

std::int64_t head_dim(const Tile& tile, std::int64_t column) {
  return column + (tile.memory ? tile.memory->first_column : 0);
}

void RegistersPaint::waves(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  if (at.layout.waves.empty()) return;
  const QFont font = ui_font(scene.px(kRegisterCaption));
  draw_text_in(painter, font, theme.text_quiet, at.layout.wave_name, Qt::AlignLeft,
               tile.tma() ? tr("warp") : tr("wave"));
  std::vector<std::int64_t> done(static_cast<std::size_t>(tile.waves())), all(done);
  for (std::int64_t n = 0; n < std::ssize(tile.reads); ++n) {
    const auto wave = static_cast<std::size_t>(tile.reads[static_cast<std::size_t>(n)].wave);
    ++all[wave];
    if (arrival_of_read(tile, *scene.tile_now, n) == Arrival::there) ++done[wave];
  }
  for (const RegisterWave& of : at.layout.waves) {
    const bool here = of.wave == at.layout.wave;
    painter.fillRect(of.rect, theme.cell_free);
    const auto wave = static_cast<std::size_t>(of.wave);
    QRectF level = of.rect;
    level.setTop(level.bottom() - 3);
    level.setWidth(all[wave] > 0
                       ? std::round(level.width() * static_cast<double>(done[wave]) / static_cast<double>(all[wave]))
                       : 0);
    painter.fillRect(level, theme.text_accent);
    if (here) paint_tile_outline(painter, of.rect.adjusted(1, 1, -1, -1), theme, false);
    draw_text_in(painter, mono_font(scene.px(kRegisterAxisText)), here ? theme.text : theme.text_quiet,
                 of.rect.adjusted(0, 0, 0, -2), Qt::AlignHCenter, QString::number(of.wave));
  }
}

void RegistersPaint::axes(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const RegistersLayout& layout = at.layout;
  const QFont font = mono_font(scene.px(kRegisterAxisText));
  const auto number = [&](bool token, std::int64_t n) {
    return QString::number(token ? tile.token_of(n).value : head_dim(tile, n));
  };
  // As many numbers as there is room for.
  if (!layout.axis.isEmpty()) {
    const double wide = text_width(font, number(layout.turned, layout.across(tile, std::ssize(layout.units) - 1)));
    double free = layout.axis.left();
    for (std::size_t n = 0; n < layout.units.size(); ++n) {
      const RegisterSpan& x = layout.units[n];
      const double left = std::max((x.begin + x.end - wide) / 2, x.begin);
      if (left < free || left + wide > layout.axis.right()) continue;
      const std::int64_t of = layout.across(tile, static_cast<std::int64_t>(n));
      draw_text_in(painter, font, theme.text_quiet, QRectF(left, layout.axis.top(), wide, layout.axis.height()),
                   Qt::AlignLeft, number(layout.turned, of));
      free = left + wide + kRegisterAxisGap;
    }
    const QFont words = ui_font(scene.px(kRegisterAxisText));
    const QRectF corner(layout.names.left(), layout.axis.top(), layout.names.width(), layout.axis.height());
    const QString what = layout.turned ? tr("token") : tr("dim");
    if (text_width(words, what) <= corner.width()) {
      draw_text_in(painter, words, theme.text_quiet, corner, Qt::AlignLeft, what);
    }
  }
  double free = layout.grid.top();
  const double tall = cap_height(font) + 2;
  for (std::int64_t n = 0; n < layout.lines_shown(); ++n) {
    const RegisterSpan& y = layout.shown[static_cast<std::size_t>(n)];
    const double middle = (y.begin + y.end) / 2;
    const std::int64_t of = layout.line(tile, n);
    if (middle - tall / 2 < free - 1) continue;
    const bool lit = !layout.turned && std::ranges::binary_search(scene.lit().tile.rows, of);
    draw_text_in(painter, mono_font(scene.px(kRegisterAxisText), lit ? QFont::Bold : QFont::Normal),
                 lit ? theme.text : theme.text_quiet,
                 QRectF(layout.names.left(), y.begin, layout.names.width() - kRegisterAxisGap, y.end - y.begin),
                 Qt::AlignRight, number(!layout.turned, of));
    free = middle + tall / 2;
  }
}

void RegistersPaint::more(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  const RegistersLayout& layout = at.layout;
  if (layout.more.isEmpty() || layout.lines_shown() == layout.lines) return;
  const std::int64_t above = layout.first_line, below = layout.lines - layout.first_line - layout.lines_shown();
  const QFont font = ui_font(scene.px(kRegisterAxisText));
  const QString of = layout.turned ? tr("dims") : tr("tokens");
  const QString words = below == 0   ? tr("+%1 %2 above").arg(above).arg(of)
                        : above == 0 ? tr("+%1 %2 below").arg(below).arg(of)
                                     : tr("+%1 %2 above, +%3 below").arg(above).arg(of).arg(below);
  draw_text_in(painter, font, scene.theme->text_accent, layout.more, Qt::AlignLeft,
               elided(font, words, layout.more.width()));
}

QString RegistersPaint::label(const Tile& tile, const TileFill& fill, int detail) {
  QString text = detail < 3 ? QStringLiteral("L%1").arg(fill.reg.lane) : QString::number(fill.reg.lane);
  if (detail < 2) text += QStringLiteral(" r%1").arg(fill.reg.index);
  if (detail < 1) {
    const std::int64_t first = fill.down ? tile.token_of(fill.row).value : head_dim(tile, fill.column);
    const QString more = fill.elements == 2  ? QStringLiteral(",%1").arg(first + 1)
                         : fill.elements > 2 ? QStringLiteral("–%1").arg(first + fill.elements - 1)
                                             : QString();
    text += (fill.down ? QStringLiteral(" t%1") : QStringLiteral(" d%1")).arg(first) + more;
  }
  return text;
}

void RegistersPaint::grid(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TileRead& read = tile.reads[static_cast<std::size_t>(at.layout.read)];
  const bool gone = overwritten(tile, *scene.tile_now, at.layout.read);
  struct Cell {
    const TileFill* fill;
    std::int64_t number;
    QRectF rect;
  };
  std::vector<Cell> cells;
  for (std::int64_t n = read.first_fill; n < read.first_fill + read.fills; ++n) {
    const auto rect = at.layout.cell(tile, n);
    if (rect) cells.push_back({&tile.fills[static_cast<std::size_t>(n)], n, *rect});
  }
  if (cells.empty()) return;
  for (const Cell& cell : cells) {
    const Arrival arrival = gone ? Arrival::there : arrival_of_fill(tile, *scene.tile_now, cell.number);
    if (gone) painter.setOpacity(kOverwrittenShare);
    if (cell.fill->down && cell.fill->elements > 1) {
      // Each part in the color of its row, one outline around all of them.
      for (const TileElement& of : elements(*cell.fill)) {
        const auto part = at.layout.element(tile, of);
        if (!part) continue;
        painter.save();
        painter.setClipRect(*part, Qt::IntersectClip);
        paint_tile_cell(painter, cell.rect, theme, tile, of.row, arrival);
        painter.restore();
      }
    } else {
      paint_tile_cell(painter, cell.rect, theme, tile, cell.fill->row, arrival);
    }
    painter.setOpacity(1);
  }
  // The most detailed label that fits into every cell.
  const double height = cells.front().rect.height();
  const double most = std::min(scene.px(kRegisterText), height - 1), least = scene.px(kLeastRegisterText);
  if (most < least) return;
  const double room = std::ranges::min(cells, {}, [](const Cell& cell) { return cell.rect.width(); }).rect.width();
  const double digit = text_width(mono_font(most), QStringLiteral("0")) / most;  // a px of letters
  for (const int detail : kRegisterLabels) {
    qsizetype longest = 0;
    for (const Cell& cell : cells) longest = std::max(longest, label(tile, *cell.fill, detail).size());
    const double px = std::min(most, (room - kAroundRegisterLabel) / (digit * static_cast<double>(longest)));
    if (px < (detail == 0 ? most : least)) continue;  // words beyond lane and register only in full size
    const QFont font = mono_font(px);
    for (const Cell& cell : cells) {
      const Arrival arrival = arrival_of_fill(tile, *scene.tile_now, cell.number);
      const QColor ink = gone ? theme.text : tile_ink(theme, tile, cell.fill->row, arrival);
      draw_text_in(painter, font, ink, cell.rect, Qt::AlignHCenter, label(tile, *cell.fill, detail));
    }
    break;
  }
}

void RegistersPaint::words(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  if (at.layout.words.isEmpty()) return;
  const Tile& tile = *scene.tile;
  const TileRead& read = tile.reads[static_cast<std::size_t>(at.layout.read)];
  QString first, second;
  if (at.lit.reg) {
    const QString words =
        QString::fromStdString(describe(scene.state(), scene.facts(), &tile, of_tile_register(*at.lit.reg)));
    const qsizetype colon = words.indexOf(u':');
    Arrival arrival = Arrival::there;
    for (const std::int32_t fill : tile.fills_in(*at.lit.reg)) {
      arrival = std::min(arrival, arrival_of_fill(tile, *scene.tile_now, fill));
    }
    const bool gone = overwritten(tile, *scene.tile_now, at.layout.read);
    const QString what = words.mid(colon + 2);
    first = words.left(colon);
    if (!at.layout.waves.empty()) {  // which one is marked above
      first = first.mid(first.indexOf(u',') + 2);
      first[0] = first[0].toUpper();
    }
    if (gone) {
      first += tr(" (overwritten)");
      second = tr("held %1 until a later k-step").arg(what);
    } else if (arrival == Arrival::there) {
      second = tr("holds %1").arg(what);
    } else {
      first += arrival == Arrival::moving ? tr(" (being read)") : tr(" (not read yet)");
      second = tr("will hold %1").arg(what);
    }
  } else if (!at.lit.registers.empty()) {
    std::set<std::int64_t> lanes;
    for (const TileRegister& reg : at.lit.registers) lanes.insert(reg.lane);
    const bool run = *lanes.rbegin() - *lanes.begin() + 1 == std::ssize(lanes);
    const auto reads = std::ranges::count(lit_reads(tile, at.lit), true);
    const Selection& object = scene.pinned_lit.tile == at.lit ? scene.pinned : scene.hovered;
    first = QString::fromStdString(describe(scene.state(), scene.facts(), &tile, object));
    first = first.left(first.indexOf(u':'));
    const QString filled = reads == 1 ? tr("filled by one read") : tr("filled by %1 reads").arg(reads);
    second = run ? tr("%1 registers of lanes %2, %3")
                       .arg(at.lit.registers.size())
                       .arg(number_range(*lanes.begin(), *lanes.rbegin()))
                       .arg(filled)
                 : tr("%1 registers of %2 lanes, %3").arg(at.lit.registers.size()).arg(lanes.size()).arg(filled);
  } else {
    first = tr("Read %1: registers %2 of every lane")
                .arg(read.number)
                .arg(number_range(read.first_register, read.first_register + read.registers - 1));
    second = tr("tokens %1, dims %2; wavefronts: %3")
                 .arg(number_range(tile.token_of(read.row).value, tile.token_of(read.row + read.rows - 1).value),
                      number_range(head_dim(tile, read.column), head_dim(tile, read.column + read.columns - 1)))
                 .arg(read.cycles);
  }
  const QRectF& words = at.layout.words;
  const double lines = std::max(std::round(words.height() / scene.px(kRegisterWordsLine)), 1.0),
               line = words.height() / lines;
  const QRectF above(words.left(), words.top(), words.width(), line);
  const QRectF below(words.left(), above.bottom(), words.width(), words.height() - line);
  // Smaller letters before fewer words.
  const auto fitted = [&](const QString& text, QFont::Weight weight, double rows) {
    const double px = scene.px(kRegisterWords), wide = text_width(ui_font(px, weight), text);
    return ui_font(px * std::clamp(0.97 * rows * words.width() / std::max(wide, 1.0), kSmallestRegisterWords, 1.0),
                   weight);
  };
  const QFont bold = fitted(first, QFont::DemiBold, 1), plain = fitted(second, QFont::Normal, lines > 2 ? 1.6 : 1);
  draw_text_in(painter, bold, scene.theme->text, above, Qt::AlignLeft, elided(bold, first, above.width()));
  if (text_width(plain, second) <= below.width() || lines < 3) {
    return draw_text_in(painter, plain, scene.theme->text_quiet, QRectF(below.topLeft(), above.size()), Qt::AlignLeft,
                        elided(plain, second, below.width()));
  }
  painter.setFont(plain);
  painter.setPen(scene.theme->text_quiet);
  QTextOption option(Qt::AlignLeft | Qt::AlignTop);
  option.setWrapMode(QTextOption::WordWrap);
  painter.drawText(below, second, option);
}

void RegistersPaint::pieces(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  if (at.layout.pieces.empty()) return;
  const TileRead& shown = tile.reads[static_cast<std::size_t>(at.layout.read)];
  QString words = tr("%1 reads of %2 × %3").arg(at.layout.pieces.size()).arg(shown.rows).arg(shown.columns);
  if (tile.fragments && tile.fragments->steps > 1) {
    words = tr("k-step %1 of %2").arg(shown.step + 1).arg(tile.fragments->steps) + tr(" · ") + words;
  }
  if (tile.waves() > 1) {
    const bool alone = std::ranges::all_of(at.layout.pieces, [&](const RegisterPiece& piece) {
      return tile.reads[static_cast<std::size_t>(piece.read)].wave == at.layout.wave;
    });
    words += alone ? tr(", each wave reads all of them") : tr(", each of one warp");
  }
  const QFont caption = ui_font(scene.px(kRegisterCaption));
  draw_text_in(painter, caption, theme.text_quiet, at.layout.caption, Qt::AlignLeft,
               whole_parts(caption, words, at.layout.caption.width()));
  const QFont font = mono_font(scene.px(kRegisterText));
  double widest = 0;
  const auto name = [&](const TileRead& read) {
    const QString registers =
        QStringLiteral("r%1").arg(number_range(read.first_register, read.first_register + read.registers - 1));
    return read.wave == at.layout.wave ? registers : QStringLiteral("w%1 ").arg(read.wave) + registers;
  };
  bool room = true;
  for (const RegisterPiece& piece : at.layout.pieces) {
    const TileRead& read = tile.reads[static_cast<std::size_t>(piece.read)];
    widest = std::max(widest, text_width(font, name(read)));
    room = room && piece.rect.width() >= widest + kAroundRegisterLabel &&
           piece.rect.height() >= scene.px(kRegisterText) + 2;
  }
  for (const RegisterPiece& piece : at.layout.pieces) {
    const TileRead& read = tile.reads[static_cast<std::size_t>(piece.read)];
    const QRectF& rect = piece.rect;
    const Arrival arrival = arrival_of_read(tile, *scene.tile_now, piece.read);
    const bool gone = overwritten(tile, *scene.tile_now, piece.read);
    const std::int64_t middle =
        read.row + std::min(read.rows, std::max<std::int64_t>(tile.opened.tokens - read.row, 1)) / 2;
    if (arrival == Arrival::outlined) {
      paint_tile_cell(painter, rect, theme, tile, middle, arrival);
    } else {
      painter.setOpacity(gone ? kOverwrittenShare : arrival == Arrival::moving ? 0.5 : 1);
      for (std::int64_t row = 0; row < read.rows; ++row) {
        const double top =
            std::round(rect.top() + rect.height() * static_cast<double>(row) / static_cast<double>(read.rows));
        const double end =
            std::round(rect.top() + rect.height() * static_cast<double>(row + 1) / static_cast<double>(read.rows));
        painter.fillRect(QRectF(rect.left(), top, rect.width(), end - top),
                         tile_row_color(theme, tile, read.row + row));
      }
      painter.setOpacity(1);
    }
    if (room) {
      const QColor ink = gone || arrival == Arrival::moving ? theme.text : tile_ink(theme, tile, middle, arrival);
      if (arrival == Arrival::there && !gone) {  // one ground for the words: the rows of a piece differ in lightness
        const double wide = std::min(text_width(font, name(read)) + 4, rect.width());
        const double high = std::min(cap_height(font) + 4, rect.height());
        painter.fillRect(QRectF(rect.center().x() - wide / 2, rect.center().y() - high / 2, wide, high),
                         tile_row_color(theme, tile, middle));
      }
      draw_text_in(painter, font, ink, rect, Qt::AlignHCenter, name(read));
    }
    if (piece.read != at.layout.read) continue;
    painter.setPen(QPen(theme.text, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

void RegistersPaint::lit(QPainter& painter, const RegistersNow& at, const Scene& scene, const Lit& lit, bool pinned) {
  const Tile& tile = *scene.tile;
  if (lit.tile.registers.empty()) return;
  const TileRead& read = tile.reads[static_cast<std::size_t>(at.layout.read)];
  for (std::int64_t n = read.first_fill; n < read.first_fill + read.fills; ++n) {
    if (!std::ranges::binary_search(lit.tile.registers, tile.fills[static_cast<std::size_t>(n)].reg)) continue;
    const auto rect = at.layout.cell(tile, n);
    if (rect) paint_tile_outline(painter, *rect, *scene.theme, pinned);
  }
  const std::vector<bool> reads = lit_reads(tile, lit.tile);
  for (const RegisterPiece& piece : at.layout.pieces) {
    if (reads[static_cast<std::size_t>(piece.read)]) paint_tile_outline(painter, piece.rect, *scene.theme, pinned);
  }
}

void RegistersPaint::legend(QPainter& painter, const QRectF& footer, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  if (tile.fills.empty()) return;
  struct Entry {
    Arrival arrival;
    double opacity;
    QString words;
  };
  std::vector<Entry> entries{{Arrival::outlined, 1, tr("to be read")}, {Arrival::there, 1, tr("in registers")}};
  if (tile.fragments && tile.fragments->steps > 1)
    entries.push_back({Arrival::there, kOverwrittenShare, tr("overwritten")});
  const auto wide = [&](const Entry& entry, double scale) {
    return scale * (kRegisterLegendCell + kBesideRegisterLegend + kRegisterLegendGap) +
           text_width(ui_font(scale * kRegisterLegendText), entry.words);
  };
  double all = 0;
  for (const Entry& entry : entries) all += wide(entry, scene.font_scale);
  LegendFlow flow(footer, scene.font_scale);
  const double fits = flow.lines() > 1 ? 1 : std::clamp(footer.width() / all, kSmallestRegisterLegend, 1.0);
  const double scale = scene.font_scale * fits;
  double x = footer.left();
  for (const Entry& entry : entries) {
    const double side = std::round(scale * kRegisterLegendCell);
    QRectF line(x, footer.top(), 0, footer.height());
    if (flow.lines() > 1) {
      const std::optional<QRectF> place = flow.next(wide(entry, scale) - scale * kRegisterLegendGap);
      if (!place) continue;
      line = *place;
    }
    const QRectF cell(line.left(), std::round(line.center().y() - side / 2), side, side);
    painter.setOpacity(entry.opacity);
    paint_tile_cell(painter, cell, theme, tile, 0, entry.arrival);
    painter.setOpacity(1);
    const QRectF text(cell.right() + scale * kBesideRegisterLegend, line.top(), footer.width(), line.height());
    draw_text_in(painter, ui_font(scale * kRegisterLegendText), theme.text_quiet, text, Qt::AlignLeft, entry.words);
    x += wide(entry, scale);
  }
}

}  // namespace

std::optional<RegistersNow> registers_now(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  // A register under the pointer shows its read: another piece's, or one that an arrow key leads to.
  using Kind = Selection::Kind;
  const bool hovered = scene.hovered.kind == Kind::tile_register || scene.hovered.kind == Kind::tile_lane;
  RegistersNow at;
  at.lit = hovered ? scene.hovered_lit.tile : scene.pinned_lit.tile;
  auto read = read_of_grid(tile, *scene.tile_now, at.lit);
  if (!read) return std::nullopt;
  std::optional<TileElement> focus;
  const TileRead& of = tile.reads[static_cast<std::size_t>(*read)];
  for (std::int64_t n = of.first_fill; n < of.first_fill + of.fills && !focus; ++n) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    if (std::ranges::binary_search(at.lit.registers, fill.reg)) focus = TileElement{fill.row, fill.column};
  }
  at.layout =
      registers_layout(tile, *read, focus, scene.viewport_of(PanelId::registers).offset.y(), body, scene.font_scale);
  return at;
}

void paint_registers(QPainter& painter, const RegistersNow& at, const Scene& scene) {
  painter.save();
  RegistersPaint::waves(painter, at, scene);
  RegistersPaint::axes(painter, at, scene);
  RegistersPaint::grid(painter, at, scene);
  RegistersPaint::more(painter, at, scene);
  RegistersPaint::words(painter, at, scene);
  RegistersPaint::pieces(painter, at, scene);
  RegistersPaint::lit(painter, at, scene, scene.pinned_lit, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) {
    RegistersPaint::lit(painter, at, scene, scene.hovered_lit, false);
  }
  painter.restore();
}

void paint_registers_legend(QPainter& painter, const QRectF& footer, const Scene& scene) {
  RegistersPaint::legend(painter, footer, scene);
}

}  // namespace kvscope::viz
