#include "viz/view/cell_numbers.h"

#include <cmath>
#include <map>
#include <tuple>

#include <QtGui/QImage>
#include <QtGui/QPaintEngine>

#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

constexpr double kDigitRim = 2;  // [px] width of the pen around a digit: half of it is visible

struct DigitLook {
  QFont font;
  double advance, cap_height;  // [px] of the font
  bool upwards;
  double scale;  // device pixels per pixel of the painter
  QColor ink, behind;
};

// A digit in the middle of its picture; rotated for vertical numbers.
QImage painted(const DigitLook& look, int digit) {
  QSizeF size(std::ceil(look.advance) + 2 * kDigitRim, std::ceil(look.cap_height) + 2 * kDigitRim);
  if (look.upwards) size.transpose();
  const QString text = QString::number(digit);
  const QPointF baseline(-look.advance / 2, look.cap_height / 2);
  QImage image(static_cast<int>(std::ceil(size.width() * look.scale)),
               static_cast<int>(std::ceil(size.height() * look.scale)), QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.scale(look.scale, look.scale);
  painter.translate(size.width() / 2, size.height() / 2);
  if (look.upwards) painter.rotate(-90);
  painter.strokePath(text_outline(look.font, text).translated(baseline),
                     QPen(look.behind, kDigitRim, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setFont(look.font);
  painter.setPen(look.ink);
  painter.drawText(baseline, text);
  return image;
}

// A cache of painted digits per thread. Zooming adds a new size every few frames: above kMostDigits the cache is
// cleared, and the next repaint adds the few digits in use again.
using DigitKey = std::tuple<int, bool, double, QRgb, QRgb, int>;  // font px, upwards, scale, ink, behind, digit
constexpr std::size_t kMostDigits = 2000;

const QImage& digit_picture(const DigitLook& look, int digit) {
  thread_local std::map<DigitKey, QImage> kept;
  const DigitKey key{look.font.pixelSize(), look.upwards, look.scale, look.ink.rgb(), look.behind.rgb(), digit};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMostDigits) kept.clear();
  return kept[key] = painted(look, digit);
}

}  // namespace

CellNumbers::CellNumbers(QPainter& painter, const QFont& font, Writing writing)
    : painter_(painter),
      font_(font),
      metrics_(font),
      upwards_(writing == Writing::upwards),
      device_(painter.deviceTransform()) {
  copies_ = painter.paintEngine()->type() == QPaintEngine::Raster && device_.type() <= QTransform::TxScale &&
            device_.m11() == device_.m22() && device_.m11() > 0;
  advance_ = metrics_.horizontalAdvance(u'0');
  painter_.save();
  painter_.setFont(font_);
  // From here on in device pixels, so that pictures are copied and not resampled.
  if (copies_) painter_.setWorldTransform((painter_.worldTransform().inverted() * device_).inverted());
}

CellNumbers::~CellNumbers() {
  painter_.restore();
}

void CellNumbers::write(const QRectF& cell, std::int64_t number, const QColor& ink, const QColor& behind) {
  const QString text = QString::number(number);
  const double length = advance_ * static_cast<double>(text.size());
  if (!copies_) {
    painter_.save();
    painter_.setPen(ink);
    painter_.translate(cell.center());
    if (upwards_) painter_.rotate(-90);
    painter_.drawText(QPointF(-length / 2, metrics_.capHeight() / 2), text);
    painter_.restore();
    return;
  }
  // The rim of a digit overlaps the adjacent digits. In writing order only the edge of the previous digit is covered.
  const DigitLook look{font_, advance_, metrics_.capHeight(), upwards_, device_.m11(), ink, behind};
  for (qsizetype i = 0; i < text.size(); ++i) {
    const QImage& digit = digit_picture(look, text[i].digitValue());
    const double along = (static_cast<double>(i) + 0.5) * advance_ - length / 2;
    const QPointF pixel = device_.map(cell.center() + (upwards_ ? QPointF(0, -along) : QPointF(along, 0)));
    painter_.drawImage(QPoint(static_cast<int>(std::lround(pixel.x() - digit.width() / 2.0)),
                              static_cast<int>(std::lround(pixel.y() - digit.height() / 2.0))),
                       digit);
  }
}

}  // namespace kvscope::viz
