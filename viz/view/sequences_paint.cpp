#include "viz/view/sequences_paint.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>

#include "core/base/checked.h"
#include "viz/geometry/cell_grid.h"
#include "viz/view/cell_paint.h"
#include "viz/view/cell_sheet.h"
#include "viz/view/legend_flow.h"
#include "viz/view/sequences_cells.h"
#include "viz/view/sequences_content.h"
#include "viz/view/sharing.h"
#include "viz/view/text.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// All in px at font scale 1.
constexpr double kLabel = 13, kSmallLabel = 11, kWords = 11, kNote = 10.5, kTokenAxis = 10.5;
constexpr double kTwoLines = 32;  // minimum height of a box for a second line under its label
constexpr double kTickDistance = 64;
constexpr double kOutside = 1;      // [px] that an outline or a name may exceed the strip
constexpr double kLeastMarker = 5;  // minimum width of a highlight

struct SequenceWords {
  Q_DECLARE_TR_FUNCTIONS(SequencesPanel)
};

// --- the gutter ------------------------------------------------------------------------------------------------------

void paint_label(QPainter& painter, const QRectF& rect, const SequenceRow& row, bool densely, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const QString name = SequenceWords::tr("seq %1").arg(row.seq.value);
  // Bands do not have the colors of owners.
  const QColor color =
      densely ? theme.text_quiet : Prepared::of_this_thread().inks(theme)->at(owner_look(row.seq.value)).on_card;
  const bool small = rect.height() < scene.px(15);
  const QFont font = ui_font(scene.px(small ? kSmallLabel : kLabel), QFont::DemiBold);
  const double room = rect.width() - scene.px(8);
  if (rect.height() < scene.px(kTwoLines)) {
    draw_text(painter, font, color, {rect.left(), rect.center().y() + cap_height(font) / 2}, elided(font, name, room));
    return;
  }
  const QString words = phase_words(scene, row);
  draw_text(painter, font, color, {rect.left(), rect.center().y() - scene.px(2)}, elided(font, name, room));
  const QFont second = words.isEmpty() ? mono_font(scene.px(kNote)) : ui_font(scene.px(kWords));
  QString under = words;
  if (words.isEmpty()) {
    under = SequenceWords::tr("%1 / %2").arg(number_text(row.tokens), number_text(row.wanted));
    if (text_width(second, under) > room) under = number_text(row.tokens);
  }
  draw_text(painter, second, row.preempted_now ? readable(theme, theme.warning, theme.card) : theme.text_quiet,
            {rect.left(), rect.center().y() + scene.px(14)}, elided(second, under, room));
}

// The number of sequences in the shared line of waiting sequences, and which.
void paint_waiting(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  const QFont font = ui_font(scene.px(kWords));
  const double baseline = layout.note.center().y() + cap_height(font) / 2;
  draw_text(painter, font, scene.theme->text_quiet, {layout.gutter.left(), baseline},
            elided(font, SequenceWords::tr("%1 waiting").arg(number_text(rows.waiting)),
                   layout.gutter.width() - scene.px(8)));
  const QString which = SequenceWords::tr("seq %1 to %2, without a page yet");
  draw_text(painter, font, scene.theme->text_quiet, {layout.strip.left(), baseline},
            elided(font, which.arg(number_text(rows.first_waiting.value), number_text(rows.last_waiting.value)),
                   layout.strip.width()));
}

void paint_labels(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  const IndexRange shown = layout.visible_rows();
  const double high = scene.px(kNextLabel);
  const bool low = layout.row_pitch < high;
  // Low rows: one name for several of them, beside the first. The name of the topmost row has no room above it and is
  // moved down; the next name keeps its distance from it.
  const double moved = std::max(0.0, high / 2 - kOutside - (layout.box_top + layout.box_height / 2));
  const std::int64_t every = low ? label_step(layout.row_pitch, high + moved) : 1;
  // The text under the rows also occupies the gutter.
  const double lowest = !layout.note.isEmpty()   ? layout.note.top() + kOutside
                        : !layout.axis.isEmpty() ? layout.axis.top() + scene.px(4)
                                                 : layout.gutter.bottom() + kOutside;
  for (std::int64_t r = round_up(shown.first, every); r < std::min(shown.last, rows.count()); r += every) {
    QRectF rect = layout.label_rect(r);
    if (low) {
      rect = QRectF(rect.left(), rect.center().y() - high / 2, rect.width(), high);
      if (r == 0) rect.translate(0, moved);
      if (rect.top() < layout.gutter.top() - kOutside - 0.5) continue;
      if (rect.bottom() > lowest) break;
    }
    paint_label(painter, rect, sequence_row(scene, rows.seq(r)), layout.detail == SequencesDetail::density, scene);
  }
}

// --- beside and above the cells --------------------------------------------------------------------------------------

// A thin line from the last page to the sequence's final length, and the words about its phase.
void paint_still_to_come(QPainter& painter, const SequencesLayout& layout, const Scene& scene, std::int64_t r,
                         const SequenceRow& row) {
  const QRectF box = layout.page_box(r, 0);
  if (box.height() < 3) return;
  double from = row.pages > 0 ? layout.page_box(r, row.pages - 1).right() + scene.px(6) : layout.strip.left();
  const double to = row.wanted > 0 ? layout.x_of(row.wanted - 1) + layout.cell : from;
  const double y = std::floor(box.center().y()) + 0.5;
  const QString words = box.height() < scene.px(kTwoLines) ? phase_words(scene, row) : QString();
  if (!words.isEmpty() && box.height() >= scene.px(10)) {
    const QFont font = ui_font(scene.px(kWords));
    draw_text(
        painter, font,
        row.preempted_now ? readable(*scene.theme, scene.theme->warning, scene.theme->card) : scene.theme->text_quiet,
        {from, box.center().y() + cap_height(font) / 2}, words);
    from += text_width(font, words) + scene.px(8);
  }
  if (to - from < scene.px(4)) return;
  painter.setPen(QPen(scene.theme->free_line, 1));
  painter.drawLine(QPointF(from, y), QPointF(to, y));
  const double tick = std::min(scene.px(4), box.height() / 2 - 0.5);
  painter.drawLine(QPointF(to, y - tick), QPointF(to, y + tick));
}

// Tokens found in the cache at admission: a bracket over the tokens, with their number if there is room above it.
void paint_hits(QPainter& painter, const SequencesLayout& layout, const Scene& scene, std::int64_t r,
                const SequenceRow& row) {
  if (row.hits == 0 || layout.box_top < 3) return;
  const QRectF run = layout.run_rect(r, 0, row.hits);
  const double y = layout.page_box(r, 0).top() - std::min(layout.box_top - 1, scene.px(4)) + 0.5;
  const double down = std::min(layout.box_top - 2, scene.px(3));
  painter.setPen(QPen(scene.theme->text_accent, 1.25));
  painter.drawPolyline(QPolygonF({{run.left(), y + down}, {run.left(), y}, {run.right(), y}, {run.right(), y + down}}));
  if (layout.box_top < scene.px(kRoomForNote)) return;
  const QFont font = ui_font(scene.px(kNote));
  const QString text = row.hits == 1 ? SequenceWords::tr("1 token found in the cache")
                                     : SequenceWords::tr("%1 tokens found in the cache").arg(number_text(row.hits));
  draw_text(painter, font, scene.theme->text_quiet, {std::max(run.left(), layout.strip.left()), y - scene.px(2.5)},
            text);
}

// Tokens computed in this step: a bright bar along the top of the cells.
void paint_written(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  if (layout.detail == SequencesDetail::density) return;
  const double thick = layout.box_height >= scene.px(24) ? 3 : layout.box_height >= 8 ? 2 : 1;
  const IndexRange shown = layout.visible_rows();
  for (const WrittenRun& run : written_runs(scene.marks())) {
    const std::optional<std::int64_t> r = rows.row_of(run.seq);
    if (!r || *r < shown.first || *r >= shown.last) continue;
    // One bar per page if there are boxes: a bar across the gap between two boxes would mark a place without tokens.
    const std::int64_t page_size = layout.extent.page_size;
    for (std::int64_t first = run.first; first < run.last;) {
      const std::int64_t last =
          layout.page_gap > 0 ? std::min(run.last, (first / page_size + 1) * page_size) : run.last;
      QRectF rect = layout.run_rect(*r, first, last);
      if (rect.right() >= layout.strip.left() && rect.left() <= layout.strip.right()) {
        rect.setWidth(std::max(rect.width(), 2.0));
        painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), thick), scene.theme->accent);
      }
      first = last;
    }
  }
}

// --- the axis --------------------------------------------------------------------------------------------------------

QString short_number(std::int64_t number) {
  if (number >= 10'000 && number % 1000 == 0) return SequenceWords::tr("%1k").arg(number / 1000);
  return QString::number(number);
}

void paint_axis(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  if (layout.axis.isEmpty()) return;
  const QFont font = mono_font(scene.px(kTokenAxis));
  const QFontMetricsF metrics(font);
  const double top = layout.axis.top() + 2, baseline = top + scene.px(4) + metrics.ascent() - 1;
  for (const AxisTick& tick : axis_ticks(layout, scene.px(kTickDistance))) {
    const double x = std::floor(tick.x) + 0.5;
    painter.setPen(QPen(scene.theme->cell_line, 1));
    painter.drawLine(QPointF(x, top), QPointF(x, top + scene.px(4)));
    const QString text = short_number(tick.token);
    const double width = text_width(font, text);
    const double left = std::clamp(x - width / 2, layout.strip.left(), layout.strip.right() - width);
    draw_text(painter, font, scene.theme->text_quiet, {left, baseline}, text);
  }
  draw_text(painter, ui_font(scene.px(kTokenAxis)), scene.theme->text_quiet, {layout.gutter.left(), baseline},
            SequenceWords::tr("token"));
}

// --- highlighted objects ---------------------------------------------------------------------------------------------

QRectF marker_at_least(QRectF rect, double size) {
  const double wider = std::max(0.0, size - rect.width()) / 2, higher = std::max(0.0, size - rect.height()) / 2;
  return rect.adjusted(-wider, -higher, wider, higher);
}

QRectF page_rect(const SequencesLayout& layout, std::int64_t row, std::int64_t page) {
  return marker_at_least(layout.page_box(row, page), kLeastMarker);
}

// Pages that the compared run stores in another block, or with another number of tokens.
void paint_different_pages(QPainter& painter, const SequencesLayout& layout, std::int64_t r, const SequenceRow& row,
                           const Scene& scene) {
  if (scene.compared == nullptr || layout.detail == SequencesDetail::lines) return;
  const IndexRange pages = layout.visible_pages();
  for (std::int64_t page = pages.first; page < std::min(pages.last, row.pages); ++page) {
    if (scene.differs(row.seq, PageIdx{page})) paint_difference(painter, layout.page_box(r, page), *scene.theme);
  }
}

QRectF token_rect(const SequencesLayout& layout, std::int64_t row, std::int64_t token) {
  if (layout.cell_gap > 0) return layout.token_cell(row, token);
  // A token in a bar: its part of the bar, as high as the bar.
  const QRectF box = layout.page_box(row, token / layout.extent.page_size);
  return marker_at_least(QRectF(layout.x_of(token), box.top(), layout.cell, box.height()), kLeastMarker);
}

QRectF pages_rect(const SequencesLayout& layout, std::int64_t row, std::int64_t pages) {
  const QRectF first = layout.page_box(row, 0);
  return pages == 0 ? QRectF(first.left(), first.top(), 1, first.height())
                    : first.united(layout.page_box(row, pages - 1));
}

}  // namespace

std::optional<QRectF> lit_rect(const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene,
                               const Lit& lit) {
  SeqIdx seq{-1};
  std::optional<PageIdx> page = lit.page;
  if (lit.seq) {
    seq = *lit.seq;
  } else if (!lit.places.empty()) {
    seq = lit.places.front().seq;
    page = lit.places.front().page;
  }
  const std::optional<std::int64_t> row = rows.row_of(seq);
  if (!row) return std::nullopt;
  if (lit.token) return token_rect(layout, *row, lit.token->value);
  const PageTable& pages = scene.state().sequences[seq.value].pages;
  if (page && pages[page->value] < 0)
    return std::nullopt;  // padding of the lookup table: the sequence has no such page
  if (page) return page_rect(layout, *row, page->value);
  return pages_rect(layout, *row, pages.size());
}

void paint_sequences(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  if (rows.waiting > 0) paint_waiting(painter, layout, rows, scene);
  paint_axis(painter, layout, scene);
  painter.save();
  painter.setClipRect(layout.gutter.adjusted(0, -2, 0, 2), Qt::IntersectClip);
  paint_labels(painter, layout, rows, scene);
  painter.restore();
  painter.setClipRect(layout.strip.adjusted(-kOutside, 0, kOutside, 0), Qt::IntersectClip);
  paint_tokens(painter, layout, rows, scene);
  // Rows of a band have no room for an outline or a label, and there may be thousands of them.
  const IndexRange shown = layout.detail == SequencesDetail::density ? IndexRange{} : layout.visible_rows();
  for (std::int64_t r = shown.first; r < std::min(shown.last, rows.count()); ++r) {
    const SequenceRow row = sequence_row(scene, rows.seq(r));
    paint_still_to_come(painter, layout, scene, r, row);
    paint_hits(painter, layout, scene, r, row);
    paint_different_pages(painter, layout, r, row, scene);
  }
  paint_written(painter, layout, rows, scene);
  painter.restore();
}

void paint_sequences_lit(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene,
                         const Lit& lit, LitHow how) {
  const Theme& theme = *scene.theme;
  const bool pinned = how == LitHow::pinned;
  const QPen strong(pinned ? theme.accent : theme.hover, pinned ? 2 : 1.5);
  painter.save();
  painter.setClipRect(layout.gutter.united(layout.strip).adjusted(-2, -2, 2, 2), Qt::IntersectClip);
  // A line in the card's color on both sides separates it from cells of a similar color.
  const QPen apart(theme.card, strong.widthF() + 2);
  const auto outline = [&](const QRectF& rect) {
    if (!rect.intersects(layout.strip)) return;
    paint_outline(painter, rect.adjusted(-1, -1, 1, 1), apart);
    paint_outline(painter, rect.adjusted(-1, -1, 1, 1), strong);
  };
  if (lit.seq) {
    if (const std::optional<std::int64_t> row = rows.row_of(*lit.seq)) {
      const QRectF label = layout.label_rect(*row);
      painter.fillRect(QRectF(label.right() - 8, label.top(), 3, label.height()), strong.color());
    }
  }
  const bool one = lit.seq || lit.places.size() == 1;
  if (const std::optional<QRectF> rect = one ? lit_rect(layout, rows, scene, lit) : std::nullopt) outline(*rect);
  if (!one) {
    for (const TablePlace& place : lit.places) {
      const std::optional<std::int64_t> row = rows.row_of(place.seq);
      if (row) outline(page_rect(layout, *row, place.page.value));
    }
  }
  painter.restore();
}

namespace {

// The legend text for dimmed cells; empty if the scenario cannot have any.
QString window_words(const Facts& facts) {
  if (!facts.scenario || facts.scenario->attention.window <= 0) return {};
  if (facts.scenario->attention.mask == MaskKind::sliding_window) return SequenceWords::tr("out of the window");
  return facts.scenario->attention.mask == MaskKind::chunked ? SequenceWords::tr("in an earlier chunk") : QString();
}

}  // namespace

namespace {

// The legend of bands: from few rows to all of them, and shared blocks.
void paint_band_legend(QPainter& painter, LegendFlow& flow, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const QFont font = ui_font(scene.px(12));
  const double square = std::round(scene.px(11)), gap = scene.px(6);
  // One item: words, squares of these shares of rows and of shared blocks, words.
  const auto item = [&](const QString& before, std::initializer_list<std::pair<double, double>> shares,
                        const QString& after) {
    const double first = before.isEmpty() ? 0 : text_width(font, before) + gap;
    const double squares = static_cast<double>(shares.size()) * (square + 2) - 2;
    const std::optional<QRectF> at = flow.next(first + squares + gap + text_width(font, after));
    if (!at) return;
    const double baseline = std::round(at->center().y() + cap_height(font) / 2);
    draw_text(painter, font, theme.text_quiet, {at->left(), baseline}, before);
    double x = at->left() + first;
    for (const auto& [held, shared] : shares) {
      painter.fillRect(QRectF(x, std::round(at->center().y() - square / 2), square, square),
                       density_color(theme, held, shared));
      x += square + 2;
    }
    draw_text(painter, font, theme.text_quiet, {x - 2 + gap, baseline}, after);
  };
  item(SequenceWords::tr("rows that hold a token here: few"), {{0.01, 0}, {0.34, 0}, {0.67, 0}, {1.0, 0}},
       SequenceWords::tr("all"));
  if (can_share(scene.facts())) item({}, {{1, 1}}, SequenceWords::tr("in shared blocks"));
}

}  // namespace

void paint_sequences_footer(QPainter& painter, const QRectF& footer, const Scene& scene, const QString& summary,
                            bool densely) {
  const Theme& theme = *scene.theme;
  const double square = std::round(scene.px(11)), gap = scene.px(6);
  const QFont font = ui_font(scene.px(12));
  std::vector<LegendEntry> kinds{{kFreeLook, SequenceWords::tr("empty slot")}};
  if (can_share(scene.facts())) kinds.insert(kinds.begin(), {kSharedLook, SequenceWords::tr("shared")});
  LegendFlow flow(footer, scene.font_scale);
  if (densely) {
    paint_band_legend(painter, flow, scene);
  } else {
    paint_legend(painter, flow, {}, kinds, theme, scene.font_scale);
  }

  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  // Paints the name of an item, and its sign with paint(the sign's square).
  const auto item = [&](const QString& text, auto&& paint) {
    if (densely) return;  // bands have none of these marks
    const std::optional<QRectF> at = flow.next(square + gap + text_width(font, text));
    if (!at) return;
    paint(QRectF(at->left(), std::round(at->center().y() - square / 2), square, square));
    draw_text(painter, font, theme.text_quiet,
              {at->left() + square + gap, std::round(at->center().y() + cap_height(font) / 2)}, text);
  };
  item(SequenceWords::tr("computed in this step"), [&](const QRectF& cell) {
    paint_cell(painter, cell, owner_look(0), 1, theme);
    painter.fillRect(QRectF(cell.left(), cell.top(), cell.width(), scene.px(3)), theme.accent);
  });
  if (const QString text = window_words(scene.facts()); !text.isEmpty()) {
    item(text, [&](const QRectF& cell) { paint_cell(painter, cell, owner_look(0), 0, theme); });
  }
  if (can_find(scene.facts())) {
    item(SequenceWords::tr("found in the cache"), [&](const QRectF& sign) {
      const double x = sign.left(), y = std::floor(sign.top()) + 2.5;
      painter.setPen(QPen(theme.text_accent, 1.25));
      painter.setBrush(Qt::NoBrush);
      painter.drawPolyline(QPolygonF({{x, y + 4}, {x, y}, {x + square, y}, {x + square, y + 4}}));
    });
  }
  item(SequenceWords::tr("still to come"), [&](const QRectF& sign) {
    const double x = sign.left(), y = std::floor(sign.center().y()) + 0.5;
    painter.setPen(QPen(theme.text_quiet, 1));
    painter.drawLine(QPointF(x, y), QPointF(x + square, y));
    painter.drawLine(QPointF(x + square, y - 3), QPointF(x + square, y + 3));
  });
  paint_dots(painter, flow, font, theme.text_quiet);
  const double width = text_width(font, summary), room = flow.room();
  if (const std::optional<QRectF> at = flow.next(width)) {
    // At the right end of its line.
    const double left = room >= width ? footer.right() - width : at->left();
    draw_text(painter, font, theme.text_quiet, {left, std::round(at->center().y() + cap_height(font) / 2)}, summary);
  }
  painter.restore();
}

}  // namespace kvscope::viz
