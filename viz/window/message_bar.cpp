#include "viz/window/message_bar.h"

#include <algorithm>

#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QApplication>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/icons.h"

namespace kvscope::viz {
namespace {

constexpr int kIconSize = 20;  // [px]

// As high as its lines after wrapping, up to kMostShownLines; longer texts scroll.
class Lines final : public QPlainTextEdit {
 public:
  explicit Lines(const QString& text, QWidget* parent) : QPlainTextEdit(text, parent) {
    setReadOnly(true);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);  // lines are wrapped
    setTabChangesFocus(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    document()->setDocumentMargin(0);
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QPlainTextEdit::resizeEvent(event);
    fit();
  }
  void changeEvent(QEvent* event) override {
    QPlainTextEdit::changeEvent(event);
    if (event->type() == QEvent::FontChange) fit();
  }

 private:
  void fit() {
    // The document height of a QPlainTextEdit is in lines.
    const int lines = std::clamp(qRound(document()->size().height()), 1, MessageBar::kMostShownLines);
    setFixedHeight(lines * fontMetrics().lineSpacing() + 4);
  }
};

// A message: its words, and its buttons beside them, or below them where they would take much of the width.
class MessageFrame final : public QFrame {
 public:
  explicit MessageFrame(QWidget* parent) : QFrame(parent), parts_(new QBoxLayout(QBoxLayout::LeftToRight, this)) {
    parts_->setContentsMargins(12, 10, 10, 10);
    parts_->setSpacing(10);
  }
  void add(QLayout* words, QWidget* buttons) {
    buttons_ = buttons;
    parts_->addLayout(words, 1);
    parts_->addWidget(buttons, 0, Qt::AlignTop | Qt::AlignRight);
  }

 protected:
  bool event(QEvent* event) override {
    if (buttons_ != nullptr && (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest)) {
      const bool beside = buttons_->sizeHint().width() < kMostOfButtons * width();
      parts_->setDirection(beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    }
    return QFrame::event(event);
  }

 private:
  static constexpr double kMostOfButtons = 0.4;  // share of the width

  QBoxLayout* parts_;
  QWidget* buttons_ = nullptr;
};

}  // namespace

MessageBar::MessageBar(QWidget* parent) : QWidget(parent), rows_(new QVBoxLayout(this)) {
  rows_->setContentsMargins(0, 0, 0, 0);
  rows_->setSpacing(6);
  setAccessibleName(tr("Messages"));
  hide();
}

QFrame* MessageBar::frame(const QString& topic) const {
  for (QFrame* frame : findChildren<QFrame*>(QString(), Qt::FindDirectChildrenOnly)) {
    if (frame->property("topic").toString() == topic) return frame;
  }
  return nullptr;
}

bool MessageBar::showing(const QString& topic) const {
  return frame(topic) != nullptr;
}

QStringList MessageBar::lines(const QString& topic) const {
  const QFrame* shown = frame(topic);
  return shown ? shown->property("lines").toStringList() : QStringList();
}

void MessageBar::dismiss(const QString& topic) {
  if (QFrame* shown = frame(topic)) dismiss(shown);
}

void MessageBar::dismiss(QFrame* shown) {
  // Removed from its parent immediately, so that frame() does not find it. Deleted later, because the code of its
  // button may still be running.
  const QWidget* const focus = QApplication::focusWidget();
  const bool focused = focus != nullptr && shown->isAncestorOf(focus);
  rows_->removeWidget(shown);
  shown->hide();
  shown->setProperty("topic", QVariant());
  shown->setParent(nullptr);
  shown->deleteLater();
  if (rows_->count() == 0) hide();
  if (focused) Q_EMIT left();
}

void MessageBar::show_message(const Message& message) {
  dismiss(message.topic);
  auto* shown = new MessageFrame(this);
  shown->setProperty("topic", message.topic);
  shown->setProperty("lines", message.lines);
  shown->setProperty("fault", message.fault);
  shown->setProperty("bar", message.fault ? QStringLiteral("warning") : QStringLiteral("true"));
  shown->setAccessibleName(message.title);

  auto* sign = new QLabel(shown);
  sign->setObjectName(QStringLiteral("sign"));
  auto* title = new QLabel(message.title, shown);
  title->setWordWrap(true);
  title->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont bold = title->font();
  bold.setWeight(QFont::DemiBold);
  title->setFont(bold);

  auto* words = new QVBoxLayout;
  words->setSpacing(4);
  words->addWidget(title);
  if (!message.lines.isEmpty()) {
    auto* lines = new Lines(message.lines.join(QLatin1Char('\n')), shown);
    lines->setAccessibleName(tr("Details"));
    words->addWidget(lines);
  }

  auto* signed_words = new QHBoxLayout;
  signed_words->setSpacing(10);
  signed_words->addWidget(sign, 0, Qt::AlignTop);
  signed_words->addLayout(words, 1);
  auto* buttons = new QWidget(shown);
  auto* row = new QHBoxLayout(buttons);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(10);
  const auto add_button = [&](const QString& text, const std::function<void()>& chosen) {
    auto* button = new QPushButton(text, buttons);
    connect(button, &QPushButton::clicked, this, chosen);
    row->addWidget(button);
  };
  for (const Message::Choice& choice : message.choices) {
    add_button(choice.text, [this, shown, chosen = choice.chosen] {
      dismiss(shown);
      chosen();
    });
  }
  if (!message.lines.isEmpty()) {
    add_button(tr("Copy"),
               [text = message.lines.join(QLatin1Char('\n'))] { QGuiApplication::clipboard()->setText(text); });
  }
  add_button(tr("Dismiss"), [this, shown] { dismiss(shown); });
  shown->add(signed_words, buttons);

  rows_->insertWidget(0, shown);
  if (theme_ != nullptr) set_theme(*theme_);
  show();
}

void MessageBar::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (QFrame* shown : findChildren<QFrame*>(QString(), Qt::FindDirectChildrenOnly)) {
    const bool fault = shown->property("fault").toBool();
    const QIcon sign = icon(fault ? Icon::warning : Icon::information, theme);
    if (auto* label = shown->findChild<QLabel*>(QStringLiteral("sign")))
      label->setPixmap(sign.pixmap(QSize(kIconSize, kIconSize), devicePixelRatioF()));
  }
}

bool MessageBar::dismiss_focused() {
  for (QWidget* at = QApplication::focusWidget(); at != nullptr; at = at->parentWidget()) {
    if (auto* shown = qobject_cast<QFrame*>(at); shown != nullptr && shown->parentWidget() == this) {
      dismiss(shown);
      return true;
    }
  }
  return false;
}

}  // namespace kvscope::viz
