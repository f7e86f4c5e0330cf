// A failing case as a picture: labeled grids of cells, and charts, drawn as SVG. A grader describes them; picture_svg()
// is the only code that draws.
//
//   the table of the case
//            0    1    2    3      columns: one heading per cell
//   row 0  [ 7 ][ 3 ][ 9*][   ]    9 is the student's value (CellMark::wrong), its note the expected one
//   row 1  [ 4 ][ 5 ]
//
// A picture shows no more than the text of the case does: expected values only where that text has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::labs {

enum class CellMark : std::uint8_t {
  plain,
  quiet,     // as CasePicture::quiet says: padding, for example
  used,      // as CasePicture::used says: entries that are read, for example
  expected,  // the expected place or value
  wrong,     // the student's place or value
  none       // nothing is drawn in this place
};

struct PictureCell {
  std::string text;
  CellMark mark = CellMark::plain;
  std::string note = {};  // below the text, smaller; empty: none
};

struct PictureRow {
  std::string heading;
  std::vector<PictureCell> cells;
};

// A dashed arrow from one cell of a grid to another: an order that is missing.
struct PictureLink {
  std::size_t from_row = 0, from_column = 0, to_row = 0, to_column = 0;
  std::string text;  // at its middle
};

struct PictureGrid {
  std::string title;
  std::vector<std::string> columns;  // headings of the cells; may be fewer than the cells, or none
  std::vector<PictureRow> rows;
  std::vector<PictureLink> links = {};
};

// A student's curve over categories, on a logarithmic scale, and a band that holds the right one. The band shows the
// form of the right curve and not its numbers.
struct PictureChart {
  struct Point {
    std::string category;      // below the axis
    double value = 0;          // of the student, written beside the point; at most 0: drawn at the bottom
    double low = 1, high = 1;  // of the band, above 0
    std::string wrong = {};    // "too low": the point has CellMark::wrong; empty: it is right
  };
  std::string title;
  std::vector<Point> points;
};

struct CasePicture {
  std::vector<PictureGrid> grids;
  std::string used = {}, quiet = {};  // what these marks mean, for the legend; empty: not in it
  std::string wrong = "your code";    // the same
  std::vector<PictureChart> charts = {};
  [[nodiscard]] bool empty() const { return grids.empty() && charts.empty(); }
};

// The window [first, last) of `count` cells that a picture shows around cell `center`: at most `most` cells.
struct CellWindow {
  std::int64_t first = 0, last = 0;
};
[[nodiscard]] CellWindow window_around(std::int64_t center, std::int64_t count, std::int64_t most);

// A whole SVG file: `title`, the lines of `text` (wrapped), the grids, the charts, and a legend of the marks that occur
// in grids. Any text is escaped; control characters are written as in terminal_text.h. Without grids and charts: title
// and text alone.
[[nodiscard]] std::string picture_svg(const std::string& title, const std::string& text, const CasePicture& picture);

}  // namespace kvscope::labs
