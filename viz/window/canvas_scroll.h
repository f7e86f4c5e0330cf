// The canvas in a scroll area. The canvas is as wide as the area, and as high as its view needs at the current text
// size (whole_size() of board.h): a window that is lower than that shows a scroll bar, and no panel is omitted.
#pragma once

#include <QtWidgets/QScrollArea>

namespace kvscope::viz {

class Canvas;

class CanvasScroll final : public QScrollArea {
  Q_OBJECT
 public:
  explicit CanvasScroll(Canvas* canvas, QWidget* parent = nullptr);  // takes ownership of the canvas

  // To be called when the canvas shows another view or another text size.
  void fit();

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  Canvas* canvas_;
};

}  // namespace kvscope::viz
