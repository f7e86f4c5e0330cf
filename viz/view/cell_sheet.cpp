#include "viz/view/cell_sheet.h"

#include <cmath>

#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>

namespace kvscope::viz {

void CellSheet::paint(std::vector<QRgb>& pixels, Look look, double filled) const {
  pixels.assign(static_cast<std::size_t>(device_.width()) * static_cast<std::size_t>(device_.height()),
                theme_->card.rgb());
  QImage image(reinterpret_cast<uchar*>(pixels.data()), device_.width(), device_.height(), device_.width() * 4,
               QImage::Format_RGB32);
  QPainter painter(&image);
  painter.scale(scale_, scale_);
  paint_cell(painter, QRectF(0, 0, device_.width() / scale_, device_.height() / scale_), look, filled, *theme_);
}

GlyphSheet::GlyphSheet(const QFont& font, double scale)
    : font_(font), scale_(scale), cap_height_(static_cast<int>(std::lround(QFontMetricsF(font).capHeight() * scale))) {}

const Glyph* GlyphSheet::find(char c) {
  if (c < kFirst || c > kLast) return nullptr;
  std::unique_ptr<Glyph>& glyph = glyphs_[static_cast<std::size_t>(c - kFirst)];
  if (!glyph) glyph = std::make_unique<Glyph>(made(c));
  return glyph.get();
}

Glyph GlyphSheet::made(char c) const {
  Glyph glyph;
  const QString text{QLatin1Char(c)};
  const QFontMetricsF metrics(font_);
  const QRectF box = metrics.boundingRect(text);
  glyph.advance = metrics.horizontalAdvance(text) * scale_;
  // One more pixel on every side, for the antialiased edge.
  glyph.left = static_cast<int>(std::floor(box.left() * scale_)) - 1;
  glyph.top = static_cast<int>(std::floor(box.top() * scale_)) - 1;
  glyph.width = static_cast<int>(std::ceil(box.right() * scale_)) + 2 - glyph.left;
  glyph.height = static_cast<int>(std::ceil(box.bottom() * scale_)) + 2 - glyph.top;
  QImage image(glyph.width, glyph.height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  painter.translate(-glyph.left, -glyph.top);
  painter.scale(scale_, scale_);
  painter.setFont(font_);
  painter.setPen(Qt::white);
  painter.drawText(QPointF(0, 0), text);
  painter.end();
  glyph.coverage.reserve(static_cast<std::size_t>(glyph.width) * static_cast<std::size_t>(glyph.height));
  for (int y = 0; y < glyph.height; ++y) {
    const auto* const line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
    for (int x = 0; x < glyph.width; ++x) glyph.coverage.push_back(static_cast<std::uint8_t>(qAlpha(line[x])));
  }
  return glyph;
}

Prepared& Prepared::of_this_thread() {
  thread_local Prepared kPrepared;
  return kPrepared;
}

std::shared_ptr<CellSheet> Prepared::cells(const Theme& theme, QSize device, double scale) {
  return cells_.get({&theme, device.width(), device.height(), scale}, [&] { return CellSheet(theme, device, scale); });
}

std::shared_ptr<GlyphSheet> Prepared::glyphs(const QFont& font, double scale) {
  return glyphs_.get({font.family(), font.pixelSize(), font.weight(), scale}, [&] { return GlyphSheet(font, scale); });
}

std::shared_ptr<const QImage> Prepared::badge(std::int64_t count, double px, double scale) {
  return badges_.get({count, px, scale}, [&] {
    const QSizeF size = badge_size(count, px);
    QImage image((size * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.scale(scale, scale);
    paint_badge(painter, QPointF(size.width(), size.height()), count, px);
    return image;
  });
}

std::shared_ptr<const QImage> Prepared::frame(const Theme& theme, QSize device, double scale) {
  return frames_.get({&theme, device.width(), device.height(), scale}, [&] {
    QImage image(device, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.scale(scale, scale);
    paint_difference(painter, QRectF(QPointF(0, 0), QSizeF(device) / scale), theme);
    return image;
  });
}

std::shared_ptr<const InksOfLooks> Prepared::inks(const Theme& theme) {
  return inks_.get(&theme, [&] {
    InksOfLooks inks;
    for (int i = 0; i < kLooks; ++i) {
      const Look look = static_cast<Look>(i);
      Inks& of = inks[static_cast<std::size_t>(i)];
      of.fill = look_fill(theme, look);
      of.on_fill = look_ink(theme, look);
      of.empty = has_level(look) ? look_empty(theme, look) : of.fill;
      of.on_empty = has_level(look) ? theme.ink_on(of.empty) : of.on_fill;
      of.on_card = readable(theme, of.fill, theme.card);
      of.pattern = has_pattern(theme, look);
    }
    return inks;
  });
}

}  // namespace kvscope::viz
