#include "viz/window/canvas_scroll.h"

#include <QtGui/QResizeEvent>

#include "viz/geometry/board.h"
#include "viz/view/canvas.h"

namespace kvscope::viz {

CanvasScroll::CanvasScroll(Canvas* canvas, QWidget* parent) : QScrollArea(parent), canvas_(canvas) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setFocusProxy(canvas);
  setWidgetResizable(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWidget(canvas);
  connect(canvas, &Canvas::viewChanged, this, &CanvasScroll::fit);
  connect(canvas, &Canvas::panelFocused, this, [this](const QRectF& card) {
    const QPointF middle = card.center();
    ensureVisible(qRound(middle.x()), qRound(middle.y()), qRound(card.width() / 2), qRound(card.height() / 2));
  });
}

void CanvasScroll::fit() {
  const QSizeF room(viewport()->width(), 0);
  canvas_->setMinimumHeight(qRound(whole_size(canvas_->view(), room, canvas_->fontScale()).height()));
}

void CanvasScroll::resizeEvent(QResizeEvent* event) {
  fit();
  QScrollArea::resizeEvent(event);
}

}  // namespace kvscope::viz
