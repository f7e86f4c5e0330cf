// The options of an exported picture: format, size, scale, theme, and for an animation the first and the last step. The
// picture shows the same as the canvas; the initial size is the canvas's.
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

  // Shows the bar for a run with `rows` rows whose current row is `row`.
  void open(QSize canvas, ThemeKind theme, std::int64_t row, std::int64_t rows);
  [[nodiscard]] PictureFormat format() const;
  [[nodiscard]] QString name_filter() const;  // "PNG picture (*.png)"
  [[nodiscard]] QString suffix() const;       // "png"
  // Sets size, scale, theme and frames of `picture`.
  void fill(Picture& picture) const;
  [[nodiscard]] std::int64_t first_row() const;

 Q_SIGNALS:
  void wanted();  // the button "Save as..." was clicked
  void closed();

 private:
  void build();
  void show_fields();  // shows the fields of the selected format

  QComboBox *format_ = nullptr, *theme_ = nullptr;
  QSpinBox *width_ = nullptr, *height_ = nullptr, *first_ = nullptr, *last_ = nullptr;
  QDoubleSpinBox *scale_ = nullptr, *rate_ = nullptr;
  QWidget *scale_part_ = nullptr, *frames_part_ = nullptr;
  QToolButton* close_ = nullptr;
};

}  // namespace kvscope::viz
