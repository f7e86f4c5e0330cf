#include "core/cache/paged_kv_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "core/base/convert.h"
#include "tests/core/cache/fixtures.h"
#include "tests/property.h"

namespace kvscope::paged_kv_cache_test {
namespace {

using test::dim;
using test::fix_a;
using test::fix_m;
using test::head;
using test::message_of;
using test::seq;
using test::tok;

// Elements of both sequences.
TEST(PagedLoad, FindsTheElementOfItsSlotLayerPageAndHead) {
  auto a = fix_a();
  EXPECT_EQ(a.k(1).load<1>(seq(0), head(1), tok(5), dim(3))[0], 91.0F);
  EXPECT_EQ(a.v(2).load<1>(seq(1), head(0), tok(3), dim(7))[0], 1143.0F);
  EXPECT_EQ(a.k(0).load<1>(seq(0), head(0), tok(0), dim(0))[0], 1152.0F);
}

// Token 12 has a sentinel entry: its row is one of the null page, inside the pool.
TEST(PagedRowIdx, StaysInOneBlockWithinAPageAndJumpsAtItsEnd) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(k.row_idx(seq(0), tok(0)), RowIdx{72});
  EXPECT_EQ(k.row_idx(seq(0), tok(2)), RowIdx{74});
  EXPECT_EQ(k.row_idx(seq(0), tok(3)), RowIdx{75});
  EXPECT_EQ(k.row_idx(seq(0), tok(4)), RowIdx{0});
  EXPECT_EQ(k.row_idx(seq(0), tok(5)), RowIdx{1});
  EXPECT_EQ(k.row_idx(seq(0), tok(9)), RowIdx{25});
  EXPECT_EQ(k.row_idx(seq(1), tok(3)), RowIdx{51});
  EXPECT_EQ(k.row_idx(seq(0), tok(12)), RowIdx{96});
  EXPECT_LT(k.row_idx(seq(0), tok(12)).value, k.num_kv_rows());
}

// The lengths are those given at construction.
TEST(PagedLengths, EchoTheNumbersHandedIn) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(k.cache_length(seq(0)), 9);
  EXPECT_EQ(k.cache_lengths_nd()(1), 2U);
  EXPECT_EQ(k.max_prompt_length(), 2U);
  EXPECT_EQ(k.max_context_length(), 10U);
  EXPECT_EQ(k.max_tile_size(), 4);
  EXPECT_FALSE(k.empty_cache());
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.cache_length(seq(2)); }),
            "PagedKVCache: sequence 2 is outside [0, 2): the batch has that many rows");
}

// A first prefill step has cached lengths of 0 but is not "empty", because the number includes new tokens.
TEST(PagedLengths, CallAFirstPrefillStepNotEmpty) {
  auto a = fix_a();
  a.lengths = {0, 0};
  a.max_cache_length = 3;
  EXPECT_FALSE(a.k(0).empty_cache());
  a.max_cache_length = 0;
  EXPECT_TRUE(a.k(0).empty_cache());
}

TEST(PagedConstants, AreTheParametersAndTheViewsShape) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(PagedKVCache::get_type_name(), "PagedKVCache");
  EXPECT_EQ(k.blocks_shape(), (Shape<4>{-1, 4, 2, 8}));
  EXPECT_EQ(k.blocks_strides(), (Shape<4>{-1, 16, 8, 1}));
  EXPECT_EQ(k.page_size(), 4);
  EXPECT_EQ(k.quantization_granularity(), 1);
  EXPECT_EQ(k.head_dim_granularity(), 8);
  EXPECT_FALSE(k.quantization_enabled());
  EXPECT_EQ(k.scale_dtype(), std::nullopt);
  EXPECT_EQ(k.scales_raw_ptr(), nullptr);
  EXPECT_EQ(k.params(), a.params);
  EXPECT_EQ(k.max_seq_length(), 2U);
  EXPECT_EQ(k.max_cache_length(), 10U);
}

// Division towards minus infinity, no special case for -1.
TEST(GetTmaRow, DividesTowardsMinusInfinityAndKeepsNoSentinel) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(k.get_tma_row(0), 0);
  EXPECT_EQ(k.get_tma_row(14), 74);
  EXPECT_EQ(k.get_tma_row(19), 99);
  EXPECT_EQ(k.get_tma_row(19), k.num_kv_rows() - 1);
  EXPECT_EQ(k.get_tma_row(-1), -21);
  EXPECT_EQ(k.get_tma_row(-4), -24);
  EXPECT_EQ(k.get_tma_row(-5), -45);
  EXPECT_EQ(fix_m().k(0).get_tma_row(-1), -9);
  EXPECT_EQ(fix_m(1).k(0).get_tma_row(-1), -1);  // only one MLA layer: stride == page
}

// Known coordinates, and the identity row + block * stride == row_idx for each token of both sequences.
TEST(KvTmaCoords, SplitTheRowIntoPageRowAndBlock) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(k.kv_tma_coords(seq(0), tok(5)), (PageCoords{1, 0}));
  EXPECT_EQ(k.kv_tma_coords(seq(0), tok(2)), (PageCoords{2, 3}));
  for (int b = 0; b < 2; ++b) {
    for (int t = 0; t < 96; ++t) {
      const PageCoords coords = k.kv_tma_coords(seq(b), tok(t));
      EXPECT_EQ(coords.row + coords.block * k.stride(), k.row_idx(seq(b), tok(t)).value);
    }
  }
}

// Legal and illegal tiles of pages of 4: 3 does not divide the page; 8 is longer than the page; 2 tokens fit at token
// 5, which is not a multiple of 2, and do not fit at token 7.
TEST(BlockPagedPtr, NeedsATileThatDividesThePageAndFitsInIt) {
  auto a = fix_a();
  const PagedKVCache k = a.k(1);
  EXPECT_EQ(a.flat(k.block_paged_ptr<4>(seq(0), tok(4), head(1))), 72);
  EXPECT_EQ(a.flat(k.block_paged_ptr<2>(seq(0), tok(6), head(1), dim(3))), 64 + 2 * 16 + 8 + 3);
  EXPECT_EQ(a.flat(k.block_paged_ptr<2>(seq(0), tok(5), head(1), dim(3))), 64 + 1 * 16 + 8 + 3);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)k.block_paged_ptr<3>(seq(0), tok(4), head(1)); }),
            "PagedKVCache.block_paged_ptr: a tile of 3 tokens does not divide a page of 4: use a divisor of 4");
  EXPECT_THROW((void)k.block_paged_ptr<8>(seq(0), tok(4), head(1)), GeometryError);
  EXPECT_THROW((void)k.block_paged_ptr<0>(seq(0), tok(4), head(1)), GeometryError);
  EXPECT_THROW((void)k.block_paged_ptr<2>(seq(0), tok(7), head(1)), GeometryError);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)k.block_paged_ptr<4>(seq(0), tok(6), head(1)); }),
            "PagedKVCache.block_paged_ptr: a tile of 4 tokens from token 6, row 2 of its page, leaves the page of 4: "
            "begin at token 4 at the latest");
  EXPECT_THROW((void)k.block_paged_ptr<4>(seq(0), tok(-4), head(1)), IndexError);
}

// A tile that begins inside a page, at a token that is not a multiple of the tile: rows 4 to 11 of a page of 16.
TEST(BlockPagedPtr, TakesATileAtAnyTokenFromWhichItFitsInThePage) {
  auto f = test::fix_p();
  const PagedKVCache k = f.k(0);
  // Pages of 16 tokens of 64 elements, blocks of K and V of 2 layers: token 20 is row 4 of block 9.
  EXPECT_EQ(f.flat(k.block_paged_ptr<8>(seq(0), tok(20), head(0), dim(5))), (9 * 4 * 16 + 4) * 64 + 5);
}

// Every page, tile and token of a grid against brute force: legal if the tile is a divisor of the page and all its
// tokens are in one page. An accepted address is compared with the row of each token from the lookup table.
TEST(BlockPagedPtr, AcceptsExactlyTheTilesWhoseTokensAreInOnePage) {
  constexpr std::int64_t kPages = 3, kLayers = 2;
  const std::vector<std::uint32_t> blocks{2, 0, 1};
  std::int64_t accepted = 0, unaligned = 0;
  for (const std::int64_t page : {1, 2, 3, 4, 6, 8, 12, 16}) {
    auto f = test::paged_fixture({1, 4}, {kPages + 1, 2, kLayers, page, 1, 4}, {0}, test::table_of({blocks}, kPages, 3),
                                 kPages, 1, 1);
    const PagedKVCache v = f.v(1);
    for (std::int64_t tile = -1; tile <= 2 * page; ++tile) {
      for (std::int64_t token = 0; token < kPages * page; ++token) {
        bool divides = false;
        for (std::int64_t n = 1; n <= page; ++n) divides = divides || n * tile == page;
        bool one_page = true;
        for (std::int64_t t = token; t < token + tile; ++t) one_page = one_page && t / page == token / page;
        const std::string where =
            "page " + std::to_string(page) + ", tile " + std::to_string(tile) + ", token " + std::to_string(token);
        if (!divides || !one_page) {
          EXPECT_THROW((void)v.block_paged_ptr(tile, seq(0), tok(token), head(0)), GeometryError) << where;
          continue;
        }
        ++accepted;
        unaligned += token % tile != 0 ? 1 : 0;
        const std::byte* first = nullptr;
        ASSERT_NO_THROW(first = v.block_paged_ptr(tile, seq(0), tok(token), head(0))) << where;
        for (std::int64_t r = 0; r < tile; ++r) {
          const std::int64_t block = blocks[static_cast<std::size_t>((token + r) / page)];
          const std::int64_t row = ((block * 2 + 1) * kLayers + 1) * page + (token + r) % page;
          EXPECT_EQ(f.flat(first) + r * 4, row * 4) << where << ", row " << r;
        }
      }
    }
  }
  EXPECT_EQ(accepted, 471);
  EXPECT_EQ(unaligned, 168);
}

// Bad indices, each with the object and the range. Column 24 is one past the table, not past the page or the pool.
TEST(PagedLoad, NamesTheIndexThatIsOutside) {
  auto a = fix_a();
  const PagedKVCache k = a.k(0);
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(2), head(0), tok(0), dim(0)); }),
            "PagedKVCache: sequence 2 is outside [0, 2): the batch has that many rows");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(-1), head(0), tok(0), dim(0)); }),
            "PagedKVCache: sequence -1 is outside [0, 2): the batch has that many rows");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(2), tok(0), dim(0)); }),
            "PagedKVCache: head 2 is outside [0, 2): num_heads of the cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(0), tok(0), dim(8)); }),
            "PagedKVCache: dim 8 is outside [0, 8): head_size of the cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(0), tok(96), dim(0)); }),
            "PagedKVCache: token 96 is outside [0, 96): the lookup table has 24 columns of 4 tokens");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(0), tok(-1), dim(0)); }),
            "PagedKVCache: token -1 is outside [0, 96): the lookup table has 24 columns of 4 tokens");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<4>(seq(0), head(0), tok(0), dim(6)); }),
            "PagedKVCache: 4 elements from dim 6 end at 10, past the 8 of a head: read fewer");
  EXPECT_EQ(k.load<4>(seq(0), head(0), tok(0), dim(4)), (std::array<float, 4>{1156, 1157, 1158, 1159}));
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.row_idx(seq(0), tok(96)); }),
            "PagedKVCache: token 96 is outside [0, 96): the lookup table has 24 columns of 4 tokens");
}

// The last vector of a row: K of layer 1.
TEST(PagedLoad, ReadsNeighborsUpToTheEndOfAHead) {
  auto a = fix_a();
  EXPECT_EQ(a.k(1).load<4>(seq(0), head(0), tok(0), dim(4)), (std::array<float, 4>{1220, 1221, 1222, 1223}));
}

TEST(PagedLoad, RejectsAPageThatWasNeverAssigned) {
  auto a = fix_a();
  a.extents[0] = 4;  // the null page is gone: sentinels point past the pool
  EXPECT_EQ(
      message_of<IndexError>([&] { (void)a.k(0).load<1>(seq(1), head(0), tok(4), dim(0)); }),
      "PagedKVCache: lookup_table[1][1] is 4, outside the block pool's [0, 4), so token 4 of sequence 1 has no page: "
      "allocate one");
  EXPECT_THROW((void)a.k(0).block_paged_ptr<1>(seq(1), tok(4), head(0)), IndexError);
  EXPECT_EQ(a.k(0).row_idx(seq(1), tok(4)), RowIdx{96});  // row_idx does not check the pool's size
}

// The null page is part of the pool: an entry that points there reads it.
TEST(PagedLoad, ReadsTheNullPageWhereTheTableNamesIt) {
  auto a = fix_a();
  EXPECT_EQ(a.k(0).load<1>(seq(1), head(0), tok(4), dim(0))[0], 4 * 384.0F);
}

// Stores to owned pages and to the null page.
TEST(PagedStore, WritesItsElementTheNullPageIncluded) {
  auto a = fix_a();
  a.k(0).store(seq(0), head(1), tok(9), dim(0), std::array{-5.0F});
  EXPECT_EQ(a.pool[408], -5.0F);
  a.k(0).store(seq(1), head(0), tok(4), dim(0), std::array{-6.0F});
  EXPECT_EQ(a.pool[1536], -6.0F);
  EXPECT_EQ(a.drops.count, 0);
  EXPECT_EQ(std::count_if(a.pool.begin(), a.pool.end(), [](float x) { return x < 0; }), 2);
}

// The same pool one page shorter. Nothing may be written, not even past the pool, where the vector still has
// memory.
TEST(PagedStore, DropsAndCountsAWriteWithoutAPage) {
  auto a = fix_a();
  a.extents[0] = 4;
  const std::vector<float> before = a.pool;
  a.k(0).store(seq(1), head(0), tok(4), dim(0), std::array{-6.0F});
  EXPECT_EQ(a.pool, before);
  EXPECT_EQ(a.drops.count, 1);

  a.drops.raise = true;
  EXPECT_EQ(
      message_of<IndexError>([&] { a.k(0).store(seq(1), head(0), tok(4), dim(0), std::array{-6.0F}); }),
      "PagedKVCache: lookup_table[1][1] is 4, outside the block pool's [0, 4), so token 4 of sequence 1 has no page: "
      "the write was dropped; allocate one before writing");
  EXPECT_EQ(a.drops.count, 2);
  EXPECT_EQ(a.pool, before);

  PagedTensors tensors = a.tensors();
  tensors.drops = nullptr;  // dropped stores are not counted
  PagedKVCacheCollection(a.params, tensors)
      .get_key_cache(LayerIdx{0})
      .store(seq(1), head(0), tok(4), dim(0), std::array{1.F});
  EXPECT_EQ(a.drops.count, 2);
}

TEST(PagedStore, ChecksIndicesBeforeItDrops) {
  auto a = fix_a();
  EXPECT_THROW(a.k(0).store(seq(2), head(0), tok(0), dim(0), std::array{1.0F}), IndexError);
  EXPECT_THROW(a.k(0).store(seq(0), head(2), tok(0), dim(0), std::array{1.0F}), IndexError);
  EXPECT_THROW(a.k(0).store(seq(0), head(0), tok(96), dim(0), std::array{1.0F}), IndexError);
  EXPECT_THROW(a.k(0).store(seq(0), head(0), tok(0), dim(7), std::array{1.0F, 2.0F}), IndexError);
  EXPECT_EQ(a.drops.count, 0);
}

// 1 + 2^-11 + 2^-30 is past the tie between two f16 values: rounded once it goes up, through bf16 or a float that lost
// the last bit it would not.
TEST(PagedStore, RoundsOnce) {
  std::vector<std::uint16_t> pool(2 * 4, 0);
  const std::vector<std::uint32_t> lengths{1}, table(24, 0);
  const PagedKVCacheCollection collection(
      {.dtype = DType::f16, .kv_params = {1, 4}, .page_size = 1},
      {.blocks = {reinterpret_cast<std::byte*>(pool.data()), DType::f16, {1, 2, 1, 1, 1, 4}},
       .cache_lengths = {lengths.data(), {1}},
       .lookup_table = {table.data(), {1, 24}}});
  const PagedKVCache k = collection.get_key_cache(LayerIdx{0});
  k.store<1, double>(seq(0), head(0), tok(0), dim(0), {1.0 + 0x1p-11 + 0x1p-30});
  EXPECT_EQ((k.load<1>(seq(0), head(0), tok(0), dim(0))[0]), 1.0009765625F);
  k.store<2>(seq(0), head(0), tok(0), dim(2), {65504.0F, 1e6F});
  EXPECT_EQ(k.load<1>(seq(0), head(0), tok(0), dim(2))[0], 65504.0F);
  EXPECT_EQ(k.load<1>(seq(0), head(0), tok(0), dim(3))[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ((k.load<1, double>(seq(0), head(0), tok(0), dim(2))[0]), 65504.0);
}

// A layer's view given directly, with the faults that a hand-made view can have.
TEST(PagedKVCache, RejectsAViewThatIsNotTheParameters) {
  auto a = fix_a();
  const PagedLayerTensors good{
      .blocks = a.k(0).blocks(), .cache_lengths = a.k(0).cache_lengths(), .lookup_table = a.k(0).lookup_table()};
  EXPECT_NO_THROW(PagedKVCache(a.params, good));
  const auto rejected = [&](auto change) {
    PagedLayerTensors tensors = good;
    change(tensors);
    return message_of<GeometryError>([&] { PagedKVCache(a.params, tensors); });
  };
  EXPECT_EQ(
      rejected([](PagedLayerTensors& t) { t.blocks.extents[1] = 8; }),
      "PagedKVCache rejected: blocks: extents are [5, 8, 2, 8], not [any, 4, 2, 8]: page rows, heads and elements must "
      "be the cache's");
  EXPECT_EQ(rejected([](PagedLayerTensors& t) { t.blocks.strides[2] = 16; }),
            "PagedKVCache rejected: blocks: strides are [384, 16, 16, 1], not [any, 16, 8, 1]: rows inside a block are "
            "packed");
  EXPECT_EQ(rejected([](PagedLayerTensors& t) { t.blocks.strides[0] = 390; }),
            "PagedKVCache rejected: blocks: 390 elements from block to block are not whole rows of 16 and at least 64");
  EXPECT_EQ(rejected([](PagedLayerTensors& t) { t.blocks.strides[0] = 48; }),
            "PagedKVCache rejected: blocks: 48 elements from block to block are not whole rows of 16 and at least 64");
  EXPECT_EQ(rejected([](PagedLayerTensors& t) { t.blocks.extents[0] = 0; }),
            "PagedKVCache rejected: blocks: 0 blocks: a pool has at least 1");
  EXPECT_EQ(
      rejected([&](PagedLayerTensors& t) { t.scales = t.blocks; }),
      "PagedKVCache rejected: scales: given to a cache without a scale dtype: say which, or leave the scales out");
}

// Whole grids: tables that are permutations, K and V, every layer, head and dim against six explicit loops that fill
// the pool with consecutive numbers. Sizes share no divisor, so that exchanged axes are detected.
TEST(PagedAddressing, AgreesWithAWalkOfTheSixDimensionalPool) {
  const bool ok = prop::check("row_idx, load, block_paged_ptr and coordinates against six loops", [] {
    const auto pick = [](int low, int high) { return static_cast<std::int64_t>(prop::in_range(low, high)); };
    const bool mla = prop::any<bool>();
    const std::int64_t kv = mla ? 1 : 2;
    const std::int64_t N = pick(1, 6), L = pick(1, 4), P = pick(1, 6), H = pick(1, 4), D = pick(1, 6);
    std::vector<std::uint32_t> pages(static_cast<std::size_t>(N));
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::uint32_t>(i);
    for (std::size_t i = pages.size(); i > 1; --i) {
      std::swap(pages[i - 1], pages[static_cast<std::size_t>(pick(0, static_cast<int>(i)))]);
    }
    auto f = test::paged_fixture({H, D, mla}, {N + 1, kv, L, P, H, D}, {0},
                                 test::table_of({pages}, N + 2, static_cast<std::uint32_t>(N)), N + 2, 1, 1);
    const PagedKVCacheCollection collection = f.collection();

    std::int64_t own = 0;  // the walk: number of the element at (block, k_or_v, layer, row, head, dim)
    std::vector<std::int64_t> page_of(static_cast<std::size_t>(N + 1), -1);
    for (std::size_t page = 0; page < pages.size(); ++page) page_of[pages[page]] = static_cast<std::int64_t>(page);
    for (std::int64_t block = 0; block <= N; ++block) {
      const std::int64_t page =
          block == N ? N : page_of[static_cast<std::size_t>(block)];  // column N holds the null page
      for (std::int64_t k_or_v = 0; k_or_v < kv; ++k_or_v) {
        for (std::int64_t l = 0; l < L; ++l) {
          const PagedKVCache cache = collection.get_cache(static_cast<KOrV>(k_or_v), LayerIdx{l});
          for (std::int64_t row = 0; row < P; ++row) {
            const TokIdx token{page * P + row};
            for (std::int64_t h = 0; h < H; ++h) {
              for (std::int64_t d = 0; d < D; ++d, ++own) {
                RC_ASSERT(cache.load<1>(seq(0), HeadIdx{h}, token, DimIdx{d})[0] == static_cast<float>(own));
                RC_ASSERT(f.flat(cache.block_paged_ptr<1>(seq(0), token, HeadIdx{h}, DimIdx{d})) == own);
                const std::int64_t base = f.flat(cache.blocks().data);
                RC_ASSERT(base + cache.row_idx(seq(0), token).value * H * D + h * D + d == own);
                RC_ASSERT(cache.get_tma_row(static_cast<std::int32_t>(block * P + row)) ==
                          static_cast<std::int32_t>(cache.row_idx(seq(0), token).value));
              }
            }
          }
        }
      }
    }
  });
  EXPECT_TRUE(ok);
}

// A block of NaN that no table entry names is never read.
TEST(PagedLoad, NeverReadsABlockThatNoEntryNames) {
  auto a = fix_a();
  a.extents[0] = 6;
  a.pool.resize(6 * 384, std::numeric_limits<float>::quiet_NaN());
  for (int l = 0; l < 3; ++l) {
    for (int t = 0; t < 96; ++t) {
      for (const float x : a.v(l).load<8>(seq(t % 2), head(t % 2), tok(t), dim(0))) EXPECT_EQ(x, x);
    }
  }
}

}  // namespace
}  // namespace kvscope::paged_kv_cache_test
