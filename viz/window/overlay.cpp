#include "viz/window/overlay.h"

#include <algorithm>

#include <QtCore/QEvent>
#include <QtWidgets/QVBoxLayout>

namespace kvscope::viz {

Overlay::Overlay(QWidget* behind) : QWidget(behind), column_(new QVBoxLayout(this)) {
  column_->setContentsMargins(12, 0, 12, 6);
  column_->setSpacing(6);
  behind->installEventFilter(this);
  place();
}

void Overlay::add(QWidget* bar) {
  column_->addWidget(bar);
  bar->installEventFilter(this);  // a hidden widget gets no layout request when one of its children is shown
}

void Overlay::place() {
  const QWidget& behind = *parentWidget();
  const int width = behind.width();
  const int wanted =
      column_->hasHeightForWidth() ? column_->totalHeightForWidth(width) : column_->totalSizeHint().height();
  bool any = false;
  for (int i = 0; i < column_->count(); ++i) any = any || !column_->itemAt(i)->widget()->isHidden();
  const int height = any ? std::min(wanted, behind.height()) : 0;
  setGeometry(0, behind.height() - height, width, height);
  setVisible(any);
  raise();
}

bool Overlay::event(QEvent* event) {
  if (event->type() == QEvent::LayoutRequest) place();
  return QWidget::event(event);
}

bool Overlay::eventFilter(QObject* watched, QEvent* event) {
  const QEvent::Type type = event->type();
  if (watched == parentWidget() ? type == QEvent::Resize
                                : type == QEvent::ShowToParent || type == QEvent::HideToParent) {
    place();
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace kvscope::viz
