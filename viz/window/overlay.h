// A column of bars at the lower edge of another widget, in front of it: messages and progress. They do not take space
// from the layout, so the picture behind them keeps its size when one appears or goes.
#pragma once

#include <QtWidgets/QWidget>

class QVBoxLayout;

namespace kvscope::viz {

class Overlay final : public QWidget {
  Q_OBJECT
 public:
  explicit Overlay(QWidget* behind);  // its parent
  void add(QWidget* bar);

 protected:
  bool event(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();  // as wide as the widget behind, as high as the visible bars
  QVBoxLayout* column_;
};

}  // namespace kvscope::viz
