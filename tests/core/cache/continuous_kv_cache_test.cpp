#include "core/cache/continuous_kv_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/convert.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::continuous_kv_cache_test {
namespace {

using test::ContinuousFixture;
using test::dim;
using test::head;
using test::message_of;
using test::seq;
using test::tok;

// Numbers of the header's example.
TEST(ContinuousCache, FindsRowsColumnsAndElements) {
  ContinuousFixture f;
  EXPECT_EQ(f.k(0).row_idx(seq(0), tok(3)), RowIdx{43});
  EXPECT_EQ(f.k(0).row_idx(seq(1), tok(4)), RowIdx{4});
  EXPECT_EQ(f.v(1).load<1>(seq(0), head(1), tok(3), dim(2))[0], 470.0F);
  EXPECT_EQ(f.k(0).col_idx(head(1)), 4);
  EXPECT_EQ(f.k(0).get_tma_row(7), 7);
  EXPECT_EQ(f.k(0).get_tma_row(-1), -1);
  EXPECT_EQ(f.k(0).max_tile_size(), -1);
  EXPECT_EQ(f.k(0).num_kv_rows(), 45);
}

// A tile of 3 tokens from token 3 would leave a block of 5.
TEST(ContinuousCache, GivesAddressesThatHoldTheWholeTile) {
  ContinuousFixture f;
  const std::byte* address = f.v(1).block_paged_ptr<2>(seq(0), tok(3), head(1), dim(2));
  EXPECT_EQ(f.flat(address), 470);
  EXPECT_EQ((address - f.v(1).blocks().data) / 4, 350);
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)f.v(1).block_paged_ptr<3>(seq(0), tok(3), head(1), dim(2)); }),
      "ContinuousBatchingKVCache.block_paged_ptr: 3 tokens from token 3 end at 6, past the 5 of a block: use 1 to 2");
  EXPECT_THROW((void)f.v(1).block_paged_ptr<0>(seq(0), tok(3), head(1)), GeometryError);
}

TEST(ContinuousCache, NamesTheIndexThatIsOutside) {
  ContinuousFixture f;
  const ContinuousBatchingKVCache k = f.k(0);
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(0), tok(5), dim(0)); }),
            "ContinuousBatchingKVCache: token 5 is outside [0, 5): a block holds max_seq_len tokens");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.row_idx(seq(2), tok(0)); }),
            "ContinuousBatchingKVCache: sequence 2 is outside [0, 2): the batch has that many rows");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(2), tok(0), dim(0)); }),
            "ContinuousBatchingKVCache: head 2 is outside [0, 2): num_heads of the cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<1>(seq(0), head(0), tok(0), dim(4)); }),
            "ContinuousBatchingKVCache: dim 4 is outside [0, 4): head_size of the cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load<4>(seq(0), head(0), tok(0), dim(1)); }),
            "ContinuousBatchingKVCache: 4 elements from dim 1 end at 5, past the 4 of a head: read fewer");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.col_idx(head(2)); }),
            "ContinuousBatchingKVCache: head 2 is outside [0, 2): num_heads of the cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.cache_length(seq(2)); }),
            "ContinuousBatchingKVCache: sequence 2 is outside [0, 2): the batch has that many rows");
  f.table[1] = 3;
  EXPECT_EQ(message_of<IndexError>([&] { (void)f.k(0).load<1>(seq(1), head(0), tok(0), dim(0)); }),
            "ContinuousBatchingKVCache: lookup_table[1] is 3, outside the pool's [0, 3): give the sequence a block");
  EXPECT_EQ(f.k(0).row_idx(seq(1), tok(0)), RowIdx{60});  // row_idx does not check the pool's size
}

TEST(ContinuousCache, StoresWhereItLoads) {
  ContinuousFixture f;
  f.v(1).store(seq(0), head(1), tok(3), dim(2), std::array{-1.0F, -2.0F});
  EXPECT_EQ(f.pool[470], -1.0F);
  EXPECT_EQ(f.pool[471], -2.0F);
  EXPECT_EQ(std::count_if(f.pool.begin(), f.pool.end(), [](float x) { return x < 0; }), 2);
}

// Not quantized: zeros without checking the indices, and no write.
TEST(ContinuousCache, HasNoScales) {
  ContinuousFixture f;
  const ContinuousBatchingKVCache k = f.k(0);
  const std::vector<float> before = f.pool;
  EXPECT_EQ(k.load_scale<2>(seq(9), head(9), tok(9), dim(9)), (std::array<float, 2>{0, 0}));
  EXPECT_EQ(k.load_quantized<2>(seq(0), head(1), tok(1), dim(0)), (std::array<float, 2>{0, 0}));
  k.store_scale(seq(0), head(1), tok(1), dim(0), std::array{-1.0F});
  EXPECT_EQ(f.pool, before);
  EXPECT_EQ(k.scales_block_paged_ptr(seq(0), tok(0), head(0)), nullptr);
  EXPECT_EQ(k.scales_raw_ptr(), nullptr);
  EXPECT_FALSE(k.quantization_enabled());
  EXPECT_EQ(k.quantization_granularity(), 1);
  EXPECT_EQ(k.scale_dtype(), DType::f32);
  EXPECT_EQ(k.page_size(), 0);
  EXPECT_EQ(k.blocks_shape(), (Shape<4>{-1, -1, 2, 4}));
  EXPECT_EQ(k.blocks_stride(), (Shape<4>{-1, 8, 4, 1}));
  EXPECT_EQ(ContinuousBatchingKVCache::get_type_name(), "ContinuousBatchingKVCache");
  EXPECT_EQ(k.max_prompt_length(), 2U);
  EXPECT_EQ(k.max_context_length(), 5U);
  EXPECT_EQ(k.cache_length(seq(0)), 3);
  EXPECT_EQ(k.cache_lengths_nd()(0), 3U);
  EXPECT_FALSE(k.empty_cache());
  EXPECT_EQ(k.max_seq_length(), 2U);
  EXPECT_EQ(k.max_cache_length(), 5U);
}

// Without pages a tile is one run of rows: any base is legal, for each alignment guarantee.
TEST(ContinuousCache, PopulatesOneRowAtAnyBase) {
  ContinuousFixture f;
  const PagedRowIndices rows = f.k(0).populate({.BN = 4, .base_alignment = 64}, seq(0), tok(1));
  EXPECT_EQ(rows.num_pages(), 1);
  EXPECT_EQ(rows.get_row(0), RowIdx{41});
  EXPECT_EQ(rows.get_row(3), RowIdx{44});
  EXPECT_EQ(f.k(0).populate(4, seq(0), tok(1), true, false).cta_group(), 2);
  EXPECT_THROW((void)f.k(0).populate(4, seq(0), tok(5)), IndexError);
}

TEST(ContinuousCache, NamesTheCallsItDoesNotHave) {
  ContinuousFixture f;
  const ContinuousBatchingKVCache k = f.k(0);
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { (void)k.create_rope_tma_tile({}); }),
      "ContinuousBatchingKVCache.create_rope_tma_tile: a continuous cache has no rope-aware rows: use a PagedKVCache");
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)k.scale_row_idx(seq(0), tok(0)); }),
            "ContinuousBatchingKVCache.scale_row_idx: a continuous cache is never quantized: use a PagedKVCache");
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)k.kv_tma_coords(seq(0), tok(0)); }),
            "ContinuousBatchingKVCache.kv_tma_coords: a continuous cache has no pages: use a PagedKVCache");
  EXPECT_THROW((void)k.create_rope_gather4_tma_tile({}), UnsupportedError);
  EXPECT_THROW((void)k.create_index_scale_tma_tile(4), UnsupportedError);
  EXPECT_THROW((void)k.create_paged_tma_tile({}), UnsupportedError);
  EXPECT_THROW((void)k.scale_stride(), UnsupportedError);
  EXPECT_THROW((void)k.scale_tma_coords(seq(0), tok(0)), UnsupportedError);
  EXPECT_THROW((void)k.num_scale_rows(), UnsupportedError);
}

TEST(ContinuousCache, RejectsAViewThatIsNotTheParameters) {
  ContinuousFixture f;
  const ContinuousLayerTensors good{
      .blocks = f.k(0).blocks(), .cache_lengths = f.k(0).cache_lengths(), .lookup_table = f.k(0).lookup_table()};
  const auto rejected = [&](const KVCacheStaticParams& params, auto change) {
    ContinuousLayerTensors tensors = good;
    change(tensors);
    return message_of<GeometryError>([&] { ContinuousBatchingKVCache(params, tensors); });
  };
  EXPECT_EQ(
      rejected({4, 2}, [](ContinuousLayerTensors&) {}),
      "ContinuousBatchingKVCache rejected: blocks: extents are [3, 5, 2, 4], not [any, any, 4, 2]: heads and elements "
      "must be the cache's");
  EXPECT_EQ(rejected({0, 4}, [](ContinuousLayerTensors&) {}),
            "ContinuousBatchingKVCache rejected: kv_params: 0 heads of 4 elements: give 1 or more of both");
  EXPECT_EQ(
      rejected({2, 4}, [](ContinuousLayerTensors& t) { t.blocks.strides[0] = 32; }),
      "ContinuousBatchingKVCache rejected: blocks: strides are [32, 8, 4, 1], not [whole rows that hold a block, 8, 4, "
      "1]");
  EXPECT_EQ(rejected({2, 4}, [](ContinuousLayerTensors& t) { t.lookup_table.extents[0] = 1; }),
            "ContinuousBatchingKVCache rejected: lookup_table: 1 entries for 2 sequences: give one a sequence");
  EXPECT_EQ(rejected({2, 4}, [](ContinuousLayerTensors& t) { t.blocks.extents[0] = 0; }),
            "ContinuousBatchingKVCache rejected: blocks: 0 blocks of 5 tokens: a pool has at least 1 of both");
  EXPECT_EQ(rejected({2, 4}, [](ContinuousLayerTensors& t) { t.blocks.extents[1] = 0; }),
            "ContinuousBatchingKVCache rejected: blocks: 3 blocks of 0 tokens: a pool has at least 1 of both");
  EXPECT_EQ(rejected({2, 0}, [](ContinuousLayerTensors&) {}),
            "ContinuousBatchingKVCache rejected: kv_params: 2 heads of 0 elements: give 1 or more of both");
  EXPECT_EQ(rejected({2, 8}, [](ContinuousLayerTensors&) {}),
            "ContinuousBatchingKVCache rejected: blocks: extents are [3, 5, 2, 4], not [any, any, 2, 8]: heads and "
            "elements must be the cache's");
  // Each stride alone; the pool's are [160, 8, 4, 1]. 84 elements hold a block, but not as whole rows.
  for (const auto& [axis, stride] : {std::pair<std::size_t, std::int64_t>{0, 84}, {1, 16}, {2, 2}, {3, 2}}) {
    std::array<std::int64_t, 4> strides{160, 8, 4, 1};
    strides[axis] = stride;
    EXPECT_EQ(rejected({2, 4}, [&](ContinuousLayerTensors& t) { t.blocks.strides = strides; }),
              fmt::format("ContinuousBatchingKVCache rejected: blocks: strides are [{}], not [whole rows that hold a "
                          "block, 8, 4, 1]",
                          fmt::join(strides, ", ")));
  }
}

TEST(ContinuousCache, HasElementsOfAtLeastAByte) {
  ContinuousFixture f;
  ContinuousLayerTensors tensors{
      .blocks = f.k(0).blocks(), .cache_lengths = f.k(0).cache_lengths(), .lookup_table = f.k(0).lookup_table()};
  tensors.blocks.dtype = DType::e2m1;
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              ContinuousBatchingKVCache({2, 4}, tensors);
            }),
            "ContinuousBatchingKVCache: e2m1 elements have no address: use a type of 8 bits or more");
  ContinuousTensors pool = f.tensors();
  pool.blocks.dtype = DType::e2m1;
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              ContinuousBatchingKVCacheCollection({2, 4}, pool);
            }),
            "ContinuousBatchingKVCacheCollection: e2m1 elements have no address: use a type of 8 bits or more");
}

TEST(ContinuousCache, ReadsNoElementOrMore) {
  ContinuousFixture f;
  std::array<float, 1> out{-1};
  auto* bytes = reinterpret_cast<std::byte*>(out.data());
  f.k(0).load_into(seq(0), head(0), tok(0), dim(3), 0, DType::f32, bytes);
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(
      message_of<GeometryError>([&] { f.k(0).load_into(seq(0), head(0), tok(0), dim(3), -1, DType::f32, bytes); }),
      "ContinuousBatchingKVCache: -1 elements: give 0 or more");
}

// As the conversion instructions of the hardware do: the largest value of an 8-bit float, and infinity of wider ones.
TEST(ContinuousCache, ReadsLargeElementsAsTheTypeHoldsThem) {
  ContinuousFixture f;
  f.pool[f.k(0).row_idx(seq(0), tok(0)).value * 8] = 1e6F;
  const auto first = [&]<class Out>(Out) { return to_double(f.k(0).load<1, Out>(seq(0), head(0), tok(0), dim(0))[0]); };
  EXPECT_EQ(first(e4m3{}), 448);
  EXPECT_EQ(first(e5m2{}), 57344);
  EXPECT_EQ(first(e8m0{}), 1048576);
  EXPECT_EQ(first(f16{}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(first(bf16{}), 999424);
}

// All elements of all sequences against six explicit loops over the pool.
TEST(ContinuousCache, AgreesWithAWalkOfTheSixDimensionalPool) {
  ContinuousFixture f;
  const std::array<int, 3> sequence_of{1, -1, 0};  // block -> sequence
  float own = 0;
  for (const int b : sequence_of) {
    for (int k_or_v = 0; k_or_v < 2; ++k_or_v) {
      for (int l = 0; l < 2; ++l) {
        const ContinuousBatchingKVCache cache = f.collection().get_cache(static_cast<KOrV>(k_or_v), LayerIdx{l});
        for (int t = 0; t < 5; ++t) {
          for (int h = 0; h < 2; ++h) {
            for (int d = 0; d < 4; ++d, ++own) {
              if (b < 0) continue;
              ASSERT_EQ(cache.load<1>(seq(b), head(h), tok(t), dim(d))[0], own);
              const std::int64_t base = f.flat(cache.blocks().data);
              ASSERT_EQ(static_cast<float>(base + cache.row_idx(seq(b), tok(t)).value * 8 + cache.col_idx(head(h)) + d),
                        own);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::continuous_kv_cache_test
