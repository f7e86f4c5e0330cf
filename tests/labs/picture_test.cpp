#include "apps/labs/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "apps/labs/pool_picture.h"

namespace kvscope::labs::picture_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Markup of a submission would become an element, and an escape sequence is no XML.
TEST(PictureSvg, EscapesTextAndControlCharacters) {
  const CasePicture picture{{{"<b>", {"&"}, {{"\"q\"", {{"\x1b[31m", CellMark::plain, "<i>"}}}}}}};
  const std::string svg = picture_svg("a<script>", "b & c\x07", picture);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, HasSubstr("a&lt;script&gt;"));
  EXPECT_THAT(svg, HasSubstr("b &amp; c\\u0007"));
  EXPECT_TRUE(std::ranges::none_of(svg, [](char c) { return c >= 0 && c < ' ' && c != '\n'; }));
}

// A cell drawn outside of the picture is not seen.
TEST(PictureSvg, EveryCellIsInsideThePicture) {
  PictureGrid wide{"grid", {}, {}};
  for (int r = 0; r < 9; ++r) {
    PictureRow row{"row " + std::to_string(r), {}};
    for (int c = 0; c < 30; ++c)
      row.cells.push_back({std::to_string(1000 * r + c), CellMark::plain, c == 7 ? "note" : ""});
    wide.rows.push_back(row);
  }
  const std::string svg = picture_svg("title", std::string(300, 'x'), {{wide, wide}});
  const std::regex size("<svg[^>]* width=\"(\\d+)\" height=\"(\\d+)\""),
      cell("<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  std::smatch whole;
  ASSERT_TRUE(std::regex_search(svg, whole, size));
  std::size_t cells = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), cell), end; at != end; ++at, ++cells) {
    EXPECT_LE(std::stod((*at)[1]) + std::stod((*at)[3]), std::stod(whole[1]));
    EXPECT_LE(std::stod((*at)[2]) + std::stod((*at)[4]), std::stod(whole[2]));
  }
  EXPECT_EQ(cells, 2U * 9 * 30);
}

TEST(PictureSvg, TheLegendHasTheMarksThatOccurAndHaveAMeaning) {
  CasePicture picture{
      {{"grid", {}, {{"row", {{"1", CellMark::wrong}, {"2", CellMark::quiet}, {"3", CellMark::used}}}}}}};
  picture.quiet = "padding";
  const std::string svg = picture_svg("t", "", picture);
  EXPECT_EQ(count_of(svg, ">your code<"), 1U);
  EXPECT_EQ(count_of(svg, ">padding<"), 1U);
  EXPECT_EQ(count_of(svg, ">expected<"), 0U);
}

TEST(PictureSvg, WrapsLongLinesAtSpaces) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word" + std::to_string(i) + " ";
  std::string svg = picture_svg("t", words, {});
  svg.erase(0, svg.find("</desc>"));  // which has the whole text
  EXPECT_GT(count_of(svg, "<text"), 3U);
  for (int i = 0; i < 60; ++i) EXPECT_THAT(svg, HasSubstr("word" + std::to_string(i)));
}

// A point below the band, one above it, one that is no number on a logarithmic scale, and one in the band.
TEST(PictureSvg, AChartHasEveryPointInsideAndNamesTheWrongOnes) {
  CasePicture picture;
  picture.charts.push_back({"curve",
                            {{"4", 0.001, 10, 20, "too low"},
                             {"8", 5e6, 10, 20, "too high"},
                             {"16", -3, 10, 20, "too low"},
                             {"32", 15, 10, 20}}});
  EXPECT_FALSE(picture.empty());
  const std::string svg = picture_svg("title", "", picture);
  const std::regex size("<svg[^>]* width=\"(\\d+)\" height=\"(\\d+)\""),
      point("<circle cx=\"([-0-9.]+)\" cy=\"([-0-9.]+)\"");
  std::smatch whole;
  ASSERT_TRUE(std::regex_search(svg, whole, size));
  std::vector<double> heights;
  for (std::sregex_iterator at(svg.begin(), svg.end(), point), end; at != end; ++at) {
    EXPECT_GT(std::stod((*at)[1]), 0);
    EXPECT_LT(std::stod((*at)[1]), std::stod(whole[1]));
    EXPECT_GT(std::stod((*at)[2]), 0);
    EXPECT_LT(std::stod((*at)[2]), std::stod(whole[2]));
    heights.push_back(std::stod((*at)[2]));
  }
  ASSERT_EQ(heights.size(), 4U);
  EXPECT_LT(heights[1], heights[3]);  // y grows downward
  EXPECT_LT(heights[3], heights[0]);
  EXPECT_EQ(heights[2], heights[0]);
  EXPECT_EQ(count_of(svg, ">too low<"), 2U);
  EXPECT_EQ(count_of(svg, ">too high<"), 1U);
  EXPECT_EQ(count_of(svg, ">5000000<"), 2U);  // at its point and at the end of the axis
}

TEST(WindowAround, HoldsTheCenterAndStaysInside) {
  for (std::int64_t count : {1, 5, 12, 40}) {
    for (std::int64_t center = 0; center < count; ++center) {
      const CellWindow window = window_around(center, count, 12);
      EXPECT_LE(window.first, center);
      EXPECT_GT(window.last, center);
      EXPECT_GE(window.first, 0);
      EXPECT_LE(window.last, count);
      EXPECT_EQ(window.last - window.first, std::min<std::int64_t>(12, count));
    }
  }
}

// Pages of 4 tokens, 3 layers, K and V: a block has 24 rows. Row 74 is slot 2 of block 3, and 14 is slot 2 of the fourth
// page of block 0.
TEST(PoolGrid, NamesBlockPageAndSlot) {
  const PictureGrid grid = pool_grid({4, 3, 2, 10}, 74, 14);
  ASSERT_EQ(grid.rows.size(), 2U);
  EXPECT_EQ(grid.rows[0].heading, "block 3, K of this layer");
  ASSERT_EQ(grid.rows[0].cells.size(), 4U);
  EXPECT_EQ(grid.rows[0].cells[2].text, "74");
  EXPECT_EQ(grid.rows[0].cells[2].mark, CellMark::expected);
  EXPECT_EQ(grid.rows[1].heading, "block 0, 3 pages after K of this layer");
  EXPECT_EQ(grid.rows[1].cells[2].mark, CellMark::wrong);
}

TEST(PoolGrid, OnePageIsOneLineAndARowOutsideThePoolOneCell) {
  const PictureGrid same = pool_grid({4, 3, 2, 10}, 74, 73);
  ASSERT_EQ(same.rows.size(), 1U);
  EXPECT_EQ(same.rows[0].cells[1].mark, CellMark::wrong);
  EXPECT_EQ(same.rows[0].cells[2].mark, CellMark::expected);
  const PictureGrid outside = pool_grid({4, 3, 2, 10}, 74, 240);
  ASSERT_EQ(outside.rows.size(), 2U);
  EXPECT_EQ(outside.rows[1].heading, "outside the pool");
  EXPECT_EQ(pool_grid({4, 3, 2, 10}, 74, 239).rows[1].heading, "block 9, 5 pages after K of this layer");
}

// With the layer known, the pages of a block have names: 3 layers of K, then 3 of V.
TEST(PoolGrid, NamesKAndVOfALayer) {
  const PoolShape shape{4, 3, 2, 10, 1};
  EXPECT_EQ(pool_grid(shape, 0, -4).rows[0].heading, "block 0, K of layer 1");
  EXPECT_EQ(pool_grid(shape, 0, -4).rows[1].heading, "block 0, K of layer 0");
  EXPECT_EQ(pool_grid(shape, 0, 12).rows[1].heading, "block 0, V of layer 1");
  EXPECT_EQ(pool_grid(shape, 0, -5).rows[1].heading, "outside the pool");
}

}  // namespace
}  // namespace kvscope::labs::picture_test
