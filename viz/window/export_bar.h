// The options of an exported picture: format, size, scale, theme, and for an animation the first and the last step. The
// picture shows the same as the canvas; the initial size is the canvas's.
#pragma once

#include <array>
#include <cstdint>

#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtWidgets/QFrame>

#include "viz/view/theme.h"
#include "viz/window/export.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QSpinBox;
class QToolButton;

namespace kvscope::viz {

class ExportBar final : public QFrame {
  Q_OBJECT
 public:
  explicit ExportBar(QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  // What an animation goes through: steps of the run, events of the tile that is shown, or tiles of the flow.
  struct Film {
    enum class Of : std::uint8_t { steps, tile, flow };
    Of of = Of::steps;
    std::int64_t now = 0, last = 0;  // step, event or number of tiles
    bool motion = true;              // the canvas shows motion
  };
  void open(QSize canvas, ThemeKind theme, const Film& film);
  [[nodiscard]] PictureFormat format() const;
  [[nodiscard]] QString name_filter() const;  // "PNG picture (*.png)"
  [[nodiscard]] QString suffix() const;       // "png"
  // Sets size, scale, theme and frames of `picture`.
  void fill(Picture& picture) const;
  [[nodiscard]] std::int64_t first_row() const;  // of an animation of the run

 Q_SIGNALS:
  void wanted();  // the button "Save as..." was clicked
  void closed();

 private:
  void build();
  [[nodiscard]] bool is_animation() const;
  void show_fields();  // shows the fields of the selected format

  QComboBox *format_ = nullptr, *theme_ = nullptr;
  QSpinBox *width_ = nullptr, *height_ = nullptr, *first_ = nullptr, *last_ = nullptr;
  QDoubleSpinBox *scale_ = nullptr, *rate_ = nullptr;
  QCheckBox* motion_ = nullptr;
  QLabel* unit_ = nullptr;
  Film::Of of_ = Film::Of::steps;
  QWidget* scale_part_ = nullptr;
  std::array<QWidget*, 3> frames_parts_{};
  QToolButton* close_ = nullptr;
};

}  // namespace kvscope::viz
