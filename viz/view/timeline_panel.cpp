// The timeline: curves of the whole run, marks of events, and the current step.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>
#include <QtGui/QFontMetricsF>

#include "viz/geometry/timeline_layout.h"
#include "viz/playback/timeline_now.h"
#include "viz/view/legend_flow.h"
#include "viz/view/panel.h"
#include "viz/view/time_text.h"
#include "viz/view/timeline_legend.h"
#include "viz/view/timeline_paint.h"
#include "viz/view/timeline_plot.h"
#include "viz/view/timeline_prepare.h"

namespace kvscope::viz {
namespace {

// Sizes in px at font scale 1.
constexpr double kRow = 17, kBoxPadding = 8;  // of a readout
constexpr double kPlotDot = 3.5;              // radius of a value at the cursor

class TimelinePanel final : public Panel {
  Q_DECLARE_TR_FUNCTIONS(Timeline)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::timeline; }
  [[nodiscard]] QString title() const override { return tr("Timeline"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  [[nodiscard]] const PreparedTimeline& prepare(const QRectF& body, const Scene& scene) const {
    return cache_.prepared(body, scene);
  }
  [[nodiscard]] QString what_happened(const Scene& scene) const;
  void paint_cursor(QPainter& painter, const PreparedTimeline& p, const Scene& scene) const;
  void paint_readout(QPainter& painter, const QRectF& body, const PreparedTimeline& p, std::int64_t index,
                     const Scene& scene) const;

  mutable TimelineCache cache_;
  mutable PlotPicture picture_;
};

// --- texts -----------------------------------------------------------------------------------------------------------

QString TimelinePanel::subtitle(const Scene& scene) const {
  if (scene.run().timeline().steps() == 0) return tr("no steps");
  if (scene.compared_run != nullptr) return tr("dotted: utilization of the other run");
  return scene.view == View::timeline ? tr("shares of the pool · requests and tokens of each step · what happened when")
                                      : tr("used share of the pool · prefix hits · requests running and waiting");
}

QString TimelinePanel::summary(const Scene& scene) const {
  const Timeline& timeline = scene.run().timeline();
  if (timeline.steps() == 0) return tr("This run has no steps.");
  const std::optional<std::int64_t> index = current_index(scene);
  const QString last = number_of(timeline, timeline.steps() - 1);
  if (!index) return tr("Before the first step of %1.").arg(last);
  QStringList values;
  for (const Series series : shown_series(scene.view == View::timeline)) {
    values << tr("%1 %2").arg(series_name(series), value_text(series, value_now(*scene.cursor, series)));
  }
  const QString words =
      scene.cursor->state().in_step ? tr("Inside step %1 of %2 at %3: %4.") : tr("Step %1 of %2 at %3: %4.");
  return words.arg(number_of(timeline, *index), last, time_text(time_now(*scene.cursor)),
                   values.join(QStringLiteral(", ")));
}

// Marked events in this step and in the whole run, which the legends do not contain.
QString TimelinePanel::what_happened(const Scene& scene) const {
  const Timeline& timeline = scene.run().timeline();
  const std::optional<std::int64_t> index = current_index(scene);
  const auto counted = [](const std::function<std::int64_t(Mark)>& count) {
    QStringList words;
    for (const Mark mark : kMarkKinds) {
      const std::int64_t n = count(mark);
      if (n > 0) words << tr("%1 %2").arg(number_text(n), mark_name(mark, n));
    }
    return words.isEmpty() ? tr("nothing preempted, evicted, rejected or copied") : words.join(QStringLiteral(", "));
  };
  const QString whole = counted([&](Mark mark) { return cache_.facts(scene.run()).totals[at(mark)]; });
  if (!index) return tr("In the whole run: %1.").arg(whole);
  const QString now = counted([&](Mark mark) { return count_now(*scene.cursor, mark); });
  const QString words = scene.cursor->state().in_step ? tr("In step %1 so far: %2. In the whole run: %3.")
                                                      : tr("In step %1: %2. In the whole run: %3.");
  return words.arg(number_of(timeline, *index), now, whole);
}

// --- painting --------------------------------------------------------------------------------------------------------

// The step's number at the lower end of the cursor's line, kept inside the row; empty without a line or a row.
QRectF flag_of(const PreparedTimeline& p, const std::optional<double>& x, const QString& number, const QFont& font) {
  const QRectF& row = p.layout.step_labels;
  if (!x || row.isEmpty()) return {};
  const double width = width_of(number, font) + 2 * kBeside;
  const double left = std::clamp(*x - width / 2, row.left() - kBeside, row.right() + kBeside - width);
  return {left, row.top() + 1, width, row.height() - 1};
}

void paint_lines(QPainter& painter, const std::vector<QLineF>& lines) {
  painter.drawLines(lines.data(), static_cast<int>(lines.size()));
}

// The x of a step's line; nullopt if it is not visible.
std::optional<double> line_of(const PreparedTimeline& p, const std::optional<std::int64_t>& index) {
  if (!index) return std::nullopt;
  const double x = p.layout.axis.x(*index);
  return x >= p.layout.axis.left && x <= p.layout.axis.right() ? std::optional(x) : std::nullopt;
}

void TimelinePanel::paint_cursor(QPainter& painter, const PreparedTimeline& p, const Scene& scene) const {
  const Timeline& timeline = scene.run().timeline();
  const std::optional<std::int64_t> index = current_index(scene);
  const std::optional<double> x = line_of(p, index);
  const QFont font = mono_font(scene.px(kLabelFont), QFont::Bold);
  const QString number = index ? number_of(timeline, *index) : QString();
  const QRectF flag = flag_of(p, x, number, font);
  paint_step_labels(painter, p, flag, scene);
  if (!x) return;
  painter.setPen(QPen(scene.theme->accent, kCurveWidth, Qt::SolidLine, Qt::FlatCap));
  paint_lines(painter, p.layout.lines(*x));
  for (const Series series : shown_series(p.layout.stacked)) {
    const double y = y_of(p.plot(series), value_now(*scene.cursor, series), p.top(series));
    painter.setPen(QPen(scene.theme->card, 1.5));
    painter.setBrush(series_color(*scene.theme, series));
    painter.drawEllipse(QPointF(*x, y), kPlotDot, kPlotDot);
  }
  paint_marks_over(painter, p, *x, scene);
  if (flag.isEmpty()) return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(scene.theme->accent);
  painter.drawRoundedRect(flag, 3, 3);
  paint_words(painter, flag, number, font, scene.theme->ink_on(scene.theme->accent), Qt::AlignCenter);
}

std::vector<LegendItem> legend_of(std::span<const Series> series, const Scene& scene) {
  const bool inside = current_index(scene).has_value();
  std::vector<LegendItem> items;
  for (const Series s : series) {
    items.push_back({s, {}, series_name(s), inside ? value_text(s, value_now(*scene.cursor, s)) : QString()});
  }
  return items;
}

void TimelinePanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const PreparedTimeline& p = prepare(body, scene);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  if (p.layout.axis.steps == 0) {
    paint_words(painter, body, tr("This run has no steps."), ui_font(scene.px(13)), scene.theme->text_quiet,
                Qt::AlignCenter);
    painter.restore();
    return;
  }
  picture_.paint(painter, body, p, scene);
  if (p.layout.stacked) {
    paint_items(painter, p.layout.shares_legend, legend_of(kShares, scene), {}, scene);
    paint_items(painter, p.layout.counts_legend, legend_of(kRequests, scene), legend_of(kTokens, scene), scene);
  }
  paint_cursor(painter, p, scene);
  painter.restore();
}

void TimelinePanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  if (scene.run().timeline().steps() == 0) return painter.restore();
  if (cache_.stacked()) {
    paint_footer_text(painter, footer, ui_font(scene.px(kLegendFont)), scene.theme->text_quiet, what_happened(scene),
                      scene.font_scale);
    return painter.restore();
  }
  std::vector<LegendItem> left = legend_of(kStripShares, scene);
  for (const Mark mark : kMarkKinds) {
    const std::int64_t total = cache_.facts(scene.run()).totals[at(mark)];
    if (total == 0) continue;
    const std::int64_t so_far = current_index(scene) ? count_so_far(*scene.cursor, mark) : 0;
    left.push_back({{}, mark, mark_name(mark, total), tr("%1 of %2").arg(number_text(so_far), number_text(total))});
  }
  // The items of the requests are at the right, like their axis. In a footer of one line without enough room, marks are
  // omitted first.
  const std::vector<LegendItem> right = legend_of(kRequests, scene);
  const std::size_t all = left.size();
  const double both = items_width(left, scene) + kBetween + items_width(right, scene);
  if (both <= footer.width()) {
    paint_items(painter,
                {footer.left(), footer.top(), footer.width(), std::min(footer.height(), scene.px(kFooterHeight))}, left,
                right, scene);
    return painter.restore();
  }
  while (footer.height() < scene.px(2 * kLegendLine) && left.size() > kStripShares.size() &&
         items_width(left, scene) + kBetween + items_width(right, scene) > footer.width()) {
    left.pop_back();
  }
  if (left.size() < all) left.back().value += QStringLiteral(" …");
  paint_items(painter, footer, left, right, scene);
  painter.restore();
}

// --- hovering --------------------------------------------------------------------------------------------------------

void TimelinePanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const PreparedTimeline& p = prepare(body, scene);
  if (scene.hovered.kind != Selection::Kind::step) return;
  const std::optional<std::int64_t> index = index_of(scene.run().timeline(), scene.hovered.step);
  const std::optional<double> x = line_of(p, index);
  if (!x) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(scene.theme->hover, 1, Qt::SolidLine, Qt::FlatCap));
  paint_lines(painter, p.layout.lines(*x));
  paint_marks_over(painter, p, *x, scene);
  paint_readout(painter, body, p, *index, scene);
  painter.restore();
}

void TimelinePanel::paint_readout(QPainter& painter, const QRectF& body, const PreparedTimeline& p, std::int64_t index,
                                  const Scene& scene) const {
  const Timeline& timeline = scene.run().timeline();
  std::vector<LegendItem> items;
  for (const Series series : shown_series(p.layout.stacked)) {
    items.push_back({series, {}, series_name(series), value_text(series, value_at(timeline, series, index))});
  }
  for (const Mark mark : kMarkKinds) {
    const std::int32_t count = timeline[mark][static_cast<std::size_t>(index)];
    if (count > 0) items.push_back({{}, mark, mark_name(mark, count), number_text(count)});
  }
  // The curves show the end of a step; the cursor may be inside it.
  const bool ahead = scene.cursor->state().in_step && index == current_index(scene);
  const QString title = (ahead ? tr("end of step %1 · %2") : tr("step %1 · %2"))
                            .arg(number_of(timeline, index), time_of(timeline, index));
  const QFont font = mono_font(scene.px(kLegendFont), QFont::Bold);
  double width = width_of(title, font);
  for (const LegendItem& item : items) width = std::max(width, item_width(item, scene) + kBetween);
  // Below the legends, which show the values of the current step.
  const QRectF bounds(body.left(), p.layout.stacked ? p.layout.shares.top() : body.top(), body.width(), body.height());
  const Readout box =
      readout(bounds, p.layout.axis.x(index), items.size(), {std::ceil(width), scene.px(kRow)}, scene.px(kBoxPadding));
  QColor card = scene.theme->card;
  card.setAlphaF(0.94F);
  painter.setPen(QPen(scene.theme->card_border, 1));
  painter.setBrush(card);
  painter.drawRoundedRect(box.box.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
  paint_words(painter, box.title, title, font, scene.theme->text, Qt::AlignVCenter | Qt::AlignLeft);
  for (std::size_t i = 0; i < box.rows.size(); ++i) paint_item(painter, box.rows[i], items[i], true, scene);
}

Selection TimelinePanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  const std::optional<std::int64_t> index = step_at(prepare(body, scene).layout, at);
  if (!index || *index >= scene.run().timeline().steps()) return {};  // of the compared run only
  return of_step(StepIdx{scene.run().timeline().step[static_cast<std::size_t>(*index)]});
}

// --- moving ----------------------------------------------------------------------------------------------------------

std::optional<QRectF> TimelinePanel::anchor(const Lit&, const QRectF&, const Scene&) const {
  return std::nullopt;  // objects of the cache are in other panels
}

Selection TimelinePanel::moved(const Selection& from, Move move, const QRectF&, const Scene& scene) const {
  const Timeline& timeline = scene.run().timeline();
  if (timeline.steps() == 0) return {};
  const auto selected = [&](std::int64_t index) {
    return of_step(StepIdx{timeline.step[static_cast<std::size_t>(index)]});
  };
  const std::optional<std::int64_t> start =
      from.kind == Selection::Kind::step ? index_of(timeline, from.step) : std::nullopt;
  if (!start) return selected(current_index(scene).value_or(0));
  const std::int64_t last = timeline.steps() - 1;
  const auto marked = [&](std::int64_t index) {
    return std::ranges::any_of(timeline.marks,
                               [&](const auto& counts) { return counts[static_cast<std::size_t>(index)] > 0; });
  };
  switch (move) {
    case Move::left:
      return selected(std::max<std::int64_t>(*start - 1, 0));
    case Move::right:
      return selected(std::min(*start + 1, last));
    case Move::first:
      return selected(0);
    case Move::last:
      return selected(last);
    case Move::up:  // to the previous step with a mark, if any
      for (std::int64_t i = *start - 1; i >= 0; --i) {
        if (marked(i)) return selected(i);
      }
      return selected(*start);
    case Move::down:
      for (std::int64_t i = *start + 1; i <= last; ++i) {
        if (marked(i)) return selected(i);
      }
      return selected(*start);
  }
  return selected(*start);
}

Viewport TimelinePanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  return zoomed_steps(prepare(body, scene).layout.axis, factor, at.x());
}

Viewport TimelinePanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  return scrolled_steps(prepare(body, scene).layout.axis, by.x());
}

Viewport TimelinePanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const PreparedTimeline& p = prepare(body, scene);
  if (object.kind != Selection::Kind::step) return scene.viewport_of(id());
  const std::optional<std::int64_t> index = index_of(scene.run().timeline(), object.step);
  return index ? revealed_step(p.layout.axis, *index) : scene.viewport_of(id());
}

std::vector<PanelCell> TimelinePanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  const PreparedTimeline& p = prepare(body, scene);
  const Timeline& timeline = scene.run().timeline();
  std::vector<PanelCell> cells;
  if (timeline.steps() == 0) return cells;
  const std::int64_t index = current_index(scene).value_or(0);
  const Selection here = of_step(StepIdx{timeline.step[static_cast<std::size_t>(index)]});
  for (const Series series : shown_series(p.layout.stacked)) {
    const double at = current_index(scene) ? value_now(*scene.cursor, series) : value_at(timeline, series, index);
    const QString value = value_text(series, at);
    cells.push_back(
        {p.plot(series), here, tr("%1, %2 at step %3").arg(series_name(series), value, number_of(timeline, index))});
  }
  for (const Mark mark : kMarkKinds) {
    const QRectF& lane = p.layout.lanes[at(mark)];
    if (lane.isEmpty()) continue;
    const double glyph = scene.px(kGlyph);
    for (const MarkGroup& group : p.groups[at(mark)]) {
      const QRectF rect = QRectF(group.x - glyph / 2, lane.top(), group.width, lane.height()).intersected(lane);
      if (rect.isEmpty()) continue;
      const QString words = tr("%1 %2").arg(number_text(group.count), mark_name(mark, group.count));
      const QString first = number_of(timeline, group.first), last = number_of(timeline, group.last);
      cells.push_back({rect, of_step(StepIdx{timeline.step[static_cast<std::size_t>(group.first)]}),
                       group.first == group.last ? tr("%1 in step %2").arg(words, first)
                                                 : tr("%1 in steps %2 to %3").arg(words, first, last)});
    }
  }
  if (cells.size() > limit) cells.resize(limit);
  return cells;
}

}  // namespace

std::unique_ptr<Panel> make_timeline_panel() {
  return std::make_unique<TimelinePanel>();
}

}  // namespace kvscope::viz
