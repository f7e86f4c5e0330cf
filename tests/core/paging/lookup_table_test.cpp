#include "core/paging/lookup_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::lookup_table_test {
namespace {

using testing::ElementsAre;

std::string message_of(std::span<const LutRow> rows, const LutLimits& limits,
                       std::optional<std::int64_t> explicit_length) {
  try {
    (void)build_lookup_table(rows, limits, explicit_length);
  } catch (const GeometryError& e) {
    return e.what();
  }
  return "no error";
}

// The padding formula around multiples of 8.
TEST(PaddedLutCols, IsAMultipleOfEightAndAtLeastFifteenMore) {
  EXPECT_EQ(padded_lut_cols(0), 16);
  EXPECT_EQ(padded_lut_cols(1), 24);
  EXPECT_EQ(padded_lut_cols(8), 24);
  EXPECT_EQ(padded_lut_cols(9), 32);
  EXPECT_EQ(padded_lut_cols(16), 32);
  EXPECT_EQ(padded_lut_cols(17), 40);
  EXPECT_EQ(padded_lut_cols(100), 120);
  for (std::int64_t c = 0; c < 300; ++c) {
    EXPECT_EQ(padded_lut_cols(c) % 8, 0);
    EXPECT_GE(padded_lut_cols(c), c + 15);
  }
}

// The widths for the longest row and for an explicit length.
TEST(LookupTable, HasAsManyColumnsAsTheLongestRowOrTheExplicitLengthNeeds) {
  const std::vector<std::uint32_t> blocks = {5, 2, 0, 1, 3, 4, 6, 7, 8};
  const LutLimits eight{8, 128, 4};
  const auto columns = [&](std::int64_t tokens, const LutLimits& limits, std::optional<std::int64_t> length) {
    const LutRow row{blocks, tokens, false};
    return build_lookup_table(std::span(&row, 1), limits, length).columns;
  };
  EXPECT_EQ(columns(1, eight, {}), 24);
  EXPECT_EQ(columns(256, eight, {}), 24);
  EXPECT_EQ(columns(1, eight, 1024), 24);
  EXPECT_EQ(columns(8 * 128 + 1, LutLimits{20, 128, 4}, {}), 32);  // 9 pages
  EXPECT_EQ(columns(1, LutLimits{20, 128, 4}, 17 * 128), 40);
}

// Page 4, N = 4: rows of 10 and 4 tokens. A table padded with N + 1 or with 0 would make kernels read outside the
// pool, or another sequence's page.
TEST(LookupTable, PadsEveryUnusedEntryWithTheNullPage) {
  const std::vector<std::uint32_t> first = {3, 0, 2, 1};  // one page more than 10 tokens need: not copied
  const std::vector<std::uint32_t> second = {1};
  const std::vector<LutRow> rows = {{first, 10, false}, {second, 4, false}, {second, 7, true}};
  const Lut table = build_lookup_table(rows, LutLimits{4, 4, 3});
  ASSERT_EQ(table.columns, 24);
  std::vector<std::uint32_t> expected(3 * 24, 4);
  expected[0] = 3, expected[1] = 0, expected[2] = 2;
  expected[24] = 1;
  EXPECT_EQ(table.entries, expected);  // the dummy row is null pages throughout
}

// The table that the tests of the paged cache write out by hand follows this rule: 4 blocks, pages of 4, totals of 10
// and 4 tokens in blocks 3 0 1 and 2.
TEST(LookupTable, OfTheSmallPagedCacheIsTheOneItsFixtureWritesOut) {
  const std::vector<std::uint32_t> first = {3, 0, 1};
  const std::vector<std::uint32_t> second = {2};
  const std::vector<LutRow> rows = {{first, 10, false}, {second, 4, false}};
  const Lut table = build_lookup_table(rows, LutLimits{4, 4, 2});
  const test::PagedFixture fixture = test::fix_a();
  EXPECT_EQ(table.columns, 24);
  EXPECT_EQ(table.columns, fixture.columns);
  EXPECT_EQ(table.entries, fixture.table);
  // clang-format off
  EXPECT_THAT(table.entries, ElementsAre(3, 0, 1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
                                         2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
  // clang-format on
}

TEST(LookupTable, IsEmptyForAnEmptyBatch) {
  const Lut table = build_lookup_table({}, LutLimits{4, 4, 3});
  EXPECT_TRUE(table.entries.empty());
  EXPECT_EQ(table.columns, 16);
}

TEST(LookupTable, NamesEveryFaultAtOnce) {
  const std::vector<std::uint32_t> one = {1};
  const std::vector<std::uint32_t> null_page = {4, 9};
  const std::vector<LutRow> rows = {{one, 5, false}, {null_page, 8, false}, {one, -1, false}};
  EXPECT_EQ(message_of(rows, LutLimits{4, 4, 2}, 0),
            "lookup table rejected, 6 faults:\n"
            "  batch: 3 rows, but the table was made for at most 2: raise max_batch\n"
            "  row 0: 5 tokens need 2 pages of 4, but it has 1: allocate before the step\n"
            "  row 1: page 0 is in block 4, outside [0, 4)\n"
            "  row 1: page 1 is in block 9, outside [0, 4)\n"
            "  row 2: -1 tokens; a length is 0 or more\n"
            "  max_cache_length: 0; at least 1");
}

TEST(LookupTable, RejectsAnExplicitLengthThatIsTooSmallOrMoreThanThePoolHolds) {
  const std::vector<std::uint32_t> two = {1, 0};
  const std::vector<LutRow> rows = {{two, 8, false}};
  const LutLimits limits{4, 4, 1};
  EXPECT_EQ(
      message_of(rows, limits, 7),
      "lookup table rejected: max_cache_length: 7 is less than the longest row, 8 tokens: leave it out or raise it");
  EXPECT_EQ(message_of(rows, limits, 8), "no error");
  EXPECT_EQ(message_of(rows, limits, 16), "no error");
  EXPECT_EQ(message_of(rows, limits, 17),
            "lookup table rejected: columns: 17 tokens are 5 pages, but the pool has 4 blocks");
}

}  // namespace
}  // namespace kvscope::lookup_table_test
