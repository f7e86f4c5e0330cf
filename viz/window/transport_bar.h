// Buttons to step, play and run to a breakpoint, the position in words, and the speed, in as many lines as the width
// needs. The buttons and the position are of the steps of the run, in the view of a tile of its events, and in the view
// of the attention of the tiles of the flow. The scrub bar over all steps is in the canvas's header.
//
//   | < >   |< < > >|   step 128 of 206               --o-- [4 steps/s]
#pragma once

#include <initializer_list>

#include <QtCore/QPointer>
#include <QtWidgets/QToolBar>

#include "viz/geometry/board.h"
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
  void set_view(View view);
  void set_theme(const Theme& theme, double font_scale);

  void set_speed(double steps_per_second);  // also for later documents
  [[nodiscard]] double speed() const;

 Q_SIGNALS:
  void speed_changed();

 private:
  struct Words {
    QString text, widest, tip;
  };
  [[nodiscard]] Words position() const;  // precondition: document_
  QWidget* group(const Actions& actions, std::initializer_list<Do> ids);
  void show_position();
  void show_speed();

  QPointer<Document> document_;
  View view_ = View::overview;
  QLabel* position_;       // "step 128 of 206", "event 9 of 17", "2 of 3 tiles"
  QSlider* slider_;        // of the speed: doublings above the slowest, in quarters
  QDoubleSpinBox* speed_;  // [steps/s]
};

}  // namespace kvscope::viz
