// The plots of the timeline as they stand whatever step the run is at: lines and labels of the axes, curves, marks.
#pragma once

#include <cstdint>

#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QTransform>

#include "viz/view/timeline_prepare.h"

namespace kvscope::viz {

// The part that is worth keeping: everything but the numbers of steps, which make room for the cursor's.
void paint_plots(QPainter& painter, const PreparedTimeline& prepared, const Scene& scene);
// Numbers of steps under the plots, none on top of `flag`.
void paint_step_labels(QPainter& painter, const PreparedTimeline& prepared, const QRectF& flag, const Scene& scene);

// A step's line at `x` ends where it meets a mark or its count, and goes on behind it: those that it crossed, again.
void paint_marks_over(QPainter& painter, const PreparedTimeline& prepared, double x, const Scene& scene);

// paint_plots() kept as pixels. A thousand dashes take milliseconds, and a run that plays changes none of them. Where
// the surface is no picture of pixels (SVG, PDF), or a very large one, it paints directly.
class PlotPicture {
 public:
  static constexpr std::int64_t kMostPixels = std::int64_t{1} << 24;
  void paint(QPainter& painter, const QRectF& body, const PreparedTimeline& prepared, const Scene& scene);

 private:
  struct Key {
    std::int64_t revision = -1;
    QTransform transform;
    ThemeKind theme = ThemeKind::dark;
    QString words;  // a language
    friend bool operator==(const Key&, const Key&) = default;
  };
  Key key_;
  QImage image_;
};

[[nodiscard]] QString number_of(const Timeline& timeline, std::int64_t index);  // of a step
[[nodiscard]] QString time_of(const Timeline& timeline, std::int64_t index);    // of its end

}  // namespace kvscope::viz
