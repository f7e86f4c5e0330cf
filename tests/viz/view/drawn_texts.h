// The texts that a painting writes, and where: a paint device that keeps texts and drops all else.
//
//   TextDevice device({1600, 1000});
//   QPainter painter(&device);
//   paint_board(painter, ...);
//   painter.end();
//   for (const DrawnText& text : device.texts()) ...
#pragma once

#include <vector>

#include <QtCore/QRectF>
#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtGui/QColor>
#include <QtGui/QFont>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintDevice>
#include <QtGui/QPaintEngine>
#include <QtGui/QPen>

namespace kvscope::viz {

struct DrawnText {
  QString text;
  QRectF rect;   // from the top of capitals to the baseline, as wide as the text [px]
  QRectF seen;   // the part of it that is not clipped [px]
  QColor color;  // of its letters
};

class TextDevice final : public QPaintDevice {
 public:
  explicit TextDevice(QSize size) : size_(size) {}
  [[nodiscard]] QPaintEngine* paintEngine() const override { return &engine_; }
  [[nodiscard]] const std::vector<DrawnText>& texts() const { return engine_.texts; }

 protected:
  [[nodiscard]] int metric(PaintDeviceMetric metric) const override {
    switch (metric) {
      case PdmWidth:
        return size_.width();
      case PdmHeight:
        return size_.height();
      case PdmDepth:
        return 32;
      case PdmDpiX:
      case PdmDpiY:
      case PdmPhysicalDpiX:
      case PdmPhysicalDpiY:
        return 96;
      case PdmDevicePixelRatio:
        return 1;
      case PdmDevicePixelRatioScaled:
        return static_cast<int>(devicePixelRatioFScale());
      default:
        return 0;
    }
  }

 private:
  class Engine final : public QPaintEngine {
   public:
    Engine() : QPaintEngine(AllFeatures) {}
    bool begin(QPaintDevice*) override { return true; }
    bool end() override { return true; }
    [[nodiscard]] Type type() const override { return User; }
    void updateState(const QPaintEngineState& now) override {
      if (now.state() & DirtyTransform) transform_ = now.transform();
      if (now.state() & DirtyPen) color_ = now.pen().color();
    }
    void drawRects(const QRectF*, int) override {}
    void drawRects(const QRect*, int) override {}
    void drawLines(const QLineF*, int) override {}
    void drawLines(const QLine*, int) override {}
    void drawEllipse(const QRectF&) override {}
    void drawEllipse(const QRect&) override {}
    void drawPath(const QPainterPath&) override {}
    void drawPolygon(const QPointF*, int, PolygonDrawMode) override {}
    void drawPolygon(const QPoint*, int, PolygonDrawMode) override {}
    void drawPixmap(const QRectF&, const QPixmap&, const QRectF&) override {}
    void drawImage(const QRectF&, const QImage&, const QRectF&, Qt::ImageConversionFlags) override {}
    void drawTextItem(const QPointF& at, const QTextItem& item) override {
      const double high = QFontMetricsF(item.font()).capHeight();
      const QRectF rect = transform_.mapRect(QRectF(at.x(), at.y() - high, item.width(), high));
      const QRectF clip = painter()->hasClipping() ? transform_.mapRect(painter()->clipBoundingRect()) : rect;
      texts.push_back({item.text(), rect, rect.intersected(clip), color_});
    }
    std::vector<DrawnText> texts;

   private:
    QTransform transform_;
    QColor color_;
  };

  QSize size_;
  mutable Engine engine_;
};

}  // namespace kvscope::viz
