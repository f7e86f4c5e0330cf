// The items of a legend from left to right, on as many lines as a footer has room for.
//
//   LegendFlow flow(footer, font_scale);                    // two lines in a footer of 54 px, one in 30 px
//   if (const auto item = flow.next(72)) paint(*item);      // 72 px wide, as high as a line
#pragma once

#include <optional>

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/view/theme.h"

namespace kvscope::viz {

inline constexpr double kLegendLine = 22;   // [px] minimum height of a line of a legend, at font scale 1
inline constexpr double kLegendApart = 16;  // [px] between two items, at font scale 1

class LegendFlow {
 public:
  LegendFlow(const QRectF& footer, double font_scale);

  // The place of the next item; nullopt if it fits on none of the remaining lines. It is then not placed.
  [[nodiscard]] std::optional<QRectF> next(double width);
  [[nodiscard]] bool all() const { return all_; }  // whether each item had a place
  // Where dots begin that stand for items without a place; as high as a line.
  [[nodiscard]] QRectF rest() const;
  // Free width in the last line that is used. [px]
  [[nodiscard]] double room() const;
  [[nodiscard]] const QRectF& footer() const { return footer_; }
  [[nodiscard]] int lines() const { return lines_; }
  // From the left edge to the right end of the longest line. [px]
  [[nodiscard]] double used() const { return used_; }

 private:
  QRectF footer_;
  double apart_;
  int lines_, line_ = 0;
  double x_, used_ = 0;
  bool all_ = true;
};

// Dots after the last item, if an item had no place. Returns their right end, or 0. [px] from the footer's left edge
double paint_dots(QPainter& painter, const LegendFlow& flow, const QFont& font, const QColor& color);

// A sentence on the lines of a footer; if the sentence is longer, the last line ends with a whole part of it.
void paint_footer_text(QPainter& painter, const QRectF& footer, const QFont& font, const QColor& color,
                       const QString& text, double font_scale);

}  // namespace kvscope::viz
