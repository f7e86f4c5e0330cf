// Fields of a bar side by side, in as many lines as the width needs, so that no field and no word is squeezed.
//
//   | Tile: [of the selected token]  of: [K]  layer: [0]      one line in a wide window
//
//   | Tile: [of the selected token]
//   | of: [K]  layer: [0]                                     two in a narrow one, or with larger text
//
// Items with Qt::AlignRight are at the right end of their line. Hidden items take no room.
// Example: items of 100, 60 and 60 px with 12 px between two: one line from 244 px on, two lines from 172 px on.
#pragma once

#include <vector>

#include <QtWidgets/QLayout>
#include <QtWidgets/QWidget>

class QLabel;

namespace kvscope::viz {

class FlowRow final : public QLayout {
  Q_OBJECT

 public:
  explicit FlowRow(QWidget* parent = nullptr);
  FlowRow(const FlowRow&) = delete;
  FlowRow& operator=(const FlowRow&) = delete;
  ~FlowRow() override;

  // A field with its name in front of it, which stay on one line. The name is the field's accessible name, too, without
  // its colon.
  void add_named(const QString& name, QWidget& field);

  void addItem(QLayoutItem* item) override;
  [[nodiscard]] int count() const override;
  [[nodiscard]] QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  [[nodiscard]] Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
  [[nodiscard]] bool hasHeightForWidth() const override { return true; }
  [[nodiscard]] int heightForWidth(int width) const override;
  [[nodiscard]] QSize sizeHint() const override;     // all on one line
  [[nodiscard]] QSize minimumSize() const override;  // each on a separate line
  void setGeometry(const QRect& rect) override;

 private:
  // Places the items into `area` unless `place` is false; the height of all lines [px].
  int lay_out(const QRect& area, bool place) const;
  [[nodiscard]] std::vector<QLayoutItem*> shown() const;

  std::vector<QLayoutItem*> items_;
};

// A row for a parent whose layout asks no child for its height at a width, such as a QToolBar: it takes the width that
// there is, and sets its own height.
class FlowLines final : public QWidget {
  Q_OBJECT

 public:
  explicit FlowLines(QWidget* parent = nullptr);
  [[nodiscard]] FlowRow& row() { return row_; }

 protected:
  bool event(QEvent* event) override;

 private:
  FlowRow& row_;  // a child
};

}  // namespace kvscope::viz
