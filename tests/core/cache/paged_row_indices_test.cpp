#include "core/cache/paged_row_indices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/cache/paged_kv_cache.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::paged_row_indices_test {
namespace {

using test::fix_p;
using test::message_of;
using test::seq;
using test::tok;
using testing::ElementsAre;

std::vector<std::uint32_t> rows_of(const PagedRowIndices& indices) {
  return {indices.rows().begin(), indices.rows().end()};
}

// {BN, P, alignment guarantee, sub-tiles, chunk, reads}; chunk 0 means that populate throws.
TEST(PopulatePlan, ReadsAsWideAsTileAndPromiseAllow) {
  const std::vector<std::array<std::int64_t, 6>> cases = {
      {64, 16, 64, 4, 4, 1},    {64, 16, 32, 4, 2, 2},    {64, 16, 16, 4, 1, 4},    {64, 16, 48, 4, 1, 4},
      {64, 16, 8, 4, 0, 0},     {128, 16, 128, 8, 8, 1},  {128, 64, 128, 2, 2, 1},  {128, 64, 64, 2, 1, 2},
      {192, 16, 192, 12, 4, 3}, {192, 16, 64, 12, 4, 3},  {192, 16, 16, 12, 1, 12}, {192, 64, 192, 3, 1, 3},
      {96, 16, 96, 6, 2, 3},    {256, 16, 256, 16, 8, 2}, {256, 16, 128, 16, 8, 2}, {256, 16, 16, 16, 1, 16},
      {256, 128, 256, 2, 2, 1}, {256, 8, 256, 32, 8, 4},  {128, 128, 128, 1, 1, 1}, {64, 128, 64, 1, 1, 1},
  };
  for (const auto& [BN, page, promise, pages, chunk, reads] : cases) {
    const PopulatePlan plan = populate_plan(BN, page, promise);
    EXPECT_EQ(plan.num_pages, pages) << BN << " " << page << " " << promise;
    EXPECT_EQ(plan.chunk, chunk) << BN << " " << page << " " << promise;
    EXPECT_EQ(plan.reads, reads) << BN << " " << page << " " << promise;
  }
  EXPECT_TRUE(populate_plan(128, 128, 128).whole_pages);
  EXPECT_FALSE(populate_plan(64, 128, 64).whole_pages);
}

// The older contract: without a guarantee the chunk follows from the number of sub-tiles alone.
TEST(PopulatePlan, FollowsTheTileWithoutAPromise) {
  const std::vector<std::array<std::int64_t, 2>> cases = {{1, 1}, {2, 2},  {3, 1},  {4, 4},  {6, 2},
                                                          {8, 8}, {12, 4}, {16, 8}, {24, 8}, {32, 8}};
  for (const auto& [pages, chunk] : cases) {
    EXPECT_EQ(populate_plan(pages * 16, 16, std::nullopt).chunk, chunk) << pages;
  }
}

TEST(PopulatePlan, RejectsWhatDoesNotFit) {
  EXPECT_EQ(populate_plan(256, 1, std::nullopt).num_pages, 256);
  EXPECT_EQ(message_of<GeometryError>([] { (void)populate_plan(257, 1, std::nullopt); }),
            "PagedRowIndices: BN 257 over pages of 1 is 257 sub-tiles, and 256 fit: use smaller tiles or larger pages");
  EXPECT_EQ(message_of<GeometryError>([] { (void)populate_plan(64, 16, 0); }),
            "populate: base_alignment 0 is not positive: give the number of tokens that divides every base, 1 for no "
            "guarantee");
  EXPECT_EQ(message_of<GeometryError>([] { (void)populate_plan(100, 64, 64); }),
            "a tile of 100 rows is not a whole number of pages of 64 rows: use 64 or 128 rows");
}

// Entry times stride. Table 5 9 2 7 1 0 3 8, 64 rows per block.
TEST(Populate, GivesEachSubTilesFirstRow) {
  auto p = fix_p();
  const PagedKVCache k = p.k(0);
  EXPECT_THAT(rows_of(k.populate({.BN = 64, .base_alignment = 64}, seq(0), tok(64))), ElementsAre(64, 0, 192, 512));
  EXPECT_THAT(rows_of(k.populate({.BN = 64, .base_alignment = 32}, seq(0), tok(32))), ElementsAre(128, 448, 64, 0));
  EXPECT_THAT(rows_of(k.populate({.BN = 64, .base_alignment = 16}, seq(0), tok(48))), ElementsAre(448, 64, 0, 192));
}

// The entries past the sequence's pages are sentinels, which give rows of the null page 10.
TEST(Populate, ReadsSentinelsAsRowsOfTheNullPage) {
  auto p = fix_p();
  EXPECT_THAT(rows_of(p.k(0).populate({.BN = 64, .base_alignment = 64}, seq(0), tok(128))),
              ElementsAre(640, 640, 640, 640));
}

// Both rows of the null page are inside the pool of N + 1 pages.
TEST(Populate, KeepsTheNullPageInsideThePool) {
  auto f = test::paged_fixture({1, 1}, {5, 2, 1, 128, 1, 1}, {0}, test::table_of({{}}, 24, 4), 24, 1, 1);
  const PagedRowIndices rows = f.k(0).populate({.BN = 256, .base_alignment = 128}, seq(0), tok(0));
  EXPECT_THAT(rows_of(rows), ElementsAre(1024, 1024));
  EXPECT_LT(rows.get_row(255).value, f.k(0).num_kv_rows());
}

// Each broken precondition by its name, all of one call together.
TEST(Populate, NamesEveryBrokenPreconditionAtOnce) {
  auto p = fix_p();
  const auto rejected = [&](std::int64_t promise, std::int64_t base) {
    return message_of<GeometryError>(
        [&] { (void)p.k(0).populate({.BN = 64, .base_alignment = promise}, seq(0), tok(base)); });
  };
  EXPECT_EQ(rejected(64, 32),
            "PagedKVCache.populate rejected, 2 faults:\n"
            "  base: token 32 is not a multiple of 64, the alignment guarantee: use 0\n"
            "  base: page 2 is not on a read of 4 entries: begin at page 0");
  EXPECT_EQ(rejected(8, 0),
            "PagedKVCache.populate rejected: base_alignment: 8 is less than a page of 16: a tile over several "
            "pages begins on a page, guarantee 16 or a multiple");
  EXPECT_EQ(rejected(16, 40),
            "PagedKVCache.populate rejected, 2 faults:\n"
            "  base: token 40 is not a multiple of 16, the alignment guarantee: use 32\n"
            "  base: token 40 is not on a page of 16: use 32");
  EXPECT_EQ(rejected(16, 352),
            "PagedKVCache.populate rejected: lookup_table: pages 22 to 26 end past its row stride 24: pad "
            "the rows");
  EXPECT_NO_THROW((void)p.k(0).populate({.BN = 64, .base_alignment = 16}, seq(0), tok(320)));  // ends at column 24
  // A guarantee of 24 tokens is a page and a half: token 24 satisfies it and is still inside a page.
  EXPECT_EQ(rejected(24, 24), "PagedKVCache.populate rejected: base: token 24 is not on a page of 16: use 16");
  EXPECT_EQ(message_of<IndexError>([&] { (void)p.k(0).populate({.BN = 64, .base_alignment = 64}, seq(1), tok(0)); }),
            "PagedKVCache: sequence 1 is outside [0, 1): the batch has that many rows");
  EXPECT_EQ(message_of<IndexError>([&] { (void)p.k(0).populate({.BN = 64, .base_alignment = 64}, seq(0), tok(-64)); }),
            "PagedKVCache: token -64 is outside [0, 384): the lookup table has 24 columns of 16 tokens");
}

// A table whose rows are not whole reads would make the second sequence's reads straddle.
TEST(Populate, RejectsATableWhoseRowsAreNotWholeReads) {
  auto p = fix_p({5, 9, 2, 7, 1, 0, 3, 8}, 22);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)p.k(0).populate({.BN = 64, .base_alignment = 64}, seq(0), tok(0)); }),
            "PagedKVCache.populate rejected: lookup_table: its row stride 22 is not whole reads of 4 entries: pad the "
            "rows to "
            "24");
  EXPECT_NO_THROW((void)p.k(0).populate({.BN = 64, .base_alignment = 32}, seq(0), tok(0)));
}

// A tile smaller than a page keeps its offset in the page.
TEST(Populate, KeepsTheInPageOffsetOfATileInsideOnePage) {
  auto f = test::paged_fixture({1, 1}, {10, 2, 2, 128, 1, 1}, {0}, test::table_of({{5, 9}}, 24, 9), 24, 1, 1);
  const PagedKVCache k = f.k(0);
  const PagedRowIndices rows = k.populate({.BN = 64, .base_alignment = 64}, seq(0), tok(192));
  EXPECT_THAT(rows_of(rows), ElementsAre(4672));
  EXPECT_EQ(rows.get_row(10), RowIdx{4682});

  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)k.populate({.BN = 64, .base_alignment = 32}, seq(0), tok(96)); }),
      "PagedKVCache.populate rejected: base: token 96 is row 96 of its page of 128, and 64 rows from there cross its "
      "end");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)k.populate({.BN = 64, .base_alignment = 128}, seq(0), tok(64)); }),
            "PagedKVCache.populate rejected: base: token 64 is not a multiple of 128, the alignment guarantee: use 0");
  EXPECT_THAT(rows_of(k.populate({.BN = 64, .base_alignment = 128}, seq(0), tok(128))), ElementsAre(9 * 512));
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.populate({.BN = 64, .base_alignment = 64}, seq(0), tok(3072)); }),
            "PagedKVCache: token 3072 is outside [0, 3072): the lookup table has 24 columns of 128 tokens");
}

// The older entry point: pages as with a guarantee of BN, and any base inside one page.
TEST(PopulateWithoutPromise, WantsBnAlignedBasesOverPagesAndAnyBaseInsideOne) {
  auto p = fix_p();
  EXPECT_THAT(rows_of(p.k(0).populate(64, seq(0), tok(64))), ElementsAre(64, 0, 192, 512));
  EXPECT_EQ(message_of<GeometryError>([&] { (void)p.k(0).populate(64, seq(0), tok(32)); }),
            "PagedKVCache.populate rejected, 2 faults:\n"
            "  base: token 32 is not a multiple of 64, the alignment guarantee: use 0\n"
            "  base: page 2 is not on a read of 4 entries: begin at page 0");
  EXPECT_THAT(rows_of(p.k(0).populate(8, seq(0), tok(37))), ElementsAre(2 * 64 + 5));
  EXPECT_THROW((void)p.k(0).populate(8, seq(0), tok(41)), GeometryError);  // rows 9..16 of a page of 16
  // Twelve pages: a base on a multiple of 4 pages but not of the tile keeps the reads aligned, but violates
  // the older contract.
  EXPECT_THROW((void)p.k(0).populate(192, seq(0), tok(64)), GeometryError);
  EXPECT_NO_THROW((void)p.k(0).populate({.BN = 192, .base_alignment = 64}, seq(0), tok(64)));
}

// Tags do not change the rows: V and both CTAs share the whole range.
TEST(Populate, TagsPairsWithoutChangingTheRows) {
  auto p = fix_p();
  const PagedRowIndices alone = p.k(0).populate(64, seq(0), tok(64));
  const PagedRowIndices peer = p.k(0).populate(64, seq(0), tok(64), true, false);
  EXPECT_EQ(rows_of(alone), rows_of(peer));
  EXPECT_EQ(alone.cta_group(), 1);
  EXPECT_TRUE(alone.is_leader());
  EXPECT_EQ(peer.cta_group(), 2);
  EXPECT_TRUE(peer.pair_cta());
  EXPECT_FALSE(peer.is_leader());
  EXPECT_EQ(peer.BN(), 64);
  EXPECT_EQ(peer.page_size(), 16);
  EXPECT_EQ(peer.eff_page(), 16);
}

// The row of each token of the list {64,0,192,512}.
TEST(GetRow, AddsTheOffsetInsideItsSubTile) {
  auto p = fix_p();
  const PagedRowIndices rows = p.k(0).populate(64, seq(0), tok(64));
  EXPECT_EQ(rows.get_row(0), RowIdx{64});
  EXPECT_EQ(rows.get_row(15), RowIdx{79});
  EXPECT_EQ(rows.get_row(16), RowIdx{0});
  EXPECT_EQ(rows.get_row(20), RowIdx{4});
  EXPECT_EQ(rows.get_row(63), RowIdx{527});
  EXPECT_EQ(message_of<IndexError>([&] { (void)rows.get_row(64); }),
            "PagedRowIndices: row 64 is outside [0, 64): a tile has BN rows");
  EXPECT_THROW((void)rows.get_row(-1), IndexError);
}

// 24 is inside a page: 8 rows fit there, 16 would run into the next page's block.
TEST(SubRows, AreThePartsRowsWhenEachStaysInOnePage) {
  auto p = fix_p();
  const PagedRowIndices rows = p.k(0).populate(64, seq(0), tok(64), true, false);
  EXPECT_THAT(rows_of(rows.sub_rows<32>(16)), ElementsAre(0, 192));
  EXPECT_THAT(rows_of(rows.sub_rows<8>(24)), ElementsAre(8));
  EXPECT_FALSE(rows.sub_rows<32>(16).pair_cta());
  EXPECT_TRUE(rows.sub_rows<32>(16).is_leader());
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)rows.sub_rows<16>(24); }),
      "PagedRowIndices.sub_rows rejected: rows 24 to 40 cross the end of a page of 16: begin at a multiple of 16");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)rows.sub_rows<48>(0); }),
            "PagedRowIndices.sub_rows rejected: 48 rows do not divide the tile's 64: use a divisor of 64");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)rows.sub_rows<32>(48); }),
            "PagedRowIndices.sub_rows rejected: rows 48 to 80 are outside the tile's [0, 64): begin in [0, 32]");
  EXPECT_THROW((void)rows.sub_rows<32>(-16), GeometryError);
}

// The whole grid of tiles, pages, guarantees and bases against row_idx of every token. The rules of the contract are
// implemented here a second time, from their text: allowed calls must be correct, all others must be rejected.
TEST(Populate, AgreesWithRowIdxOfEveryTokenOrRejects) {
  const std::vector<std::uint32_t> row = {5, 9, 2, 7, 1, 0, 3, 8, 6, 4, 2, 9, 0, 1, 7, 3};
  int accepted = 0;
  int refused = 0;
  for (const std::int64_t page : {1, 2, 4, 6, 16, 64}) {
    for (const std::int64_t columns : {24, 26, 31}) {
      auto f =
          test::paged_fixture({1, 1}, {11, 2, 2, page, 1, 1}, {0}, test::table_of({row}, columns, 10), columns, 1, 1);
      const PagedKVCache cache = f.v(1);
      for (const std::int64_t BN : {1, 2, 4, 6, 12, 16, 24, 32, 64, 96}) {
        if (BN > page && BN % page != 0) continue;
        for (const std::int64_t promise : {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128}) {
          for (std::int64_t base = 0; base < page * columns; base += page < 4 ? 1 : page / 4) {
            const std::int64_t pages = BN <= page ? 1 : BN / page;
            const std::int64_t first = base / page;
            bool allowed = promise == 0 || base % promise == 0;
            if (pages == 1) {
              allowed = allowed && base % page + BN <= page;
            } else {
              const std::int64_t in_force = promise == 0 ? BN : promise;
              std::int64_t chunk = 8;
              while (chunk > 0 && (pages % chunk != 0 || (in_force / page) % chunk != 0)) chunk /= 2;
              if (in_force < page) chunk = 0;
              allowed = base % in_force == 0 && chunk > 0 && base % page == 0 &&
                        columns % std::max<std::int64_t>(chunk, 1) == 0 &&
                        first % std::max<std::int64_t>(chunk, 1) == 0 && first + pages <= columns;
            }
            PopulateTile tile{.BN = BN};
            if (promise > 0) tile.base_alignment = promise;
            if (!allowed) {
              ++refused;
              ASSERT_THROW((void)cache.populate(tile, seq(0), tok(base)), GeometryError)
                  << "page " << page << " BN " << BN << " promise " << promise << " base " << base << " columns "
                  << columns;
              continue;
            }
            ++accepted;
            const PagedRowIndices rows = cache.populate(tile, seq(0), tok(base));
            for (std::int64_t i = 0; i < BN; ++i) {
              ASSERT_EQ(rows.get_row(i), cache.row_idx(seq(0), tok(base + i)))
                  << "page " << page << " BN " << BN << " promise " << promise << " base " << base << " token " << i;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 5000);
  EXPECT_GT(refused, 5000);
}

// Every part of every tile: sub_rows is correct for each token, or rejected when a sub-tile would cross a page.
TEST(SubRows, AgreeWithTheTileRowForRow) {
  for (const std::int64_t page : {4, 6, 16, 128}) {
    auto f = test::paged_fixture({1, 1}, {11, 2, 2, page, 1, 1}, {0},
                                 test::table_of({{5, 9, 2, 7, 1, 0, 3, 8}}, 24, 10), 24, 1, 1);
    for (const std::int64_t BN : {12, 16, 48, 96}) {
      if (BN > page && BN % page != 0) continue;
      const PagedRowIndices rows = f.k(1).populate(BN, seq(0), tok(0));
      for (std::int64_t part = 1; part <= BN; ++part) {
        const bool whole_pages = part <= page || part % page == 0;
        for (std::int64_t offset = 0; offset < BN; ++offset) {
          bool stays = true;  // every sub-tile of the part in one page of the tile
          for (std::int64_t i = 0; i < part; i += std::min(part, page)) {
            stays = stays && (offset + i) / page == (offset + i + std::min(part, page) - 1) / page;
          }
          if (BN % part != 0 || offset + part > BN || !whole_pages || !stays) {
            ASSERT_THROW((void)rows.sub_rows(part, offset), GeometryError)
                << page << " " << BN << " " << part << " " << offset;
            continue;
          }
          const PagedRowIndices sub = rows.sub_rows(part, offset);
          for (std::int64_t i = 0; i < part; ++i) ASSERT_EQ(sub.get_row(i), rows.get_row(offset + i));
        }
      }
    }
  }
}

// Rows are 32 bits that wrap, as a kernel's: 1 840 895 blocks of 1408 rows each end past 2^31 and the sentinel of a
// larger pool past 2^32.
TEST(Populate, WrapsIn32BitsAsAKernelDoes) {
  std::vector<float> none(4);
  const std::vector<std::uint32_t> lengths{0};
  const std::vector<std::uint32_t> table = test::table_of({{4'000'000, 1'840'894}}, 24, 0);
  const PagedKVCache k({.dtype = DType::f32, .kv_params = {1, 8, true}, .page_size = 16},
                       {.blocks = {test::bytes_of(none), DType::f32, {1'840'895, 16, 1, 8}, {1408 * 8, 8, 8, 1}},
                        .cache_lengths = {lengths.data(), {1}},
                        .lookup_table = {table.data(), {1, 24}}});
  const std::uint64_t first = std::uint64_t{4'000'000} * 1408;
  EXPECT_EQ(k.row_idx(seq(0), tok(3)).value, static_cast<std::uint32_t>(first + 3));
  EXPECT_THAT(rows_of(k.populate(32, seq(0), tok(0))),
              ElementsAre(static_cast<std::uint32_t>(first), std::uint32_t{1'840'894U * 1408U}));
}

}  // namespace
}  // namespace kvscope::paged_row_indices_test
