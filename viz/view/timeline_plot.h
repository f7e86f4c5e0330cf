// The parts of the timeline's plots that do not depend on the current step: the lines and labels of the axes, the
// curves, the marks.
#pragma once

#include <cstdint>

#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QTransform>

#include "viz/view/timeline_prepare.h"

namespace kvscope::viz {

// Paints everything except the numbers of steps, which depend on the cursor's position.
void paint_plots(QPainter& painter, const PreparedTimeline& prepared, const Scene& scene);
// Paints the numbers of steps under the plots, except those that would overlap `flag`.
void paint_step_labels(QPainter& painter, const PreparedTimeline& prepared, const QRectF& flag, const Scene& scene);

// Repaints the marks and counts that a step's vertical line at `x` crosses, so that the line appears behind them.
void paint_marks_over(QPainter& painter, const PreparedTimeline& prepared, double x, const Scene& scene);

// Caches the output of paint_plots() as pixels: a thousand dashes take milliseconds, and they do not change while the
// run plays. On a surface without pixels (SVG, PDF), or a very large one, it paints directly.
class PlotPicture {
 public:
  static constexpr std::int64_t kMostPixels = std::int64_t{1} << 24;
  void paint(QPainter& painter, const QRectF& body, const PreparedTimeline& prepared, const Scene& scene);

 private:
  struct Key {
    std::int64_t revision = -1;
    QTransform transform;
    ThemeKind theme = ThemeKind::dark;
    QString words;  // a translated word: changes with the language
    friend bool operator==(const Key&, const Key&) = default;
  };
  Key key_;
  QImage image_;
};

[[nodiscard]] QString number_of(const Timeline& timeline, std::int64_t index);  // step number
[[nodiscard]] QString time_of(const Timeline& timeline, std::int64_t index);    // time at the step's end

}  // namespace kvscope::viz
