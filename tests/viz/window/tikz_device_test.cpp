#include "viz/window/tikz_device.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include "viz/view/theme.h"

namespace kvscope::viz::tikz_device_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kWidth = 200, kHeight = 150;

template <class Paint>
std::string tikz_of(Paint&& paint, double scale = 1, const QString& title = QStringLiteral("title")) {
  TikzDevice device({kWidth, kHeight}, scale, title);
  QPainter painter(&device);
  paint(painter);
  painter.end();
  return device.bytes();
}

// A command with its options, and the text from there to the semicolon.
struct Command {
  std::string name;
  std::map<std::string, std::string> options;  // "c3": "", "fill opacity": "0.5"
  std::string rest;
  std::size_t depth = 0;  // of scopes
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \n"), last = text.find_last_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::map<std::string, std::string> options_of(const std::string& text) {
  std::map<std::string, std::string> options;
  std::string part;
  int depth = 0;
  const auto add = [&] {
    const std::size_t equals = part.find('=');
    if (!part.empty())
      options[trimmed(part.substr(0, equals))] = equals == std::string::npos ? "" : part.substr(equals + 1);
    part.clear();
  };
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      add();
    } else {
      part += c;
    }
  }
  add();
  return options;
}

// The commands of a picture in their order; "scope" and "end" for the ends of scopes. Fails the test for anything else
// than what this device is meant to write, for scopes that do not match, and for a color that is not defined.
class Reading {
 public:
  explicit Reading(const std::string& tikz) {
    std::size_t at = tikz.find("\\begin{tikzpicture}");
    EXPECT_NE(at, std::string::npos);
    const std::string preamble = tikz.substr(0, at);
    EXPECT_TRUE(std::regex_match(preamble, std::regex("(%[^\n]*\n)+"))) << preamble;
    at = tikz.find('\n', at) + 1;
    const std::size_t end = tikz.rfind("\\end{tikzpicture}%\n");
    EXPECT_EQ(end + 19, tikz.size());
    std::size_t depth = 0;
    while (at < end) {
      std::smatch match;
      const std::string line = tikz.substr(at, tikz.find('\n', at) - at);
      if (line[0] == '%' || line.starts_with("\\def\\kvscope")) {
        at += line.size() + 1;
      } else if (std::regex_match(line, match, std::regex(R"(\\definecolor\{(c\d+)\}\{HTML\}\{([0-9A-F]{6})\})"))) {
        EXPECT_TRUE(colors.emplace(match[1], QColor(QString::fromStdString("#" + match[2].str()))).second) << line;
        at += line.size() + 1;
      } else if (line.starts_with("\\begin{scope}")) {
        commands.push_back(
            {"scope", options_of(line.size() > 13 ? line.substr(14, line.size() - 15) : ""), "", depth++});
        at += line.size() + 1;
      } else if (line == "\\end{scope}") {
        EXPECT_GT(depth, 0u);
        commands.push_back({"end", {}, "", --depth});
        at += line.size() + 1;
      } else {
        const std::size_t stop = tikz.find(";\n", at);
        const std::string text = tikz.substr(at, stop - at);
        if (!std::regex_search(text, match, std::regex(R"(^\\(fill|draw|path|clip|node)(\[([^\]]*)\])?[ \n])"))) {
          ADD_FAILURE() << text;
          return;
        }
        commands.push_back({match[1], options_of(match[3]), text.substr(match[0].str().size()), depth});
        at = stop + 2;
      }
    }
    EXPECT_EQ(depth, 0u);
    for (const Command& command : commands) {
      for (const auto& [name, value] : command.options) {
        for (const std::string& word : {name, value}) {
          const bool is_color = std::regex_match(word, std::regex("c[0-9]+"));
          EXPECT_TRUE(!is_color || colors.contains(word)) << word;
        }
      }
    }
  }

  [[nodiscard]] std::vector<Command> named(const std::string& name) const {
    std::vector<Command> found;
    std::ranges::copy_if(commands, std::back_inserter(found), [&](const Command& c) { return c.name == name; });
    return found;
  }

  std::vector<Command> commands;
  std::map<std::string, QColor> colors;
};

double number_of(const std::string& text) {
  return std::stod(text);
}

// "(1,2) -- (3,4) .. controls (5,6) and (7,8) .. (9,10) -- cycle (0,0) rectangle (1,1)"
QPainterPath path_of(const std::string& text) {
  QPainterPath path;
  const std::regex word(R"(\((-?[\d.]+),(-?[\d.]+)\)|--|\.\.|controls|and|cycle|rectangle)");
  enum class Next { begin, line, control, corner } next = Next::begin;
  std::vector<QPointF> controls;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    const std::string part = at->str();
    if (part[0] != '(') {
      if (part == "cycle") path.closeSubpath();
      next = part == "--"          ? Next::line
             : part == "rectangle" ? Next::corner
             : part == "cycle"     ? Next::begin
                                   : Next::control;
      continue;
    }
    const QPointF point(number_of((*at)[1]), number_of((*at)[2]));
    switch (next) {
      case Next::begin:
        path.moveTo(point);
        break;
      case Next::line:
        path.lineTo(point);
        next = Next::begin;
        break;
      case Next::corner: {
        const QPointF first = path.currentPosition();
        QPainterPath rectangle;
        rectangle.addRect(QRectF(first, point));
        path.addPath(rectangle);
        next = Next::begin;
        break;
      }
      case Next::control:
        controls.push_back(point);
        if (controls.size() == 3) {
          path.cubicTo(controls[0], controls[1], controls[2]);
          controls.clear();
          next = Next::begin;
        }
        break;
    }
  }
  EXPECT_THAT(controls, IsEmpty()) << text;
  EXPECT_EQ(trimmed(std::regex_replace(text, word, "")).find_first_not_of(" \n"), std::string::npos) << text;
  return path;
}

double length_of(const std::string& text) {  // in pixels of 0.75 bp
  EXPECT_TRUE(text.ends_with("bp")) << text;
  return number_of(text) / 0.75;
}

QPen pen_of(const Command& command, const QColor& color) {
  const auto& options = command.options;
  const double width = options.contains("line width") ? length_of(options.at("line width")) : 1;
  QPen pen(color, width, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin);
  if (options.contains("line cap")) pen.setCapStyle(options.at("line cap") == "round" ? Qt::RoundCap : Qt::SquareCap);
  if (options.contains("line join"))
    pen.setJoinStyle(options.at("line join") == "round" ? Qt::RoundJoin : Qt::BevelJoin);
  if (options.contains("dash pattern")) {
    QList<qreal> dashes;
    const std::string& text = options.at("dash pattern");
    const std::regex dash("(on|off) ([0-9.]+bp)");
    for (std::sregex_iterator at(text.begin(), text.end(), dash), end; at != end; ++at) {
      dashes.push_back(length_of((*at)[2]) / width);
    }
    pen.setDashPattern(dashes);
    if (options.contains("dash phase")) pen.setDashOffset(length_of(options.at("dash phase")) / width);
  }
  return pen;
}

// What a reader of TikZ shows, without texts.
QImage shown(const std::string& tikz) {
  const Reading reading(tikz);
  QImage image(kWidth, kHeight, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::white);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  const auto alpha = [](const Command& command, const char* key, QColor color) {
    if (command.options.contains(key)) color.setAlphaF(static_cast<float>(number_of(command.options.at(key))));
    return color;
  };
  const auto color_of = [&](const Command& command) {
    for (const auto& [name, value] : command.options) {
      if (reading.colors.contains(name)) return reading.colors.at(name);
      if (name == "draw") return reading.colors.at(value);
    }
    ADD_FAILURE() << "no color: " << command.rest;
    return QColor();
  };
  for (const Command& command : reading.commands) {
    if (command.name == "scope") {
      painter.save();
    } else if (command.name == "end") {
      painter.restore();
    } else if (command.name == "clip") {
      painter.setClipPath(path_of(command.rest), Qt::IntersectClip);
    } else if (command.name == "fill") {
      QPainterPath path = path_of(command.rest);
      path.setFillRule(command.options.contains("even odd rule") ? Qt::OddEvenFill : Qt::WindingFill);
      painter.fillPath(path, alpha(command, "fill opacity", color_of(command)));
    } else if (command.name == "draw" || (command.name == "path" && command.options.contains("draw"))) {
      painter.strokePath(path_of(command.rest), pen_of(command, alpha(command, "draw opacity", color_of(command))));
    }
  }
  return image;
}

template <class Paint>
QImage direct(Paint&& paint) {
  QImage image(kWidth, kHeight, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::white);
  QPainter painter(&image);
  paint(painter);
  return image;
}

std::int64_t differing(const QImage& a, const QImage& b) {
  std::int64_t pixels = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      const int most =
          std::max({std::abs(qRed(p) - qRed(q)), std::abs(qGreen(p) - qGreen(q)), std::abs(qBlue(p) - qBlue(q))});
      pixels += most > 24 ? 1 : 0;
    }
  }
  return pixels;
}

void paint_shapes(QPainter& painter) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(QRectF(10.5, 10.25, 40, 30), QColor(200, 40, 40));
  painter.fillRect(QRectF(14, 14, 40, 30), QColor(200, 40, 40));  // the same color: one command
  painter.setPen(QPen(QColor(20, 20, 200), 3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(QColor(40, 200, 40, 128));
  painter.drawRoundedRect(QRectF(60, 10, 50, 30), 6, 6);
  painter.drawEllipse(QRectF(120, 10, 40, 30));
  painter.setPen(QPen(QColor(0, 0, 0), 2, Qt::DashLine, Qt::FlatCap));
  painter.drawLine(QPointF(10, 60), QPointF(190, 66));
  painter.setPen(Qt::NoPen);
  painter.setBrush(QColor(120, 60, 200));
  painter.drawPolygon(QPolygonF({{10, 80}, {60, 80}, {35, 110}}));
  painter.setPen(QPen(QColor(90, 90, 0), 2, Qt::SolidLine, Qt::SquareCap, Qt::BevelJoin));
  painter.drawPolyline(QPolygonF({{165, 20}, {190, 20}, {180, 45}}));
  painter.save();
  painter.translate(150, 80);
  painter.rotate(20);
  painter.scale(1.5, 1.5);
  painter.setOpacity(0.5);
  painter.fillRect(QRectF(0, 0, 20, 20), Qt::black);
  painter.setPen(QPen(QColor(0, 160, 160), 2));
  painter.drawLine(QPointF(-10, 0), QPointF(-10, 20));
  painter.restore();
  painter.save();
  painter.setClipRect(QRectF(70, 75, 30, 30));
  painter.setClipRect(QRectF(80, 85, 60, 60), Qt::IntersectClip);
  painter.fillRect(QRectF(60, 70, 80, 60), QColor(255, 140, 0));
  painter.restore();
  QPainterPath ring;
  ring.addEllipse(QRectF(105, 75, 30, 30));
  ring.addEllipse(QRectF(112, 82, 16, 16));
  painter.fillPath(ring, QColor(10, 100, 60));
  painter.setPen(QPen(QColor(200, 0, 0), 1.5));
  painter.setBrush(Qt::NoBrush);
  QPainterPath path(QPointF(10, 130));
  path.cubicTo(60, 110, 80, 160, 190, 125);
  painter.drawPath(path);
}

TEST(TikzDevice, AnotherReaderShowsWhatWasPainted) {
  EXPECT_LE(differing(direct(paint_shapes), shown(tikz_of(paint_shapes))), 30);  // of 30,000: edges rounded differently
}

TEST(TikzDevice, PixelsOfAnImageAreRectanglesAndEqualRowsAreOne) {
  QImage image(3, 4, QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  for (int y = 0; y < 3; ++y) {
    image.setPixelColor(0, y, QColor(255, 0, 0));
    image.setPixelColor(1, y, QColor(255, 0, 0));
    image.setPixelColor(2, y, QColor(0, 0, 255, 128));
  }
  image.setPixelColor(1, 3, QColor(255, 0, 0));
  const auto paint = [&](QPainter& painter) {
    painter.drawImage(QRectF(10, 20, 30, 40), image);
    painter.setOpacity(0.5);
    painter.drawImage(QRectF(60, 20, 30, 10), image, QRectF(0, 2, 3, 1));
    painter.drawPixmap(QPoint(100, 20), QPixmap::fromImage(image.scaled(6, 8)));
  };
  const std::string tikz = tikz_of(paint);
  EXPECT_EQ(differing(direct(paint), shown(tikz)), 0);
  const std::vector<Command> fills = Reading(tikz).named("fill");
  ASSERT_GE(fills.size(), 4u);
  EXPECT_EQ(fills[0].rest, "(30,20) rectangle (40,50)");
  EXPECT_EQ(fills[0].options.at("fill opacity"), "0.502");
  EXPECT_EQ(fills[1].rest, "(10,20) rectangle (30,50)\n(20,50) rectangle (30,60)");
  EXPECT_EQ(fills[2].options.at("fill opacity"), "0.251");
  EXPECT_EQ(fills[3].options.at("fill opacity"), "0.5");
}

// Every hatching has lines where Qt's has pixels, and nowhere else.
TEST(TikzDevice, AHatchingHasItsLinesWhereQtHasThem) {
  for (const Qt::BrushStyle style :
       {Qt::HorPattern, Qt::VerPattern, Qt::CrossPattern, Qt::BDiagPattern, Qt::FDiagPattern, Qt::DiagCrossPattern}) {
    const auto paint = [&](QPainter& painter) { painter.fillRect(QRectF(21, 13, 60, 50), QBrush(Qt::black, style)); };
    const std::string tikz = tikz_of(paint);
    QPainterPath lines;
    QRectF clip;
    for (const Command& command : Reading(tikz).commands) {
      if (command.name == "clip") clip = path_of(command.rest).boundingRect();
      if (command.name == "path" && command.options.contains("draw")) lines = path_of(command.rest);
    }
    EXPECT_EQ(clip, QRectF(21, 13, 60, 50));
    const QImage pixels = direct(paint);
    QImage drawn(kWidth, kHeight, QImage::Format_RGB32);
    drawn.fill(Qt::white);
    QPainter painter(&drawn);
    painter.setClipRect(clip);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.strokePath(lines, QPen(Qt::black, 1.1));  // of width 1, Qt draws lines in another way
    painter.end();
    std::int64_t black = 0;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const bool set = qRed(pixels.pixel(x, y)) < 128;
        black += set ? 1 : 0;
        // A diagonal line covers three quarters of a pixel on it and an eighth of its neighbors.
        ASSERT_EQ(set, qRed(drawn.pixel(x, y)) < 128) << style << " at " << x << ", " << y;
      }
    }
    EXPECT_GT(black, 300) << style;
  }
}

TEST(TikzDevice, ADensePatternIsAnOpacityAndATextureItsPixels) {
  QImage texture(2, 2, QImage::Format_ARGB32);
  texture.fill(QColor(0, 128, 0));
  texture.setPixelColor(1, 1, QColor(255, 255, 0));
  const auto paint = [&](QPainter& painter) {
    painter.fillRect(QRectF(10, 10, 20, 20), QBrush(Qt::blue, Qt::Dense4Pattern));
    painter.fillRect(QRectF(40, 10, 20, 20), QBrush(texture));
  };
  const std::string tikz = tikz_of(paint);
  const std::vector<Command> fills = Reading(tikz).named("fill");
  ASSERT_GE(fills.size(), 3u);
  EXPECT_EQ(fills[0].options.at("fill opacity"), "0.5");
  const QImage read = shown(tikz);
  for (int y = 10; y < 30; ++y) {
    for (int x = 40; x < 60; ++x) {
      const bool yellow = x % 2 == 1 && y % 2 == 1;
      ASSERT_EQ(read.pixelColor(x, y), yellow ? QColor(255, 255, 0) : QColor(0, 128, 0)) << x << ", " << y;
    }
  }
}

// Qt replaces a gradient by pixels.
TEST(TikzDevice, AGradientKeepsItsColors) {
  const auto paint = [](QPainter& painter) {
    QLinearGradient gradient(70, 0, 130, 0);
    gradient.setColorAt(0, QColor(255, 200, 0));
    gradient.setColorAt(1, QColor(0, 100, 255));
    painter.fillRect(QRectF(70, 80, 60, 30), gradient);
  };
  EXPECT_LE(differing(direct(paint), shown(tikz_of(paint))), 30);
}

TEST(TikzDevice, EveryShapeStandsInItsClip) {
  const Reading reading(tikz_of([](QPainter& painter) {
    painter.fillRect(QRectF(0, 0, 1, 1), Qt::red);
    painter.save();
    painter.setClipRect(QRectF(10, 10, 50, 50), Qt::IntersectClip);
    painter.fillRect(QRectF(0, 0, 2, 1), Qt::red);
    painter.fillRect(QRectF(0, 0, 3, 1), Qt::red);
    painter.setClipRect(QRectF(100, 100, 5, 5), Qt::IntersectClip);
    painter.fillRect(QRectF(0, 0, 4, 1), Qt::red);
    painter.restore();
    painter.fillRect(QRectF(0, 0, 5, 1), Qt::red);
  }));
  std::vector<std::string> seen;
  for (const Command& command : reading.commands) {
    if (command.name != "path") seen.push_back(command.name + " " + command.rest);
  }
  EXPECT_THAT(seen, ElementsAre("fill (0,0) rectangle (1,1)", "scope ",
                                "clip (10,10) -- (60,10) -- (60,60) -- (10,60) -- cycle",
                                "fill (0,0) rectangle (2,1)\n(0,0) rectangle (3,1)", "end ", "scope ", seen.at(6),
                                "fill (0,0) rectangle (4,1)", "end ", "fill (0,0) rectangle (5,1)"));
  EXPECT_TRUE(path_of(seen.at(6).substr(5)).boundingRect().isEmpty()) << seen.at(6);
}

// A hundred outlines are one command; more of them, another style, or a color through which others are seen are not.
TEST(TikzDevice, OutlinesOfOneStyleAreOneCommand) {
  const auto fills = [](int count, const QColor& color) {
    return Reading(tikz_of([&](QPainter& painter) {
             for (int i = 0; i < count; ++i) painter.fillRect(QRectF(i, 0, 1, 1), color);
           }))
        .named("fill");
  };
  EXPECT_THAT(fills(100, Qt::red), SizeIs(1));
  EXPECT_THAT(fills(101, Qt::red), SizeIs(2));
  EXPECT_THAT(fills(3, QColor(255, 0, 0, 200)), SizeIs(3));
  const auto lines = Reading(tikz_of([](QPainter& painter) {
                       painter.setPen(QPen(Qt::red, 2));
                       painter.drawLine(QPointF(0, 1), QPointF(9, 1));
                       painter.drawLine(QPointF(0, 3), QPointF(9, 3));
                       painter.setPen(QPen(Qt::red, 3));
                       painter.drawLine(QPointF(0, 5), QPointF(9, 5));
                       painter.setPen(QPen(Qt::red, 3, Qt::DotLine));
                       painter.drawLine(QPointF(0, 7), QPointF(9, 7));
                       painter.drawLine(QPointF(0, 9), QPointF(9, 9));
                     })).named("draw");
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[0].rest, "(0,1) -- (9,1)\n(0,3) -- (9,3)");
}

// A pen of width 0 and a cosmetic one are as wide at any scale.
TEST(TikzDevice, PensKeepTheirWidthTheirCornersAndTheirDashes) {
  const auto lines = Reading(tikz_of([](QPainter& painter) {
                       painter.scale(2, 2);
                       QPen pen(QColor(255, 0, 0), 0, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
                       painter.setPen(pen);
                       painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
                       pen = QPen(QColor(255, 0, 0), 2, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin);
                       pen.setDashPattern({4, 2});
                       pen.setDashOffset(1);
                       painter.setPen(pen);
                       painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
                       pen.setCosmetic(true);
                       painter.setPen(pen);
                       painter.drawLine(QPointF(1, 2), QPointF(3, 4.5));
                     })).named("draw");
  ASSERT_THAT(lines, SizeIs(3));
  for (const Command& line : lines) EXPECT_EQ(line.rest, "(2,4) -- (6,9)");
  using Options = std::map<std::string, std::string>;
  EXPECT_EQ(lines[0].options, (Options{{"c0", ""}, {"line cap", "round"}, {"line join", "round"}}));
  EXPECT_EQ(lines[1].options,
            (Options{{"c0", ""}, {"line width", "3bp"}, {"dash pattern", "{on 12bp off 6bp}"}, {"dash phase", "3bp"}}));
  EXPECT_EQ(
      lines[2].options,
      (Options{{"c0", ""}, {"line width", "1.5bp"}, {"dash pattern", "{on 6bp off 3bp}"}, {"dash phase", "1.5bp"}}));
}

TEST(TikzDevice, APathOfTwoPartsKeepsItsFillRule) {
  QPainterPath ring;
  ring.addRect(QRectF(20, 20, 60, 60));
  ring.addRect(QRectF(40, 40, 20, 20));
  QPainterPath filled = ring;
  filled.setFillRule(Qt::WindingFill);
  const auto paint = [&](QPainter& painter) {
    painter.fillPath(ring, Qt::blue);
    painter.translate(80, 0);
    painter.fillPath(filled, Qt::red);
  };
  EXPECT_EQ(differing(direct(paint), shown(tikz_of(paint))), 0);
  const auto scopes = Reading(tikz_of([&](QPainter& painter) {
                        painter.fillPath(ring, QBrush(Qt::blue, Qt::HorPattern));
                        painter.fillPath(filled, QBrush(Qt::blue, Qt::HorPattern));
                      })).named("scope");
  ASSERT_THAT(scopes, SizeIs(2));
  EXPECT_TRUE(scopes[0].options.contains("even odd rule"));
  EXPECT_THAT(scopes[1].options, IsEmpty());
}

TEST(TikzDevice, ARotatedImageIsRotatedRectangles) {
  QImage image(2, 1, QImage::Format_RGB32);
  image.setPixelColor(0, 0, Qt::red);
  image.setPixelColor(1, 0, Qt::blue);
  const auto fills = Reading(tikz_of([&](QPainter& painter) {
                       painter.translate(100, 50);
                       painter.rotate(90);
                       painter.drawImage(QRectF(0, 0, 20, 10), image);
                     })).named("fill");
  ASSERT_THAT(fills, SizeIs(2));
  EXPECT_EQ(path_of(fills[0].rest).boundingRect(), QRectF(90, 60, 10, 10));  // in the order of colors: blue
  EXPECT_EQ(path_of(fills[1].rest).boundingRect(), QRectF(90, 50, 10, 10));
}

TEST(TikzDevice, ShapesAreCounted) {
  TikzDevice device({kWidth, kHeight}, 1, QStringLiteral("title"));
  QPainter painter(&device);
  for (int i = 0; i < 7; ++i) painter.fillRect(QRectF(i, 0, 1, 1), Qt::red);
  painter.setPen(Qt::blue);
  painter.setBrush(Qt::green);
  painter.drawEllipse(QRectF(10, 10, 20, 20));  // filled and drawn
  painter.drawText(QPointF(10, 50), QStringLiteral("text"));
  painter.drawText(QPointF(10, 70), QStringLiteral("  "));
  painter.fillRect(QRectF(10, 80, 20, 20), QBrush(Qt::red, Qt::BDiagPattern));
  painter.end();
  EXPECT_EQ(device.shapes(), 7 + 2 + 1 + 1);
}

TEST(TikzDevice, ATextHasItsPlaceItsWidthItsFontAndItsColor) {
  const std::vector<Command> nodes = Reading(tikz_of([](QPainter& painter) {
                                       painter.setFont(ui_font(12, QFont::DemiBold));
                                       painter.setPen(QColor(1, 2, 3));
                                       painter.drawText(QPointF(20, 30.5), QStringLiteral("Block pool"));
                                       QFont font = mono_font(16);
                                       font.setItalic(true);
                                       painter.setFont(font);
                                       painter.setPen(QColor(1, 2, 3, 51));
                                       painter.setOpacity(0.5);
                                       painter.drawText(QPointF(20, 60), QStringLiteral("7"));
                                       painter.setOpacity(1);
                                       painter.translate(50, 90);
                                       painter.rotate(-90);
                                       painter.scale(2, 2);
                                       painter.drawText(QPointF(5, 10), QStringLiteral("up"));
                                     })).named("node");
  ASSERT_THAT(nodes, SizeIs(3));
  const auto width = [](const QFont& font, const char* text) {
    return QFontMetricsF(font).horizontalAdvance(QString::fromLatin1(text));
  };
  EXPECT_EQ(nodes[0].options, (std::map<std::string, std::string>{{"text", "c0"}}));
  std::smatch match;
  const std::regex form(
      R"(at \((-?[\d.]+),(-?[\d.]+)\) \{\\kvscopefit\{([\d.]+)bp\}\{([\d.]+)bp\}\{([^}]*)\}\{(.*)\}\})");
  ASSERT_TRUE(std::regex_match(nodes[0].rest, match, form)) << nodes[0].rest;
  EXPECT_EQ(match[1], "20");
  EXPECT_EQ(match[2], "30.5");
  EXPECT_NEAR(number_of(match[3]), 0.75 * width(ui_font(12, QFont::DemiBold), "Block pool"), 0.1);
  EXPECT_EQ(match[4], "9");
  EXPECT_EQ(match[5], "\\sffamily\\bfseries");
  EXPECT_EQ(match[6], "Block pool");
  ASSERT_TRUE(std::regex_match(nodes[1].rest, match, form)) << nodes[1].rest;
  EXPECT_EQ(nodes[1].options.at("text opacity"), "0.1");
  EXPECT_EQ(match[4], "12");
  EXPECT_EQ(match[5], "\\ttfamily\\itshape");
  ASSERT_TRUE(std::regex_match(nodes[2].rest, match, form)) << nodes[2].rest;
  EXPECT_EQ(nodes[2].options.at("rotate"), "90");
  EXPECT_EQ(match[1], "70");  // 50 + 2 * 10
  EXPECT_EQ(match[2], "80");  // 90 - 2 * 5
  EXPECT_EQ(match[4], "24");
}

// Names come from files: no character of them is a command of TeX.
TEST(TikzDevice, ACharacterIsNeverACommand) {
  const auto text = [](const QString& painted) {
    std::string words;  // Qt writes a character of another font as a separate node
    for (const Command& node : Reading(tikz_of([&](QPainter& painter) {
                                 painter.setFont(ui_font(12));
                                 painter.drawText(QPointF(20, 30), painted);
                               })).named("node")) {
      const std::size_t first = node.rest.find("}{\\sffamily}{") + 13;
      words += node.rest.substr(first, node.rest.size() - 2 - first);
    }
    return words;
  };
  EXPECT_EQ(text(QStringLiteral("a_b 50 % {x} \\end $1 #2 & ~ ^")),
            "a\\_b 50 \\% \\{x\\} \\textbackslash{}end \\$1 \\#2 \\& \\textasciitilde{} \\textasciicircum{}");
  EXPECT_EQ(text(QStringLiteral("<a> | \"b\" 'c' `d`")),
            "\\textless{}a\\textgreater{} \\textbar{} {\\char34}b{\\char34} \\textquotesingle{}c\\textquotesingle{} "
            "\\textasciigrave{}d\\textasciigrave{}");
  EXPECT_EQ(text(QStringLiteral("--policy early,,late")), "-{}-policy early,{},late") << "fonts join these to one sign";
  EXPECT_EQ(text(QStringLiteral(" a  b ")), "\\ a \\ b\\ ") << "TeX would omit and join these blanks";
  EXPECT_EQ(text(QStringLiteral("8 \u00d7 4 \u2192 32 \u00b7 \u00fc \u0159")),
            "8 \\texttimes{} 4 \\ensuremath{\\rightarrow} 32 \\textperiodcentered{} \u00fc \u0159");
  EXPECT_EQ(text(QStringLiteral("a\x01\x7fz")), "az") << "control characters";
  EXPECT_EQ(text(QStringLiteral("\u4e2d")), "\\kvscopechar{20013}{4E2D}");
  EXPECT_EQ(text(QString::fromUcs4(U"\U0001F600!")), "\\kvscopechar{128512}{1F600}!");
}

TEST(TikzDevice, TheTitleIsOneCommentWhateverItHolds) {
  const std::string tikz = tikz_of([](QPainter&) {}, 1, QStringLiteral("a\n\\end{document} \x01\x7f b"));
  EXPECT_THAT(tikz, testing::StartsWith("% a \\end{document}    b\n% Preamble: "));
  EXPECT_THAT(Reading(tikz).commands, SizeIs(1));
}

TEST(TikzDevice, ScaleEnlargesTheUnitAndNotItsCoordinates) {
  const auto paint = [](QPainter& painter) {
    painter.fillRect(QRectF(1, 2, 3, 4), Qt::red);
    painter.setPen(QPen(Qt::red, 2, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin));
    painter.drawLine(QPointF(0, 1), QPointF(9, 1));
  };
  const std::string once = tikz_of(paint), twice = tikz_of(paint, 2);
  EXPECT_THAT(once, HasSubstr("[x=0.75bp,y=-0.75bp,line width=0.75bp,"));
  EXPECT_THAT(twice, HasSubstr("[x=1.5bp,y=-1.5bp,line width=1.5bp,"));
  EXPECT_THAT(once, HasSubstr("\\draw[c0,line width=1.5bp] (0,1) -- (9,1);"));
  EXPECT_THAT(twice, HasSubstr("\\draw[c0,line width=3bp] (0,1) -- (9,1);"));
  for (const std::string& tikz : {once, twice}) {
    EXPECT_THAT(tikz, HasSubstr("\\path[use as bounding box,clip] (0,0) rectangle (200,150);\n"));
    EXPECT_THAT(tikz, HasSubstr("\\fill[c0] (1,2) rectangle (4,6);\n"));
  }
}

// TeX reads whole lines, and not of any length.
TEST(TikzDevice, NoLineIsLong) {
  const std::string tikz = tikz_of([](QPainter& painter) {
    QPainterPath path(QPointF(0, 0));
    for (int i = 1; i < 5000; ++i) path.lineTo(i * 0.037, std::sin(i) * 70 + 75);
    painter.setPen(Qt::red);
    painter.drawPath(path);
  });
  std::size_t longest = 0, begin = 0;
  for (std::size_t end = tikz.find('\n'); end != std::string::npos; begin = end + 1, end = tikz.find('\n', begin)) {
    longest = std::max(longest, end - begin);
  }
  EXPECT_LT(longest, 400u);
  EXPECT_EQ(path_of(Reading(tikz).named("draw").at(0).rest).elementCount(), 5000);
}

TEST(TikzDevice, TheSamePaintingIsTheSameBytes) {
  EXPECT_EQ(tikz_of(paint_shapes), tikz_of(paint_shapes));
}

}  // namespace
}  // namespace kvscope::viz::tikz_device_test
