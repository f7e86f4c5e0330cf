// Where the run stands and how it moves: step, play, run to a breakpoint, a slider over all steps, the speed.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QToolBar>

#include "viz/model/document.h"
#include "viz/window/actions.h"

class QDoubleSpinBox;
class QLabel;
class QSlider;

namespace kvscope::viz {

class TransportBar final : public QToolBar {
  Q_OBJECT
 public:
  static constexpr int kIconSize = 20;  // [px]

  TransportBar(const Actions& actions, QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);

  void set_speed(double steps_per_second);  // of the next document too
  [[nodiscard]] double speed() const;

 Q_SIGNALS:
  void speed_changed();

 private:
  void show_position();
  void show_speed();

  QPointer<Document> document_;
  QSlider* steps_;         // value: a row of the run
  QLabel* position_;       // "step 128 of 206"
  QDoubleSpinBox* speed_;  // [steps/s]
};

}  // namespace kvscope::viz
