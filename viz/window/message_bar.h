// Messages above the canvas: faults of a file, an offer, a remark. They stand until they are dismissed or replaced by a
// newer one of the same topic; nothing has to be answered before the window can be used.
#pragma once

#include <functional>
#include <vector>

#include <QtCore/QString>
#include <QtCore/QStringList>
#include <QtWidgets/QFrame>

#include "viz/view/theme.h"

class QVBoxLayout;

namespace kvscope::viz {

struct Message {
  struct Choice {
    QString text;
    std::function<void()> chosen;  // the message is gone by then
  };
  QString topic;      // one message a topic
  bool fault = true;  // else a remark
  QString title;
  QStringList lines;            // selectable; with Copy, when there are any
  std::vector<Choice> choices;  // besides Dismiss
};

class MessageBar final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kMostShownLines = 8;  // the rest is scrolled to

  explicit MessageBar(QWidget* parent = nullptr);

  void show_message(const Message& message);
  void dismiss(const QString& topic);
  bool dismiss_focused();  // the one that has the keyboard's focus; whether there is one
  void set_theme(const Theme& theme);

  [[nodiscard]] bool showing(const QString& topic) const;
  [[nodiscard]] QStringList lines(const QString& topic) const;  // empty: not shown

 Q_SIGNALS:
  void emptied();  // the last message has gone: the focus goes back to the canvas

 private:
  [[nodiscard]] QFrame* frame(const QString& topic) const;
  void dismiss(QFrame* frame);
  QVBoxLayout* rows_;
  const Theme* theme_ = nullptr;
};

}  // namespace kvscope::viz
