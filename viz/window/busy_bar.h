// The current task, its progress, and a button that cancels it. It is shown only if the task takes longer than
// kPatience, so that the window does not flicker for short tasks.
#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QFrame>

class QLabel;
class QProgressBar;
class QPushButton;

namespace kvscope::viz {

class BusyBar final : public QFrame {
  Q_OBJECT
 public:
  static constexpr int kPatience = 200;  // [ms]

  explicit BusyBar(QWidget* parent = nullptr);
  void start(const QString& title);  // "Opening first_light.json"
  void progress(qint64 done, qint64 all, const QString& what);
  void stop();
  [[nodiscard]] QString words() const;

 Q_SIGNALS:
  void cancelled();

 private:
  QString title_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton* cancel_;
  QTimer patience_;
};

}  // namespace kvscope::viz
