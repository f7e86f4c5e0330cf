#include "viz/window/transport_bar.h"

#include <algorithm>

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include "viz/playback/player.h"

namespace kvscope::viz {
namespace {

// Doubles and halves: from a step in four seconds to four thousand a second in fourteen turns.
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
    : QToolBar(tr("Run"), parent), steps_(new QSlider(Qt::Horizontal)), position_(new QLabel), speed_(new SpeedBox) {
  setObjectName(QStringLiteral("transport"));
  setAccessibleName(tr("Run"));
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  setIconSize(QSize(kIconSize, kIconSize));
  for (const Do id : {Do::run_back, Do::to_start, Do::step_back, Do::previous_event, Do::play, Do::next_event, Do::step,
                      Do::to_end, Do::run_to_breakpoint}) {
    addAction(actions[id]);
    QWidget* button = widgetForAction(actions[id]);
    button->setAccessibleName(plain_text_of(entry(id)));
    button->setFocusPolicy(Qt::TabFocus);
  }
  steps_->setAccessibleName(tr("Step"));
  steps_->setToolTip(tr("The step that is shown"));
  steps_->setMinimumWidth(120);
  addSeparator();
  addWidget(steps_);
  position_->setAccessibleName(tr("Position"));
  addWidget(position_);
  addSeparator();
  speed_->setAccessibleName(tr("Speed in steps a second"));
  speed_->setToolTip(tr("Speed in steps a second"));
  speed_->setSuffix(tr(" steps/s"));
  addWidget(speed_);

  connect(steps_, &QSlider::valueChanged, this, [this](int row) {
    if (document_) document_->seek(document_->run().end_of_row(row));
  });
  connect(speed_, &QDoubleSpinBox::valueChanged, this, [this](double speed) {
    if (document_) document_->set_speed(speed);
    Q_EMIT speed_changed();
  });
  speed_->setValue(Player().speed());
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
  for (QWidget* widget : std::initializer_list<QWidget*>{steps_, position_}) widget->setEnabled(document_ != nullptr);
  const QSignalBlocker quiet(steps_);
  const std::int64_t last = document_ ? document_->run().facts().rows - 1 : 0;
  steps_->setRange(0, static_cast<int>(last));
  steps_->setPageStep(static_cast<int>(std::max<std::int64_t>(1, last / 20)));
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
  // As wide as it ever gets in this run: digits must not push the slider about while it plays.
  const auto words = [this](std::int64_t step, std::int64_t last) {
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
  position_->setToolTip(tr("event %1 of %2")
                            .arg(QString::number(document_->cursor().position().value),
                                 QString::number(document_->run().facts().events)));
  const QSignalBlocker quiet(steps_);
  steps_->setValue(static_cast<int>(document_->cursor().row()));
}

}  // namespace kvscope::viz
