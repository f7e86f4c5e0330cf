// The positions of a launch on a line, each report a mark. A launch may have more positions than the line has places.
#pragma once

#include <cstdint>
#include <vector>

#include <QtGui/QColor>
#include <QtWidgets/QSlider>

namespace kvscope::viz {

class StepSlider final : public QSlider {
  Q_OBJECT
 public:
  static constexpr int kMostPlaces = 1 << 20;

  explicit StepSlider(QWidget* parent = nullptr);

  // `last`: the position at the end. Emits nothing.
  void set_position(std::uint64_t step, std::uint64_t last);
  void set_marks(const std::vector<std::uint64_t>& steps, const QColor& color);

 Q_SIGNALS:
  void step_wanted(qulonglong step);  // by the person

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  [[nodiscard]] double share_of(std::uint64_t step) const;

  std::uint64_t last_ = 0;
  std::vector<std::uint64_t> marks_;
  QColor color_;
};

}  // namespace kvscope::viz
