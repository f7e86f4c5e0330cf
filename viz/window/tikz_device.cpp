#include "viz/window/tikz_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <QtCore/QtMath>
#include <QtGui/QImage>
#include <QtGui/QPainter>

namespace kvscope::viz {
namespace {

// A line break between the points of long outlines: TeX reads whole lines.
constexpr std::size_t kLineLength = 100;
constexpr int kMostJoined = 100;          // outlines of a command: TeX keeps a whole command in memory as it reads it
constexpr double kPointsPerPixel = 0.75;  // 72 / 96 dots per inch

std::string tikz_point(QPointF at) {
  return fmt::format("({},{})", decimal(at.x()), decimal(at.y()));
}

// "(1,2) -- (3,4) -- cycle"; of an empty path nothing.
std::string tikz_path(const QPainterPath& path) {
  std::string text;
  std::size_t line = 0;
  const auto add = [&](const std::string& part) {
    if (!text.empty()) text += text.size() - line > kLineLength ? '\n' : ' ';
    if (!text.empty() && text.back() == '\n') line = text.size();
    text += part;
  };
  QPointF start;
  for (int i = 0; i < path.elementCount(); ++i) {
    const QPainterPath::Element at = path.elementAt(i);
    if (at.isMoveTo()) start = at;
    const bool last = i + 1 == path.elementCount() || path.elementAt(i + 1).isMoveTo();
    switch (at.type) {
      case QPainterPath::MoveToElement:
        add(tikz_point(at));
        break;
      case QPainterPath::LineToElement:
        add(last && QPointF(at) == start ? std::string("-- cycle") : "-- " + tikz_point(at));
        break;
      case QPainterPath::CurveToElement: {
        const QPointF second = path.elementAt(i + 1), end = path.elementAt(i + 2);
        add(fmt::format(".. controls {} and {} .. {}", tikz_point(at), tikz_point(second), tikz_point(end)));
        break;
      }
      case QPainterPath::CurveToDataElement:
        if (last && QPointF(at) == start) add("-- cycle");
        break;
    }
  }
  return text;
}

std::string tikz_rectangle(const QRectF& r) {
  return tikz_point(r.topLeft()) + " rectangle " + tikz_point(r.bottomRight());
}

// Characters that LaTeX reads as commands, joins to others, or does not know in every encoding of fonts.
struct Spelled {
  char32_t character;
  const char* latex;
};
constexpr std::array kSpelled{Spelled{U'\\', "\\textbackslash{}"},
                              Spelled{U'{', "\\{"},
                              Spelled{U'}', "\\}"},
                              Spelled{U'$', "\\$"},
                              Spelled{U'&', "\\&"},
                              Spelled{U'#', "\\#"},
                              Spelled{U'%', "\\%"},
                              Spelled{U'_', "\\_"},
                              Spelled{U'^', "\\textasciicircum{}"},
                              Spelled{U'~', "\\textasciitilde{}"},
                              Spelled{U'<', "\\textless{}"},
                              Spelled{U'>', "\\textgreater{}"},
                              Spelled{U'|', "\\textbar{}"},
                              Spelled{U'"', "{\\char34}"},
                              Spelled{U'\'', "\\textquotesingle{}"},
                              Spelled{U'`', "\\textasciigrave{}"},
                              Spelled{U'\u00a0', "\\ "},
                              Spelled{U'\u00b5', "\\textmu{}"},
                              Spelled{U'\u00b7', "\\textperiodcentered{}"},
                              Spelled{U'\u00d7', "\\texttimes{}"},
                              Spelled{U'\u0394', "\\ensuremath{\\Delta}"},
                              Spelled{U'\u03a3', "\\ensuremath{\\Sigma}"},
                              Spelled{U'\u2013', "{\\rmfamily\\textendash}"},
                              Spelled{U'\u2014', "{\\rmfamily\\textemdash}"},
                              Spelled{U'\u2026', "\\textellipsis{}"},
                              Spelled{U'\u2190', "\\ensuremath{\\leftarrow}"},
                              Spelled{U'\u2192', "\\ensuremath{\\rightarrow}"},
                              Spelled{U'\u2212', "\\ensuremath{-}"},
                              Spelled{U'\u221e', "\\ensuremath{\\infty}"},
                              Spelled{U'\u2264', "\\ensuremath{\\leq}"},
                              Spelled{U'\u2265', "\\ensuremath{\\geq}"},
                              Spelled{U'\u25b2', "\\ensuremath{\\bigtriangleup}"},
                              Spelled{U'\u25b6', "\\ensuremath{\\triangleright}"},
                              Spelled{U'\u25c7', "\\ensuremath{\\diamond}"},
                              Spelled{U'\u25cf', "\\ensuremath{\\bullet}"},
                              Spelled{U'\u2713', "\\ensuremath{\\surd}"},
                              Spelled{U'\u2717', "\\ensuremath{\\times}"}};

// A name of a file may contain any character. Control characters are omitted; fonts join "--" and ",,".
std::string latex_text(const QString& text) {
  constexpr char32_t kFirstLetter = 0xc0, kLastLetter = 0x17f;  // Latin letters with accents, which all engines read
  std::string out;
  bool after_blank = true;
  char32_t before = 0;
  const auto characters = text.toUcs4();
  for (qsizetype i = 0; i < characters.size(); ++i) {
    const auto c = static_cast<char32_t>(characters[i]);
    if (c == before && (c == U'-' || c == U',')) out += "{}";
    before = c;
    const bool blank = c == U' ' || c == U'\t';
    if (blank) {
      out += after_blank || i + 1 == characters.size() ? "\\ " : " ";  // TeX joins blanks and omits the outer ones
    } else if (const auto* const known = std::ranges::find(kSpelled, c, &Spelled::character); known != kSpelled.end()) {
      out += known->latex;
    } else if (c > 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else if (c >= kFirstLetter && c <= kLastLetter) {
      out += QString::fromUcs4(&c, 1).toStdString();
    } else if (c >= 0xa0) {
      out += fmt::format("\\kvscopechar{{{0}}}{{{0:04X}}}", static_cast<std::uint32_t>(c));
    }
    after_blank = blank;
  }
  return out;
}

// The lines of a Qt hatching, which repeats every 8 px from the origin, over a region of device coordinates and beyond.
std::string hatching(Qt::BrushStyle style, const QRectF& over) {
  constexpr double kPeriod = 8;
  std::string lines;
  const auto add = [&](QPointF from, QPointF to) {
    lines += (lines.empty() ? "" : "\n") + tikz_point(from) + " -- " + tikz_point(to);
  };
  const auto each = [&](double from, double to, double offset, const auto& line) {
    for (double at = std::floor((from - offset) / kPeriod) * kPeriod + offset; at < to + kPeriod; at += kPeriod) {
      line(at);
    }
  };
  const double left = over.left(), right = over.right(), top = over.top(), bottom = over.bottom();
  const bool cross = style == Qt::CrossPattern, diagonal_cross = style == Qt::DiagCrossPattern;
  if (style == Qt::HorPattern || cross) each(top, bottom, 3.5, [&](double y) { add({left, y}, {right, y}); });
  if (style == Qt::VerPattern || cross) each(left, right, 4.5, [&](double x) { add({x, top}, {x, bottom}); });
  if (style == Qt::BDiagPattern || diagonal_cross) {
    each(left + top, right + bottom, 0, [&](double sum) {
      add({left - 1, sum - left + 1}, {right + 1, sum - right - 1});
    });
  }
  if (style == Qt::FDiagPattern || diagonal_cross) {
    each(top - right, bottom - left, 0, [&](double rise) {
      add({left - 1, left - 1 + rise}, {right + 1, right + 1 + rise});
    });
  }
  return lines;
}

// Qt's dense patterns set this share of the pixels.
double share_of(Qt::BrushStyle style) {
  constexpr std::array kShares{0.94, 0.88, 0.63, 0.5, 0.37, 0.12, 0.06};
  if (style < Qt::Dense1Pattern || style > Qt::Dense7Pattern) return 1;
  return kShares[static_cast<std::size_t>(style - Qt::Dense1Pattern)];
}

// Of one outline both fill rules fill the same.
bool has_parts(const QPainterPath& path) {
  int begun = 0;
  for (int i = 0; i < path.elementCount(); ++i) begun += path.elementAt(i).isMoveTo() ? 1 : 0;
  return begun > 1;
}

bool is_hatching(Qt::BrushStyle style) {
  return style >= Qt::HorPattern && style <= Qt::DiagCrossPattern;
}

}  // namespace

class TikzDevice::Engine final : public VectorEngine {
 public:
  explicit Engine(double unit) : VectorEngine(LinearGradientFill), unit_(unit) {}

  [[nodiscard]] Type type() const override { return User; }
  [[nodiscard]] std::int64_t shapes() const { return shapes_; }
  // \definecolor of each color.
  [[nodiscard]] std::string colors() const {
    std::string text;
    for (std::size_t i = 0; i < colors_.size(); ++i) {
      text += fmt::format("\\definecolor{{c{}}}{{HTML}}{{{:06X}}}\n", i, colors_[i]);
    }
    return text;
  }

  bool begin(QPaintDevice* device) override {
    colors_.clear();
    color_numbers_.clear();
    shapes_ = 0;
    open_style_.clear();
    return VectorEngine::begin(device);
  }

  using VectorEngine::drawEllipse;
  using VectorEngine::drawLines;
  using VectorEngine::drawPolygon;
  using VectorEngine::drawRects;

  void drawRects(const QRectF* rects, int count) override {
    for (int i = 0; i < count; ++i) {
      QPainterPath path;
      path.addRect(rects[i].normalized());
      draw(transform().map(path), false, transform().type() <= QTransform::TxScale);
    }
  }
  void drawLines(const QLineF* lines, int count) override {
    QPainterPath path;
    for (int i = 0; i < count; ++i) {
      path.moveTo(lines[i].p1());
      path.lineTo(lines[i].p2());
    }
    stroke(transform().map(path));
  }
  void drawEllipse(const QRectF& r) override {
    QPainterPath path;
    path.addEllipse(r);
    draw(transform().map(path));
  }
  void drawPath(const QPainterPath& path) override {
    draw(transform().map(path), path.fillRule() == Qt::OddEvenFill && has_parts(path));
  }
  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    QPainterPath path;
    path.addPolygon(QPolygonF(QList<QPointF>(points, points + count)));
    if (mode == PolylineMode) return stroke(transform().map(path));
    path.closeSubpath();
    draw(transform().map(path), mode == OddEvenMode);
  }

  void drawImage(const QRectF& target, const QImage& image, const QRectF& source, Qt::ImageConversionFlags) override {
    const QImage part = image.copy(source.toAlignedRect()).convertToFormat(QImage::Format_ARGB32);
    if (part.isNull()) return;
    QTransform to_target = QTransform::fromTranslate(target.x(), target.y());
    to_target.scale(target.width() / part.width(), target.height() / part.height());
    draw_pixels(part, to_target * transform());
  }

  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    if (item.text().trimmed().isEmpty()) return;
    const QFont font = item.font();
    const double scale = scale_of_transform();
    std::string style = fmt::format("text={}", name_of(pen().color()));
    style += opacity_option("text", pen().color());
    const double degrees = qRadiansToDegrees(std::atan2(transform().m12(), transform().m11()));
    if (std::abs(degrees) > 0.001) style += ",rotate=" + decimal(-degrees);
    std::string face = font.family().contains(QLatin1String("Mono")) ? "\\ttfamily" : "\\sffamily";
    if (font.weight() >= QFont::DemiBold) face += "\\bfseries";
    if (font.italic()) face += "\\itshape";
    put_shape(
        fmt::format("\\node[{}] at ", style),
        fmt::format("{} {{\\kvscopefit{{{}}}{{{}}}{{{}}}{{{}}}}}", tikz_point(transform().map(at)),
                    length(item.width() * scale), length(font.pixelSize() * scale), face, latex_text(item.text())),
        false);
  }

 private:
  [[nodiscard]] std::string outline_text(const QPainterPath& path) const override {
    const std::string outline = tikz_path(path);
    return outline.empty() ? "(0,0) -- cycle" : outline;
  }
  [[nodiscard]] std::string clip_begin(const std::string& outline) override {
    return fmt::format("\\begin{{scope}}\n\\clip {};\n", outline);
  }
  [[nodiscard]] std::string clip_end() const override { return "\\end{scope}\n"; }

  static QPainterPath rectangle_path(const QRectF& rect) {
    QPainterPath path;
    path.addRect(rect);
    return path;
  }

  // \fill[c3] (1,2) rectangle (3,4); Consecutive outlines of one style can be one command if they are `joinable`:
  // filled alike or drawn alike, so that where they overlap one more makes no difference.
  void put_shape(const std::string& style, const std::string& outline, bool joinable) {
    if (outline.empty()) return;
    ++shapes_;
    const bool other_group = enter_clip();
    if (joinable && !other_group && style == open_style_ && joined_ < kMostJoined) {
      ++joined_;
      written().resize(written().size() - 2);  // ";\n"
      written() += "\n" + outline + ";\n";
    } else {
      joined_ = 1;
      written() += style + outline + ";\n";
    }
    open_style_ = joinable ? style : "";
  }

  // An image in the format ARGB32.
  void draw_pixels(const QImage& part, const QTransform& to_device) {
    std::map<QRgb, std::vector<QRectF>> of_color;
    for (int y = 0, next = 0; y < part.height(); y = next) {
      const auto* const row = reinterpret_cast<const QRgb*>(part.constScanLine(y));
      const auto equals = [&](int other) {
        return std::equal(row, row + part.width(), reinterpret_cast<const QRgb*>(part.constScanLine(other)));
      };
      for (next = y + 1; next < part.height() && equals(next);) ++next;
      for (int x = 0, end = 0; x < part.width(); x = end) {
        for (end = x + 1; end < part.width() && row[end] == row[x];) ++end;
        if (qAlpha(row[x]) > 0) of_color[row[x]].emplace_back(x, y, end - x, next - y);
      }
    }
    for (const auto& [color, rects] : of_color) {
      const std::string style = fill_style(QColor::fromRgba(color));
      for (const QRectF& rect : rects) {
        const QPainterPath pixels = to_device.map(rectangle_path(rect));
        const bool upright = to_device.type() <= QTransform::TxScale;
        // Pixels do not overlap, so an opacity applies to each of them once.
        put_shape(style, upright ? tikz_rectangle(pixels.boundingRect()) : tikz_path(pixels), upright);
      }
    }
  }

  // A path in device coordinates, filled and drawn.
  void draw(const QPainterPath& path, bool even_odd = false, bool is_rect = false) {
    const std::string outline = is_rect ? tikz_rectangle(path.boundingRect()) : tikz_path(path);
    const Qt::BrushStyle brush_style = brush().style();
    if (brush_style != Qt::NoBrush) {
      if (is_hatching(brush_style)) {
        hatch(path, outline, even_odd);
      } else if (brush_style == Qt::TexturePattern) {
        fill_with_texture(path);
      } else {
        QColor color = brush().color();
        color.setAlphaF(static_cast<float>(color.alphaF() * share_of(brush_style)));
        put_shape(fill_style(color, even_odd), outline, is_rect && is_opaque(color));
      }
    }
    stroke(path, outline);
  }

  void stroke(const QPainterPath& path) { stroke(path, tikz_path(path)); }
  void stroke(const QPainterPath& path, const std::string& outline) {
    if (pen().style() == Qt::NoPen || path.isEmpty()) return;
    put_shape(stroke_style(), outline, is_opaque(pen().color()) && pen().style() == Qt::SolidLine);
  }

  void hatch(const QPainterPath& path, const std::string& outline, bool even_odd) {
    const QColor color = brush().color();
    std::string style = "draw=" + name_of(color);
    style += opacity_option("draw", color);
    ++shapes_;
    open_style_.clear();
    put(fmt::format("\\begin{{scope}}{}\n\\clip {};\n\\path[{}]\n{};\n\\end{{scope}}\n",
                    even_odd ? "[even odd rule]" : "", outline, style, hatching(brush().style(), path.boundingRect())));
  }

  void fill_with_texture(const QPainterPath& path) {
    const QRect over = path.boundingRect().toAlignedRect();
    QImage pixels(over.size(), QImage::Format_ARGB32);
    if (pixels.isNull()) return;
    pixels.fill(Qt::transparent);
    QPainter painter(&pixels);
    painter.translate(-over.topLeft());
    painter.fillPath(path, QBrush(brush().textureImage()));
    painter.end();
    draw_pixels(pixels, QTransform::fromTranslate(over.x(), over.y()));
  }

  [[nodiscard]] std::string fill_style(const QColor& color, bool even_odd = false) {
    return fmt::format("\\fill[{}{}{}] ", name_of(color), opacity_option("fill", color),
                       even_odd ? ",even odd rule" : "");
  }

  [[nodiscard]] std::string stroke_style() {
    std::string style = "\\draw[" + name_of(pen().color()) + opacity_option("draw", pen().color());
    const bool at_any_scale = pen().isCosmetic() || pen().widthF() <= 0;
    const double width = (pen().widthF() > 0 ? pen().widthF() : 1) * (at_any_scale ? 1 : scale_of_transform());
    if (decimal(width) != "1") style += ",line width=" + length(width);
    if (pen().capStyle() != Qt::FlatCap)
      style += pen().capStyle() == Qt::RoundCap ? ",line cap=round" : ",line cap=rect";
    if (pen().joinStyle() == Qt::RoundJoin) style += ",line join=round";
    if (pen().joinStyle() == Qt::BevelJoin) style += ",line join=bevel";
    if (pen().style() != Qt::SolidLine) {
      std::string dashes;
      bool on = true;
      for (const qreal dash : pen().dashPattern()) {
        dashes += fmt::format("{}{} {}", dashes.empty() ? "" : " ", std::exchange(on, !on) ? "on" : "off",
                              length(dash * width));
      }
      style += fmt::format(",dash pattern={{{}}}", dashes);
      if (pen().dashOffset() != 0) style += ",dash phase=" + length(pen().dashOffset() * width);
    }
    return style + "] ";
  }

  [[nodiscard]] bool is_opaque(const QColor& color) const { return color.alphaF() * opacity() >= 1; }
  // ",fill opacity=0.5"; of an opaque color nothing.
  [[nodiscard]] std::string opacity_option(std::string_view what, const QColor& color) const {
    return is_opaque(color) ? "" : fmt::format(",{} opacity={}", what, decimal(color.alphaF() * opacity()));
  }

  // "1.5bp" of a length in pixels.
  [[nodiscard]] std::string length(double pixels) const { return decimal(pixels * unit_) + "bp"; }

  // Of lengths; 1 for a rotation.
  [[nodiscard]] double scale_of_transform() const { return std::sqrt(std::abs(transform().determinant())); }

  // c0, c1, ... in the order of first use.
  std::string name_of(const QColor& color) {
    const QRgb rgb = color.rgb() & 0xffffffU;
    const auto [known, fresh] = color_numbers_.try_emplace(rgb, colors_.size());
    if (fresh) colors_.push_back(rgb);
    return fmt::format("c{}", known->second);
  }

  double unit_;               // [bp/px]
  std::vector<QRgb> colors_;  // without alpha
  std::map<QRgb, std::size_t> color_numbers_;
  std::int64_t shapes_ = 0;
  std::string open_style_;  // of the last command, if outlines can be added to it
  int joined_ = 0;          // outlines of that command
};

TikzDevice::TikzDevice(QSizeF size, double scale, QString title)
    : VectorDevice(size, std::make_unique<Engine>(kPointsPerPixel * scale)),
      unit_(kPointsPerPixel * scale),
      title_(std::move(title)) {}

std::int64_t TikzDevice::shapes() const {
  return static_cast<const Engine&>(engine()).shapes();
}

std::string TikzDevice::bytes() const {
  std::string title = title_.toStdString();
  std::ranges::replace_if(
      title, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  const std::string unit = decimal(unit_) + "bp";
  return fmt::format(
      "% {0}\n"
      "% Preamble: \\usepackage{{tikz}}. Here: \\resizebox{{\\linewidth}}{{!}}{{\\input{{this file}}}}\n"
      "\\begin{{tikzpicture}}[x={1},y=-{1},line width={1},every node/.style={{anchor=base west,inner sep=0pt,outer "
      "sep=0pt}}]\n"
      "% A text of a width and a size, and a character that pdfTeX has in no font.\n"
      "\\def\\kvscopefit#1#2#3#4{{\\resizebox{{#1}}{{\\height}}{{\\fontsize{{#2}}{{#2}}#3\\selectfont #4}}}}\n"
      "\\def\\kvscopechar#1#2{{\\ifdefined\\Umathchar\\char#1\\relax\\else[U+#2]\\fi}}\n"
      "{2}\\path[use as bounding box,clip] (0,0) rectangle ({3},{4});\n"
      "{5}\\end{{tikzpicture}}%\n",
      title, unit, static_cast<const Engine&>(engine()).colors(), decimal(size().width()), decimal(size().height()),
      body());
}

}  // namespace kvscope::viz
