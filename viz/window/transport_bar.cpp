#include "viz/window/transport_bar.h"

#include <algorithm>
#include <cmath>

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include "viz/playback/player.h"

namespace kvscope::viz {
namespace {

constexpr int kQuarters = 4;                            // resolution of the slider: positions per doubling
constexpr int kSliderWidth = 110, kBetweenButtons = 8;  // [px]

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
  for (const Do id : {Do::go_back, Do::go_forward, Do::run_back, Do::to_start, Do::step_back, Do::previous_event,
                      Do::play, Do::next_event, Do::step, Do::to_end, Do::run_to_breakpoint}) {
    addAction(actions[id]);
    QWidget* button = widgetForAction(actions[id]);
    button->setAccessibleName(plain_text_of(entry(id)));
    button->setFocusPolicy(Qt::TabFocus);
    if (id == Do::go_forward) addSeparator();
  }
  addSeparator();
  position_->setObjectName(QStringLiteral("position"));
  addWidget(position_);
  auto* gap = new QWidget;
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  addWidget(gap);
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, speed_}) {
    widget->setAccessibleName(tr("Speed in steps per second"));
    widget->setToolTip(tr("Speed in steps per second"));
  }
  slider_->setRange(0, slider_of(Player::kFastest));
  slider_->setPageStep(kQuarters);
  slider_->setFixedWidth(kSliderWidth);
  addWidget(slider_);
  auto* between = new QWidget;
  between->setFixedWidth(kBetweenButtons);
  addWidget(between);
  speed_->setSuffix(tr(" steps/s"));
  addWidget(speed_);

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

void TransportBar::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  if (document_) {
    document_->set_speed(speed());
    connect(document_, &Document::position_changed, this, &TransportBar::show_position);
    connect(document_, &Document::speed_changed, this, &TransportBar::show_speed);
  }
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

void TransportBar::show_position() {
  // As wide as its widest text in this run, so that the slider does not move while it plays.
  const auto words = [](std::int64_t step, std::int64_t last) {
    return step < 0 ? tr("before step 0") : tr("step %1 of %2").arg(QString::number(step), QString::number(last));
  };
  if (!document_) {
    position_->setText(tr("no run"));
    return;
  }
  const std::vector<std::int64_t>& steps = document_->run().timeline().step;
  const std::int64_t last = steps.empty() ? -1 : steps.back();
  const QFontMetrics metrics(position_->font());
  position_->setMinimumWidth(
      std::max(metrics.horizontalAdvance(words(last, last)), metrics.horizontalAdvance(words(-1, 0))) + 16);
  position_->setText(words(document_->cursor().state().step.value, last));
  position_->setToolTip(tr("%1 of %2 events are in the past")
                            .arg(QString::number(document_->cursor().position().value),
                                 QString::number(document_->run().facts().events)));
}

}  // namespace kvscope::viz
