// The presentation mode (F11): the picture on the whole screen, without menus, bars and docks, with a caption below it,
// a spotlight on the selection, and the keys of a clicker. For teachers at a projector.
//
//   Page Down, Page Up   step, step back      B or .   black screen, and back      Esc or F11   leave
//
// The caption has the title of the run, the step, and one sentence: the selected object, or what just happened.
#pragma once

#include <functional>

#include <QtCore/QPointer>
#include <QtWidgets/QFrame>

#include "viz/view/theme.h"

class QKeyEvent;
class QLabel;

namespace kvscope::viz {

class Caption final : public QFrame {
  Q_OBJECT
 public:
  explicit Caption(QWidget* parent = nullptr);
  void set_words(const QString& title, const QString& step, const QString& sentence);
  void set_theme(const Theme& theme, double font_scale);

 private:
  QLabel *title_, *step_, *sentence_;
};

// What the keys do; the window supplies it.
struct PresentationKeys {
  std::function<void()> forward, back, leave;
};

class Presentation final : public QObject {
  Q_OBJECT
 public:
  // `window`: that is covered by the black screen. It must outlive this object.
  Presentation(QWidget& window, PresentationKeys keys);

  void start();
  void stop();
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] bool black() const { return black_ != nullptr; }

  // A key press or the shortcut event before it, while a presentation is on; returns whether the key is one of these.
  [[nodiscard]] bool take(QKeyEvent& event);

 private:
  void set_black(bool black);

  QWidget& window_;
  PresentationKeys keys_;
  bool on_ = false;
  QPointer<QWidget> black_;  // null: the picture is visible
};

}  // namespace kvscope::viz
