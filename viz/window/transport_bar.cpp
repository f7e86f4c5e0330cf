#include "viz/window/transport_bar.h"

#include <algorithm>
#include <cmath>

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include "viz/playback/player.h"
#include "viz/view/time_text.h"
#include "viz/window/flow_row.h"

namespace kvscope::viz {
namespace {

constexpr int kQuarters = 4;  // resolution of the slider: positions per doubling
constexpr int kSliderWidth = 110, kBetweenButtons = 2, kBetweenFields = 8, kAfterPosition = 16;  // [px]

double speed_of(int slider) {
  return Player::kSlowest * std::exp2(static_cast<double>(slider) / kQuarters);
}
int slider_of(double speed) {
  return qRound(kQuarters * std::log2(speed / Player::kSlowest));
}

// A spin box that doubles and halves: 14 clicks lead from 0.25 to 4096 steps per second.
class SpeedBox final : public QDoubleSpinBox {
 public:
  SpeedBox() {
    setRange(Player::kSlowest, Player::kFastest);
    setDecimals(2);
    setKeyboardTracking(false);
  }
  void stepBy(int steps) override {
    double speed = value();
    for (int i = 0; i < std::abs(steps); ++i) speed *= steps > 0 ? 2 : 0.5;
    setValue(speed);
  }

 protected:
  [[nodiscard]] QString textFromValue(double value) const override { return locale().toString(value, 'g', 6); }
};

}  // namespace

TransportBar::TransportBar(const Actions& actions, QWidget* parent)
    : QToolBar(tr("Run"), parent), position_(new QLabel), slider_(new QSlider(Qt::Horizontal)), speed_(new SpeedBox) {
  setObjectName(QStringLiteral("transport"));
  setAccessibleName(tr("Run"));
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  position_->setObjectName(QStringLiteral("position"));
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, speed_}) {
    widget->setAccessibleName(tr("Speed in steps per second"));
    widget->setToolTip(tr("Speed in steps per second"));
  }
  slider_->setRange(0, slider_of(Player::kFastest));
  slider_->setPageStep(kQuarters);
  slider_->setFixedWidth(kSliderWidth);
  speed_->setSuffix(tr(" steps/s"));
  auto* speeds = new QWidget;
  auto* beside = new QHBoxLayout(speeds);
  beside->setContentsMargins(0, 0, 0, 0);
  beside->setSpacing(kBetweenFields);
  beside->addWidget(slider_);
  beside->addWidget(speed_);

  auto* lines = new FlowLines;
  lines->row().addWidget(group(actions, {Do::go_back, Do::go_forward}));
  lines->row().addWidget(group(actions, {Do::run_back, Do::to_start, Do::step_back, Do::previous_event, Do::play,
                                         Do::next_event, Do::step, Do::to_end, Do::run_to_breakpoint}));
  lines->row().addWidget(position_);
  lines->row().addWidget(speeds);
  lines->row().setAlignment(speeds, Qt::AlignRight);
  addWidget(lines);

  connect(slider_, &QSlider::valueChanged, this, [this](int value) { set_speed(speed_of(value)); });
  connect(speed_, &QDoubleSpinBox::valueChanged, this, [this](double speed) {
    const QSignalBlocker quiet(slider_);  // the slider shows the nearest quarter; the spin box has the exact speed
    slider_->setValue(slider_of(speed));
    if (document_) document_->set_speed(speed);
    Q_EMIT speed_changed();
  });
  set_speed(Player().speed());
  set_document(nullptr);
}

// The buttons of actions, which stay on one line.
QWidget* TransportBar::group(const Actions& actions, std::initializer_list<Do> ids) {
  auto* buttons = new QWidget;
  auto* row = new QHBoxLayout(buttons);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(kBetweenButtons);
  for (const Do id : ids) {
    auto* button = new QToolButton;
    button->setDefaultAction(actions[id]);
    button->setAutoRaise(true);
    button->setAccessibleName(plain_text_of(entry(id)));
    button->setFocusPolicy(Qt::TabFocus);
    connect(this, &QToolBar::iconSizeChanged, button, &QToolButton::setIconSize);
    row->addWidget(button);
  }
  return buttons;
}

void TransportBar::set_document(Document* document) {
  if (document_) {
    document_->disconnect(this);
    document_->attention().disconnect(this);
  }
  document_ = document;
  if (document_) {
    document_->set_speed(speed());
    connect(document_, &Document::position_changed, this, &TransportBar::show_position);
    connect(document_, &Document::tile_changed, this, &TransportBar::show_position);
    connect(&document_->attention(), &AttentionModel::changed, this, &TransportBar::show_position);
    connect(document_, &Document::speed_changed, this, &TransportBar::show_speed);
  }
  show_position();
}

void TransportBar::set_view(View view) {
  view_ = view;
  show_position();
}

void TransportBar::set_theme(const Theme& theme, double font_scale) {
  Q_UNUSED(theme)
  setIconSize(QSize(qRound(kIconSize * font_scale), qRound(kIconSize * font_scale)));
  position_->setFont(mono_font(12 * font_scale));
  show_position();
}

void TransportBar::set_speed(double steps_per_second) {
  speed_->setValue(steps_per_second);
}

double TransportBar::speed() const {
  return speed_->value();
}

void TransportBar::show_speed() {
  if (document_) speed_->setValue(document_->speed());
}

TransportBar::Words TransportBar::position() const {
  const auto of_run = [](std::int64_t step, std::int64_t last) {
    return step < 0 ? tr("before step 0") : tr("step %1 of %2").arg(QString::number(step), QString::number(last));
  };
  const std::vector<std::int64_t>& steps = document_->run().timeline().step;
  const std::int64_t last = steps.empty() ? -1 : steps.back();
  const QString in_run = of_run(document_->cursor().state().step.value, last);
  if (view_ == View::tile) {
    const Tile* const tile = document_->tile();
    if (tile == nullptr) return {tr("no tile"), {}, tr("No tile is shown. The run: %1").arg(in_run)};
    const auto of_tile = [&](std::int64_t event) {
      return tr("event %1 of %2").arg(number_text(event), number_text(tile->events));
    };
    return {of_tile(document_->tile_now().event), of_tile(tile->events),
            tr("Step and play move through the events of the tile. The run: %1").arg(in_run)};
  }
  if (view_ == View::attention) {
    const AttentionFlow* const flow = document_->attention().flow();
    if (flow == nullptr) return {tr("no flow"), {}, tr("No flow is shown. The run: %1").arg(in_run)};
    const std::int64_t tiles = std::ssize(flow->tiles);
    const auto of_flow = [&](std::int64_t done) {
      return tr("%1 of %2 tiles").arg(number_text(done), number_text(tiles));
    };
    return {of_flow(document_->attention().tiles_done()), of_flow(tiles),
            tr("Step and play add the tiles of the flow. The run: %1").arg(in_run)};
  }
  const QString at_end = of_run(last, last), at_start = of_run(-1, 0);
  return {in_run, at_end.size() > at_start.size() ? at_end : at_start,
          tr("%1 of %2 events are in the past")
              .arg(QString::number(document_->cursor().position().value),
                   QString::number(document_->run().facts().events))};
}

void TransportBar::show_position() {
  if (!document_) {
    position_->setText(tr("no run"));
    return;
  }
  const Words now = position();
  // As wide as its widest text in this run, tile or flow, so that the bar keeps its lines while it plays.
  position_->setMinimumWidth(QFontMetrics(position_->font()).horizontalAdvance(now.widest) + kAfterPosition);
  position_->setText(now.text);
  position_->setToolTip(now.tip);
}

}  // namespace kvscope::viz
