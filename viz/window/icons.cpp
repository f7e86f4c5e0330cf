#include "viz/window/icons.h"

#include <initializer_list>

#include <QtCore/QPointF>
#include <QtGui/QIconEngine>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

namespace kvscope::viz {
namespace {

constexpr double kGrid = 24;  // [units] of a side
constexpr double kLine = 1.9;

// The parts of an icon: surfaces, lines, and surfaces in the warning color.
struct Drawing {
  QPainterPath filled, stroked, marked;
};

void polygon(QPainterPath& path, std::initializer_list<QPointF> points) {
  bool first = true;
  for (const QPointF& point : points) {
    first ? path.moveTo(point) : path.lineTo(point);
    first = false;
  }
  path.closeSubpath();
}

void line(QPainterPath& path, std::initializer_list<QPointF> points) {
  bool first = true;
  for (const QPointF& point : points) {
    first ? path.moveTo(point) : path.lineTo(point);
    first = false;
  }
}

// Icons for moving forward; those for moving back are their mirror images.
Drawing forwards(Icon which) {
  Drawing d;
  switch (which) {
    case Icon::end:
      polygon(d.filled, {{4, 6}, {11, 12}, {4, 18}});
      polygon(d.filled, {{10.5, 6}, {17.5, 12}, {10.5, 18}});
      d.filled.addRect(18, 6, 2.2, 12);
      break;
    case Icon::step:
      polygon(d.filled, {{6, 5.5}, {15, 12}, {6, 18.5}});
      d.filled.addRect(16, 5.5, 2.6, 13);
      break;
    case Icon::forward:
      line(d.stroked, {{4.5, 12}, {18.5, 12}});
      line(d.stroked, {{12.5, 6}, {18.5, 12}, {12.5, 18}});
      break;
    case Icon::event:
      line(d.stroked, {{8.5, 6.5}, {14, 12}, {8.5, 17.5}});
      d.filled.addEllipse(QPointF(17.5, 12), 1.7, 1.7);
      break;
    default:
      polygon(d.filled, {{4, 6}, {12.5, 12}, {4, 18}});
      d.marked.addEllipse(QPointF(17, 12), 3.6, 3.6);
      break;
  }
  return d;
}

Drawing mirrored(const Drawing& d) {
  const QTransform mirror(-1, 0, 0, 1, kGrid, 0);
  return {mirror.map(d.filled), mirror.map(d.stroked), mirror.map(d.marked)};
}

void magnifier(Drawing& d) {
  d.stroked.addEllipse(QPointF(10.5, 10.5), 5.5, 5.5);
  line(d.stroked, {{14.7, 14.7}, {19.5, 19.5}});
}

Drawing file_drawing(Icon which) {
  Drawing d;
  switch (which) {
    case Icon::open:
      line(d.stroked, {{4, 18}, {4, 6}, {9.5, 6}, {11.5, 8.5}, {19, 8.5}, {19, 11}});
      line(d.stroked, {{4, 18}, {7, 11.5}, {21, 11.5}, {18, 18}, {4, 18}});
      break;
    case Icon::reload:
      d.stroked.arcMoveTo(5, 5, 14, 14, 60);
      d.stroked.arcTo(5, 5, 14, 14, 60, 285);
      polygon(d.filled, {{13.5, 2.5}, {13.5, 9.5}, {19, 6}});
      break;
    case Icon::save:
      line(d.stroked, {{12, 4}, {12, 14}});
      line(d.stroked, {{7.5, 10}, {12, 14.5}, {16.5, 10}});
      line(d.stroked, {{4.5, 15.5}, {4.5, 19.5}, {19.5, 19.5}, {19.5, 15.5}});
      break;
    case Icon::picture:
      d.stroked.addRoundedRect(3.5, 5, 17, 14, 2, 2);
      line(d.stroked, {{4, 17}, {9.5, 11.5}, {13, 15}, {15.5, 12.5}, {20, 17}});
      d.filled.addEllipse(QPointF(15.5, 9), 1.4, 1.4);
      break;
    case Icon::drop:
      line(d.stroked, {{12, 4}, {12, 15}});
      line(d.stroked, {{7, 10.5}, {12, 15.5}, {17, 10.5}});
      line(d.stroked, {{3.5, 14}, {3.5, 20}, {20.5, 20}, {20.5, 14}});
      break;
    default:  // close
      line(d.stroked, {{6.5, 6.5}, {17.5, 17.5}});
      line(d.stroked, {{17.5, 6.5}, {6.5, 17.5}});
      break;
  }
  return d;
}

Drawing other_drawing(Icon which) {
  Drawing d;
  switch (which) {
    case Icon::play:
      polygon(d.filled, {{7.5, 4.5}, {19, 12}, {7.5, 19.5}});
      break;
    case Icon::pause:
      d.filled.addRect(6.5, 5, 3.8, 14);
      d.filled.addRect(13.7, 5, 3.8, 14);
      break;
    case Icon::find:
      magnifier(d);
      break;
    case Icon::zoom_in:
      line(d.stroked, {{10.5, 8}, {10.5, 13}});
      [[fallthrough]];
    case Icon::zoom_out:
      magnifier(d);
      line(d.stroked, {{8, 10.5}, {13, 10.5}});
      break;
    case Icon::fit:
      for (const auto& [x, y, dx, dy] : std::initializer_list<std::array<double, 4>>{
               {4.5, 4.5, 5, 5}, {19.5, 4.5, -5, 5}, {4.5, 19.5, 5, -5}, {19.5, 19.5, -5, -5}}) {
        line(d.stroked, {{x + dx, y}, {x, y}, {x, y + dy}});
      }
      break;
    case Icon::add:
      line(d.stroked, {{12, 5.5}, {12, 18.5}});
      [[fallthrough]];
    case Icon::remove:
      line(d.stroked, {{5.5, 12}, {18.5, 12}});
      break;
    case Icon::undo:
      line(d.stroked, {{9, 4.5}, {4.5, 9}, {9, 13.5}});
      d.stroked.moveTo(4.5, 9);
      d.stroked.lineTo(14, 9);
      d.stroked.arcTo(QRectF(9, 9, 10, 10), 90, -180);
      d.stroked.lineTo(9, 19);
      break;
    case Icon::copy:
      d.stroked.addRoundedRect(8.5, 8.5, 11, 11.5, 2, 2);
      line(d.stroked, {{5.5, 15.5}, {4.5, 15.5}, {4.5, 4.5}, {15.5, 4.5}, {15.5, 5.5}});
      break;
    case Icon::warning:
      polygon(d.marked, {{12, 3.5}, {21.5, 20}, {2.5, 20}});
      break;
    default:  // information
      d.stroked.addEllipse(QPointF(12, 12), 8.5, 8.5);
      line(d.stroked, {{12, 11}, {12, 16.5}});
      d.filled.addEllipse(QPointF(12, 7.8), 1.2, 1.2);
      break;
  }
  return d;
}

Drawing drawing(Icon which) {
  switch (which) {
    case Icon::start:
      return mirrored(forwards(Icon::end));
    case Icon::step_back:
      return mirrored(forwards(Icon::step));
    case Icon::event_back:
      return mirrored(forwards(Icon::event));
    case Icon::run_back:
      return mirrored(forwards(Icon::run_to));
    case Icon::back:
      return mirrored(forwards(Icon::forward));
    case Icon::redo:
      return mirrored(other_drawing(Icon::undo));
    case Icon::end:
    case Icon::step:
    case Icon::event:
    case Icon::run_to:
    case Icon::forward:
      return forwards(which);
    case Icon::open:
    case Icon::reload:
    case Icon::save:
    case Icon::picture:
    case Icon::drop:
    case Icon::close:
      return file_drawing(which);
    default:
      return other_drawing(which);
  }
}

class VectorIcon final : public QIconEngine {
 public:
  VectorIcon(Icon which, const Theme& theme) : which_(which), theme_(&theme) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
    const double side = std::min(rect.width(), rect.height());
    QColor ink = state == QIcon::On ? theme_->accent : theme_->text;
    QColor mark = theme_->warning;
    if (mode == QIcon::Disabled) {
      ink.setAlphaF(0.3F);
      mark.setAlphaF(0.3F);
    }
    const Drawing d = drawing(which_);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->translate(rect.x() + (rect.width() - side) / 2, rect.y() + (rect.height() - side) / 2);
    painter->scale(side / kGrid, side / kGrid);
    painter->fillPath(d.filled, ink);
    painter->fillPath(d.marked, mark);
    painter->strokePath(d.stroked, QPen(ink, kLine, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    if (which_ == Icon::warning) paint_exclamation(*painter, theme_->ink_on(mark));
    painter->restore();
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap picture(size);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    paint(&painter, QRect(QPoint(0, 0), size), mode, state);
    return picture;
  }

  [[nodiscard]] QIconEngine* clone() const override { return new VectorIcon(*this); }

 private:
  static void paint_exclamation(QPainter& painter, const QColor& ink) {
    painter.setPen(QPen(ink, 2, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(QPointF(12, 9.5), QPointF(12, 14));
    painter.drawPoint(QPointF(12, 17));
  }

  Icon which_;
  const Theme* theme_;  // one of theme(), which exist as long as the program
};

}  // namespace

QIcon icon(Icon which, const Theme& theme) {
  return which == Icon::none ? QIcon() : QIcon(new VectorIcon(which, theme));
}

}  // namespace kvscope::viz
