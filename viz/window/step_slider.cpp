#include "viz/window/step_slider.h"

#include <algorithm>
#include <cmath>

#include <QtCore/QSignalBlocker>
#include <QtGui/QPainter>
#include <QtWidgets/QStyle>
#include <QtWidgets/QStyleOptionSlider>

namespace kvscope::viz {
namespace {

constexpr double kMarkWidth = 2, kMarkHeight = 5;  // [px]

}  // namespace

StepSlider::StepSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {
  setAccessibleName(tr("Step of the launch"));
  setToolTip(tr("Warp instructions that have been executed; a mark is a report"));
  connect(this, &QSlider::valueChanged, this, [this](int value) {
    const double share = maximum() == 0 ? 0 : static_cast<double>(value) / maximum();
    Q_EMIT step_wanted(static_cast<qulonglong>(std::llround(share * static_cast<double>(last_))));
  });
}

double StepSlider::share_of(std::uint64_t step) const {
  return last_ == 0 ? 0 : static_cast<double>(std::min(step, last_)) / static_cast<double>(last_);
}

void StepSlider::set_position(std::uint64_t step, std::uint64_t last) {
  const QSignalBlocker quiet(this);
  last_ = last;
  setRange(0, static_cast<int>(std::min<std::uint64_t>(last, kMostPlaces)));
  // The handle that is held stays under the pointer: its own position has been asked for.
  if (!isSliderDown()) setValue(static_cast<int>(std::lround(share_of(step) * maximum())));
}

void StepSlider::set_marks(const std::vector<std::uint64_t>& steps, const QColor& color) {
  marks_ = steps;
  color_ = color;
  update();
}

void StepSlider::paintEvent(QPaintEvent* event) {
  QSlider::paintEvent(event);
  QStyleOptionSlider option;
  initStyleOption(&option);
  const int handle = style()->pixelMetric(QStyle::PM_SliderLength, &option, this);
  QPainter painter(this);
  for (const std::uint64_t mark : marks_) {
    const double x = handle / 2.0 + share_of(mark) * (width() - handle);
    painter.fillRect(QRectF(x - kMarkWidth / 2, 0, kMarkWidth, kMarkHeight), color_);
  }
}

}  // namespace kvscope::viz
