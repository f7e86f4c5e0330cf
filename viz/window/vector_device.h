// What the devices share that write a painting as text: svg_device.h and tikz_device.h. A device has a size, and its
// engine keeps the painter's pen, brush, transform and opacity, and the outline to which the painter clips.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <QtCore/QSizeF>
#include <QtGui/QBrush>
#include <QtGui/QPaintDevice>
#include <QtGui/QPaintEngine>
#include <QtGui/QPainterPath>
#include <QtGui/QPen>
#include <QtGui/QTransform>

namespace kvscope::viz {

// Thousandths of a pixel, without trailing zeros: "12", "12.5", "-0.125".
[[nodiscard]] std::string decimal(double value);

class VectorEngine : public QPaintEngine {
 public:
  // The elements that were painted. Precondition (caller): QPainter::end() was called.
  [[nodiscard]] const std::string& body() const { return body_; }

  bool begin(QPaintDevice* device) override;
  bool end() override;
  void updateState(const QPaintEngineState& now) override;
  // As those of floating-point numbers.
  void drawRects(const QRect* rects, int count) override { QPaintEngine::drawRects(rects, count); }
  void drawLines(const QLine* lines, int count) override { QPaintEngine::drawLines(lines, count); }
  void drawEllipse(const QRect& r) override { drawEllipse(QRectF(r)); }
  void drawPolygon(const QPoint* points, int count, PolygonDrawMode mode) override {
    QPaintEngine::drawPolygon(points, count, mode);
  }
  void drawPixmap(const QRectF& target, const QPixmap& pixmap, const QRectF& source) override;

 protected:
  // `omitted`: features that Qt has to replace, besides those that neither format has.
  explicit VectorEngine(PaintEngineFeatures omitted = {});
  using QPaintEngine::drawEllipse;
  using QPaintEngine::drawLines;
  using QPaintEngine::drawPolygon;
  using QPaintEngine::drawRects;

  [[nodiscard]] const QPen& pen() const { return pen_; }
  [[nodiscard]] const QBrush& brush() const { return brush_; }
  [[nodiscard]] const QTransform& transform() const { return transform_; }
  [[nodiscard]] double opacity() const { return opacity_; }

  // Writes an element into the group of its clip.
  void put(std::string_view element);
  // Begins the group of the present clip, one for consecutive elements with the same outline. Whether one began or
  // ended.
  bool enter_clip();
  [[nodiscard]] std::string& written() { return body_; }

  // An outline in device coordinates; that of an empty path shows nothing and is not empty text.
  [[nodiscard]] virtual std::string outline_text(const QPainterPath& path) const = 0;
  [[nodiscard]] virtual std::string clip_begin(const std::string& outline) = 0;
  [[nodiscard]] virtual std::string clip_end() const = 0;

 private:
  void set_clip(Qt::ClipOperation operation, const QPainterPath& path);
  bool leave_clip();

  std::string body_;
  std::optional<QPainterPath> clip_;  // none, or the visible region in device coordinates
  std::string open_clip_;             // outline of the currently open group
  QPen pen_;
  QBrush brush_;
  QTransform transform_;
  double opacity_ = 1;
};

class VectorDevice : public QPaintDevice {
 public:
  [[nodiscard]] QPaintEngine* paintEngine() const override { return engine_.get(); }

 protected:
  // `size` is in the painter's pixels, 96 to the inch.
  VectorDevice(QSizeF size, std::unique_ptr<VectorEngine> engine) : size_(size), engine_(std::move(engine)) {}
  [[nodiscard]] int metric(PaintDeviceMetric metric) const override;
  [[nodiscard]] QSizeF size() const { return size_; }
  [[nodiscard]] const VectorEngine& engine() const { return *engine_; }
  // Precondition (caller): QPainter::end() was called.
  [[nodiscard]] const std::string& body() const;

 private:
  QSizeF size_;
  std::unique_ptr<VectorEngine> engine_;
};

}  // namespace kvscope::viz
