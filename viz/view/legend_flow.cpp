#include "viz/view/legend_flow.h"

#include <algorithm>
#include <cmath>

#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

constexpr double kRounding = 0.5;  // [px]

}  // namespace

LegendFlow::LegendFlow(const QRectF& footer, double font_scale)
    : footer_(footer),
      apart_(std::round(kLegendApart * font_scale)),
      lines_(std::max(1, static_cast<int>(std::floor(footer.height() / (kLegendLine * font_scale))))),
      x_(footer.left()) {}

// After an item without a place there are no further ones: dots stand for all of them.
std::optional<QRectF> LegendFlow::next(double width) {
  if (!all_) return std::nullopt;
  const bool begun = x_ > footer_.left();
  if (x_ + width > footer_.right() + kRounding) {
    if (!begun || line_ + 1 == lines_) {
      all_ = false;
      return std::nullopt;
    }
    ++line_;
    x_ = footer_.left();
    return next(width);
  }
  const double height = footer_.height() / lines_;
  const QRectF place(x_, footer_.top() + line_ * height, width, height);
  x_ += width + apart_;
  used_ = std::min(std::max(used_, place.right() - footer_.left()), footer_.width());
  return place;
}

QRectF LegendFlow::rest() const {
  const double height = footer_.height() / lines_;
  return {x_, footer_.top() + line_ * height, footer_.right() - x_, height};
}

double LegendFlow::room() const {
  return footer_.right() - x_;
}

double paint_dots(QPainter& painter, const LegendFlow& flow, const QFont& font, const QColor& color) {
  if (flow.all()) return 0;
  const QString dots(QChar(u'…'));
  QRectF at = flow.rest();
  const double width = text_width(font, dots);
  if (flow.footer().width() < width) return 0;
  if (at.width() < width) at.setLeft(at.right() - width);
  draw_text_in(painter, font, color, at, Qt::AlignLeft, dots);
  return at.left() + width - flow.footer().left();
}

void paint_footer_text(QPainter& painter, const QRectF& footer, const QFont& font, const QColor& color,
                       const QString& text, double font_scale) {
  const int lines = std::max(1, static_cast<int>(std::floor(footer.height() / (kLegendLine * font_scale))));
  QRectF line(footer.left(), footer.top(), footer.width(), footer.height() / lines);
  QString rest = text;
  for (int i = 0; i < lines; ++i, line.translate(0, line.height())) {
    if (i + 1 == lines || text_width(font, rest) <= line.width()) {
      const QString parts = whole_parts(font, rest, line.width());
      return draw_text_in(painter, font, color, line, Qt::AlignLeft,
                          parts.isEmpty() ? elided(font, rest, line.width()) : parts);
    }
    // The longest beginning that ends before a blank and fits.
    qsizetype end = rest.indexOf(QLatin1Char(' '));
    for (qsizetype blank = end; blank >= 0; blank = rest.indexOf(QLatin1Char(' '), blank + 1)) {
      if (text_width(font, rest.left(blank)) > line.width()) break;
      end = blank;
    }
    if (end < 0) end = rest.size();
    draw_text_in(painter, font, color, line, Qt::AlignLeft, elided(font, rest.left(end), line.width()));
    rest = rest.mid(end).trimmed();
    if (rest.isEmpty()) return;
  }
}

}  // namespace kvscope::viz
