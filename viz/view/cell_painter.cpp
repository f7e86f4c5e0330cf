#include "viz/view/cell_painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintDevice>
#include <QtGui/QPaintEngine>

namespace kvscope::viz {
namespace {

// Cells of one size, each look once, full and empty, on the card: opaque, so that a copy is a copy of memory.
class CellSheet {
 public:
  CellSheet(const Theme& theme, QSize device, double scale) : theme_(&theme), device_(device), scale_(scale) {}

  [[nodiscard]] QSize device() const { return device_; }
  const QImage& full(Look look) { return picture(full_[look], look, 1); }
  const QImage& empty(Look look) { return picture(empty_[look], look, 0); }

 private:
  const QImage& picture(QImage& image, Look look, double filled) {
    if (image.isNull()) {
      image = QImage(device_, QImage::Format_RGB32);
      image.fill(theme_->card);
      QPainter painter(&image);
      painter.scale(scale_, scale_);
      paint_cell(painter, QRectF(0, 0, device_.width() / scale_, device_.height() / scale_), look, filled, *theme_);
    }
    return image;
  }
  const Theme* theme_;
  QSize device_;
  double scale_;
  std::array<QImage, kLooks> full_, empty_;
};

// Coverage of each printable ASCII character of a font, one byte a pixel, the pen at column `left` of the baseline row.
struct Glyph {
  int width = 0, height = 0;
  int left = 0, top = 0;  // [device px] from the pen to the picture's corner
  double advance = 0;     // [device px]
  std::vector<std::uint8_t> coverage;
};

constexpr char kFirstGlyph = ' ', kLastGlyph = '~';

class GlyphSheet {
 public:
  GlyphSheet(const QFont& font, double scale) : font_(font), scale_(scale) {}
  const Glyph* find(char c) {
    if (c < kFirstGlyph || c > kLastGlyph) return nullptr;
    Glyph& glyph = glyphs_[static_cast<std::size_t>(c - kFirstGlyph)];
    if (glyph.advance == 0) make(glyph, c);
    return &glyph;
  }

 private:
  void make(Glyph& glyph, char c) {
    const QString text{QLatin1Char(c)};
    const QFontMetricsF metrics(font_);
    const QRectF box = metrics.boundingRect(text);
    glyph.advance = metrics.horizontalAdvance(text) * scale_;
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
    glyph.coverage.resize(static_cast<std::size_t>(glyph.width) * static_cast<std::size_t>(glyph.height));
    for (int y = 0; y < glyph.height; ++y) {
      const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
      for (int x = 0; x < glyph.width; ++x) {
        glyph.coverage[static_cast<std::size_t>(y) * static_cast<std::size_t>(glyph.width) +
                       static_cast<std::size_t>(x)] = static_cast<std::uint8_t>(qAlpha(line[x]));
      }
    }
  }
  QFont font_;
  double scale_;
  std::array<Glyph, kLastGlyph - kFirstGlyph + 1> glyphs_;
};

// What has been painted once, for the sizes in use. Zooming makes a new size every few frames: past kMost all are
// dropped, and the few that are in use come back with the next repaint.
template <class Key, class Value>
class Kept {
 public:
  static constexpr std::size_t kMost = 48;
  template <class Make>
  std::shared_ptr<Value> get(const Key& key, Make&& make) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (values_.size() >= kMost) values_.clear();
    return values_[key] = std::make_shared<Value>(make());
  }

 private:
  std::map<Key, std::shared_ptr<Value>> values_;
};

using SheetKey = std::tuple<const Theme*, int, int, double>;  // theme, device width and height, scale
using GlyphKey = std::tuple<QString, int, int, double>;       // family, px, weight, scale
using BadgeKey = std::tuple<std::int64_t, double, double>;    // count, px, scale

struct Caches {
  Kept<SheetKey, CellSheet> sheets;
  Kept<GlyphKey, GlyphSheet> glyphs;
  Kept<BadgeKey, QImage> badges;
  std::vector<QRgb> scratch;  // lent to one CellPainter at a time
};

// One for each thread that paints: pictures are exported while the window shows another.
Caches& caches() {
  thread_local Caches kCaches;
  return kCaches;
}

bool is_raster(const QPainter& painter) {
  const QTransform transform = painter.deviceTransform();
  return painter.paintEngine()->type() == QPaintEngine::Raster && transform.type() <= QTransform::TxScale &&
         transform.m11() == transform.m22() && transform.m11() > 0;
}

QRgb blended(QRgb under, QRgb ink, int coverage) {
  const auto mix = [coverage](int u, int i) { return u + (i - u) * coverage / 255; };
  return qRgb(mix(qRed(under), qRed(ink)), mix(qGreen(under), qGreen(ink)), mix(qBlue(under), qBlue(ink)));
}

int to_int(double value) {
  return static_cast<int>(std::lround(value));
}

}  // namespace

// --- two ways to paint -----------------------------------------------------------------------------------------------

class CellPainter::Impl {
 public:
  explicit Impl(const Theme& theme) : theme_(theme) {}
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual void set_cell_size(QSizeF size) = 0;
  virtual void cell(QPointF at, Look look, double filled) = 0;
  virtual void set_font(const QFont& font) = 0;
  virtual void label(QPointF baseline, std::string_view text, const QColor& ink) = 0;
  virtual void badge(QPointF at, std::int64_t count, double px) = 0;
  virtual void just_now(const QRectF& cell, JustNow what) = 0;
  virtual void finish() = 0;

 protected:
  const Theme& theme_;
};

namespace {

// Everything passed on as it comes.
class Lines final : public CellPainter::Impl {
 public:
  Lines(QPainter& painter, const QRectF& body, const Theme& theme) : Impl(theme), painter_(painter) {
    painter_.save();
    painter_.setClipRect(body, Qt::IntersectClip);
    painter_.fillRect(body, theme.card);
  }
  void set_cell_size(QSizeF size) override { size_ = size; }
  void cell(QPointF at, Look look, double filled) override {
    paint_cell(painter_, QRectF(at, size_), look, filled, theme_);
  }
  void set_font(const QFont& font) override { painter_.setFont(font); }
  void label(QPointF baseline, std::string_view text, const QColor& ink) override {
    painter_.setPen(ink);
    painter_.drawText(baseline, QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size())));
  }
  void badge(QPointF at, std::int64_t count, double px) override { paint_badge(painter_, at, count, px); }
  void just_now(const QRectF& cell, JustNow what) override { paint_just_now(painter_, cell, what, theme_); }
  void finish() override { painter_.restore(); }

 private:
  QPainter& painter_;
  QSizeF size_{1, 1};
};

// Pixels of its own, copied from prepared cells and glyphs, on the surface at the end.
class Pixels final : public CellPainter::Impl {
 public:
  Pixels(QPainter& painter, const QRectF& body, const Theme& theme)
      : Impl(theme), painter_(painter), scale_(painter.deviceTransform().m11()) {
    const QRectF device = painter.deviceTransform().mapRect(body);
    corner_ = QPoint(to_int(device.left()), to_int(device.top()));
    width_ = std::max(1, to_int(device.right()) - corner_.x());
    height_ = std::max(1, to_int(device.bottom()) - corner_.y());
    origin_ = body.topLeft();
    pixels_ = std::exchange(caches().scratch, {});
    pixels_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), theme.card.rgb());
  }

  void set_cell_size(QSizeF size) override {
    const QSize device(std::max(1, static_cast<int>(std::floor(size.width() * scale_ + 1e-6))),
                       std::max(1, static_cast<int>(std::floor(size.height() * scale_ + 1e-6))));
    sheet_ = caches().sheets.get({&theme_, device.width(), device.height(), scale_},
                                 [&] { return CellSheet(theme_, device, scale_); });
  }

  void cell(QPointF at, Look look, double filled) override {
    const QSize size = sheet_->device();
    const QPoint to = device(at);
    // The same share as paint_cell's, of looks that have one; the pictures of the others are equal anyway.
    const int full = filled >= 1 ? size.width() : to_int(size.width() * std::max(0.0, filled));
    if (full > 0) copy(sheet_->full(look), to, 0, full);
    if (full < size.width()) copy(sheet_->empty(look), to, full, size.width());
  }

  void set_font(const QFont& font) override {
    glyphs_ = caches().glyphs.get({font.family(), font.pixelSize(), font.weight(), scale_},
                                  [&] { return GlyphSheet(font, scale_); });
  }

  void label(QPointF baseline, std::string_view text, const QColor& ink) override {
    const QPoint start = device(baseline);
    double pen = start.x();
    for (const char c : text) {
      const Glyph* const glyph = glyphs_->find(c);
      if (glyph == nullptr) continue;
      draw(*glyph, QPoint(to_int(pen) + glyph->left, start.y() + glyph->top), ink.rgb());
      pen += glyph->advance;
    }
  }

  void badge(QPointF at, std::int64_t count, double px) override {
    const std::shared_ptr<QImage> picture = caches().badges.get({count, px, scale_}, [&] {
      const QSizeF size = badge_size(count, px);
      QImage image((size * scale_).toSize(), QImage::Format_ARGB32_Premultiplied);
      image.fill(Qt::transparent);
      QPainter painter(&image);
      painter.scale(scale_, scale_);
      paint_badge(painter, QPointF(size.width(), size.height()), count, px);
      return image;
    });
    const QPoint corner = device(at) - QPoint(picture->width(), picture->height());
    for (int y = std::max(0, -corner.y()); y < std::min(picture->height(), height_ - corner.y()); ++y) {
      const auto* from = reinterpret_cast<const QRgb*>(picture->constScanLine(y));
      QRgb* const to = line(corner.y() + y) + corner.x();
      for (int x = std::max(0, -corner.x()); x < std::min(picture->width(), width_ - corner.x()); ++x) {
        const int rest = 255 - qAlpha(from[x]);
        to[x] = qRgb(qRed(from[x]) + qRed(to[x]) * rest / 255, qGreen(from[x]) + qGreen(to[x]) * rest / 255,
                     qBlue(from[x]) + qBlue(to[x]) * rest / 255);
      }
    }
  }

  void just_now(const QRectF& cell, JustNow what) override {
    QImage surface = image();
    QPainter painter(&surface);
    painter.scale(scale_, scale_);
    painter.translate(-origin_);
    paint_just_now(painter, cell, what, theme_);
  }

  void finish() override {
    painter_.save();
    // Device pixels, whatever the painter's world is: an image that is copied, not resampled.
    const QTransform device = painter_.worldTransform().inverted() * painter_.deviceTransform();
    painter_.setWorldTransform(device.inverted());
    painter_.drawImage(corner_, image());
    painter_.restore();
    caches().scratch = std::move(pixels_);
  }

 private:
  [[nodiscard]] QPoint device(QPointF at) const {
    const QPointF inside = (at - origin_) * scale_;
    return {to_int(inside.x()), to_int(inside.y())};
  }
  [[nodiscard]] QRgb* line(int y) {
    return pixels_.data() + static_cast<std::ptrdiff_t>(y) * static_cast<std::ptrdiff_t>(width_);
  }
  [[nodiscard]] QImage image() {
    return QImage(reinterpret_cast<uchar*>(pixels_.data()), width_, height_, width_ * 4, QImage::Format_RGB32);
  }

  // Columns [first, end) of a picture whose corner is at `to`.
  void copy(const QImage& from, QPoint to, int first, int end) {
    const int left = std::max(first, -to.x()), right = std::min(end, width_ - to.x());
    if (left >= right) return;
    const int bottom = std::min(from.height(), height_ - to.y());
    const auto bytes = static_cast<std::size_t>(right - left) * sizeof(QRgb);
    for (int y = std::max(0, -to.y()); y < bottom; ++y) {
      std::memcpy(line(to.y() + y) + to.x() + left, from.constScanLine(y) + left * 4, bytes);
    }
  }

  void draw(const Glyph& glyph, QPoint to, QRgb ink) {
    const int left = std::max(0, -to.x()), right = std::min(glyph.width, width_ - to.x());
    for (int y = std::max(0, -to.y()); y < std::min(glyph.height, height_ - to.y()); ++y) {
      const std::uint8_t* const coverage =
          glyph.coverage.data() + static_cast<std::ptrdiff_t>(y) * static_cast<std::ptrdiff_t>(glyph.width);
      QRgb* const under = line(to.y() + y) + to.x();
      for (int x = left; x < right; ++x) {
        if (coverage[x] != 0) under[x] = blended(under[x], ink, coverage[x]);
      }
    }
  }

  QPainter& painter_;
  double scale_;  // device pixels in one of the painter's
  QPoint corner_;
  QPointF origin_;
  int width_ = 0, height_ = 0;
  std::vector<QRgb> pixels_;
  std::shared_ptr<CellSheet> sheet_;
  std::shared_ptr<GlyphSheet> glyphs_;
};

}  // namespace

CellPainter::CellPainter(QPainter& painter, const QRectF& body, const Theme& theme) {
  if (is_raster(painter)) {
    impl_ = std::make_unique<Pixels>(painter, body, theme);
  } else {
    impl_ = std::make_unique<Lines>(painter, body, theme);
  }
}

CellPainter::~CellPainter() {
  finish();
}

void CellPainter::set_cell_size(QSizeF size) {
  impl_->set_cell_size(size);
}
void CellPainter::cell(QPointF at, Look look, double filled) {
  impl_->cell(at, look, filled);
}
void CellPainter::set_font(const QFont& font) {
  impl_->set_font(font);
}
void CellPainter::label(QPointF baseline, std::string_view text, const QColor& ink) {
  impl_->label(baseline, text, ink);
}
void CellPainter::badge(QPointF at, std::int64_t count, double px) {
  impl_->badge(at, count, px);
}
void CellPainter::just_now(const QRectF& cell, JustNow what) {
  impl_->just_now(cell, what);
}

void CellPainter::finish() {
  if (impl_) impl_->finish();
  impl_.reset();
}

double label_width(const QFont& font, std::string_view text) {
  return QFontMetricsF(font).horizontalAdvance(QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size())));
}

}  // namespace kvscope::viz
