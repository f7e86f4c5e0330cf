// The order in which a tile of K or V is copied: known lists, their sums, every rejected case, and the inverse.
#include "core/staging/tma/kv_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/tma/tile_sizes.h"
#include "tests/core/cache/fixtures.h"
#include "tests/property.h"

namespace kvscope::kv_copy_test {
namespace {

using test::dim;
using test::head;
using test::message_of;

// A row list as from populate: page i of the tile begins at `rows[i]`.
PagedRowIndices row_list(std::int64_t BN, std::int64_t page, const std::vector<std::uint32_t>& rows, bool pair = false,
                         bool leader = true) {
  PagedRowIndices list({.BN = BN, .pair_cta = pair, .is_leader = leader}, page);
  EXPECT_EQ(list.rows().size(), rows.size());
  std::copy(rows.begin(), rows.end(), list.rows().begin());
  return list;
}

// bf16, 128B swizzle, 2 heads of `depth`, a tile of 128 columns: 2 chunks of 64.
struct Tiles {
  std::vector<std::uint64_t> pool;
  TmaRows rows;
  explicit Tiles(std::int64_t depth = 128, std::int64_t count = 1024)
      : pool(static_cast<std::size_t>(count * 2 * depth * 2 / 8)),
        rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::bf16, count, 2, depth} {}
  [[nodiscard]] TmaTile plain(std::int64_t BN) const {
    return make_tma_tile(rows, {.mode = SwizzleMode::b128, .BN = BN, .BK = 128});
  }
  [[nodiscard]] TmaTile folded(std::int64_t BN, bool row_major) const {
    return make_tma_tile(rows,
                         {.mode = SwizzleMode::b128, .BN = BN, .BK = 128, .fold_chunks = 2, .row_major = row_major});
  }
};

struct Brief {  // the fields in the lists of the tests
  std::int64_t smem, depth, row;
  friend bool operator==(const Brief&, const Brief&) = default;
};
std::vector<Brief> briefs(const KvCopy& copy) {
  std::vector<Brief> list;
  for (const KvIssue& issue : copy.issues) {
    EXPECT_EQ(issue.at.at[2], issue.row);  // plain: depth, head, row
    list.push_back({issue.smem, issue.at.at[0], issue.row});
  }
  return list;
}
using Briefs = std::vector<Brief>;

// The list of the header.
TEST(CopyK, GoesPageByPageAndChunkByChunk) {
  const Tiles tiles(256);
  const auto rows = row_list(64, 32, {320, 64});
  const KvCopy copy = tma_copy_k(tiles.plain(32), rows, {.head = head(1)});
  EXPECT_EQ(briefs(copy), (Briefs{{0, 0, 320}, {4096, 64, 320}, {2048, 0, 64}, {6144, 64, 64}}));
  for (const KvIssue& issue : copy.issues) {
    EXPECT_EQ(issue.bytes, 4096);
    EXPECT_EQ(issue.at.at[1], 1);
    EXPECT_FALSE(issue.filled);
  }
  EXPECT_EQ(copy.issues[1].chunk, 1);
  EXPECT_EQ(copy.issues[2].page, 1);
  EXPECT_EQ(copy.expected_bytes, 16384);
  EXPECT_EQ(copy.smem_elements(), 8192);
  EXPECT_EQ(copy.cta_group, 1);
  const KvCopy later = tma_copy_k(tiles.plain(32), rows, {.head = head(1), .depth_offset = dim(128)});
  EXPECT_EQ(briefs(later), (Briefs{{0, 128, 320}, {4096, 192, 320}, {2048, 128, 64}, {6144, 192, 64}}));
}

// A buffer taller than the tile: the gap between two chunks is not used.
TEST(CopyK, LeavesTheGapOfATallerBufferBetweenItsChunks) {
  const Tiles tiles;
  const KvCopy copy = tma_copy_k(tiles.plain(32), row_list(64, 32, {320, 64}), {.head = head(0), .smem_BN = 96});
  EXPECT_EQ(briefs(copy), (Briefs{{0, 0, 320}, {6144, 64, 320}, {2048, 0, 64}, {8192, 64, 64}}));
  EXPECT_EQ(copy.smem_elements(), 6144 + 4096);
  EXPECT_TRUE(kv_element_at(copy, 4095));
  EXPECT_FALSE(kv_element_at(copy, 4096));
  EXPECT_FALSE(kv_element_at(copy, 6143));
  EXPECT_EQ(kv_element_at(copy, 6144)->depth, 64);
}

// The second CTA of a pair copies the second half, of the pages or of the single page.
TEST(CopyK, GivesThePeerOfAPairTheSecondHalf) {
  const Tiles tiles;
  const auto peer = [&](std::int64_t BN, std::int64_t page, const std::vector<std::uint32_t>& r, std::int64_t box,
                        std::int64_t smem_BN) {
    const KvCopy copy =
        tma_copy_k(tiles.plain(box), row_list(BN, page, r, true, false), {.head = head(0), .smem_BN = smem_BN});
    EXPECT_EQ(copy.cta_group, 2);
    return briefs(copy);
  };
  EXPECT_EQ(peer(128, 32, {10, 20, 30, 40}, 32, 64),
            (Briefs{{0, 0, 30}, {4096, 64, 30}, {2048, 0, 40}, {6144, 64, 40}}));
  EXPECT_EQ(peer(128, 128, {500}, 64, 64), (Briefs{{0, 0, 564}, {4096, 64, 564}}));
  EXPECT_EQ(peer(256, 128, {7, 700}, 128, 128), (Briefs{{0, 0, 700}, {8192, 64, 700}}));
}

// Sub-tiles of V over several pages and inside one page.
TEST(CopyV, TakesItsSubTileOfThePagesOrOfTheOnePage) {
  const Tiles tiles;
  const auto second = [&](std::int64_t page, const std::vector<std::uint32_t>& r, std::int64_t box) {
    return briefs(
        tma_copy_v(tiles.plain(box), row_list(128, page, r), {.head = head(0), .num_v_sub_tiles = 2, .v_idx = 1}));
  };
  EXPECT_EQ(second(32, {10, 20, 30, 40}, 32), (Briefs{{0, 0, 30}, {4096, 64, 30}, {2048, 0, 40}, {6144, 64, 40}}));
  EXPECT_EQ(second(128, {500}, 64), (Briefs{{0, 0, 564}, {4096, 64, 564}}));
}

// The last tile of a sequence has one page of four. With fill, the barrier expects all four.
TEST(CopyV, FillsOrSkipsThePagesPastTheValidOnes) {
  const Tiles tiles;
  const auto rows = row_list(128, 32, {11, 22, 33, 44});
  const KvCopy filled = tma_copy_v(tiles.plain(32), rows,
                                   {.head = head(0), .needs_partial = true, .valid_pages = 1, .oob_fill_pages = true});
  EXPECT_EQ(briefs(filled), (Briefs{{0, 0, 11},
                                    {8192, 64, 11},
                                    {2048, 0, kKvFillRow},
                                    {10240, 64, kKvFillRow},
                                    {4096, 0, kKvFillRow},
                                    {12288, 64, kKvFillRow},
                                    {6144, 0, kKvFillRow},
                                    {14336, 64, kKvFillRow}}));
  EXPECT_EQ(filled.expected_bytes, 32768);
  EXPECT_EQ(std::count_if(filled.issues.begin(), filled.issues.end(), [](const KvIssue& i) { return i.filled; }), 6);
  const KvCopy skipped = tma_copy_v(tiles.plain(32), rows, {.head = head(0), .needs_partial = true, .valid_pages = 3});
  EXPECT_EQ(skipped.issues.size(), 6U);
  EXPECT_EQ(skipped.expected_bytes, 24576);
  EXPECT_EQ(skipped.issues[4].row, 33);
  const KvCopy none = tma_copy_v(tiles.plain(32), rows, {.head = head(0), .needs_partial = true, .valid_pages = 0});
  EXPECT_TRUE(none.issues.empty());
  EXPECT_EQ(none.expected_bytes, 0);
  const KvCopy all_filled = tma_copy_v(
      tiles.plain(32), rows, {.head = head(0), .needs_partial = true, .valid_pages = 0, .oob_fill_pages = true});
  EXPECT_EQ(all_filled.expected_bytes, 32768);
  // Without needs_partial the number is ignored.
  EXPECT_EQ(tma_copy_v(tiles.plain(32), rows, {.head = head(0), .valid_pages = 1}).issues.size(), 8U);
}

TEST(CopyK, TakesNoValidPageOnlyFromAPeer) {
  const Tiles tiles;
  const auto copy = [&](bool pair, bool leader, std::optional<std::int64_t> valid) {
    return tma_copy_k(tiles.plain(32), row_list(128, 32, {1, 2, 3, 4}, pair, leader),
                      {.head = head(0), .needs_partial = true, .valid_pages = valid});
  };
  EXPECT_EQ(copy(false, true, std::nullopt).issues.size(), 8U);
  EXPECT_EQ(copy(true, true, std::nullopt).issues.size(), 4U);
  EXPECT_EQ(copy(false, true, 3).issues.size(), 6U);
  EXPECT_EQ(copy(true, false, 0).issues.size(), 0U);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)copy(false, true, 0); }),
            "TMA copy of K rejected: valid_pages: 0 is outside 1 to 4");
  EXPECT_THROW((void)copy(true, true, 0), GeometryError);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)copy(true, false, 3); }),
            "TMA copy of K rejected: valid_pages: 3 is outside 0 to 2");
  EXPECT_THROW((void)copy(false, true, 5), GeometryError);
  EXPECT_THROW((void)copy(true, false, -1), GeometryError);
  // One page shared by two CTAs, or by sub-tiles: half a page is still one to copy.
  EXPECT_EQ(tma_copy_k(tiles.plain(64), row_list(128, 128, {5}, true, false), {.head = head(0), .needs_partial = true})
                .issues.size(),
            2U);
  EXPECT_EQ(tma_copy_v(tiles.plain(64), row_list(128, 128, {5}),
                       {.head = head(0), .num_v_sub_tiles = 2, .v_idx = 1, .needs_partial = true})
                .issues.size(),
            2U);
}

// Two CTAs together fetch each row of the tile exactly once.
TEST(CopyK, OfBothCtasIsTheWholeTile) {
  const Tiles tiles;
  for (const auto& [BN, page] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {128, 32}, {128, 64}, {128, 128}, {256, 128}, {64, 0}, {64, 128}}) {
    const std::int64_t pages = kv_num_sub_tiles(BN, page), eff = BN / pages;
    std::vector<std::uint32_t> rows(static_cast<std::size_t>(pages));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(300 * (rows.size() - i) + 8);
    std::vector<std::int64_t> fetched;
    for (const bool leader : {true, false}) {
      const std::int64_t box = kv_sub_tile_rows(BN / 2, page);
      const KvCopy copy =
          tma_copy_k(tiles.plain(box), row_list(BN, page, rows, true, leader), {.head = head(0), .smem_BN = BN / 2});
      EXPECT_EQ(copy.expected_bytes, BN / 2 * 128 * 2);
      for (const KvIssue& issue : copy.issues) {
        if (issue.chunk > 0) continue;
        for (std::int64_t r = 0; r < copy.issue_rows; ++r) fetched.push_back(issue.row + r);
      }
    }
    std::vector<std::int64_t> tile;
    for (std::int64_t r = 0; r < BN; ++r) tile.push_back(rows[static_cast<std::size_t>(r / eff)] + r % eff);
    EXPECT_EQ(fetched, tile) << BN << " " << page;
  }
}

// Cases that a kernel would copy wrongly without an error.
TEST(CopyGeometry, RejectsPagesThatTheTileDoesNotDivide) {
  const Tiles tiles;
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tma_copy_k(tiles.plain(64), row_list(192, 64, {1, 2, 3}, true), {.head = head(0)});
            }),
            "TMA copy of K rejected: BN: 3 pages cannot be shared by two CTAs: use an even number");
  EXPECT_THROW((void)tma_copy_k(tiles.plain(32), row_list(96, 32, {1, 2, 3}, true), {.head = head(0)}), GeometryError);
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        (void)tma_copy_v(tiles.plain(32), row_list(128, 64, {1, 2}),
                         {.head = head(0), .num_v_sub_tiles = 4, .v_idx = 2});
      }),
      "TMA copy of V rejected: num_v_sub_tiles: 4 do not divide 2 pages: a sub-tile would end inside a page and read "
      "the rows behind it: use a divisor");
  EXPECT_THROW((void)tma_copy_v(tiles.plain(64), row_list(192, 64, {1, 2, 3}), {.head = head(0), .num_v_sub_tiles = 2}),
               GeometryError);
}

TEST(CopyGeometry, TellsEveryFaultAtOnce) {
  const Tiles tiles;
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tma_copy_k(
                  tiles.plain(16), row_list(64, 32, {1, 2}),
                  {.head = head(0), .depth_offset = dim(32), .smem_BN = 48, .needs_partial = true, .valid_pages = 3});
            }),
            "TMA copy of K rejected, 4 faults:\n"
            "  smem_BN: 48 rows from chunk to chunk are less than the tile's 64: chunks would overlap\n"
            "  box: 16 rows in the tile's box, but one issue brings 32: make the tile with BN 32\n"
            "  depth_offset: 32 is not a multiple of 64, the columns of one chunk: use 0\n"
            "  valid_pages: 3 is outside 1 to 2");
  EXPECT_EQ(message_of<IndexError>([&] {
              (void)tma_copy_k(tiles.plain(32), row_list(64, 32, {1, 2}), {.head = head(2)});
            }),
            "head 2 is outside [0, 2)");
  EXPECT_EQ(message_of<IndexError>([&] {
              (void)tma_copy_v(tiles.plain(32), row_list(64, 32, {1, 2}),
                               {.head = head(0), .num_v_sub_tiles = 2, .v_idx = 2});
            }),
            "v_idx 2 is outside [0, 2): one of num_v_sub_tiles");
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tma_copy_v(tiles.plain(32), row_list(64, 32, {1, 2}), {.head = head(0), .num_v_sub_tiles = 0});
            }),
            "TMA copy of V rejected: num_v_sub_tiles: 0 is not positive: give 1 or more");
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tma_copy_v(tiles.plain(32), row_list(64, 64, {1}), {.head = head(0), .num_v_sub_tiles = 3});
            }),
            "TMA copy of V rejected: num_v_sub_tiles: 3 do not divide 64 rows: use a divisor");
  const TmaTile ragged = make_ragged_tma_tile(tiles.rows, {.mode = SwizzleMode::b128, .BN = 32, .BK = 128});
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              (void)tma_copy_k(ragged, row_list(64, 32, {1, 2}), {.head = head(0)});
            }),
            "TMA copy of K: a ragged tile: use a plain or a folded one (create_tma_tile)");
}

// Row 2^30 is fill only where no map has such a row.
TEST(CopyGeometry, RejectsFillFromARowThatExists) {
  const Tiles tiles;
  TmaTile tile = tiles.plain(32);
  const VCopyOptions options{.head = head(0), .needs_partial = true, .valid_pages = 1, .oob_fill_pages = true};
  tile.dims.extents[0] = kKvFillRow;
  EXPECT_NO_THROW((void)tma_copy_v(tile, row_list(64, 32, {1, 2}), options));
  tile.dims.extents[0] = kKvFillRow + 1;
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        (void)tma_copy_v(tile, row_list(64, 32, {1, 2}), options);
      }),
      "TMA copy of V rejected: oob_fill_pages: 1073741825 rows in the map: row 2^30, where fill is fetched from, is "
      "one of them: use fewer blocks");
}

// Chunks inside groups of 8 rows.
TEST(CopyFolded, InsideGroupsOfEightRowsIsOneIssueAPage) {
  const Tiles tiles;
  const KvCopy copy = tma_copy_k(tiles.folded(32, true), row_list(64, 32, {64, 192}), {.head = head(1)});
  ASSERT_EQ(copy.issues.size(), 2U);
  EXPECT_EQ(copy.issues[0].smem, 0);
  EXPECT_EQ(copy.issues[0].at, (TmaCoord{0, 0, 0, 8, 1}));
  EXPECT_EQ(copy.issues[1].smem, 4096);
  EXPECT_EQ(copy.issues[1].at, (TmaCoord{0, 0, 0, 24, 1}));
  EXPECT_EQ(copy.issues[1].bytes, 8192);
  EXPECT_EQ(copy.expected_bytes, 16384);
  for (std::int64_t p = 0; p < 2; ++p) {
    for (std::int64_t r = 0; r < 32; ++r) {
      for (std::int64_t d = 0; d < 128; ++d) {
        EXPECT_EQ(kv_smem_offset(copy, 32 * p + r, d), 4096 * p + r / 8 * 1024 + d / 64 * 512 + r % 8 * 64 + d % 64);
      }
    }
  }
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tma_copy_k(tiles.folded(32, true), row_list(64, 32, {64, 196}), {.head = head(1)});
            }),
            "coordinates of a fold-inner tile: row 196 is not a multiple of 8, the rows of one group: use 192");
  // A page that is filled: the group coordinate is 2^30.
  const KvCopy filled = tma_copy_v(tiles.folded(32, true), row_list(64, 32, {64, 192}),
                                   {.head = head(1), .needs_partial = true, .valid_pages = 1, .oob_fill_pages = true});
  EXPECT_EQ(filled.issues[1].at, (TmaCoord{0, 0, 0, 1 << 30, 1}));
}

// All chunks in one issue.
TEST(CopyFolded, OutsideTheRowsIsOneIssueOfAWholeTile) {
  const Tiles tiles;
  const KvCopy copy = tma_copy_k(tiles.folded(32, false), row_list(32, 64, {64}), {.head = head(1)});
  ASSERT_EQ(copy.issues.size(), 1U);
  EXPECT_EQ(copy.issues[0].at, (TmaCoord{0, 64, 0, 1}));
  EXPECT_EQ(copy.issues[0].bytes, 8192);
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        (void)tma_copy_k(tiles.folded(32, false), row_list(64, 32, {64, 192}), {.head = head(1)});
      }),
      "TMA copy of K rejected, 2 faults:\n"
      "  fold: 2 pages in the tile: chunks outside the rows leave no room for a second page: fold inside 8-row groups "
      "(row_major)\n"
      "  fold: 32 rows of a box, but 64 from chunk to chunk: they must be the same");
}

// Every element of any tile has one place, the inverse gives the element, and the issues cover the places without
// overlap.
TEST(KvElementAt, IsTheInverseOfKvSmemOffset) {
  EXPECT_TRUE(prop::check("kv_element_at after kv_smem_offset", [] {
    const Tiles tiles;
    const std::int64_t page = prop::one_of<std::int64_t>(0, 8, 16, 32, 64, 128);
    const std::int64_t BN = prop::one_of<std::int64_t>(32, 64, 96, 128);
    const bool row_major = prop::any<bool>(), v = prop::any<bool>();
    if (page > 0 && page < BN && BN % page != 0) return;
    const std::int64_t issue = kv_sub_tile_rows(BN, page), pages = BN / issue;
    std::vector<std::uint32_t> rows;
    for (std::int64_t i = 0; i < pages; ++i) rows.push_back(static_cast<std::uint32_t>(8 * prop::uniform(0, 90)));
    const TmaTile tile = row_major ? tiles.folded(issue, true) : tiles.plain(issue);
    const std::int64_t valid = prop::uniform<std::int64_t>(1, pages + 1);
    const KvCopy copy =
        v ? tma_copy_v(tile, row_list(BN, page, rows), {.head = head(0), .needs_partial = true, .valid_pages = valid})
          : tma_copy_k(tile, row_list(BN, page, rows),
                       {.head = head(0),
                        .smem_BN = BN + (row_major ? 0 : 8 * prop::uniform(0, 3)),
                        .needs_partial = true,
                        .valid_pages = valid});
    std::vector<int> seen(static_cast<std::size_t>(copy.smem_elements()), 0);
    bool holds = true;  // one RC_ASSERT: one an element takes seconds under the sanitizers
    for (std::int64_t r = 0; r < BN; ++r) {
      for (std::int64_t d = r % 3; d < 128; d += 3) {
        const std::int64_t at = kv_smem_offset(copy, r, d);
        ++seen.at(static_cast<std::size_t>(at));
        const auto element = kv_element_at(copy, at);
        const bool there = r / issue < valid;
        holds = holds && element && element->row == r && element->depth == d && element->page == r / issue &&
                (element->issue >= 0) == there;
        if (holds && there) {
          const KvIssue& from = copy.issues[static_cast<std::size_t>(element->issue)];
          holds = element->matrix_row == rows[static_cast<std::size_t>(r / issue)] + r % issue && at >= from.smem &&
                  at < from.smem + from.bytes / 2;
        }
      }
    }
    std::int64_t elements = 0;
    for (std::int64_t at = 0; at < copy.smem_elements(); ++at) {
      holds = holds && seen[static_cast<std::size_t>(at)] <= 1;
      elements += kv_element_at(copy, at).has_value() ? 1 : 0;
    }
    RC_ASSERT(holds);
    RC_ASSERT(elements == BN * 128);
  }));
  const Tiles tiles;
  const KvCopy copy = tma_copy_k(tiles.plain(32), row_list(64, 32, {320, 64}), {.head = head(0)});
  EXPECT_EQ(kv_smem_offset(copy, 33, 70), 6214);
  EXPECT_EQ(kv_element_at(copy, 6214), (KvElement{1, 33, 70, 3, 65}));
  EXPECT_FALSE(kv_element_at(copy, -1));
  EXPECT_FALSE(kv_element_at(copy, 8192));
  EXPECT_THROW((void)kv_smem_offset(copy, 64, 0), IndexError);
  EXPECT_THROW((void)kv_smem_offset(copy, 0, 128), IndexError);
}

}  // namespace
}  // namespace kvscope::kv_copy_test
