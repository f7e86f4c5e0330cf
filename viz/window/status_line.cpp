#include "viz/window/status_line.h"

#include <algorithm>

#include <QtCore/QEvent>

#include "viz/view/text.h"

namespace kvscope::viz {

StatusLine::StatusLine(const QString& name, QWidget* parent) : QLabel(parent), name_(name) {
  setTextFormat(Qt::PlainText);
  setTextInteractionFlags(Qt::TextSelectableByMouse);
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  fit();
}

void StatusLine::set_sentence(const QString& sentence) {
  sentence_ = sentence;
  fit();
}

QSize StatusLine::minimumSizeHint() const {
  return {1, QLabel::minimumSizeHint().height()};
}

void StatusLine::resizeEvent(QResizeEvent* event) {
  QLabel::resizeEvent(event);
  fit();
}

void StatusLine::changeEvent(QEvent* event) {
  QLabel::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) fit();
}

void StatusLine::fit() {
  const QString shown = elided(font(), sentence_, std::max(contentsRect().width(), 1));
  if (shown != text()) setText(shown);
  const bool whole = shown == sentence_;
  setToolTip(whole ? QString() : sentence_);
  setAccessibleName(sentence_.isEmpty() ? name_ : whole ? QString() : sentence_);  // a name hides the text
}

}  // namespace kvscope::viz
