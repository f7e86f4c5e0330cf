#include "viz/view/cell_painter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintDevice>
#include <QtGui/QPaintEngine>
#include <QtGui/QPainterPath>

#include "viz/view/cell_sheet.h"
#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

bool is_raster(const QPainter& painter) {
  const QTransform transform = painter.deviceTransform();
  return painter.paintEngine()->type() == QPaintEngine::Raster && transform.type() <= QTransform::TxScale &&
         transform.m11() == transform.m22() && transform.m11() > 0;
}

QRgb blended(QRgb under, QRgb ink, int coverage) {
  const auto mix = [coverage](int u, int i) { return u + (i - u) * coverage / 255; };
  return qRgb(mix(qRed(under), qRed(ink)), mix(qGreen(under), qGreen(ink)), mix(qBlue(under), qBlue(ink)));
}

constexpr double kLetterRim = 1;  // [px] around letters on two colors
constexpr double kDescent = 0.3;  // of JetBrains Mono, as a share of the height of its digits

int to_int(double value) {
  return static_cast<int>(value < 0 ? value - 0.5 : value + 0.5);
}

// Rows of a cell are short and there are hundreds of thousands of them: copies four pixels at a time, without a call.
void copy_pixels(QRgb* to, const QRgb* from, int count) {
  constexpr int kAtOnce = 4;
  int i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) std::memcpy(to + i, from + i, kAtOnce * sizeof(QRgb));
  for (; i < count; ++i) std::memcpy(to + i, from + i, sizeof(QRgb));
}

}  // namespace

// --- the two implementations -----------------------------------------------------------------------------------------

class CellPainter::Impl {
 public:
  explicit Impl(const Theme& theme) : theme_(theme), inks_(Prepared::of_this_thread().inks(theme)) {}
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual void set_cell_size(QSizeF size) = 0;
  virtual void cell(QPointF at, Look look, double filled) = 0;
  virtual void set_font(const QFont& font) = 0;
  virtual void label(QPointF baseline, std::string_view text, const QColor& ink) = 0;
  virtual void label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled) = 0;
  virtual void badge(QPointF at, std::int64_t count, double px) = 0;
  virtual void just_now(const QRectF& cell, JustNow what) = 0;
  virtual void difference(QPointF at) = 0;
  virtual void finish() = 0;

 protected:
  [[nodiscard]] const Inks& inks(Look look) const { return (*inks_)[look]; }

  // Colors of a label from `left` to `right` in a cell that is filled up to `level`. A label across the level has the
  // color for the empty part, with a rim in the empty part's color; dark digits in a bright rim would be hard to read.
  struct Writing {
    QColor ink;
    bool rimmed = false;
  };
  static Writing writing(const Inks& colors, double left, double right, double level) {
    if (level >= right) return {colors.on_fill, false};
    return {colors.on_empty, level > left && colors.on_fill != colors.on_empty};
  }
  // Depth of the letters below the baseline, as a share of the height of digits.
  static double below_line(std::string_view text) {
    return text.find_first_of("gjpqy") == std::string_view::npos ? 0 : kDescent;
  }
  const Theme& theme_;

 private:
  std::shared_ptr<const InksOfLooks> inks_;
};

namespace {

// Draws every call directly with the painter.
class Lines final : public CellPainter::Impl {
 public:
  Lines(QPainter& painter, const QRectF& body, const Theme& theme) : Impl(theme), painter_(painter) {
    painter_.save();
    painter_.setClipRect(body, Qt::IntersectClip);
    painter_.fillRect(body, theme.card);
    painter_.setRenderHint(QPainter::Antialiasing, true);
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
  void label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled) override {
    const Inks& colors = inks(look);
    const QString words = QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size()));
    const QFontMetricsF metrics(painter_.font());
    const double width = metrics.horizontalAdvance(words), height = metrics.capHeight();
    const QRectF plate(baseline.x() - 1, baseline.y() - height - 1, width + 2, height * (1 + below_line(text)) + 2);
    const double level = cell.left() + cell.width() * std::clamp(filled, 0.0, 1.0);
    if (colors.pattern) {
      const QRectF under = plate & cell;
      const double middle = std::clamp(level, under.left(), under.right());
      painter_.fillRect(QRectF(under.topLeft(), QPointF(middle, under.bottom())), colors.fill);
      painter_.fillRect(QRectF(QPointF(middle, under.top()), under.bottomRight()), colors.empty);
    }
    const Writing how = writing(colors, plate.left(), plate.right(), level);
    // The label is drawn once as text, so that a search finds it once. The rim is drawn as curves under it, half a
    // pixel wider than on pixels, where it is rounded to whole pixels.
    if (how.rimmed) {
      const QPen rim(colors.empty, 2 * kLetterRim + 1, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
      painter_.strokePath(text_outline(painter_.font(), words).translated(baseline), rim);
    }
    label(baseline, text, how.ink);
  }
  void badge(QPointF at, std::int64_t count, double px) override { paint_badge(painter_, at, count, px); }
  void just_now(const QRectF& cell, JustNow what) override { paint_just_now(painter_, cell, what, theme_); }
  void difference(QPointF at) override { paint_difference(painter_, QRectF(at, size_), theme_); }
  void finish() override { painter_.restore(); }

 private:
  QPainter& painter_;
  QSizeF size_{1, 1};
};

// Copies prepared cells and glyphs into a separate image, which is drawn on the surface at the end.
class Pixels final : public CellPainter::Impl {
 public:
  Pixels(QPainter& painter, const QRectF& body, const Theme& theme)
      : Impl(theme), painter_(painter), scale_(painter.deviceTransform().m11()) {
    const QRectF device = painter.deviceTransform().mapRect(body);
    corner_ = QPoint(to_int(device.left()), to_int(device.top()));
    width_ = std::max(1, to_int(device.right()) - corner_.x());
    height_ = std::max(1, to_int(device.bottom()) - corner_.y());
    origin_ = body.topLeft();
    pixels_ = std::exchange(Prepared::of_this_thread().pixels, {});
    pixels_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), theme.card.rgb());
  }

  void set_cell_size(QSizeF size) override {
    const QSize device(std::max(1, static_cast<int>(std::floor(size.width() * scale_ + 1e-6))),
                       std::max(1, static_cast<int>(std::floor(size.height() * scale_ + 1e-6))));
    sheet_ = Prepared::of_this_thread().cells(theme_, device, scale_);
    frame_.reset();
  }

  void cell(QPointF at, Look look, double filled) override {
    const QSize size = sheet_->device();
    const QPoint to = device(at);
    // The same fill level as in paint_cell. For looks without a level both pictures are equal.
    const int full = filled >= 1 ? size.width() : to_int(size.width() * std::max(0.0, filled));
    if (full > 0) copy(sheet_->full(look), to, 0, full);
    if (full < size.width()) copy(sheet_->empty(look), to, full, size.width());
  }

  void set_font(const QFont& font) override { glyphs_ = Prepared::of_this_thread().glyphs(font, scale_); }

  void label(QPointF baseline, std::string_view text, const QColor& ink) override {
    write(device(baseline), text, ink.rgb());
  }

  void label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled) override {
    const Inks& colors = inks(look);
    const QPoint start = device(baseline);
    // The same column of the fill level as in cell().
    const int level = device(cell.topLeft()).x() + to_int(sheet_->device().width() * std::clamp(filled, 0.0, 1.0));
    double width = 0;
    for (const char c : text) {
      if (const Glyph* const glyph = glyphs_->find(c)) width += glyph->advance;
    }
    const int margin = to_int(scale_), left = start.x() - margin, right = start.x() + to_int(width) + margin;
    if (colors.pattern) {
      const int height = glyphs_->cap_height(), below = to_int(height * below_line(text));
      const QPoint corner = device(cell.topLeft());
      const int first = std::max(left, corner.x()), end = std::min(right, corner.x() + sheet_->device().width());
      const int top = start.y() - height - margin;
      const int bottom = std::min(start.y() + below + margin, corner.y() + sheet_->device().height());
      const int middle = std::clamp(level, first, std::max(first, end));
      fill(first, middle, top, bottom, colors.fill.rgb());
      fill(middle, end, top, bottom, colors.empty.rgb());
    }
    const Writing how = writing(colors, left, right, level);
    if (how.rimmed) {
      const int reach = std::max(1, to_int(kLetterRim * scale_));
      for (int dy = -reach; dy <= reach; ++dy) {
        for (int dx = -reach; dx <= reach; ++dx) {
          if (dx * dx + dy * dy <= reach * (reach + 1)) write(start + QPoint(dx, dy), text, colors.empty.rgb());
        }
      }
    }
    write(start, text, how.ink.rgb());
  }

  void badge(QPointF at, std::int64_t count, double px) override {
    const std::shared_ptr<const QImage> picture = Prepared::of_this_thread().badge(count, px, scale_);
    blend(*picture, device(at) - QPoint(picture->width(), picture->height()));
  }

  void difference(QPointF at) override {
    if (!frame_) frame_ = Prepared::of_this_thread().frame(theme_, sheet_->device(), scale_);
    blend(*frame_, device(at));
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
    // In device pixels, independent of the painter's transform, so that the image is copied and not resampled.
    const QTransform device = painter_.worldTransform().inverted() * painter_.deviceTransform();
    painter_.setWorldTransform(device.inverted());
    painter_.drawImage(corner_, image());
    painter_.restore();
    Prepared::of_this_thread().pixels = std::move(pixels_);
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

  // Columns [first, end) of a cell's picture whose corner is at `to`.
  void copy(const QRgb* from, QPoint to, int first, int end) {
    const QSize size = sheet_->device();
    const int left = std::max(first, -to.x()), right = std::min(end, width_ - to.x());
    const int top = std::max(0, -to.y()), bottom = std::min(size.height(), height_ - to.y());
    if (left >= right || top >= bottom) return;
    QRgb* under = line(to.y() + top) + to.x() + left;
    from += static_cast<std::ptrdiff_t>(top) * size.width() + left;
    for (int y = top; y < bottom; ++y) {
      copy_pixels(under, from, right - left);
      under += width_;
      from += size.width();
    }
  }

  // Over what is there; `picture` is premultiplied.
  void blend(const QImage& picture, QPoint corner) {
    for (int y = std::max(0, -corner.y()); y < std::min(picture.height(), height_ - corner.y()); ++y) {
      const auto* from = reinterpret_cast<const QRgb*>(picture.constScanLine(y));
      QRgb* const to = line(corner.y() + y) + corner.x();
      for (int x = std::max(0, -corner.x()); x < std::min(picture.width(), width_ - corner.x()); ++x) {
        const int rest = 255 - qAlpha(from[x]);
        if (rest == 255) continue;
        to[x] = qRgb(qRed(from[x]) + qRed(to[x]) * rest / 255, qGreen(from[x]) + qGreen(to[x]) * rest / 255,
                     qBlue(from[x]) + qBlue(to[x]) * rest / 255);
      }
    }
  }

  void fill(int left, int right, int top, int bottom, QRgb color) {
    left = std::max(left, 0), right = std::min(right, width_);
    for (int y = std::max(top, 0); y < std::min(bottom, height_) && left < right; ++y) {
      std::fill(line(y) + left, line(y) + right, color);
    }
  }

  void write(QPoint start, std::string_view text, QRgb ink) {
    double pen = start.x();
    for (const char c : text) {
      const Glyph* const glyph = glyphs_->find(c);
      if (glyph == nullptr) continue;
      draw(*glyph, QPoint(to_int(pen) + glyph->left, start.y() + glyph->top), ink);
      pen += glyph->advance;
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
  double scale_;  // device pixels per pixel of the painter
  QPoint corner_;
  QPointF origin_;
  int width_ = 0, height_ = 0;
  std::vector<QRgb> pixels_;
  std::shared_ptr<CellSheet> sheet_;
  std::shared_ptr<const QImage> frame_;  // of that cell size; null: not painted yet
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
void CellPainter::label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled) {
  impl_->label_on(baseline, text, cell, look, filled);
}
void CellPainter::badge(QPointF at, std::int64_t count, double px) {
  impl_->badge(at, count, px);
}
void CellPainter::just_now(const QRectF& cell, JustNow what) {
  impl_->just_now(cell, what);
}

void CellPainter::difference(QPointF at) {
  impl_->difference(at);
}

void CellPainter::finish() {
  if (impl_) impl_->finish();
  impl_.reset();
}

double label_width(const QFont& font, std::string_view text) {
  return QFontMetricsF(font).horizontalAdvance(QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size())));
}

}  // namespace kvscope::viz
