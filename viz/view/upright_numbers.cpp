#include "viz/view/upright_numbers.h"

#include <cmath>

#include <QtGui/QPaintEngine>

namespace kvscope::viz {

UprightNumbers::UprightNumbers(QPainter& painter, const QFont& font)
    : painter_(painter), font_(font), metrics_(font), device_(painter.deviceTransform()) {
  copies_ = painter.paintEngine()->type() == QPaintEngine::Raster && device_.type() <= QTransform::TxScale &&
            device_.m11() == device_.m22() && device_.m11() > 0;
  advance_ = metrics_.horizontalAdvance(u'0');
  painter_.save();
  painter_.setFont(font_);
  // From here on in pixels: a picture that is copied, not resampled.
  if (copies_) painter_.setWorldTransform((painter_.worldTransform().inverted() * device_).inverted());
}

UprightNumbers::~UprightNumbers() {
  painter_.restore();
}

// A digit lies on its side: as wide as the digits are high, as high as one digit is wide.
const UprightNumbers::Digits& UprightNumbers::digits(const QColor& ink) {
  const auto [found, is_new] = digits_.try_emplace(ink.rgb());
  if (!is_new) return found->second;
  const double scale = device_.m11(), width = std::ceil(metrics_.capHeight()) + 2, height = std::ceil(advance_) + 2;
  for (std::size_t digit = 0; digit < found->second.size(); ++digit) {
    QImage image(static_cast<int>(std::ceil(width * scale)), static_cast<int>(std::ceil(height * scale)),
                 QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.scale(scale, scale);
    painter.translate(width / 2, height / 2);
    painter.rotate(-90);
    painter.setFont(font_);
    painter.setPen(ink);
    painter.drawText(QPointF(-advance_ / 2, metrics_.capHeight() / 2), QString::number(digit));
    painter.end();
    found->second[digit] = image;
  }
  return found->second;
}

void UprightNumbers::write(const QRectF& cell, std::int64_t number, const QColor& ink) {
  const QString text = QString::number(number);
  if (!copies_) {
    painter_.save();
    painter_.setPen(ink);
    painter_.translate(cell.center());
    painter_.rotate(-90);
    painter_.drawText(QPointF(-metrics_.horizontalAdvance(text) / 2, metrics_.capHeight() / 2), text);
    painter_.restore();
    return;
  }
  const Digits& all = digits(ink);
  const double length = advance_ * static_cast<double>(text.size());
  for (qsizetype i = 0; i < text.size(); ++i) {
    const QImage& digit = all[static_cast<std::size_t>(text[i].digitValue())];
    const QPointF middle(cell.center().x(), cell.center().y() + length / 2 - (static_cast<double>(i) + 0.5) * advance_);
    const QPointF pixel = device_.map(middle);
    painter_.drawImage(QPoint(static_cast<int>(std::lround(pixel.x() - digit.width() / 2.0)),
                              static_cast<int>(std::lround(pixel.y() - digit.height() / 2.0))),
                       digit);
  }
}

}  // namespace kvscope::viz
