// The output of the flow's query, dim by dim: o / l after the tiles that have been added, the golden's value, and the
// error of each over its bound; with a candidate, its errors too.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/geometry/attention_layout.h"
#include "viz/view/attention_paint.h"
#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

class AttentionOutputPanel final : public AttentionPanel {
  Q_DECLARE_TR_FUNCTIONS(AttentionOutputPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::attention_output; }
  [[nodiscard]] QString title() const override { return tr("Output o of the query"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit&, const QRectF&, const Scene&) const override {
    return std::nullopt;
  }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  static bool has_flow(const Scene& scene) { return scene.flow != nullptr && scene.flow->dims() > 0; }
  static Selection object(const Scene& scene, std::int64_t dim);
  // The dim of a selection when it is one of this query's.
  static std::optional<std::int64_t> dim_of(const Scene& scene, const Selection& selection);
  // o / l now, and whether all tiles have been added.
  static std::vector<double> output_now(const Scene& scene) {
    return scene.flow_between != nullptr ? scene.flow_between->o
                                         : output_after(*scene.flow, static_cast<std::size_t>(scene.flow_tiles));
  }
  static bool is_whole(const Scene& scene) {
    return scene.flow_between == nullptr && scene.flow_tiles >= std::ssize(scene.flow->tiles);
  }
  // Row of the candidate's errors that is this query; -1: none, or the errors are those of the flow itself.
  static std::int64_t candidate_row(const Scene& scene);
  static double ratio(const AttentionFlow& flow, const std::vector<double>& o, std::int64_t dim);
  static std::int64_t worst_dim(const AttentionFlow& flow, const std::vector<double>& o, std::int64_t first,
                                std::int64_t end);
  static void paint_values(QPainter& painter, const OutputLayout& at, const Scene& scene, const std::vector<double>& o);
  static void paint_errors(QPainter& painter, const OutputLayout& at, const Scene& scene, const std::vector<double>& o);
};

QString AttentionOutputPanel::subtitle(const Scene& scene) const {
  if (!has_flow(scene)) return {};
  const auto all = std::ssize(scene.flow->tiles);
  if (scene.flow_between != nullptr) return tr("o / l while tile %1 is added").arg(scene.flow_between->tile);
  return scene.flow_tiles < all ? tr("o / l after %1 of %2 tiles, by dim").arg(scene.flow_tiles).arg(all)
                                : tr("after all %1 tiles, by dim").arg(all);
}

QString AttentionOutputPanel::summary(const Scene& scene) const {
  if (!has_flow(scene)) return scene.flow_instead;
  const AttentionFlow& flow = *scene.flow;
  const std::vector<double> o = output_now(scene);
  const std::int64_t dim = worst_dim(flow, o, 0, flow.dims());
  const auto at = static_cast<std::size_t>(dim);
  return (is_whole(scene) ? tr("Largest error of the flow: dim %1, %2, golden %3: %4x the bound %5.")
                          : tr("Keys are missing; farthest from the golden: dim %1, %2, golden %3: %4x the bound %5."))
      .arg(dim)
      .arg(QString::number(o[at], 'g', 8), QString::number(flow.golden[at], 'g', 8),
           QString::fromStdString(ratio_text(ratio(flow, o, dim))), QString::number(flow.bound[at], 'g', 2));
}

double AttentionOutputPanel::ratio(const AttentionFlow& flow, const std::vector<double>& o, std::int64_t dim) {
  const auto at = static_cast<std::size_t>(dim);
  const double error = std::abs(o[at] - flow.golden[at]);
  return error == 0 ? 0 : error / flow.bound[at];
}

std::int64_t AttentionOutputPanel::worst_dim(const AttentionFlow& flow, const std::vector<double>& o,
                                             std::int64_t first, std::int64_t end) {
  std::int64_t worst = first;
  for (std::int64_t dim = first; dim < end; ++dim) {
    if (ratio(flow, o, dim) > ratio(flow, o, worst)) worst = dim;
  }
  return worst;
}

std::int64_t AttentionOutputPanel::candidate_row(const Scene& scene) {
  if (scene.errors == nullptr || scene.errors->empty() || scene.errors->of_flow ||
      scene.errors->dims != scene.flow->dims()) {
    return -1;
  }
  const AttentionErrors& errors = *scene.errors;
  const std::int64_t sequence = sequence_index(errors, scene.flow->request.seq);
  if (sequence < 0 || scene.flow->request.head.value >= errors.heads) return -1;
  for (std::int64_t row = errors.first_row[static_cast<std::size_t>(sequence)];
       row < errors.first_row[static_cast<std::size_t>(sequence) + 1]; ++row) {
    if (errors.rows[static_cast<std::size_t>(row)].position == scene.flow->request.query.value) return row;
  }
  return -1;
}

Selection AttentionOutputPanel::object(const Scene& scene, std::int64_t dim) {
  const AttentionFlow& flow = *scene.flow;
  const std::int64_t row = candidate_row(scene);
  const PageIdx page = row >= 0 ? page_behind(*scene.errors, row)
                                : PageIdx{flow.request.query.value / std::max<std::int64_t>(1, flow.page_size)};
  return of_error_cell(flow.request.seq, flow.request.head, flow.request.query, DimIdx{dim}, page);
}

std::optional<std::int64_t> AttentionOutputPanel::dim_of(const Scene& scene, const Selection& selection) {
  const AttentionFlow& flow = *scene.flow;
  if (selection.kind != Selection::Kind::error_cell || selection.seq != flow.request.seq ||
      selection.head != flow.request.head || selection.token != flow.request.query || selection.dim.value < 0 ||
      selection.dim.value >= flow.dims()) {
    return std::nullopt;
  }
  return selection.dim.value;
}

// --- painting --------------------------------------------------------------------------------------------------------

void AttentionOutputPanel::paint_values(QPainter& painter, const OutputLayout& at, const Scene& scene,
                                        const std::vector<double>& o) {
  const AttentionFlow& flow = *scene.flow;
  double largest = 0;
  for (const auto* values : {&o, &flow.golden}) {
    for (const double x : *values) {
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    }
  }
  const QRectF& strip = at.values;
  const double middle = strip.center().y(), reach = strip.height() / 2 - 3;
  const auto y = [&](double x) { return std::isfinite(x) && largest > 0 ? middle - x / largest * reach : middle; };
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (std::int64_t n = 0; n < at.bars(); ++n) {
    const auto dim = static_cast<std::size_t>(worst_dim(flow, o, n * at.bin, std::min(at.dims, (n + 1) * at.bin)));
    const QRectF bar = at.bar(strip, n);
    const double gap = bar.width() >= 6 ? 2 : 0;
    const double top = std::min(middle, y(o[dim])), bottom = std::max(middle, y(o[dim]));
    painter.fillRect(QRectF(bar.left() + gap / 2, top, bar.width() - gap, std::max(1.0, bottom - top)),
                     scene.theme->series[0]);
    painter.fillRect(QRectF(bar.left(), std::round(y(flow.golden[dim])) - 1, bar.width(), 2), scene.theme->text);
  }
  painter.fillRect(QRectF(strip.left(), middle, strip.width(), 1), scene.theme->cell_line);
  const QFont font = mono_font(scene.px(kAttentionNumber - 2));
  const QRectF label(strip.left() - at.label_width, strip.top(), at.label_width - 6, strip.height());
  const double line = scene.px(13);
  draw_text_in(painter, font, scene.theme->text_quiet, QRectF(label.left(), label.top(), label.width(), line),
               Qt::AlignRight, QString::number(largest, 'g', 2));
  if (label.height() >= 3 * line) {
    draw_text_in(painter, font, scene.theme->text_quiet, label, Qt::AlignRight, QStringLiteral("0"));
    draw_text_in(painter, font, scene.theme->text_quiet,
                 QRectF(label.left(), label.bottom() - line, label.width(), line), Qt::AlignRight,
                 QString::number(-largest, 'g', 2));
  }
}

void AttentionOutputPanel::paint_errors(QPainter& painter, const OutputLayout& at, const Scene& scene,
                                        const std::vector<double>& o) {
  if (at.errors.isEmpty()) return;
  const AttentionFlow& flow = *scene.flow;
  const QRectF& strip = at.errors;
  const std::int64_t row = candidate_row(scene);
  for (std::int64_t n = 0; n < at.bars(); ++n) {
    const std::int64_t first = n * at.bin, end = std::min(at.dims, first + at.bin);
    const double of_flow = ratio(flow, o, worst_dim(flow, o, first, end));
    const QRectF bar = at.bar(strip, n);
    const double gap = bar.width() >= 6 ? 2 : 0;
    const double height = error_level(of_flow) * strip.height();
    const QRectF filled(bar.left() + gap / 2, strip.bottom() - height, bar.width() - gap, height);
    painter.setRenderHint(QPainter::Antialiasing, false);
    // Until all keys have been added the distance from the golden is no fault.
    const bool whole = is_whole(scene);
    const bool fails = whole && !(of_flow <= 1);
    painter.fillRect(filled, fails ? scene.theme->warning : scene.theme->series[whole ? 2 : 3]);
    if (fails && bar.width() >= 6) {
      painter.fillRect(filled, QBrush(with_alpha(scene.theme->ink_on(scene.theme->warning), 0.4), Qt::BDiagPattern));
    }
    if (row < 0) continue;
    double of_candidate = 0;
    for (std::int64_t dim = first; dim < end; ++dim) {
      of_candidate = std::max<double>(of_candidate, scene.errors->at(row, flow.request.head.value, dim));
    }
    const double y = strip.bottom() - error_level(of_candidate) * strip.height();
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(scene.theme->text, 1.25));
    painter.setBrush(of_candidate <= 1 ? scene.theme->card : scene.theme->warning);
    const double r = std::clamp(bar.width() / 2 - 1, 1.5, 3.5);
    const QPointF c(bar.center().x(), std::clamp(y, strip.top() + r, strip.bottom() - r));
    painter.drawPolygon(QPolygonF({c + QPointF(0, -r), c + QPointF(r, 0), c + QPointF(0, r), c + QPointF(-r, 0)}));
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRectF(strip.left(), strip.bottom(), strip.width(), 1), scene.theme->cell_line);
  painter.setPen(QPen(scene.theme->text_quiet, 1, Qt::DashLine));
  painter.drawLine(QPointF(strip.left(), std::round(strip.center().y())),
                   QPointF(strip.right(), std::round(strip.center().y())));
  const QFont font = mono_font(scene.px(kAttentionNumber - 2));
  draw_text_in(painter, font, scene.theme->text_quiet,
               QRectF(strip.left() - at.label_width, strip.top(), at.label_width - 6, strip.height()), Qt::AlignRight,
               tr("bound"));
}

void AttentionOutputPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_flow(scene)) return;  // the panel of the flow shows the reason
  const std::vector<double> o = output_now(scene);
  const OutputLayout at = output_layout(scene.flow->dims(), body, scene.font_scale);
  if (at.values.isEmpty()) return;
  painter.save();
  paint_values(painter, at, scene, o);
  paint_errors(painter, at, scene, o);
  painter.restore();
}

void AttentionOutputPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_flow(scene)) return;
  const OutputLayout at = output_layout(scene.flow->dims(), body, scene.font_scale);
  if (at.values.isEmpty()) return;
  const auto paint = [&](const Selection& selection, bool pinned) {
    const auto dim = dim_of(scene, selection);
    if (!dim) return;
    const QRectF all = at.errors.isEmpty() ? at.values : at.values.united(at.errors);
    paint_attention_outline(painter, at.bar(all, *dim / at.bin), scene, pinned);
  };
  paint(scene.pinned, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered, false);
}

void AttentionOutputPanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  if (!has_flow(scene)) return;
  const QFont font = ui_font(scene.px(12));
  const QString legend = candidate_row(scene) >= 0
                             ? tr("bar: the flow · line: golden · below: error over its bound, ◇ the candidate's")
                             : tr("bar: the flow · line: golden · below: error over its bound");
  draw_text_in(
      painter, font, scene.theme->text_quiet, footer, Qt::AlignLeft,
      first_that_fits(font, {legend + QStringLiteral("     ") + summary(scene), summary(scene)}, footer.width()));
}

// --- what is where ---------------------------------------------------------------------------------------------------

Selection AttentionOutputPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (!has_flow(scene)) return {};
  const OutputLayout layout = output_layout(scene.flow->dims(), body, scene.font_scale);
  const auto bar = layout.bar_at(at);
  return bar ? object(scene, *bar * layout.bin) : Selection{};
}

Selection AttentionOutputPanel::moved(const Selection& from, Move move, const QRectF& body, const Scene& scene) const {
  if (!has_flow(scene)) return from;
  const OutputLayout layout = output_layout(scene.flow->dims(), body, scene.font_scale);
  const std::int64_t last = layout.bars() - 1;
  if (move == Move::first) return object(scene, 0);
  if (move == Move::last) return object(scene, last * layout.bin);
  const auto dim = dim_of(scene, from);
  if (!dim) return object(scene, 0);
  const bool back = move == Move::left || move == Move::up;
  return object(scene, std::clamp<std::int64_t>(*dim / layout.bin + (back ? -1 : 1), 0, last) * layout.bin);
}

std::vector<PanelCell> AttentionOutputPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> found;
  if (!has_flow(scene)) return found;
  const AttentionFlow& flow = *scene.flow;
  const OutputLayout layout = output_layout(flow.dims(), body, scene.font_scale);
  if (layout.values.isEmpty()) return found;
  const std::vector<double> o = output_now(scene);
  const QRectF all = layout.errors.isEmpty() ? layout.values : layout.values.united(layout.errors);
  for (std::int64_t n = 0; n < layout.bars() && found.size() < limit; ++n) {
    const std::int64_t dim = n * layout.bin;
    const auto at = static_cast<std::size_t>(dim);
    found.push_back({layout.bar(all, n).intersected(body), object(scene, dim),
                     tr("dim %1: o = %2, golden %3, error %4x the bound")
                         .arg(dim)
                         .arg(QString::number(o[at], 'g', 6), QString::number(flow.golden[at], 'g', 6),
                              QString::fromStdString(ratio_text(ratio(flow, o, dim))))});
  }
  return found;
}

}  // namespace

std::unique_ptr<Panel> make_attention_output_panel() {
  return std::make_unique<AttentionOutputPanel>();
}

}  // namespace kvscope::viz
