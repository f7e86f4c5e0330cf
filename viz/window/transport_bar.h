// Buttons to step, play and run to a breakpoint, the position in words, and the speed. The scrub bar over all steps is
// in the canvas's header.
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

  void set_speed(double steps_per_second);  // also for later documents
  [[nodiscard]] double speed() const;

 Q_SIGNALS:
  void speed_changed();

 private:
  void show_position();
  void show_speed();

  QPointer<Document> document_;
  QLabel* position_;       // "step 128 of 206"
  QSlider* slider_;        // of the speed: doublings above the slowest, in quarters
  QDoubleSpinBox* speed_;  // [steps/s]
};

}  // namespace kvscope::viz
