// What picture to write: format, size, scale, theme, and for an animation from which step to which. What is shown is
// what is written; the size starts as the canvas's own.
#pragma once

#include <cstdint>

#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtWidgets/QFrame>

#include "viz/view/theme.h"
#include "viz/window/export.h"

class QComboBox;
class QDoubleSpinBox;
class QSpinBox;
class QToolButton;

namespace kvscope::viz {

class ExportBar final : public QFrame {
  Q_OBJECT
 public:
  explicit ExportBar(QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  // Shown for a run of so many rows that stands at `row`.
  void open(QSize canvas, ThemeKind theme, std::int64_t row, std::int64_t rows);
  [[nodiscard]] PictureFormat format() const;
  [[nodiscard]] QString name_filter() const;  // "PNG picture (*.png)"
  [[nodiscard]] QString suffix() const;       // "png"
  // Size, scale, theme, frames; the rest of `picture` stays.
  void fill(Picture& picture) const;
  [[nodiscard]] std::int64_t first_row() const;

 Q_SIGNALS:
  void wanted();  // "Save as..." was pressed
  void closed();

 private:
  void build();
  void show_fields();  // those of the format

  QComboBox *format_ = nullptr, *theme_ = nullptr;
  QSpinBox *width_ = nullptr, *height_ = nullptr, *first_ = nullptr, *last_ = nullptr;
  QDoubleSpinBox *scale_ = nullptr, *rate_ = nullptr;
  QWidget *scale_part_ = nullptr, *frames_part_ = nullptr;
  QToolButton* close_ = nullptr;
};

}  // namespace kvscope::viz
