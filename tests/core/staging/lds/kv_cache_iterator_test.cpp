#include "core/staging/lds/kv_cache_iterator.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/core/staging/lds/support.h"

namespace kvscope::kv_cache_iterator_test {
namespace {

using test::message_of;
using test::TokenCache;

std::uint32_t where(std::int64_t token, std::int64_t head, std::int64_t column) {
  return static_cast<std::uint32_t>(token * 97 + head * 31 + column) & 0xFFFFU;
}

std::uint32_t bits_at(const AnyView<2>& view, std::int64_t row, std::int64_t column) {
  std::uint16_t value = 0;
  std::memcpy(&value, view.at(row, column), 2);
  return value;
}

// Tile 64, end 150. The block ends at token 150, so a pointer valid for a whole last tile would be rejected.
TEST(KVCacheIterator, GivesWholeTilesThenTheRestThenNothing) {
  const TokenCache tokens(DType::bf16, 150, 2, 40, where);
  KVCacheIterator it(tokens.cache(), {.tile_size = 64, .kv_num_heads = 2, .depth = 40}, TokIdx{150}, SeqIdx{0},
                     HeadIdx{1});
  const std::array<std::int64_t, 6> valid{64, 64, 22, 0, 0, 0};
  for (std::int64_t n = 0; n < 6; ++n) {
    EXPECT_EQ(it.tile_start_row(), TokIdx{64 * n});
    const AnyView<2> tile = it.next_tile();
    EXPECT_EQ(tile.dim(0), valid[static_cast<std::size_t>(n)]);
    EXPECT_EQ(tile.dim(1), 40);
    EXPECT_EQ(tile.stride(0), 80);
    EXPECT_EQ(tile.stride(1), 1);
    for (std::int64_t r = 0; r < tile.dim(0); r += 7) EXPECT_EQ(bits_at(tile, r, 39), where(64 * n + r, 1, 39));
    EXPECT_EQ(tile.data == nullptr, tile.dim(0) == 0);
  }
}

TEST(KVCacheIterator, ReadsTheRopeColumnsOfALatentCache) {
  const TokenCache tokens(DType::bf16, 64, 1, 576, where);
  KVCacheIterator it(tokens.cache(),
                     {.tile_size = 32, .kv_num_heads = 1, .depth = 64, .cache_depth = 576, .head_dim_offset = 512},
                     TokIdx{64}, SeqIdx{0}, HeadIdx{0});
  it.increment();  // without loading
  const AnyView<2> tile = it.tile();
  EXPECT_EQ(tile.stride(0), 576);
  EXPECT_EQ(tile.data - tokens.pool.data(), 32 * 1152 + 1024);
  EXPECT_EQ(bits_at(tile, 3, 63), where(35, 0, 575));
  EXPECT_EQ(it.tile_start_row(), TokIdx{32});  // tile() does not move the cursor
}

TEST(KVCacheIterator, BeginsWhereTheMaskDoes) {
  const TokenCache tokens(DType::bf16, 150, 1, 8, where);
  KVCacheIterator it(tokens.cache(), {.tile_size = 64, .kv_num_heads = 1, .depth = 8}, TokIdx{150}, SeqIdx{0},
                     HeadIdx{0});
  it.set_tile_start_row(TokIdx{100});
  const AnyView<2> tile = it.next_tile();
  EXPECT_EQ(tile.dim(0), 50);
  EXPECT_EQ(bits_at(tile, 0, 0), where(100, 0, 0));
  EXPECT_EQ(it.tile_start_row(), TokIdx{164});
}

// Pages of 64 in a scrambled order; the fourth was never assigned: its table entry is the null page's number, 9, and
// there are three blocks. Past the end the table is not read.
struct Paged {
  std::vector<std::uint16_t> pool = std::vector<std::uint16_t>(3 * 64 * 8);
  std::vector<std::uint32_t> lengths{0}, table{2, 0, 1, 9};
  Paged() {
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<std::uint16_t>(i);
  }
  [[nodiscard]] PagedKVCache cache() {
    return {{.dtype = DType::bf16, .kv_params = {1, 8, true}, .page_size = 64},
            {.blocks = {reinterpret_cast<std::byte*>(pool.data()), DType::bf16, {3, 64, 1, 8}},
             .cache_lengths = {lengths.data(), {1}},
             .lookup_table = {table.data(), {1, 4}}}};
  }
};

TEST(KVCacheIterator, FollowsThePagesAndStopsAtTheEndWithoutTheTable) {
  Paged paged;
  KVCacheIterator it(paged.cache(), {.tile_size = 32, .kv_num_heads = 1, .depth = 8}, TokIdx{190}, SeqIdx{0},
                     HeadIdx{0});
  const std::array<std::int64_t, 7> first{2 * 512, 2 * 512 + 256, 0, 256, 512, 512 + 256, -1};
  const std::array<std::int64_t, 7> rows{32, 32, 32, 32, 32, 30, 0};
  for (std::size_t n = 0; n < 7; ++n) {
    const AnyView<2> tile = it.next_tile();
    EXPECT_EQ(tile.dim(0), rows[n]);
    if (first[n] >= 0) {
      EXPECT_EQ(bits_at(tile, 0, 0), first[n]);
    }
  }
  KVCacheIterator past(paged.cache(), {.tile_size = 32, .kv_num_heads = 1, .depth = 8}, TokIdx{193}, SeqIdx{0},
                       HeadIdx{0});
  past.set_tile_start_row(TokIdx{192});
  EXPECT_THROW((void)past.tile(), IndexError);
}

TEST(KVCacheIterator, RejectsAnotherCachesSizesAllAtOnce) {
  Paged paged;
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)KVCacheIterator(paged.cache(),
                                    {.tile_size = 48, .kv_num_heads = 2, .depth = 16, .head_dim_offset = 4}, TokIdx{9},
                                    SeqIdx{0}, HeadIdx{0});
            }),
            "KVCacheIterator rejected, 4 faults:\n"
            "  kv_num_heads: 2 is not the cache's: use 1\n"
            "  cache_depth: 16 is not the head size of the cache: use 8\n"
            "  depth: columns [4, 20) are not inside a head of 8\n"
            "  tile_size: 48 tokens do not divide a page of 64: a tile must be in one page, use a divisor");
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)KVCacheIterator(
                  paged.cache(),
                  {.tile_size = 0, .kv_num_heads = 1, .depth = 0, .cache_depth = 8, .head_dim_offset = -1}, TokIdx{9},
                  SeqIdx{0}, HeadIdx{0});
            }),
            "KVCacheIterator rejected, 3 faults:\n"
            "  tile_size: 0 is not positive: give 1 or more\n"
            "  depth: 0 is not positive: give 1 or more\n"
            "  head_dim_offset: -1 is negative: give 0 or more");
}

}  // namespace
}  // namespace kvscope::kv_cache_iterator_test
