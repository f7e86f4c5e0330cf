#include "viz/window/palette.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace kvscope::viz::palette_test {
namespace {

using testing::UnorderedElementsAre;

const QRgb kRed = qRgb(250, 0, 0), kGreen = qRgb(0, 250, 0), kBlue = qRgb(0, 0, 250);

TEST(Palette, ColoursThatFitAreKeptExactly) {
  EXPECT_THAT(palette_of({{kRed, 1}, {kGreen, 1'000'000}, {kBlue, 3}}, 3), UnorderedElementsAre(kRed, kGreen, kBlue));
  EXPECT_TRUE(palette_of({}, 8).empty());
}

// One flat color, and two clusters of two colors for the two remaining entries: the cut is between the clusters, and
// each cluster gets its mean, weighted by pixels: (1 * 10 + 3 * 20) / 4 = 17.5, rounded to 18, and (2 * 10 + 2 * 20) /
// 4.
// A cut across the shorter side, or a mean over colors instead of pixels, gives other numbers.
TEST(Palette, TwoClustersBecomeTheirWeightedMeans) {
  const QRgb flat = qRgb(255, 255, 255);
  EXPECT_THAT(palette_of({{flat, 1'000'000},
                          {qRgb(10, 100, 0), 1},
                          {qRgb(20, 100, 0), 3},
                          {qRgb(10, 200, 0), 2},
                          {qRgb(20, 200, 0), 2}},
                         3),
              UnorderedElementsAre(flat, qRgb(18, 100, 0), qRgb(15, 200, 0)));
}

// In a picture that is 90 % background, the background stays exact for any number of blended colors.
TEST(Palette, AFlatColorSurvivesThousandsOfBlends) {
  std::vector<ColorCount> counts{{qRgb(0x12, 0x14, 0x19), 900'000}, {qRgb(0x1a, 0x1d, 0x24), 90'000}};
  for (int i = 0; i < 4096; ++i) counts.push_back({qRgb(i % 16 * 16, i / 16 % 16 * 16, i / 256 * 16), 2});
  const std::vector<QRgb> palette = palette_of(counts, 255);
  EXPECT_EQ(palette.size(), 255u);
  EXPECT_TRUE(std::ranges::binary_search(palette, qRgb(0x12, 0x14, 0x19)));
  EXPECT_TRUE(std::ranges::binary_search(palette, qRgb(0x1a, 0x1d, 0x24)));
}

// 4096 colors on a grid with 16 per side, 64 boxes: no box is larger than a quarter of the cube per side, so the
// squared error of a color is at most 3 x 48^2. A cut that always halves the same channel fails this test.
TEST(Palette, NoColorOfACubeIsFarFromItsEntry) {
  std::vector<ColorCount> counts;
  for (int i = 0; i < 4096; ++i) counts.push_back({qRgb(i % 16 * 16, i / 16 % 16 * 16, i / 256 * 16), 1});
  const std::vector<QRgb> palette = palette_of(counts, 64);
  EXPECT_EQ(palette.size(), 64u);
  int worst = 0;
  for (const ColorCount& c : counts) {
    const QRgb shown = palette[nearest_color(palette, c.color)];
    worst = std::max({worst, std::abs(qRed(shown) - qRed(c.color)), std::abs(qGreen(shown) - qGreen(c.color)),
                      std::abs(qBlue(shown) - qBlue(c.color))});
  }
  EXPECT_LE(worst, 48);
}

TEST(Palette, TheNearestColorIsTheFirstOfEquals) {
  const std::vector<QRgb> palette{qRgb(0, 0, 0), qRgb(10, 0, 0), qRgb(20, 0, 0)};
  EXPECT_EQ(nearest_color(palette, qRgb(4, 0, 0)), 0u);
  EXPECT_EQ(nearest_color(palette, qRgb(5, 0, 0)), 0u);
  EXPECT_EQ(nearest_color(palette, qRgb(6, 0, 0)), 1u);
  EXPECT_EQ(nearest_color(palette, qRgb(20, 0, 0)), 2u);
  EXPECT_EQ(nearest_color(palette, qRgb(255, 255, 255)), 2u);
}

// At most `most` colors, without duplicates, independent of the input's order, exact if there are enough entries.
RC_GTEST_PROP(Palette, HoldsItsPromisesForAnyCounts, (std::vector<std::uint8_t> bytes, bool few)) {
  std::set<QRgb> colors;
  std::vector<ColorCount> counts;
  for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const QRgb color = qRgb(bytes[i], bytes[i + 1], bytes[i + 2]);
    if (colors.insert(color).second) counts.push_back({color, 1 + std::int64_t{bytes[i]} * bytes[i + 1]});
  }
  const std::size_t most = few ? 1 + counts.size() / 2 : 256;
  const std::vector<QRgb> palette = palette_of(counts, most);
  RC_ASSERT(palette.size() <= most);
  RC_ASSERT(std::set<QRgb>(palette.begin(), palette.end()).size() == palette.size());
  if (counts.size() <= most) RC_ASSERT(std::set<QRgb>(palette.begin(), palette.end()) == colors);
  std::ranges::reverse(counts);
  RC_ASSERT(palette_of(counts, most) == palette);
}

}  // namespace
}  // namespace kvscope::viz::palette_test
