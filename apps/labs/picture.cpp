#include "apps/labs/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/base/terminal_text.h"

namespace kvscope::labs {
namespace {

// [px]
constexpr double kPageMargin = 24, kRowHeight = 30, kCellGap = 3, kLineHeight = 18, kGridGap = 22, kMinCell = 34;
constexpr double kChartColumn = 84, kChartHeight = 220, kPointRadius = 5;
constexpr double kMinWidth = 560, kTitleSize = 17, kTextSize = 13, kNoteSize = 10, kHeadingGap = 10, kNoteHeight = 13;
// The width of a character of DejaVu Sans Mono and its kin, relative to the size of the font.
constexpr double kAdvance = 0.605;

struct MarkStyle {
  CellMark mark;
  std::string_view fill, stroke, ink, extra, words;
};

// Marks differ in shade and border too, not in hue alone.
constexpr std::array<MarkStyle, 5> kMarkStyles{
    {{CellMark::plain, "#ffffff", "#8c959f", "#1f2328", "", ""},
     {CellMark::quiet, "#f0f2f4", "#d0d7de", "#6e7781", "", ""},
     {CellMark::used, "#fff3bf", "#9a6700", "#1f2328", "", ""},
     {CellMark::expected, "#e6f6ea", "#1a7f37", "#0b4a1e", " stroke-width=\"2.5\" stroke-dasharray=\"5 3\"",
      "expected"},
     {CellMark::wrong, "#ffd8d3", "#b42318", "#7a120b", " stroke-width=\"3\"", ""}}};

const MarkStyle& style_of(CellMark mark) {
  return *std::ranges::find(kMarkStyles, mark, &MarkStyle::mark);
}

// Text of an element: without control characters, and with XML's own characters escaped.
std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : terminal_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\t':
        result += ' ';
        break;
      default:
        result += c;
    }
  }
  return result;
}

// Characters, not bytes: the later bytes of a UTF-8 sequence take no room.
std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

double width_of(std::string_view text, double size) {
  return static_cast<double>(character_count(text)) * size * kAdvance;
}

// Lines of at most `most` bytes, cut at spaces where there is one.
std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (line.size() > most) {
      std::size_t cut = line.rfind(' ', most);
      if (cut == std::string_view::npos || cut == 0) cut = most - unfinished_bytes(line.substr(0, most));
      lines.emplace_back(line.substr(0, cut));
      line.remove_prefix(line[cut] == ' ' ? cut + 1 : cut);
    }
    lines.emplace_back(line);
  }
  return lines;
}

struct GridSize {
  double heading = 0, cell = kMinCell, row = kRowHeight, width = 0;
};

GridSize size_of_grid(const PictureGrid& grid) {
  GridSize size;
  std::size_t most = grid.columns.size();
  for (const std::string& column : grid.columns) size.cell = std::max(size.cell, width_of(column, kTextSize) + 12);
  for (const PictureRow& row : grid.rows) {
    size.heading = std::max(size.heading, width_of(row.heading, kTextSize));
    most = std::max(most, row.cells.size());
    for (const PictureCell& cell : row.cells) {
      size.cell = std::max({size.cell, width_of(cell.text, kTextSize) + 14,
                            width_of(cell.note, kNoteSize) + (cell.note.empty() ? 0 : 10)});
      if (!cell.note.empty()) size.row = kRowHeight + kNoteHeight;
    }
  }
  if (size.heading > 0) size.heading += kHeadingGap;
  size.width = size.heading + static_cast<double>(most) * (size.cell + kCellGap);
  return size;
}

// Large numbers are whole ones, without an exponent.
std::string chart_number(double value, int digits) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
}

class Drawing {
 public:
  explicit Drawing(double width) : width_(width) {}

  void text(double x, double y, double size, std::string_view words, std::string_view ink = "#1f2328",
            std::string_view anchor = "start", std::string_view weight = "normal") {
    if (words.empty()) return;
    body_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:g}\" fill=\"{}\" text-anchor=\"{}\" "
        "font-weight=\"{}\">{}</text>\n",
        x, y, size, ink, anchor, weight, xml_text(words));
  }

  void cell(double x, double y, double width, double height, const PictureCell& cell) {
    if (cell.mark == CellMark::none) return;
    const MarkStyle& style = style_of(cell.mark);
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\" stroke=\"{}\"{}/>\n",
        x, y, width, height, style.fill, style.stroke, style.extra);
    const double middle = y + height / 2 - (cell.note.empty() ? 0 : kNoteHeight / 2);
    const std::string_view weight = cell.mark == CellMark::wrong ? "bold" : "normal";
    text(x + width / 2, middle + kTextSize * 0.36, kTextSize, cell.text, style.ink, "middle", weight);
    text(x + width / 2, middle + kNoteHeight + kNoteSize * 0.4, kNoteSize, cell.note, style.ink, "middle");
  }

  void link(double x1, double y1, double x2, double y2, std::string_view words) {
    const std::string_view ink = style_of(CellMark::wrong).stroke;
    body_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"2.5\" "
        "stroke-dasharray=\"7 5\"/>\n"
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n",
        x1, y1, x2, y2, ink, x2, y2, ink);
    const double wide = width_of(words, kTextSize) + 16, x = (x1 + x2) / 2, y = (y1 + y2) / 2;
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" rx=\"10\" fill=\"#ffffff\" stroke=\"{}\"/>\n",
        x - wide / 2, y - 10, wide, ink);
    text(x, y + kTextSize * 0.36, kTextSize, words, ink, "middle", "bold");
  }

  void grid(double& y, const PictureGrid& grid) {
    const GridSize size = size_of_grid(grid);
    text(kPageMargin, y + kTextSize, kTextSize, grid.title, "#1f2328", "start", "bold");
    y += kLineHeight + 6;
    const auto column_x = [&](std::size_t i) {
      return kPageMargin + size.heading + static_cast<double>(i) * (size.cell + kCellGap);
    };
    for (std::size_t i = 0; i < grid.columns.size(); ++i) {
      text(column_x(i) + size.cell / 2, y + kTextSize, kTextSize - 1, grid.columns[i], "#57606a", "middle");
    }
    if (!grid.columns.empty()) y += kLineHeight + 2;
    for (const PictureRow& row : grid.rows) {
      text(kPageMargin, y + size.row / 2 + kTextSize * 0.36, kTextSize, row.heading, "#57606a");
      for (std::size_t i = 0; i < row.cells.size(); ++i) cell(column_x(i), y, size.cell, size.row, row.cells[i]);
      y += size.row + kCellGap;
    }
    const double below = y;
    const auto row_y = [&](std::size_t row) {
      return below - static_cast<double>(grid.rows.size() - row) * (size.row + kCellGap);
    };
    for (const PictureLink& at : grid.links) {
      const auto middle = [&](std::size_t i) { return column_x(i) + size.cell / 2; };
      link(middle(at.from_column), row_y(at.from_row) + size.row, middle(at.to_column), row_y(at.to_row), at.text);
    }
    y += kGridGap;
  }

  void chart(double& y, const PictureChart& chart) {
    text(kPageMargin, y + kTextSize, kTextSize, chart.title, "#1f2328", "start", "bold");
    y += kLineHeight + 6;
    double low = chart.points.front().low, high = chart.points.front().high;
    for (const PictureChart::Point& point : chart.points) {
      low = std::min({low, point.low, point.value > 0 ? point.value : point.low});
      high = std::max({high, point.high, point.value});
    }
    const double top = y + 3 * kNoteHeight, bottom = top + kChartHeight, left = kPageMargin + kChartColumn;
    const auto place = [&](double value) {
      if (!(value > low)) return bottom;
      return std::max(top, bottom - (bottom - top) * std::log(value / low) / std::log(high / low));
    };
    const auto column = [&](std::size_t i) { return left + (static_cast<double>(i) + 0.5) * kChartColumn; };
    const double right = left + static_cast<double>(chart.points.size()) * kChartColumn;
    for (const double value : {low, std::sqrt(low) * std::sqrt(high), high}) {
      body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#d0d7de\"/>\n", left,
                           place(value), right, place(value));
      text(left - 8, place(value) + 4, kTextSize - 1, chart_number(value, 3), "#57606a", "end");
    }
    std::string upper, lower, curve;
    for (std::size_t i = 0; i < chart.points.size(); ++i) {
      const PictureChart::Point& point = chart.points[i];
      upper += fmt::format("{:.1f},{:.1f} ", column(i), place(point.high));
      lower = fmt::format("{:.1f},{:.1f} ", column(i), place(point.low)) + lower;
      curve += fmt::format("{:.1f},{:.1f} ", column(i), place(point.value));
    }
    body_ += fmt::format("<polygon points=\"{}{}\" fill=\"#e6f6ea\" stroke=\"#1a7f37\" stroke-dasharray=\"5 3\"/>\n",
                         upper, lower);
    body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f2328\" stroke-width=\"1.5\"/>\n", curve);
    for (std::size_t i = 0; i < chart.points.size(); ++i) {
      const PictureChart::Point& point = chart.points[i];
      const MarkStyle& style = style_of(point.wrong.empty() ? CellMark::plain : CellMark::wrong);
      const double x = column(i), at = place(point.value);
      body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" fill=\"{}\" stroke=\"{}\"{}/>\n", x, at,
                           kPointRadius, style.fill, style.stroke, style.extra);
      text(x, at - 12, kNoteSize + 1, chart_number(point.value, 6), style.ink, "middle", "bold");
      text(x, at - 12 - kNoteHeight, kNoteSize + 1, point.wrong, style.ink, "middle");
      text(x, bottom + kLineHeight, kTextSize - 1, point.category, "#57606a", "middle");
    }
    y = bottom + kLineHeight + kGridGap;
    text(left, y, kTextSize, "dashed band: the right curve is inside; line: your curve", "#57606a");
    y += kGridGap;
  }

  void legend(double& y, const CasePicture& picture) {
    double x = kPageMargin;
    for (const MarkStyle& style : kMarkStyles) {
      const std::string_view words = style.mark == CellMark::used    ? picture.used
                                     : style.mark == CellMark::quiet ? picture.quiet
                                     : style.mark == CellMark::wrong ? picture.wrong
                                                                     : style.words;
      if (words.empty() || !occurs(picture, style.mark)) continue;
      cell(x, y, 26, 18, {"", style.mark});
      text(x + 34, y + 14, kTextSize, words, "#57606a");
      x += 34 + width_of(words, kTextSize) + 24;
    }
    if (x > kPageMargin) y += 18 + kGridGap;
  }

  [[nodiscard]] std::string file(double height, std::string_view title, std::string_view description) const {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "role=\"img\" xml:space=\"preserve\" font-family=\"JetBrains Mono, DejaVu Sans Mono, Menlo, Consolas, "
        "monospace\">\n"
        "<title>{2}</title>\n<desc>{3}</desc>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{4}</svg>\n",
        width_, height, xml_text(title), xml_text(description), body_);
  }

 private:
  static bool occurs(const CasePicture& picture, CellMark mark) {
    for (const PictureGrid& grid : picture.grids) {
      for (const PictureRow& row : grid.rows) {
        if (std::ranges::find(row.cells, mark, &PictureCell::mark) != row.cells.end()) return true;
      }
    }
    return false;
  }

  double width_;
  std::string body_;
};

}  // namespace

CellWindow window_around(std::int64_t center, std::int64_t count, std::int64_t most) {
  const std::int64_t first = std::clamp<std::int64_t>(center - most / 2, 0, std::max<std::int64_t>(0, count - most));
  return {first, std::min(count, first + most)};
}

std::string picture_svg(const std::string& title, const std::string& text, const CasePicture& picture) {
  double width = kMinWidth;
  for (const PictureGrid& grid : picture.grids) {
    width = std::max({width, size_of_grid(grid).width, width_of(grid.title, kTextSize)});
  }
  for (const PictureChart& chart : picture.charts) {
    width = std::max(
        {width, static_cast<double>(chart.points.size() + 1) * kChartColumn, width_of(chart.title, kTextSize)});
  }
  Drawing drawing(width + 2 * kPageMargin);
  double y = kPageMargin;
  const auto lines = [&](std::string_view words, double size, std::string_view weight) {
    for (const std::string& line : wrapped(words, static_cast<std::size_t>(width / (size * kAdvance)))) {
      drawing.text(kPageMargin, y + size, size, line, "#1f2328", "start", weight);
      y += size + 5;
    }
  };
  lines(title, kTitleSize, "bold");
  y += 6;
  lines(text, kTextSize, "normal");
  y += kGridGap;
  for (const PictureGrid& grid : picture.grids) drawing.grid(y, grid);
  for (const PictureChart& chart : picture.charts) drawing.chart(y, chart);
  drawing.legend(y, picture);
  return drawing.file(y - kGridGap + kPageMargin, title, text);
}

}  // namespace kvscope::labs
