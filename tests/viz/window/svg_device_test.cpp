#include "viz/window/svg_device.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include <QtCore/QXmlStreamReader>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtSvg/QSvgRenderer>

#include "viz/view/cell_painter.h"
#include "viz/view/theme.h"

namespace kvscope::viz::svg_device_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

template <class Paint>
std::string svg_of(Paint&& paint, double scale = 1, const QString& title = QStringLiteral("title")) {
  SvgDevice device({200, 150}, scale, title);
  QPainter painter(&device);
  paint(painter);
  painter.end();
  return device.bytes();
}

// An element with its attributes and the outlines of the clips that contain it.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;
  std::vector<std::string> clips;
};

// Reads the document with Qt's XML reader; fails the test if it is not well-formed, refers to another file or uses an
// id that is not defined.
std::vector<Element> elements_of(const std::string& svg) {
  QXmlStreamReader reader(QByteArray::fromStdString(svg));
  std::vector<Element> elements;
  std::vector<std::vector<std::string>> clips{{}};
  std::map<std::string, std::string> outlines;
  std::set<std::string> ids, used;
  std::string clip_being_defined;
  while (!reader.atEnd()) {
    const auto token = reader.readNext();
    if (token == QXmlStreamReader::EndElement) {
      clips.pop_back();
      if (reader.name() == QLatin1String("clipPath")) clip_being_defined.clear();
    } else if (token == QXmlStreamReader::Characters && !elements.empty()) {
      elements.back().text += reader.text().toString().toStdString();
    }
    if (token != QXmlStreamReader::StartElement) continue;
    Element element{reader.name().toString().toStdString(), {}, {}, clips.back()};
    for (const QXmlStreamAttribute& a : reader.attributes()) {
      element.attributes[a.qualifiedName().toString().toStdString()] = a.value().toString().toStdString();
    }
    if (element.attributes.contains("id")) {
      EXPECT_TRUE(ids.insert(element.attributes["id"]).second) << "defined twice: " << element.attributes["id"];
    }
    for (const auto& [name, value] : element.attributes) {
      std::smatch match;
      if (std::regex_match(value, match, std::regex(R"(url\(#(\w+)\))"))) used.insert(match[1]);
      EXPECT_TRUE(name == "href" ? value.starts_with("data:") : value.find("://") == std::string::npos) << value;
    }
    if (element.name == "clipPath") clip_being_defined = element.attributes["id"];
    if (element.name == "path" && !clip_being_defined.empty()) outlines[clip_being_defined] = element.attributes["d"];
    std::vector<std::string> inner = clips.back();
    if (element.attributes.contains("clip-path")) {
      const std::string& reference = element.attributes["clip-path"];
      inner.push_back(outlines.at(reference.substr(5, reference.size() - 6)));
    }
    clips.push_back(std::move(inner));
    if (clip_being_defined.empty() && element.name != "g") elements.push_back(std::move(element));
  }
  EXPECT_FALSE(reader.hasError()) << reader.errorString().toStdString();
  for (const std::string& id : used) EXPECT_TRUE(ids.contains(id)) << id;
  return elements;
}

std::vector<Element> named(const std::vector<Element>& elements, std::string_view name) {
  std::vector<Element> found;
  for (const Element& element : elements) {
    if (element.name == name) found.push_back(element);
  }
  return found;
}

QImage blank() {
  QImage image(200, 150, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::white);
  return image;
}

// Everything except clips (not supported by Qt's SVG reader) and text, painted directly and via the file.
void paint_shapes(QPainter& painter) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(QRectF(10.5, 10.25, 40, 30), QColor(200, 40, 40));
  painter.setPen(QPen(QColor(20, 20, 200), 3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(QColor(40, 200, 40, 128));
  painter.drawRoundedRect(QRectF(60, 10, 50, 30), 6, 6);
  painter.drawEllipse(QRectF(120, 10, 40, 30));
  painter.setPen(QPen(QColor(0, 0, 0), 2, Qt::DashLine, Qt::FlatCap));
  painter.drawLine(QPointF(10, 60), QPointF(190, 66));
  painter.setPen(Qt::NoPen);
  painter.setBrush(QColor(120, 60, 200));
  painter.drawPolygon(QPolygonF({{10, 80}, {60, 80}, {35, 110}}));
  QLinearGradient gradient(70, 0, 130, 0);
  gradient.setColorAt(0, QColor(255, 200, 0));
  gradient.setColorAt(1, QColor(0, 100, 255));
  painter.setBrush(gradient);
  painter.drawRect(QRectF(70, 80, 60, 30));
  painter.save();
  painter.translate(150, 80);
  painter.rotate(20);
  painter.scale(1.5, 1.5);
  painter.setOpacity(0.5);
  painter.fillRect(QRectF(0, 0, 20, 20), Qt::black);
  painter.restore();
  painter.setPen(QPen(QColor(200, 0, 0), 1.5));
  painter.setBrush(Qt::NoBrush);
  QPainterPath path(QPointF(10, 130));
  path.cubicTo(60, 110, 80, 160, 190, 125);
  painter.drawPath(path);
}

TEST(SvgDevice, AnotherReaderShowsWhatWasPainted) {
  QImage direct = blank(), read = blank();
  QPainter direct_painter(&direct), read_painter(&read);
  paint_shapes(direct_painter);
  QSvgRenderer renderer(QByteArray::fromStdString(svg_of(paint_shapes)));
  ASSERT_TRUE(renderer.isValid());
  EXPECT_EQ(renderer.viewBoxF(), QRectF(0, 0, 200, 150));
  renderer.render(&read_painter, QRectF(0, 0, 200, 150));
  std::int64_t differing = 0;
  for (int y = 0; y < 150; ++y) {
    for (int x = 0; x < 200; ++x) {
      const QRgb a = direct.pixel(x, y), b = read.pixel(x, y);
      const int most =
          std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
      differing += most > 24 ? 1 : 0;
    }
  }
  EXPECT_LE(differing, 30);  // of 30,000: pixels at edges that are rounded differently
}

// QSvgGenerator, which this device replaces, ignores clipping.
TEST(SvgDevice, EveryElementStandsInItsClipAndCostsOneDefinition) {
  const std::vector<Element> elements = elements_of(svg_of([](QPainter& painter) {
    painter.fillRect(QRectF(0, 0, 1, 1), Qt::red);
    painter.save();
    painter.setClipRect(QRectF(10, 10, 50, 50), Qt::IntersectClip);
    painter.fillRect(QRectF(0, 0, 2, 1), Qt::red);
    painter.save();
    painter.translate(5, 5);
    painter.setClipRect(QRectF(25.5, 0, 50, 20), Qt::IntersectClip);
    painter.fillRect(QRectF(0, 0, 3, 1), Qt::red);
    painter.restore();
    painter.fillRect(QRectF(0, 0, 4, 1), Qt::red);
    painter.setClipRect(QRectF(100, 100, 5, 5), Qt::IntersectClip);
    painter.fillRect(QRectF(0, 0, 5, 1), Qt::red);
    painter.restore();
    painter.fillRect(QRectF(0, 0, 6, 1), Qt::red);
    painter.setClipRect(QRectF(10, 10, 50, 50));
    painter.setClipping(false);
    painter.fillRect(QRectF(0, 0, 7, 1), Qt::red);
  }));
  std::map<std::string, std::vector<std::string>> clips;  // by the width that names the rectangle
  for (const Element& element : named(elements, "rect")) clips[element.attributes.at("width")] = element.clips;
  EXPECT_THAT(clips["1"], ElementsAre());
  EXPECT_THAT(clips["2"], ElementsAre("M10 10L60 10L60 60L10 60Z"));
  EXPECT_THAT(clips["3"], ElementsAre("M30.5 10L60 10L60 25L30.5 25Z"));
  EXPECT_THAT(clips["4"], ElementsAre("M10 10L60 10L60 60L10 60Z"));
  ASSERT_EQ(clips["5"].size(), 1u);
  EXPECT_THAT(clips["5"][0], Not(HasSubstr("60"))) << "two rectangles that do not meet leave nothing";
  EXPECT_THAT(clips["6"], ElementsAre());
  EXPECT_THAT(clips["7"], ElementsAre());
}

TEST(SvgDevice, TextStaysTextWithItsFontItsWidthAndAStandIn) {
  const std::vector<Element> texts =
      named(elements_of(svg_of([](QPainter& painter) {
              painter.setFont(ui_font(13, QFont::DemiBold));
              painter.setPen(QColor(1, 2, 3));
              painter.drawText(QPointF(20, 30.5), QStringLiteral("Block <pool> & \"more\""));
              painter.setFont(mono_font(11));
              painter.drawText(QPointF(20, 60), QStringLiteral("7"));
            })),
            "text");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].text.substr(0, 21), "Block <pool> & \"more\"");
  EXPECT_EQ(texts[0].attributes.at("font-family"), "Inter,system-ui,Helvetica,Arial,sans-serif");
  EXPECT_EQ(texts[0].attributes.at("font-size"), "13");
  EXPECT_EQ(texts[0].attributes.at("font-weight"), "600");
  EXPECT_EQ(texts[0].attributes.at("fill"), "#010203");
  EXPECT_EQ(texts[0].attributes.at("y"), "30.5");
  const double width =
      QFontMetricsF(ui_font(13, QFont::DemiBold)).horizontalAdvance(QStringLiteral("Block <pool> & \"more\""));
  EXPECT_NEAR(std::stod(texts[0].attributes.at("textLength")), width, 0.1);
  EXPECT_EQ(texts[1].attributes.at("font-family"), "JetBrains Mono,ui-monospace,Menlo,Consolas,monospace");
  EXPECT_FALSE(texts[1].attributes.contains("textLength"));
}

// Italic letters, blanks that XML would join, and an opacity of the painter over one of the color.
TEST(SvgDevice, TextKeepsItsSlantItsBlanksAndItsOpacity) {
  const std::vector<Element> texts = named(elements_of(svg_of([](QPainter& painter) {
                                             QFont font = ui_font(13);
                                             font.setItalic(true);
                                             painter.setFont(font);
                                             painter.setPen(QColor(1, 2, 3, 51));
                                             painter.setOpacity(0.5);
                                             painter.drawText(QPointF(20, 30), QStringLiteral("a  b"));
                                             painter.setFont(ui_font(13));
                                             painter.drawText(QPointF(20, 60), QStringLiteral("a b"));
                                           })),
                                           "text");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].attributes.at("font-style"), "italic");
  EXPECT_EQ(texts[0].attributes.at("xml:space"), "preserve");
  EXPECT_EQ(texts[0].attributes.at("fill-opacity"), "0.1");
  EXPECT_FALSE(texts[1].attributes.contains("font-style"));
  EXPECT_FALSE(texts[1].attributes.contains("xml:space"));
}

// A pen of width 0 is one dot wide at any scale.
TEST(SvgDevice, PensKeepTheirWidthTheirCornersAndTheirDashes) {
  const std::vector<Element> lines =
      named(elements_of(svg_of([](QPainter& painter) {
              QPen pen(QColor(255, 0, 0), 0, Qt::SolidLine, Qt::SquareCap, Qt::BevelJoin);
              painter.setPen(pen);
              painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
              pen.setWidthF(2.5);
              pen.setCosmetic(true);
              pen.setDashPattern({4, 2});
              pen.setDashOffset(1);
              pen.setCapStyle(Qt::FlatCap);
              pen.setJoinStyle(Qt::MiterJoin);
              painter.setPen(pen);
              painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
              pen.setDashOffset(0);
              painter.setPen(pen);
              painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
            })),
            "path");
  ASSERT_EQ(lines.size(), 3u);
  using Attributes = std::map<std::string, std::string>;
  EXPECT_EQ(lines[0].attributes, (Attributes{{"d", "M1 2L3 4.5"},
                                             {"fill", "none"},
                                             {"stroke", "#ff0000"},
                                             {"stroke-linecap", "square"},
                                             {"stroke-linejoin", "bevel"},
                                             {"vector-effect", "non-scaling-stroke"}}));
  Attributes dashed{{"d", "M1 2L3 4.5"},
                    {"fill", "none"},
                    {"stroke", "#ff0000"},
                    {"stroke-width", "2.5"},
                    {"stroke-dasharray", "10 5"},
                    {"stroke-dashoffset", "2.5"},
                    {"vector-effect", "non-scaling-stroke"}};
  EXPECT_EQ(lines[1].attributes, dashed);
  dashed.erase("stroke-dashoffset");
  EXPECT_EQ(lines[2].attributes, dashed);
}

TEST(SvgDevice, PathsAndPolygonsKeepTheirFillRule) {
  const std::vector<Element> all = elements_of(svg_of([](QPainter& painter) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(QColor(0, 0, 255));
    QPainterPath path(QPointF(10, 10));
    path.lineTo(20, 10);
    path.cubicTo(20, 20, 15, 20, 10, 20);
    path.moveTo(30, 30);
    path.lineTo(40, 30);
    path.lineTo(40, 40);
    path.lineTo(30, 30);
    path.moveTo(50, 50);
    path.cubicTo(60, 50, 60, 60, 50, 50);
    painter.drawPath(path);
    path.setFillRule(Qt::WindingFill);
    painter.drawPath(path);
    const QPolygonF triangle({{10, 80}, {60, 80}, {35, 110}});
    painter.drawPolygon(triangle);
    painter.drawPolygon(triangle, Qt::WindingFill);
    painter.setPen(QColor(0, 0, 0));
    painter.drawPolyline(triangle);
  }));
  const std::vector<Element> paths = named(all, "path"), polygons = named(all, "polygon");
  ASSERT_EQ(paths.size(), 2u);
  // Three parts: open, closed by a line, closed by a curve.
  EXPECT_EQ(paths[0].attributes.at("d"), "M10 10L20 10C20 20 15 20 10 20M30 30L40 30L40 40ZM50 50C60 50 60 60 50 50Z");
  EXPECT_EQ(paths[0].attributes.at("fill-rule"), "evenodd");
  EXPECT_EQ(paths[1].attributes.at("d"), paths[0].attributes.at("d"));
  EXPECT_FALSE(paths[1].attributes.contains("fill-rule"));
  ASSERT_EQ(polygons.size(), 2u);
  EXPECT_EQ(polygons[0].attributes.at("points"), "10,80 60,80 35,110");
  EXPECT_EQ(polygons[0].attributes.at("fill-rule"), "evenodd");
  EXPECT_FALSE(polygons[1].attributes.contains("fill-rule"));
  const std::vector<Element> open = named(all, "polyline");
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].attributes.at("fill"), "none");
}

// Outlines other than upright rectangles meet by Qt's path operations: their corners are compared, not their text.
TEST(SvgDevice, ClipsOfOtherShapesThanRectanglesMeet) {
  const auto clip_of = [](const auto& set) {
    const std::vector<Element> rects = named(elements_of(svg_of([&](QPainter& painter) {
                                               set(painter);
                                               painter.fillRect(QRectF(0, 0, 200, 150), Qt::red);
                                             })),
                                             "rect");
    return rects.size() == 1 && rects[0].clips.size() == 1 ? rects[0].clips[0] : std::string("not one clip");
  };
  QPainterPath triangle(QPointF(0, 0));
  triangle.lineTo(100, 0);
  triangle.lineTo(0, 100);
  triangle.closeSubpath();
  QPainterPath kite(QPointF(50, 0));  // five elements, as a rectangle
  for (const QPointF at : {QPointF(100, 50), QPointF(50, 100), QPointF(0, 50), QPointF(50, 0)}) kite.lineTo(at);
  QPainterPath rounded(QPointF(0, 0));  // five elements too, but with a curve
  rounded.cubicTo(100, 0, 100, 0, 100, 100);
  rounded.lineTo(0, 0);
  const QRectF square(0, 0, 40, 40);
  EXPECT_EQ(clip_of([&](QPainter& p) { p.setClipPath(triangle); }), "M0 0L100 0L0 100Z");
  EXPECT_EQ(clip_of([&](QPainter& p) {
              p.setClipPath(triangle);
              p.setClipRect(square);  // replaces
            }),
            "M0 0L40 0L40 40L0 40Z");
  for (const QPainterPath& shape : {triangle, kite, rounded}) {
    const std::string both = clip_of([&](QPainter& p) {
      p.setClipRect(QRectF(10, 0, 60, 60));
      p.setClipPath(shape, Qt::IntersectClip);
    });
    const std::string other = clip_of([&](QPainter& p) {
      p.setClipPath(shape);
      p.setClipRect(QRectF(10, 0, 60, 60), Qt::IntersectClip);
    });
    EXPECT_THAT(both, HasSubstr("70")) << "the rectangle bounds it";
    EXPECT_THAT(both, Not(HasSubstr("100"))) << "the shape alone";
    EXPECT_THAT(other, HasSubstr("70"));
    EXPECT_NE(both, "M10 0L70 0L70 60L10 60Z") << "the rectangle alone";
  }
}

TEST(SvgDevice, GradientsAndImagesKeepTheOpacityOfThePainter) {
  QImage image(4, 4, QImage::Format_RGB32);
  image.fill(Qt::blue);
  const std::vector<Element> all = elements_of(svg_of([&](QPainter& painter) {
    QLinearGradient gradient(70, 0, 130, 0);
    gradient.setColorAt(0, QColor(255, 200, 0, 51));
    gradient.setColorAt(1, QColor(0, 100, 255));
    painter.setPen(Qt::NoPen);
    painter.setBrush(gradient);
    painter.drawRect(QRectF(70, 80, 60, 30));
    painter.setOpacity(0.25);
    painter.drawRect(QRectF(70, 80, 60, 30));
    painter.drawImage(QRectF(0, 0, 4, 8), image);  // enlarged in one direction only
    painter.setBrush(QBrush(image));
    painter.drawRect(QRectF(10, 10, 8, 8));
  }));
  const std::vector<Element> rects = named(all, "rect"), images = named(all, "image"), stops = named(all, "stop");
  ASSERT_EQ(rects.size(), 3u);
  EXPECT_EQ(rects[0].attributes.at("fill"), "url(#b0)");
  EXPECT_FALSE(rects[0].attributes.contains("fill-opacity"));
  EXPECT_EQ(rects[1].attributes.at("fill"), "url(#b0)");
  EXPECT_EQ(rects[1].attributes.at("fill-opacity"), "0.25");
  EXPECT_EQ(rects[2].attributes.at("fill"), "url(#b1)");
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_EQ(stops[0].attributes.at("stop-opacity"), "0.2");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].attributes.at("opacity"), "0.25");
  EXPECT_EQ(images[0].attributes.at("image-rendering"), "pixelated");
  EXPECT_EQ(images[1].attributes.at("width"), "4");  // the texture of the brush, not a pattern of 8 x 8
}

// 200 x 150 at 96 dots per inch.
TEST(SvgDevice, TellsAPainterItsSizeInDotsAndMillimeters) {
  const SvgDevice device({200, 150}, 1.5, QString());
  EXPECT_EQ(device.width(), 200);
  EXPECT_EQ(device.height(), 150);
  EXPECT_EQ(device.widthMM(), 53);   // 52.9
  EXPECT_EQ(device.heightMM(), 40);  // 39.7
  EXPECT_EQ(device.logicalDpiX(), 96);
  EXPECT_EQ(device.logicalDpiY(), 96);
  EXPECT_EQ(device.physicalDpiX(), 96);
  EXPECT_EQ(device.physicalDpiY(), 96);
  EXPECT_EQ(device.colorCount(), std::numeric_limits<int>::max());
  EXPECT_EQ(device.depth(), 24);
  EXPECT_EQ(device.devicePixelRatio(), 1);
  EXPECT_EQ(device.devicePixelRatioF(), 1);
}

// Regression: a rim that was drawn as text made a search find the number of a block nine times.
TEST(SvgDevice, ALabelInARimIsThereOnceForASearch) {
  const auto paint = [](QPainter& painter) {
    CellPainter cells(painter, QRectF(0, 0, 80, 40), theme(ThemeKind::dark));
    cells.set_cell_size({60, 30});
    cells.set_font(mono_font(18));
    cells.cell({10, 5}, owner_look(5), 0.5);
    cells.label_on({14, 28}, "888", QRectF(10, 5, 60, 30), owner_look(5), 0.5);
  };
  const std::string svg = svg_of(paint);
  int found = 0;
  for (std::size_t at = svg.find(">888<"); at != std::string::npos; at = svg.find(">888<", at + 1)) ++found;
  EXPECT_EQ(found, 1);
  // The rim exists: a curve in the color of the empty part.
  const std::string rim = look_empty(theme(ThemeKind::dark), owner_look(5)).name().toStdString();
  const std::vector<Element> paths = named(elements_of(svg), "path");
  EXPECT_TRUE(std::ranges::any_of(paths, [&](const Element& path) {
    const auto stroke = path.attributes.find("stroke");
    return stroke != path.attributes.end() && stroke->second == rim;
  }));
  // Other text sizes in between do not change the curve.
  for (int px = 5; px < 30; ++px) {
    QImage image(60, 40, QImage::Format_RGB32);
    QPainter painter(&image);
    painter.scale(1 + px % 4 * 0.25, 1 + px % 4 * 0.25);
    painter.setFont(mono_font(px));
    painter.drawText(QPointF(3.3, 20), QStringLiteral("888"));
    EXPECT_EQ(svg_of(paint), svg);
  }
}

// Names come from files: characters that XML does not allow are omitted, in the title too.
TEST(SvgDevice, CharactersThatXmlDoesNotAllowAreOmitted) {
  const std::string svg =
      svg_of([](QPainter&) {}, 1, QStringLiteral("a\x01 <b> ") + QChar(0xffff) + QStringLiteral(" ü"));
  EXPECT_THAT(svg, HasSubstr("<title>a &lt;b&gt;  \u00fc</title>"));
  EXPECT_THAT(svg_of([](QPainter&) {}, 1, QStringLiteral("a\tb\nc & \"d\"")),
              HasSubstr("<title>a\tbc &amp; &quot;d&quot;</title>"));
  EXPECT_EQ(elements_of(svg).front().name, "svg");
}

TEST(SvgDevice, ImagesAreEmbeddedAndEnlargedPixelsStayCells) {
  QImage image(4, 2, QImage::Format_RGB32);
  image.fill(Qt::blue);
  const std::vector<Element> images = named(elements_of(svg_of([&](QPainter& painter) {
                                              painter.drawImage(QRectF(10, 20, 40, 20), image);
                                              painter.drawImage(QRectF(60, 20, 2, 2), image, QRectF(0, 0, 2, 2));
                                            })),
                                            "image");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].attributes.at("image-rendering"), "pixelated");
  EXPECT_FALSE(images[1].attributes.contains("image-rendering"));
  const QByteArray png = QByteArray::fromBase64(QByteArray::fromStdString(images[1].attributes.at("href").substr(22)));
  EXPECT_EQ(QImage::fromData(png, "PNG").size(), QSize(2, 2));
}

TEST(SvgDevice, ScaleEnlargesThePictureAndNotItsCoordinates) {
  const Element svg = elements_of(svg_of([](QPainter&) {}, 1.5)).front();
  EXPECT_EQ(svg.attributes.at("width"), "300");
  EXPECT_EQ(svg.attributes.at("height"), "225");
  EXPECT_EQ(svg.attributes.at("viewBox"), "0 0 200 150");
}

TEST(SvgDevice, APatternIsDefinedOnceHoweverOftenItIsUsed) {
  const std::string svg = svg_of([](QPainter& painter) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(QBrush(Qt::blue, Qt::BDiagPattern));
    for (int i = 0; i < 5; ++i) painter.drawRect(QRectF(20 * i, 0, 10, 10));
  });
  const std::vector<Element> elements = elements_of(svg);
  EXPECT_EQ(named(elements, "pattern").size(), 1u);
  for (const Element& rect : named(elements, "rect")) EXPECT_EQ(rect.attributes.at("fill"), "url(#b0)");
  EXPECT_EQ(svg, svg_of([](QPainter& painter) {
              painter.setPen(Qt::NoPen);
              painter.setBrush(QBrush(Qt::blue, Qt::BDiagPattern));
              for (int i = 0; i < 5; ++i) painter.drawRect(QRectF(20 * i, 0, 10, 10));
            }));
}

}  // namespace
}  // namespace kvscope::viz::svg_device_test
