#include "viz/window/presentation.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QVBoxLayout>

namespace kvscope::viz {
namespace {

constexpr double kCaptionTitle = 22, kCaptionText = 18;  // [px] at font scale 1

}  // namespace

Caption::Caption(QWidget* parent) : QFrame(parent), title_(new QLabel), step_(new QLabel), sentence_(new QLabel) {
  setAccessibleName(tr("Caption"));
  sentence_->setWordWrap(true);
  for (QLabel* label : {title_, sentence_}) label->setMinimumWidth(1);  // a long text does not widen the window
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 6, 24, 14);
  column->setSpacing(4);
  auto* row = new QHBoxLayout;
  row->addWidget(title_, 1);
  row->addWidget(step_);
  column->addLayout(row);
  column->addWidget(sentence_);
  hide();
}

void Caption::set_words(const QString& title, const QString& step, const QString& sentence) {
  title_->setText(title);
  step_->setText(step);
  sentence_->setText(sentence);
}

void Caption::set_theme(const Theme& theme, double font_scale) {
  title_->setFont(ui_font(kCaptionTitle * font_scale, QFont::DemiBold));
  step_->setFont(mono_font(kCaptionText * font_scale));
  sentence_->setFont(ui_font(kCaptionText * font_scale));
  // Two lines: the picture above must not change its size with the length of the sentence.
  sentence_->setMinimumHeight(2 * sentence_->fontMetrics().lineSpacing());
  sentence_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  QPalette words = palette();
  words.setColor(QPalette::WindowText, theme.text);
  for (QLabel* label : {title_, step_, sentence_}) label->setPalette(words);
}

Presentation::Presentation(QWidget& window, PresentationKeys keys) : window_(window), keys_(std::move(keys)) {}

void Presentation::start() {
  on_ = true;
}

void Presentation::stop() {
  set_black(false);
  on_ = false;
}

void Presentation::set_black(bool black) {
  if (black == this->black()) return;
  if (!black) return delete black_.data();
  black_ = new QWidget(&window_);
  black_->setAccessibleName(tr("Black screen"));
  black_->setAutoFillBackground(true);
  black_->setStyleSheet(QStringLiteral("background: black"));
  black_->setGeometry(window_.rect());
  black_->show();
  black_->raise();
}

bool Presentation::take(QKeyEvent& event) {
  if (!on_ || (event.modifiers() & ~Qt::KeypadModifier) != Qt::NoModifier) return false;
  std::function<void()> work;
  switch (event.key()) {
    case Qt::Key_PageDown:
      work = keys_.forward;
      break;
    case Qt::Key_PageUp:
      work = keys_.back;
      break;
    case Qt::Key_B:
    case Qt::Key_Period:
      work = [this] { set_black(!black()); };
      break;
    case Qt::Key_Escape:
      work = black() ? std::function<void()>([this] { set_black(false); }) : keys_.leave;
      break;
    default:
      return false;
  }
  event.accept();
  // The shortcut event precedes the key press and only asks whether the key is used here.
  if (event.type() == QEvent::KeyPress) work();
  return true;
}

}  // namespace kvscope::viz
