#include "viz/window/svg_device.h"

#include <fmt/format.h>

#include <map>
#include <new>

#include <QtCore/QBuffer>
#include <QtGui/QImage>
#include <QtGui/QPainter>

namespace kvscope::viz {
namespace {

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
    const std::string point = decimal(at.x) + " " + decimal(at.y);
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

class SvgDevice::Engine final : public VectorEngine {
 public:
  bool begin(QPaintDevice* device) override {
    clips_.clear();
    return VectorEngine::begin(device);
  }
  [[nodiscard]] Type type() const override { return SVG; }

  using VectorEngine::drawEllipse;
  using VectorEngine::drawLines;
  using VectorEngine::drawPolygon;
  using VectorEngine::drawRects;

  void drawRects(const QRectF* rects, int count) override {
    for (int i = 0; i < count; ++i) {
      const QRectF r = rects[i].normalized();
      put_element(fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", decimal(r.x()), decimal(r.y()),
                              decimal(r.width()), decimal(r.height()), fill() + stroke()));
    }
  }

  void drawLines(const QLineF* lines, int count) override {
    std::string data;
    for (int i = 0; i < count; ++i) {
      data += fmt::format("M{} {}L{} {}", decimal(lines[i].x1()), decimal(lines[i].y1()), decimal(lines[i].x2()),
                          decimal(lines[i].y2()));
    }
    if (count > 0) put_element(fmt::format("<path d=\"{}\" fill=\"none\"{}/>", data, stroke()));
  }

  void drawEllipse(const QRectF& r) override {
    put_element(fmt::format("<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"{}/>", decimal(r.center().x()),
                            decimal(r.center().y()), decimal(r.width() / 2), decimal(r.height() / 2),
                            fill() + stroke()));
  }

  void drawPath(const QPainterPath& path) override {
    const char* rule = path.fillRule() == Qt::OddEvenFill ? " fill-rule=\"evenodd\"" : "";
    put_element(fmt::format("<path d=\"{}\"{}{}/>", path_data(path), rule, fill() + stroke()));
  }

  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i > 0 ? " " : "") + decimal(points[i].x()) + "," + decimal(points[i].y());
    if (mode == PolylineMode) {
      put_element(fmt::format("<polyline points=\"{}\" fill=\"none\"{}/>", list, stroke()));
    } else {
      const char* rule = mode == OddEvenMode ? " fill-rule=\"evenodd\"" : "";
      put_element(fmt::format("<polygon points=\"{}\"{}{}/>", list, rule, fill() + stroke()));
    }
  }

  void drawImage(const QRectF& target, const QImage& image, const QRectF& source, Qt::ImageConversionFlags) override {
    const QImage part = image.copy(source.toAlignedRect());
    // Enlarged pixels are separate cells, so they are not smoothed.
    const bool enlarged = target.width() > part.width() || target.height() > part.height();
    const std::string faded = opacity() < 1 ? fmt::format(" opacity=\"{}\"", decimal(opacity())) : "";
    put_element(fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\"{}{} href=\"{}\"/>",
        decimal(target.x()), decimal(target.y()), decimal(target.width()), decimal(target.height()),
        enlarged ? " image-rendering=\"pixelated\"" : "", faded, embedded_png(part)));
  }

  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    const QFont font = item.font();
    std::string style = fmt::format(" font-family=\"{},{}\" font-size=\"{}\"", escaped(font.family()), fallback(font),
                                    font.pixelSize());
    if (font.weight() != QFont::Normal) style += fmt::format(" font-weight=\"{}\"", static_cast<int>(font.weight()));
    if (font.italic()) style += " font-style=\"italic\"";
    if (item.text().simplified() != item.text()) style += " xml:space=\"preserve\"";
    if (item.text().size() > 1) {
      style += fmt::format(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", decimal(item.width()));
    }
    put_element(fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>", decimal(at.x()), decimal(at.y()), style,
                            paint("fill", pen().color()), escaped(item.text())));
  }

 private:
  [[nodiscard]] std::string outline_text(const QPainterPath& path) const override {
    const std::string outline = path_data(path);
    return outline.empty() ? "M0 0Z" : outline;
  }
  // Each outline is defined once.
  [[nodiscard]] std::string clip_begin(const std::string& outline) override {
    const auto [known, fresh] = clips_.try_emplace(outline, clips_.size());
    std::string text;
    if (fresh) text += fmt::format("<clipPath id=\"c{}\"><path d=\"{}\"/></clipPath>\n", known->second, outline);
    return text + fmt::format("<g clip-path=\"url(#c{})\">\n", known->second);
  }
  [[nodiscard]] std::string clip_end() const override { return "</g>\n"; }

  // --- one element ---

  void put_element(const std::string& element) {
    if (transform().isIdentity()) return put(element + "\n");
    put(fmt::format("<g transform=\"matrix({} {} {} {} {} {})\">{}</g>\n", decimal(transform().m11()),
                    decimal(transform().m12()), decimal(transform().m21()), decimal(transform().m22()),
                    decimal(transform().dx()), decimal(transform().dy()), element));
  }

  // fill="#5b97d8" fill-opacity="0.5"
  [[nodiscard]] std::string paint(std::string_view what, const QColor& color) const {
    const double alpha = color.alphaF() * opacity();
    std::string text = fmt::format(" {}=\"{}\"", what, color_text(color));
    if (alpha < 1) text += fmt::format(" {}-opacity=\"{}\"", what, decimal(alpha));
    return text;
  }

  [[nodiscard]] std::string fill() {
    if (brush().style() == Qt::NoBrush) return " fill=\"none\"";
    if (brush().style() == Qt::SolidPattern) return paint("fill", brush().color());
    const std::string reference = fmt::format(" fill=\"url(#{})\"", define_brush());
    return opacity() < 1 ? reference + fmt::format(" fill-opacity=\"{}\"", decimal(opacity())) : reference;
  }

  [[nodiscard]] std::string stroke() const {
    if (pen().style() == Qt::NoPen) return "";
    std::string text = paint("stroke", pen().color());
    const double width = pen().widthF() > 0 ? pen().widthF() : 1;
    if (width != 1) text += fmt::format(" stroke-width=\"{}\"", decimal(width));
    if (pen().isCosmetic()) text += " vector-effect=\"non-scaling-stroke\"";
    if (pen().capStyle() != Qt::FlatCap) {
      text += fmt::format(" stroke-linecap=\"{}\"", pen().capStyle() == Qt::RoundCap ? "round" : "square");
    }
    if (pen().joinStyle() == Qt::RoundJoin) text += " stroke-linejoin=\"round\"";
    if (pen().joinStyle() == Qt::BevelJoin) text += " stroke-linejoin=\"bevel\"";
    if (pen().style() != Qt::SolidLine) {
      std::string dashes;
      for (const qreal dash : pen().dashPattern()) dashes += (dashes.empty() ? "" : " ") + decimal(dash * width);
      text += fmt::format(" stroke-dasharray=\"{}\"", dashes);
      if (pen().dashOffset() != 0)
        text += fmt::format(" stroke-dashoffset=\"{}\"", decimal(pen().dashOffset() * width));
    }
    return text;
  }

  // The id of a gradient, or of a Qt brush pattern, written as an image of one tile; each is defined once.
  std::string define_brush() {
    const std::string definition = brush().style() == Qt::LinearGradientPattern ? gradient() : pattern();
    const auto [known, fresh] = brushes_.try_emplace(definition, fmt::format("b{}", brushes_.size()));
    if (fresh) {
      const std::size_t name_end = definition.find(' ');
      written() +=
          fmt::format("{} id=\"{}\"{}\n", definition.substr(0, name_end), known->second, definition.substr(name_end));
    }
    return known->second;
  }

  [[nodiscard]] std::string gradient() const {
    const auto* gradient = static_cast<const QLinearGradient*>(brush().gradient());
    std::string stops;
    for (const auto& [at, color] : gradient->stops()) {
      stops += fmt::format("<stop offset=\"{}\" stop-color=\"{}\" stop-opacity=\"{}\"/>", decimal(at),
                           color_text(color), decimal(color.alphaF()));
    }
    return fmt::format(
        "<linearGradient gradientUnits=\"userSpaceOnUse\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\">{}</linearGradient>",
        decimal(gradient->start().x()), decimal(gradient->start().y()), decimal(gradient->finalStop().x()),
        decimal(gradient->finalStop().y()), stops);
  }

  [[nodiscard]] std::string pattern() const {
    QImage tile = brush().textureImage();
    if (tile.isNull()) {
      tile = QImage(8, 8, QImage::Format_ARGB32_Premultiplied);
      tile.fill(Qt::transparent);
      QPainter(&tile).fillRect(tile.rect(), brush());
    }
    return fmt::format(
        "<pattern patternUnits=\"userSpaceOnUse\" width=\"{0}\" height=\"{1}\"><image width=\"{0}\" height=\"{1}\" "
        "href=\"{2}\"/></pattern>",
        tile.width(), tile.height(), embedded_png(tile));
  }

  std::map<std::string, std::size_t> clips_;    // outline -> number
  std::map<std::string, std::string> brushes_;  // definition -> id
};

SvgDevice::SvgDevice(QSizeF size, double scale, QString title)
    : VectorDevice(size, std::make_unique<Engine>()), scale_(scale), title_(std::move(title)) {}

std::string SvgDevice::bytes() const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" "
      "height=\"{}\" viewBox=\"0 0 {} {}\">\n<title>{}</title>\n{}</svg>\n",
      decimal(size().width() * scale_), decimal(size().height() * scale_), decimal(size().width()),
      decimal(size().height()), escaped(title_), body());
}

}  // namespace kvscope::viz
