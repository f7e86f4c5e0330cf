// The line above the cards: the run's name, the current position, and a scrub bar for its steps.
#include <algorithm>

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>
#include <QtGui/QFontMetricsF>

#include "core/base/dtype.h"
#include "viz/geometry/header_layout.h"
#include "viz/playback/happened.h"
#include "viz/view/panel.h"
#include "viz/view/text.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// All in px at font scale 1.
constexpr double kHeaderTitle = 18, kFacts = 13, kCounter = 13;
constexpr double kTickHeight = 5;
constexpr double kBeforeHappened = 18, kLeastHappened = 120;
const QString kBetweenFacts = QString::fromUtf8(" · ");

class HeaderPanel final : public Panel {
  Q_DECLARE_TR_FUNCTIONS(HeaderPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::header; }
  [[nodiscard]] QString title() const override { return tr("Run"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter&, const QRectF&, const Scene&) const override {}
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit&, const QRectF&, const Scene&) const override { return {}; }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] bool zooms(const Scene&) const override { return false; }
  [[nodiscard]] Viewport zoomed(double, QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(PanelId::header);
  }
  [[nodiscard]] Viewport scrolled(QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(PanelId::header);
  }
  [[nodiscard]] Viewport revealing(const Selection&, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(PanelId::header);
  }
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  static QFont title_font(const Scene& scene) { return ui_font(scene.px(kHeaderTitle), QFont::DemiBold); }
  static QFont counter_font(const Scene& scene) { return mono_font(scene.px(kCounter)); }
  static HeaderLayout layout(const QRectF& body, const Scene& scene);
  static QString name_of_run(const Scene& scene);
  static QString place_words(const Scene& scene);
  static QStringList time_words(const Scene& scene);
  static QStringList constants(const Scene& scene);
  static void paint_facts(QPainter& painter, const QRectF& rect, double baseline, const Scene& scene);
  static void paint_handle(QPainter& painter, const HeaderLayout& at, std::int64_t index, const QColor& color,
                           const Scene& scene);
};

// --- the current position --------------------------------------------------------------------------------------------

std::int64_t steps_of(const Scene& scene) {
  return scene.run().timeline().steps();
}

// The index of the cursor's step, counted from 0; -1 before the first.
std::int64_t index_of(const Scene& scene) {
  return scene.cursor->row() - 1;
}

// The engine's step number, which texts such as "step 12" show.
std::int64_t number_of(const Scene& scene, std::int64_t index) {
  return scene.run().timeline().step[static_cast<std::size_t>(index)];
}

// Steps are in ascending order of their numbers.
std::int64_t index_of_step(const Scene& scene, StepIdx step) {
  const std::vector<std::int64_t>& numbers = scene.run().timeline().step;
  const auto found = std::ranges::lower_bound(numbers, step.value);
  return std::min<std::int64_t>(found - numbers.begin(), steps_of(scene) - 1);
}

QString counter_text(const Scene& scene, std::int64_t index) {
  const std::int64_t steps = steps_of(scene);
  if (steps == 0) return QStringLiteral("0 / 0");
  const QString last = number_text(number_of(scene, steps - 1));
  return (index < 0 ? QString(QChar(u'–')) : number_text(number_of(scene, index))) + QStringLiteral(" / ") + last;
}

QString HeaderPanel::name_of_run(const Scene& scene) {
  const QString name = QString::fromStdString(scene.facts().name);
  return scene.of_compared ? tr("Compared: %1").arg(name) : name;
}

QString HeaderPanel::place_words(const Scene& scene) {
  const std::int64_t steps = steps_of(scene), index = index_of(scene);
  if (steps == 0) return tr("no steps");
  if (index < 0)
    return tr("before step %1 of %2").arg(number_text(number_of(scene, 0)), number_text(number_of(scene, steps - 1)));
  const QString step =
      tr("step %1 of %2").arg(number_text(number_of(scene, index)), number_text(number_of(scene, steps - 1)));
  const trace::StepSpan& span = scene.run().span(scene.cursor->row());
  const std::int64_t done = scene.cursor->position().value - span.first_event;
  return done == span.events ? step : tr("%1, %2 of %3 events").arg(step, number_text(done), number_text(span.events));
}

QStringList HeaderPanel::time_words(const Scene& scene) {
  QStringList parts{place_words(scene)};
  if (index_of(scene) >= 0) parts << time_text(scene.cursor->state().time_us);
  return parts;
}

QStringList HeaderPanel::constants(const Scene& scene) {
  const Facts& facts = scene.facts();
  QStringList parts;
  // A trace of detail `steps` has no token writes, so its page size is unknown.
  if (facts.page_size > 0 && (facts.scenario || facts.detail == trace::Detail::full)) {
    parts << (facts.cache == CacheKind::continuous
                  ? tr("%1 tokens reserved a sequence").arg(number_text(facts.page_size))
                  : tr("page size %1").arg(number_text(facts.page_size)));
  }
  if (facts.scenario) {
    parts << QString::fromStdString(facts.scenario->model.name)
          << QString::fromUtf8(name(facts.scenario->cache.dtype).data());
  }
  return parts;
}

QString HeaderPanel::subtitle(const Scene& scene) const {
  return (time_words(scene) + constants(scene)).join(kBetweenFacts);
}

QString HeaderPanel::summary(const Scene& scene) const {
  const QString now = tr("%1: %2").arg(name_of_run(scene), subtitle(scene));
  const std::string happened = what_happened(*scene.cursor);
  return happened.empty() ? now : tr("%1. %2.").arg(now, QString::fromStdString(happened));
}

// --- painting --------------------------------------------------------------------------------------------------------

HeaderLayout HeaderPanel::layout(const QRectF& body, const Scene& scene) {
  const QString name = name_of_run(scene);
  // As wide as the widest counter of this run, so that the bar does not move while the numbers grow.
  const QString widest = counter_text(scene, steps_of(scene) - 1);
  return header_layout(body, scene.font_scale, text_width(title_font(scene), name) + 1,
                       text_width(counter_font(scene), widest) + 1);
}

void HeaderPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Theme& theme = *scene.theme;
  const HeaderLayout at = layout(body, scene);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);

  const QFont title = title_font(scene);
  const double baseline = std::round(at.title.center().y() + cap_height(title) / 2);
  draw_text(painter, title, theme.text, {at.title.left(), baseline},
            elided(title, name_of_run(scene), at.title.width()));
  if (!at.facts.isEmpty()) {
    const bool beside = at.facts.top() == at.title.top();
    const double line = std::round(at.facts.center().y() + cap_height(ui_font(scene.px(kFacts))) / 2);
    paint_facts(painter, at.facts, beside ? baseline : line, scene);
  }

  const std::int64_t steps = steps_of(scene);
  const double round = at.bar.height() / 2;
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.cell_line);
  painter.drawRoundedRect(at.bar, round, round);
  if (steps > 0) {
    // Ticks of preemptions are drawn under the bar: on it they would not be visible in its filled part.
    for (const double x : bar_ticks(at, scene.run().timeline()[Mark::preemption])) {
      painter.fillRect(QRectF(x, at.bar.bottom() + scene.px(2), 1, scene.px(kTickHeight)), theme.warning);
    }
    const double x = step_x(at, index_of(scene), steps);
    QRectF done = at.bar;
    done.setRight(index_of(scene) < 0 ? at.bar.left() : std::max(x, at.bar.left() + at.bar.height()));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.series[0]);
    painter.drawRoundedRect(done, round, round);
    paint_handle(painter, at, index_of(scene), theme.text, scene);
  }

  const QFont counter = counter_font(scene);
  const QString text = counter_text(scene, index_of(scene));
  draw_text(
      painter, counter, theme.text_quiet,
      {at.counter.right() - text_width(counter, text), std::round(at.counter.center().y() + cap_height(counter) / 2)},
      text);
  painter.restore();
}

// The position, what just happened, and the run's constants if there is room for both.
void HeaderPanel::paint_facts(QPainter& painter, const QRectF& rect, double baseline, const Scene& scene) {
  const QFont font = ui_font(scene.px(kFacts));
  const QString happened = QString::fromStdString(scene.view == View::tile && scene.tile != nullptr
                                                      ? what_happened(*scene.tile, *scene.tile_now)
                                                      : what_happened(*scene.cursor));
  const QString long_facts = (time_words(scene) + constants(scene)).join(kBetweenFacts);
  if (happened.isEmpty()) {
    draw_text(painter, font, scene.theme->text_quiet, {rect.left(), baseline}, elided(font, long_facts, rect.width()));
    return;
  }
  const double gap = scene.px(kBeforeHappened), needed = gap + text_width(font, happened);
  // Fewer facts before a shorter line of what happened.
  QString facts = long_facts;
  QStringList shorter{time_words(scene).join(kBetweenFacts), place_words(scene)};
  if (!scene.cursor->state().in_step) shorter << QString();  // the counter has the step
  for (const QString& words : shorter) {
    if (text_width(font, facts) + needed > rect.width()) facts = words;
  }
  facts = elided(font, facts, rect.width());
  draw_text(painter, font, scene.theme->text_quiet, {rect.left(), baseline}, facts);
  const double left = rect.left() + (facts.isEmpty() ? 0 : text_width(font, facts) + gap);
  if (rect.right() - left < scene.px(kLeastHappened)) return;
  draw_text(painter, font, scene.theme->text_accent, {left, baseline}, elided(font, happened, rect.right() - left));
}

void HeaderPanel::paint_handle(QPainter& painter, const HeaderLayout& at, std::int64_t index, const QColor& color,
                               const Scene& scene) {
  painter.setPen(QPen(scene.theme->surface, 2));
  painter.setBrush(color);
  painter.drawEllipse(QPointF(step_x(at, index, steps_of(scene)), at.bar.center().y()), at.handle, at.handle);
}

// The step under the pointer: a translucent handle and its number.
void HeaderPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.hovered.kind != Selection::Kind::step || steps_of(scene) == 0) return;
  const HeaderLayout at = layout(body, scene);
  const std::int64_t index = index_of_step(scene, scene.hovered.step);
  if (index == index_of(scene)) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  const double x = step_x(at, index, steps_of(scene));
  painter.fillRect(QRectF(std::floor(x), at.bar.top() - scene.px(4), 1, at.bar.height() + scene.px(8)),
                   scene.theme->hover);
  const QFont font = mono_font(scene.px(11));
  const QFontMetricsF metrics(font);
  const QString text = number_text(number_of(scene, index));
  const double width = metrics.horizontalAdvance(text);
  painter.setFont(font);
  painter.setPen(scene.theme->text);
  painter.drawText(
      QPointF(std::clamp(x - width / 2, at.grip.left(), at.grip.right() - width), at.bar.top() - scene.px(6)), text);
  painter.restore();
}

// --- pointing --------------------------------------------------------------------------------------------------------

Selection HeaderPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  const HeaderLayout places = layout(body, scene);
  const std::int64_t steps = steps_of(scene);
  if (steps == 0 || !places.grip.contains(at)) return {};
  return of_step(StepIdx{number_of(scene, step_at(places, at.x(), steps))});
}

Selection HeaderPanel::moved(const Selection& from, Move move, const QRectF&, const Scene& scene) const {
  const std::int64_t steps = steps_of(scene);
  if (steps == 0) return {};
  const std::int64_t index = from.kind == Selection::Kind::step ? index_of_step(scene, from.step) : index_of(scene);
  std::int64_t to = 0;
  switch (move) {
    case Move::left:
    case Move::down:
      to = index - 1;
      break;
    case Move::right:
    case Move::up:
      to = index + 1;
      break;
    case Move::first:
      to = 0;
      break;
    case Move::last:
      to = steps - 1;
      break;
  }
  return of_step(StepIdx{number_of(scene, std::clamp<std::int64_t>(to, 0, steps - 1))});
}

std::vector<PanelCell> HeaderPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  if (steps_of(scene) == 0 || limit == 0) return {};
  const HeaderLayout at = layout(body, scene);
  const std::int64_t index = index_of(scene);
  const StepIdx step{number_of(scene, std::max<std::int64_t>(index, 0))};
  return {{at.grip, of_step(step), place_words(scene)}};
}

}  // namespace

std::unique_ptr<Panel> make_header_panel() {
  return std::make_unique<HeaderPanel>();
}

}  // namespace kvscope::viz
