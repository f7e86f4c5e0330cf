#include "viz/view/cell_paint.h"

#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainterPath>

#include "viz/view/text.h"
#include "viz/view/theme.h"

namespace kvscope::viz {
namespace {

constexpr double kDimmedShare = 0.75;  // of the card's color in a pixel of small_looks()
constexpr double kRoomForFrame = 14;   // [px] of a cell that shows its look inside a frame of two lines

// A mix of a and b with a share of `share` of b.
QColor mixed(const QColor& a, const QColor& b, double share) {
  const auto channel = [share](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
  return {channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue())};
}

bool is_owner(Look look) {
  return look >= kFirstOwnerLook && look < kFirstCachedLook;
}
bool is_cached(Look look) {
  return look >= kFirstCachedLook;
}
OwnerStyle style_of(const Theme& theme, Look look) {
  return theme.owner_style((look - kFirstOwnerLook) % kOwnerLooks);
}

// Minimum side of a cell that may have text; the null page's sign then leaves room for it. [px]
constexpr double kSmallestText = 22, kSmallestWord = 40;

// The period of a pattern in px: small enough that a small cell shows two lines, large enough to keep lines separate.
double pattern_step(const QRectF& rect) {
  return std::min(rect.width(), rect.height()) < 20 ? 4 : 6;
}

void paint_lines(QPainter& painter, const QRectF& rect, double step, double dx, double dy, const QColor& color) {
  painter.setPen(QPen(color, 1.3, Qt::SolidLine, Qt::FlatCap));
  QVector<QLineF> lines;
  if (dx != 0 && dy != 0) {  // from the left or lower edge up to the right
    for (double s = step / 2; s < rect.width() + rect.height(); s += step) {
      lines.append({rect.left(), rect.top() + s, rect.left() + s, rect.top()});
    }
  } else if (dx != 0) {
    for (double y = rect.top() + step / 2; y < rect.bottom(); y += step)
      lines.append({rect.left(), y, rect.right(), y});
  } else {
    for (double x = rect.left() + step / 2; x < rect.right(); x += step)
      lines.append({x, rect.top(), x, rect.bottom()});
  }
  painter.drawLines(lines);
}

void paint_dots(QPainter& painter, const QRectF& rect, double step, const QColor& color) {
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  const double radius = step * 0.21;
  for (double y = rect.top() + step / 2; y < rect.bottom(); y += step) {
    for (double x = rect.left() + step / 2; x < rect.right(); x += step)
      painter.drawEllipse(QPointF(x, y), radius, radius);
  }
}

void paint_pattern(QPainter& painter, const QRectF& rect, Look look, const Theme& theme) {
  const QColor fill = look_fill(theme, look);
  const QColor ink = with_alpha(theme.ink_on(fill), look == kSharedLook ? 0.26 : 0.28);
  const double step = pattern_step(rect);
  if (look == kSharedLook) return paint_lines(painter, rect, step, 1, 1, ink);
  switch (style_of(theme, look).pattern) {
    case Pattern::plain:
      return;
    case Pattern::dots:
      return paint_dots(painter, rect, step, ink);
    case Pattern::horizontal:
      return paint_lines(painter, rect, step, 1, 0, ink);
    case Pattern::vertical:
      return paint_lines(painter, rect, step, 0, 1, ink);
  }
}

// Paints the dashed outline of a cached block, or the cross of the null page, inside the cell.
void paint_sign(QPainter& painter, const QRectF& rect, Look look, const Theme& theme) {
  const QRectF inner = rect.adjusted(0.75, 0.75, -0.75, -0.75);
  painter.setBrush(Qt::NoBrush);
  if (look == kNullPageLook) {
    const QColor ink = with_alpha(theme.ink_on(theme.null_page), 0.6);
    painter.setPen(QPen(ink, 1));
    painter.drawRoundedRect(inner, corner(rect), corner(rect));
    // A cross over the cell. In a cell that may have text it is a small empty-set sign, placed between the number and
    // the word.
    const double side = std::min(rect.width(), rect.height());
    if (side < kSmallestText) {
      painter.drawLine(inner.topLeft(), inner.bottomRight());
      painter.drawLine(inner.bottomLeft(), inner.topRight());
    } else {
      const double radius = std::min(side * 0.12, 8.0), from_edge = radius * 1.8;
      const QPointF center(rect.right() - from_edge,
                           side < kSmallestWord ? rect.bottom() - from_edge : rect.center().y());
      const QPointF slash(radius * 1.3, -radius * 1.3);
      painter.drawEllipse(center, radius, radius);
      painter.drawLine(center - slash, center + slash);
    }
  } else {
    QPen pen(style_of(theme, look).fill, 1.5, Qt::CustomDashLine, Qt::FlatCap);
    pen.setDashPattern({2, 1.4});
    painter.setPen(pen);
    painter.drawRoundedRect(inner, corner(rect), corner(rect));
  }
}

}  // namespace

QColor look_fill(const Theme& theme, Look look) {
  if (is_owner(look)) return style_of(theme, look).fill;
  if (is_cached(look)) return theme.cached;
  switch (look) {
    case kSharedLook:
      return theme.shared;
    case kNullPageLook:
      return theme.null_page;
    case kPaddingLook:
      return mixed(theme.card, theme.cell_free, 0.5);
    default:
      return theme.cell_free;
  }
}

QColor look_small(const Theme& theme, Look look) {
  return look == kFreeLook ? theme.free_small : look_fill(theme, look);
}

std::array<QRgb, kLooks> small_looks(const Theme& theme, bool dimmed) {
  std::array<QRgb, kLooks> colors{};
  for (std::size_t look = 0; look < colors.size(); ++look) {
    const QColor color = look_small(theme, static_cast<Look>(look));
    colors[look] = (dimmed ? mixed(color, theme.card, kDimmedShare) : color).rgb();
  }
  return colors;
}

QColor look_ink(const Theme& theme, Look look) {
  if (look == kFreeLook || look == kPaddingLook) {
    return readable(theme, mixed(theme.text_quiet, theme.cell_free, 0.2), look_fill(theme, look));
  }
  return theme.ink_on(look_fill(theme, look));
}

QColor look_empty(const Theme& theme, Look look) {
  return mixed(look_fill(theme, look), theme.card, kEmptyShare);
}

bool has_pattern(const Theme& theme, Look look) {
  return look == kSharedLook || (is_owner(look) && style_of(theme, look).pattern != Pattern::plain);
}

QColor readable(const Theme& theme, const QColor& color, const QColor& behind) {
  const QColor ground(behind.rgb());
  for (int tenths = 0; tenths < 10; ++tenths) {
    const QColor tried(mixed(color, theme.text, tenths / 10.0).rgb());  // as it is drawn, like the ground
    if (contrast(tried, ground) >= 4.5) return tried;
  }
  return theme.text;
}

double corner(const QRectF& rect) {
  const double side = std::min(rect.width(), rect.height());
  return side < kSmallestPattern ? 0 : side < 14 ? 1.5 : side < 22 ? 2 : 3;
}

void paint_cell(QPainter& painter, const QRectF& rect, Look look, double filled, const Theme& theme) {
  const double side = std::min(rect.width(), rect.height()), radius = corner(rect);
  const auto fill = [&](const QColor& color) {
    if (radius == 0) return painter.fillRect(rect, color);
    painter.setBrush(color);
    painter.drawRoundedRect(rect, radius, radius);
  };
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, radius > 0);
  painter.setPen(Qt::NoPen);
  // The fill level needs only width: the bar of a whole page may be 5 px high.
  const bool partly = has_level(look) && filled < 1 && rect.width() >= kSmallestPattern;
  fill(partly ? look_empty(theme, look) : side < kSmallestPattern ? look_small(theme, look) : look_fill(theme, look));
  if (look == kFreeLook && side >= kSmallestPattern) {
    painter.setPen(QPen(theme.free_line, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    painter.setPen(Qt::NoPen);
  }
  if (look == kFreeLook && side < kSmallestPattern) {  // no room for an outline: an edge at 3:1 to the card
    painter.fillRect(QRectF(rect.left(), rect.top(), 1, rect.height()), theme.free_line);
  }
  if (look == kPaddingLook && side >= kSmallestPattern) {
    painter.setBrush(mixed(theme.text_quiet, theme.card, 0.45));
    painter.drawEllipse(rect.center(), 1.5, 1.5);
  }
  if (look == kNullPageLook && side >= kSmallestPattern) paint_sign(painter, rect, look, theme);
  if (partly) {
    painter.save();
    painter.setClipRect(QRectF(rect.left(), rect.top(), rect.width() * std::max(0.0, filled), rect.height()),
                        Qt::IntersectClip);
    fill(look_fill(theme, look));
    painter.restore();
  }
  if (has_level(look) && side >= kSmallestPattern) {
    painter.setClipRect(rect, Qt::IntersectClip);
    if (is_cached(look)) {
      paint_sign(painter, rect, look, theme);
    } else {
      paint_pattern(painter, rect, look, theme);
    }
  }
  painter.restore();
}

void paint_outline(QPainter& painter, const QRectF& rect, const QPen& pen) {
  painter.save();
  const double radius = corner(rect);
  painter.setRenderHint(QPainter::Antialiasing, radius > 0);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(rect, radius, radius);
  painter.restore();
}

void paint_difference(QPainter& painter, const QRectF& cell, const Theme& theme) {
  const double side = std::min(cell.width(), cell.height());
  const double line = side < kSmallestPattern ? 1 : 2;
  const auto inside = [&cell](double by) { return cell.adjusted(by, by, -by, -by); };
  if (side >= kRoomForFrame) paint_outline(painter, inside(line + 0.5), QPen(theme.card, 1));
  paint_outline(painter, inside(line / 2), QPen(theme.text, line));
}

QSizeF badge_size(std::int64_t count, double px) {
  const double height = std::round(px * 1.5);
  const double text = QFontMetricsF(mono_font(px, QFont::Bold)).horizontalAdvance(QString::number(count));
  return {std::max(height, std::ceil(text + px * 0.8)), height};
}

void paint_badge(QPainter& painter, QPointF at, std::int64_t count, double px) {
  const QSizeF size = badge_size(count, px);
  const QRectF rect(at - QPointF(size.width(), size.height()), size);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(QColor(0x0b, 0x0c, 0x0f, 0xeb));
  painter.drawRoundedRect(rect, size.height() / 2, size.height() / 2);
  const QFont font = mono_font(px, QFont::Bold);
  const QFontMetricsF metrics(font);
  const QString text = QString::number(count);
  painter.setFont(font);
  painter.setPen(Qt::white);
  painter.drawText(QPointF(rect.center().x() - metrics.horizontalAdvance(text) / 2,
                           rect.center().y() + metrics.tightBoundingRect(QStringLiteral("0")).height() / 2),
                   text);
  painter.restore();
}

void paint_just_now(QPainter& painter, const QRectF& cell, JustNow what, const Theme& theme) {
  const double size = std::clamp(std::min(cell.width(), cell.height()) * 0.3, 2.0, 10.0);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  // A line in the card's color around it: the accent color alone is hard to see on a fill of similar lightness.
  if (what == JustNow::filled) {
    const QPointF tip = cell.topRight();
    painter.setPen(QPen(theme.card, 1));
    painter.drawLine(tip - QPointF(size + 1, 0), tip + QPointF(0, size + 1));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.accent);
    painter.drawPolygon(QPolygonF({tip, tip - QPointF(size, 0), tip + QPointF(0, size)}));
  } else {
    const double radius = size * 0.38, width = std::max(1.0, size * 0.18);
    const QPointF center = cell.topRight() + QPointF(-radius - size * 0.25, radius + size * 0.25);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.card, width + 1.6));
    painter.drawEllipse(center, radius, radius);
    painter.setPen(QPen(theme.accent, width));
    painter.drawEllipse(center, radius, radius);
  }
  painter.restore();
}

double paint_legend(QPainter& painter, const QRectF& footer, std::span<const SeqIdx> owners,
                    std::span<const LegendEntry> kinds, const Theme& theme, double font_scale) {
  LegendFlow flow(footer, font_scale);
  paint_legend(painter, flow, owners, kinds, theme, font_scale);
  return std::max(flow.used(), paint_dots(painter, flow, ui_font(12 * font_scale), theme.text_quiet));
}

void paint_legend(QPainter& painter, LegendFlow& flow, std::span<const SeqIdx> owners,
                  std::span<const LegendEntry> kinds, const Theme& theme, double font_scale) {
  const QFont font = ui_font(12 * font_scale);
  const double square = std::round(11 * font_scale), gap = std::round(6 * font_scale);
  const auto width = [&](const QString& name) { return square + gap + std::ceil(text_width(font, name)); };
  // There may be thousands of owners: names are built only for those that are used.
  const auto owner = [](SeqIdx seq) {
    return LegendEntry{owner_look(seq.value), QCoreApplication::translate("Legend", "seq %1").arg(seq.value)};
  };
  const auto more_text = [](std::size_t count) {
    return QCoreApplication::translate("Legend", "and %n more", nullptr, static_cast<int>(count));
  };
  // Whether `count` owners, the words with the number of omitted ones, and all kinds fit.
  const auto fits = [&](std::size_t count) {
    LegendFlow tried = flow;
    bool all = true;
    for (const SeqIdx seq : owners.first(count)) all = all && tried.next(width(owner(seq).name));
    if (count < owners.size()) all = all && tried.next(text_width(font, more_text(owners.size() - count)));
    for (const LegendEntry& entry : kinds) all = all && tried.next(width(entry.name));
    return all;
  };
  std::size_t shown = 0;
  while (shown < owners.size() && fits(shown + 1)) ++shown;
  // Without room for an owner, dots stand for all of them.
  const QString dots(QChar(u'…'));
  const auto dots_fit = [&] {
    LegendFlow tried = flow;
    bool all = tried.next(text_width(font, dots)).has_value();
    for (const LegendEntry& entry : kinds) all = all && tried.next(width(entry.name));
    return all;
  };
  painter.save();
  const auto paint = [&](const LegendEntry& entry) {
    const std::optional<QRectF> at = flow.next(width(entry.name));
    if (!at) return;
    paint_cell(painter, {at->left(), std::round(at->center().y() - square / 2), square, square}, entry.look, 1, theme);
    const double baseline = std::round(at->center().y() + cap_height(font) / 2);
    draw_text(painter, font, theme.text_quiet, {at->left() + square + gap, baseline}, entry.name);
  };
  for (const SeqIdx seq : owners.first(shown)) paint(owner(seq));
  if (shown < owners.size() && shown > 0) {
    const QString more = more_text(owners.size() - shown);
    if (const std::optional<QRectF> at = flow.next(text_width(font, more))) {
      draw_text(painter, font, theme.text_quiet, {at->left(), std::round(at->center().y() + cap_height(font) / 2)},
                more);
    }
  } else if (!owners.empty() && shown == 0 && dots_fit()) {
    const std::optional<QRectF> at = flow.next(text_width(font, dots));
    draw_text(painter, font, theme.text_quiet, {at->left(), std::round(at->center().y() + cap_height(font) / 2)}, dots);
  }
  for (const LegendEntry& entry : kinds) paint(entry);
  painter.restore();
}

}  // namespace kvscope::viz
