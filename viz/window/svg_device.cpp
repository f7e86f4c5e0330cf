#include "viz/window/svg_device.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <optional>

#include <QtCore/QBuffer>
#include <QtCore/QtMath>
#include <QtGui/QImage>
#include <QtGui/QPaintEngine>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

// Thousandths of a pixel, without trailing zeros: "12", "12.5", "-0.125".
std::string number(double value) {
  const auto thousandths = std::llround(value * 1000);
  std::string text = fmt::format("{}{}", thousandths < 0 ? "-" : "", std::abs(thousandths) / 1000);
  if (const auto rest = std::abs(thousandths) % 1000; rest != 0) {
    std::string digits = fmt::format("{:03}", rest);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text;
}

// Omits characters that XML 1.0 does not allow; the name of a scenario may contain any character.
std::string escaped(const QString& text) {
  QString out;
  for (const QChar c : text) {
    if (c == QLatin1Char('&')) {
      out += QLatin1String("&amp;");
    } else if (c == QLatin1Char('<')) {
      out += QLatin1String("&lt;");
    } else if (c == QLatin1Char('>')) {
      out += QLatin1String("&gt;");
    } else if (c == QLatin1Char('"')) {
      out += QLatin1String("&quot;");
    } else if ((c.unicode() >= 0x20 || c == QLatin1Char('\t')) && c.unicode() < 0xfffe) {
      out += c;
    }
  }
  return out.toStdString();
}

std::string color_text(const QColor& color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red(), color.green(), color.blue());
}

std::string path_data(const QPainterPath& path) {
  std::string data;
  QPointF start;
  for (int i = 0; i < path.elementCount(); ++i) {
    const QPainterPath::Element at = path.elementAt(i);
    const std::string point = number(at.x) + " " + number(at.y);
    if (at.isMoveTo()) start = at;
    const bool last = i + 1 == path.elementCount() || path.elementAt(i + 1).isMoveTo();
    switch (at.type) {
      case QPainterPath::MoveToElement:
        data += "M" + point;
        break;
      case QPainterPath::LineToElement:
        data += last && QPointF(at) == start ? std::string("Z") : "L" + point;
        break;
      case QPainterPath::CurveToElement:
        data += "C" + point;
        break;
      case QPainterPath::CurveToDataElement:
        data += " " + point;
        if (last && QPointF(at) == start) data += "Z";
        break;
    }
  }
  return data;
}

std::string embedded_png(const QImage& image) {
  QByteArray png;
  QBuffer buffer(&png);
  buffer.open(QIODevice::WriteOnly);
  if (!image.save(&buffer, "PNG")) throw std::bad_alloc();
  return "data:image/png;base64," + png.toBase64().toStdString();
}

// Replacement fonts if the font is not installed.
const char* fallback(const QFont& font) {
  return font.family().contains(QLatin1String("Mono")) ? "ui-monospace,Menlo,Consolas,monospace"
                                                       : "system-ui,Helvetica,Arial,sans-serif";
}

}  // namespace

class SvgDevice::Engine final : public QPaintEngine {
 public:
  Engine()
      : QPaintEngine(PaintEngineFeatures(AllFeatures &
                                         ~(RadialGradientFill | ConicalGradientFill | PerspectiveTransform |
                                           ObjectBoundingModeGradients | PorterDuff | BlendModes | RasterOpModes))) {}

  [[nodiscard]] const std::string& body() const { return body_; }

  bool begin(QPaintDevice*) override {
    body_.clear();
    clips_.clear();
    clip_.reset();
    return true;
  }
  bool end() override {
    leave_clip();
    return true;
  }
  [[nodiscard]] Type type() const override { return SVG; }

  void updateState(const QPaintEngineState& now) override {
    const DirtyFlags dirty = now.state();
    if (dirty & DirtyPen) pen_ = now.pen();
    if (dirty & DirtyBrush) brush_ = now.brush();
    if (dirty & DirtyTransform) transform_ = now.transform();
    if (dirty & DirtyOpacity) opacity_ = now.opacity();
    if (dirty & DirtyClipEnabled && !now.isClipEnabled()) clip_.reset();
    if (dirty & DirtyClipRegion) {
      QPainterPath path;
      path.addRegion(now.clipRegion());
      set_clip(now.clipOperation(), now.transform().map(path));
    }
    if (dirty & DirtyClipPath) set_clip(now.clipOperation(), now.transform().map(now.clipPath()));
  }

  void drawRects(const QRectF* rects, int count) override {
    for (int i = 0; i < count; ++i) {
      const QRectF r = rects[i].normalized();
      put(fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", number(r.x()), number(r.y()),
                      number(r.width()), number(r.height()), fill() + stroke()));
    }
  }
  void drawRects(const QRect* rects, int count) override { QPaintEngine::drawRects(rects, count); }

  void drawLines(const QLineF* lines, int count) override {
    std::string data;
    for (int i = 0; i < count; ++i) {
      data += fmt::format("M{} {}L{} {}", number(lines[i].x1()), number(lines[i].y1()), number(lines[i].x2()),
                          number(lines[i].y2()));
    }
    if (count > 0) put(fmt::format("<path d=\"{}\" fill=\"none\"{}/>", data, stroke()));
  }
  void drawLines(const QLine* lines, int count) override { QPaintEngine::drawLines(lines, count); }

  void drawEllipse(const QRectF& r) override {
    put(fmt::format("<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"{}/>", number(r.center().x()),
                    number(r.center().y()), number(r.width() / 2), number(r.height() / 2), fill() + stroke()));
  }
  void drawEllipse(const QRect& r) override { drawEllipse(QRectF(r)); }

  void drawPath(const QPainterPath& path) override {
    const char* rule = path.fillRule() == Qt::OddEvenFill ? " fill-rule=\"evenodd\"" : "";
    put(fmt::format("<path d=\"{}\"{}{}/>", path_data(path), rule, fill() + stroke()));
  }

  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i > 0 ? " " : "") + number(points[i].x()) + "," + number(points[i].y());
    if (mode == PolylineMode) {
      put(fmt::format("<polyline points=\"{}\" fill=\"none\"{}/>", list, stroke()));
    } else {
      const char* rule = mode == OddEvenMode ? " fill-rule=\"evenodd\"" : "";
      put(fmt::format("<polygon points=\"{}\"{}{}/>", list, rule, fill() + stroke()));
    }
  }
  void drawPolygon(const QPoint* points, int count, PolygonDrawMode mode) override {
    QPaintEngine::drawPolygon(points, count, mode);
  }

  void drawImage(const QRectF& target, const QImage& image, const QRectF& source, Qt::ImageConversionFlags) override {
    const QImage part = image.copy(source.toAlignedRect());
    // Enlarged pixels are separate cells, so they are not smoothed.
    const bool enlarged = target.width() > part.width() || target.height() > part.height();
    const std::string opacity = opacity_ < 1 ? fmt::format(" opacity=\"{}\"", number(opacity_)) : "";
    put(fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\"{}{} href=\"{}\"/>",
        number(target.x()), number(target.y()), number(target.width()), number(target.height()),
        enlarged ? " image-rendering=\"pixelated\"" : "", opacity, embedded_png(part)));
  }
  void drawPixmap(const QRectF& target, const QPixmap& pixmap, const QRectF& source) override {
    drawImage(target, pixmap.toImage(), source, Qt::AutoColor);
  }

  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    const QFont font = item.font();
    std::string style = fmt::format(" font-family=\"{},{}\" font-size=\"{}\"", escaped(font.family()), fallback(font),
                                    font.pixelSize());
    if (font.weight() != QFont::Normal) style += fmt::format(" font-weight=\"{}\"", static_cast<int>(font.weight()));
    if (font.italic()) style += " font-style=\"italic\"";
    if (item.text().simplified() != item.text()) style += " xml:space=\"preserve\"";
    if (item.text().size() > 1) {
      style += fmt::format(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", number(item.width()));
    }
    put(fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>", number(at.x()), number(at.y()), style,
                    paint("fill", pen_.color()), escaped(item.text())));
  }

 private:
  // --- clip: no clip, or the visible region in device coordinates ---

  void set_clip(Qt::ClipOperation operation, const QPainterPath& path) {
    if (operation == Qt::NoClip) {
      clip_.reset();
    } else if (operation == Qt::ReplaceClip || !clip_) {
      clip_ = path;
    } else {
      clip_ = intersection(*clip_, path);
    }
  }

  // Rectangles are frequent and computed exactly; other shapes use Qt's path operations.
  static QPainterPath intersection(const QPainterPath& a, const QPainterPath& b) {
    const QRectF ra = a.boundingRect(), rb = b.boundingRect();
    if (!is_rectangle(a) || !is_rectangle(b)) return a.intersected(b);
    QPainterPath both;
    both.addRect(ra.intersected(rb));
    return both;
  }
  static bool is_rectangle(const QPainterPath& path) {
    if (path.elementCount() != 5) return path.isEmpty();
    const QRectF bounds = path.boundingRect();
    for (int i = 0; i < path.elementCount(); ++i) {
      const QPainterPath::Element at = path.elementAt(i);
      if (i > 0 && at.type != QPainterPath::LineToElement) return false;
      if ((at.x != bounds.left() && at.x != bounds.right()) || (at.y != bounds.top() && at.y != bounds.bottom())) {
        return false;
      }
    }
    return true;
  }

  void leave_clip() {
    if (!open_clip_.empty()) body_ += "</g>\n";
    open_clip_.clear();
  }

  // One group for consecutive elements with the same clip; each outline is defined once.
  void enter_clip() {
    const std::string wanted = clip_ ? path_data(*clip_) : "";
    const std::string outline = clip_ && wanted.empty() ? "M0 0Z" : wanted;  // an empty clip shows nothing
    if (outline == open_clip_) return;
    leave_clip();
    if (outline.empty()) return;
    const auto [known, fresh] = clips_.try_emplace(outline, clips_.size());
    if (fresh) body_ += fmt::format("<clipPath id=\"c{}\"><path d=\"{}\"/></clipPath>\n", known->second, outline);
    body_ += fmt::format("<g clip-path=\"url(#c{})\">\n", known->second);
    open_clip_ = outline;
  }

  // --- one element ---

  void put(const std::string& element) {
    enter_clip();
    if (transform_.isIdentity()) {
      body_ += element + "\n";
      return;
    }
    body_ += fmt::format("<g transform=\"matrix({} {} {} {} {} {})\">{}</g>\n", number(transform_.m11()),
                         number(transform_.m12()), number(transform_.m21()), number(transform_.m22()),
                         number(transform_.dx()), number(transform_.dy()), element);
  }

  // fill="#5b97d8" fill-opacity="0.5"
  [[nodiscard]] std::string paint(std::string_view what, const QColor& color) const {
    const double alpha = color.alphaF() * opacity_;
    std::string text = fmt::format(" {}=\"{}\"", what, color_text(color));
    if (alpha < 1) text += fmt::format(" {}-opacity=\"{}\"", what, number(alpha));
    return text;
  }

  [[nodiscard]] std::string fill() {
    if (brush_.style() == Qt::NoBrush) return " fill=\"none\"";
    if (brush_.style() == Qt::SolidPattern) return paint("fill", brush_.color());
    const std::string reference = fmt::format(" fill=\"url(#{})\"", define_brush());
    return opacity_ < 1 ? reference + fmt::format(" fill-opacity=\"{}\"", number(opacity_)) : reference;
  }

  [[nodiscard]] std::string stroke() const {
    if (pen_.style() == Qt::NoPen) return "";
    std::string text = paint("stroke", pen_.color());
    const double width = pen_.widthF() > 0 ? pen_.widthF() : 1;
    if (width != 1) text += fmt::format(" stroke-width=\"{}\"", number(width));
    if (pen_.isCosmetic()) text += " vector-effect=\"non-scaling-stroke\"";
    if (pen_.capStyle() != Qt::FlatCap) {
      text += fmt::format(" stroke-linecap=\"{}\"", pen_.capStyle() == Qt::RoundCap ? "round" : "square");
    }
    if (pen_.joinStyle() == Qt::RoundJoin) text += " stroke-linejoin=\"round\"";
    if (pen_.joinStyle() == Qt::BevelJoin) text += " stroke-linejoin=\"bevel\"";
    if (pen_.style() != Qt::SolidLine) {
      std::string dashes;
      for (const qreal dash : pen_.dashPattern()) dashes += (dashes.empty() ? "" : " ") + number(dash * width);
      text += fmt::format(" stroke-dasharray=\"{}\"", dashes);
      if (pen_.dashOffset() != 0) text += fmt::format(" stroke-dashoffset=\"{}\"", number(pen_.dashOffset() * width));
    }
    return text;
  }

  // The id of a gradient, or of a Qt brush pattern, written as an image of one tile; each is defined once.
  std::string define_brush() {
    const std::string definition = brush_.style() == Qt::LinearGradientPattern ? gradient() : pattern();
    const auto [known, fresh] = brushes_.try_emplace(definition, fmt::format("b{}", brushes_.size()));
    if (fresh) {
      const std::size_t name_end = definition.find(' ');
      body_ +=
          fmt::format("{} id=\"{}\"{}\n", definition.substr(0, name_end), known->second, definition.substr(name_end));
    }
    return known->second;
  }

  [[nodiscard]] std::string gradient() const {
    const auto* gradient = static_cast<const QLinearGradient*>(brush_.gradient());
    std::string stops;
    for (const auto& [at, color] : gradient->stops()) {
      stops += fmt::format("<stop offset=\"{}\" stop-color=\"{}\" stop-opacity=\"{}\"/>", number(at), color_text(color),
                           number(color.alphaF()));
    }
    return fmt::format(
        "<linearGradient gradientUnits=\"userSpaceOnUse\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\">{}</linearGradient>",
        number(gradient->start().x()), number(gradient->start().y()), number(gradient->finalStop().x()),
        number(gradient->finalStop().y()), stops);
  }

  [[nodiscard]] std::string pattern() const {
    QImage tile = brush_.textureImage();
    if (tile.isNull()) {
      tile = QImage(8, 8, QImage::Format_ARGB32_Premultiplied);
      tile.fill(Qt::transparent);
      QPainter(&tile).fillRect(tile.rect(), brush_);
    }
    return fmt::format(
        "<pattern patternUnits=\"userSpaceOnUse\" width=\"{0}\" height=\"{1}\"><image width=\"{0}\" height=\"{1}\" "
        "href=\"{2}\"/></pattern>",
        tile.width(), tile.height(), embedded_png(tile));
  }

  std::string body_;
  std::map<std::string, std::size_t> clips_;    // outline -> number
  std::map<std::string, std::string> brushes_;  // definition -> id
  std::optional<QPainterPath> clip_;
  std::string open_clip_;  // outline of the currently open group
  QPen pen_;
  QBrush brush_;
  QTransform transform_;
  double opacity_ = 1;
};

SvgDevice::SvgDevice(QSizeF size, double scale, QString title)
    : size_(size), scale_(scale), title_(std::move(title)), engine_(std::make_unique<Engine>()) {}
SvgDevice::~SvgDevice() = default;

QPaintEngine* SvgDevice::paintEngine() const {
  return engine_.get();
}

std::string SvgDevice::bytes() const {
  KVSCOPE_ASSERT(!engine_->isActive());
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" "
      "height=\"{}\" viewBox=\"0 0 {} {}\">\n<title>{}</title>\n{}</svg>\n",
      number(size_.width() * scale_), number(size_.height() * scale_), number(size_.width()), number(size_.height()),
      escaped(title_), engine_->body());
}

int SvgDevice::metric(PaintDeviceMetric metric) const {
  constexpr int kDotsPerInch = 96;
  switch (metric) {
    case PdmWidth:
      return qCeil(size_.width());
    case PdmHeight:
      return qCeil(size_.height());
    case PdmWidthMM:
      return qCeil(size_.width() * 25.4 / kDotsPerInch);
    case PdmHeightMM:
      return qCeil(size_.height() * 25.4 / kDotsPerInch);
    case PdmNumColors:
      return std::numeric_limits<int>::max();
    case PdmDepth:
      return 24;
    case PdmDpiX:
    case PdmDpiY:
    case PdmPhysicalDpiX:
    case PdmPhysicalDpiY:
      return kDotsPerInch;
    case PdmDevicePixelRatio:
      return 1;
    case PdmDevicePixelRatioScaled:
      return static_cast<int>(devicePixelRatioFScale());
  }
  return 0;
}

}  // namespace kvscope::viz
