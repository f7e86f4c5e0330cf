#include "core/smem/access_patterns.h"

#include <gmock/gmock.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::access_patterns_test {
namespace {

LayoutSolutions solved(const TileRows& tile, const AccessPattern& pattern) {
  return solve_layout(tile, std::array{pattern});
}

// Hardware counters show 32 wavefronts for a column of 128-byte rows and one for a row.
TEST(AccessPatterns, AColumnCostsABankForEachRowAndARowNothing) {
  const TileRows tile{96, 128};
  const LayoutSolutions column = solved(tile, column_pattern(SharedTarget::nvidia, 4, tile, 128));
  EXPECT_EQ(column.ideal, 3 * 32);
  EXPECT_EQ(column.cycles, 32 * column.ideal);
  EXPECT_TRUE(solved(tile, row_pattern(SharedTarget::nvidia, 4, tile, 128)).is_free());
}

// A pattern that omitted a part of the tile would accept layouts with conflicts.
TEST(AccessPatterns, ReadEveryByteOfEveryRowOnceAndNothingBehindIt) {
  const TileRows tile{64, 144};  // rows of 128 B, 16 B of padding
  for (const AccessPattern& pattern :
       {row_pattern(SharedTarget::nvidia, 4, tile, 128), column_pattern(SharedTarget::nvidia, 8, tile, 128),
        column_pattern(SharedTarget::gfx950, 16, tile, 128)}) {
    SCOPED_TRACE(pattern.name);
    std::set<std::pair<std::int64_t, std::int64_t>> bytes;
    for (const auto& lanes : pattern.accesses) {
      for (const auto& place : lanes) {
        for (int b = 0; b < pattern.width; ++b) EXPECT_TRUE(bytes.emplace(place->row, place->byte + b).second);
      }
    }
    EXPECT_EQ(bytes.size(), 64u * 128u);
    EXPECT_EQ(bytes.rbegin()->second, 127);
  }
}

// A column read needs padding: four bytes per row move each row by one bank.
TEST(AccessPatterns, AColumnIsFreeOnceARowIsPaddedByOneWord) {
  const TileRows tile{32, 128};
  const LayoutSolutions all =
      solve_layout(tile, std::array{column_pattern(SharedTarget::nvidia, 4, tile, 128)}, {.chunk = 4});
  ASSERT_FALSE(all.paddings.empty());
  EXPECT_EQ(all.paddings.front().padding, 4);
}

TEST(AccessPatterns, RejectTilesThatAreNotWholeAccesses) {
  const auto message = [](const auto& make) -> std::string {
    try {
      static_cast<void>(make());
    } catch (const GeometryError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([] {
              return column_pattern(SharedTarget::nvidia, 8, {24, 64}, 44);
            }),
            "pattern 'a column, 8 B a lane' rejected, 2 faults:\n"
            "  rows: 24 is not a whole number of the 32 rows that one access reads: choose 32\n"
            "  row bytes: 44 is not a whole number of the 8 B that one access reads: choose 8");
  EXPECT_EQ(message([] {
              return column_pattern(SharedTarget::nvidia, 4, {32, 64}, 128);
            }),
            "pattern 'a column, 4 B a lane' rejected: pitch: 64 B is less than a row of 128 B");
}

}  // namespace
}  // namespace kvscope::access_patterns_test
