// Messages in front of the canvas: faults of a file, offers, remarks. A message stays until it is dismissed, its cause
// is gone, or a newer one of the same topic replaces it. Messages do not block the window.
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
    std::function<void()> chosen;  // called after the message was removed
  };
  QString topic;      // at most one message per topic is shown
  bool fault = true;  // false: a remark
  QString title;
  QStringList lines;            // selectable; if there are any, with a Copy button
  std::vector<Choice> choices;  // besides Dismiss
};

class MessageBar final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kMostShownLines = 8;  // longer messages scroll

  explicit MessageBar(QWidget* parent = nullptr);

  void show_message(const Message& message);
  void dismiss(const QString& topic);
  bool dismiss_focused();  // the message with the keyboard focus; returns whether there is one
  void set_theme(const Theme& theme);

  [[nodiscard]] bool showing(const QString& topic) const;
  [[nodiscard]] QStringList lines(const QString& topic) const;  // empty: not shown

 Q_SIGNALS:
  void left();  // the message with the keyboard focus was removed; the window then sets the focus to the canvas

 private:
  [[nodiscard]] QFrame* frame(const QString& topic) const;
  void dismiss(QFrame* frame);
  QVBoxLayout* rows_;
  const Theme* theme_ = nullptr;
};

}  // namespace kvscope::viz
