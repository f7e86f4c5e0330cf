#include "viz/view/cell_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

#include <QtGui/QPicture>
#include <QtGui/QTransform>

#include "viz/view/theme.h"

namespace kvscope::viz::cell_numbers_test {
namespace {

constexpr QRectF kCell(10, 10, 40, 40);

template <class Paint>
QImage picture(double scale, Paint&& paint) {
  QImage image((QSizeF(60, 60) * scale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(Qt::white);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing, true);
  paint(painter);
  return image;
}

QImage number(std::int64_t number, Writing writing, double scale = 1) {
  return picture(scale, [&](QPainter& painter) {
    CellNumbers(painter, mono_font(12), writing).write(kCell, number, Qt::black, Qt::white);
  });
}

// Ink that is only in one of the two pictures, as a share of all ink.
double apart(const QImage& a, const QImage& b) {
  double difference = 0, ink = 0;
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      difference += std::abs(qGray(a.pixel(x, y)) - qGray(b.pixel(x, y)));
      ink += 255 - qGray(a.pixel(x, y)) + 255 - qGray(b.pixel(x, y));
    }
  }
  return difference / ink;
}

// Rotated by a quarter turn, a vertical number equals the horizontal one: the first digit is at the bottom, the last at
// the top. Digits in the opposite order would be a different number.
TEST(CellNumbers, UpwardsReadsFromTheBottomToTheTop) {
  for (const double scale : {1.0, 2.0}) {
    const QImage turned = number(1274, Writing::upwards, scale).transformed(QTransform().rotate(90));
    EXPECT_LT(apart(number(1274, Writing::across, scale), turned), 0.3) << scale;
    EXPECT_GT(apart(number(4721, Writing::across, scale), turned), 0.5) << scale;
  }
}

// The distances of its ink from left and right are equal, and those from top and bottom.
TEST(CellNumbers, StandsInTheMiddleOfItsCell) {
  for (const Writing writing : {Writing::across, Writing::upwards}) {
    const QImage image = number(88, writing, 2);
    double x_sum = 0, y_sum = 0, ink = 0;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        const int dark = 255 - qGray(image.pixel(x, y));
        x_sum += dark * (x + 0.5), y_sum += dark * (y + 0.5), ink += dark;
      }
    }
    EXPECT_NEAR(x_sum / ink, 60, 1.2);
    EXPECT_NEAR(y_sum / ink, 60, 1.2);
  }
}

// On a surface without pixels (a QPicture) the number is drawn as text at the same place.
TEST(CellNumbers, IsTextOnASurfaceWithoutPixels) {
  for (const Writing writing : {Writing::across, Writing::upwards}) {
    QPicture recorded;
    {
      QPainter painter(&recorded);
      CellNumbers(painter, mono_font(12), writing).write(kCell, 1274, Qt::black, Qt::white);
    }
    const QImage played = picture(1, [&](QPainter& painter) { recorded.play(&painter); });
    EXPECT_LT(apart(number(1274, writing), played), 0.35);
    EXPECT_GT(apart(number(4721, writing), played), 0.5);
  }
}

// The painter's state is restored, because the next panel uses the same painter.
TEST(CellNumbers, GivesThePainterBackAsItWas) {
  picture(2, [](QPainter& painter) {
    painter.translate(3, 4);
    painter.setPen(Qt::red);
    const QTransform before = painter.worldTransform();
    CellNumbers(painter, mono_font(12), Writing::across).write(kCell, 7, Qt::black, Qt::white);
    EXPECT_EQ(painter.worldTransform(), before);
    EXPECT_EQ(painter.pen().color(), QColor(Qt::red));
  });
}

// Over a striped cell the rim keeps stripes away from the digit, and the rest of the cell stays striped.
TEST(CellNumbers, KeepsThePatternOffItsDigits) {
  const auto striped = [](bool with_number) {
    return picture(1, [&](QPainter& painter) {
      painter.setPen(Qt::red);
      for (int x = 10; x < 50; x += 2) painter.drawLine(x, 10, x, 50);
      if (!with_number) return;
      CellNumbers(painter, mono_font(24), Writing::across).write(kCell, 0, Qt::black, Qt::green);
    });
  };
  const QImage plain = striped(false), image = striped(true);
  EXPECT_EQ(image.copy(0, 0, 18, 60), plain.copy(0, 0, 18, 60)) << "beside the digit nothing changes";
  int rim = 0;
  for (int y = 0; y < 60; ++y) {
    for (int x = 0; x < 60; ++x) rim += QColor(image.pixel(x, y)).green() > 200 && QColor(image.pixel(x, y)).red() < 60;
  }
  EXPECT_GT(rim, 15);
}

}  // namespace
}  // namespace kvscope::viz::cell_numbers_test
