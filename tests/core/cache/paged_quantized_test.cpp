// Quantized caches: the scale of each element, the type in which they are multiplied, and what must not be read.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/convert.h"
#include "core/cache/paged_kv_cache.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::paged_quantized_test {
namespace {

using test::dim;
using test::fix_a;
using test::fix_aq;
using test::head;
using test::message_of;
using test::seq;
using test::tok;

// Rounding the slot up, as older Mojo revisions did, would give d = 3 the scale of d = 4.
TEST(Scales, BelongToTheGranuleRoundedDown) {
  auto a = fix_aq();
  const PagedKVCache k = a.k(1);
  EXPECT_EQ(a.flat_scale(k.scales_block_paged_ptr(seq(0), tok(5), head(1), dim(3))), 22);
  EXPECT_EQ(a.flat_scale(k.scales_block_paged_ptr(seq(0), tok(5), head(1), dim(4))), 23);
  EXPECT_EQ(k.load_scale<1>(seq(0), head(1), tok(5), dim(3))[0], 22.0F);
  EXPECT_EQ(k.load_scale<2>(seq(0), head(0), tok(0), dim(0)), (std::array<float, 2>{304, 305}));
  EXPECT_EQ(message_of<IndexError>([&] { (void)k.load_scale<2>(seq(0), head(0), tok(0), dim(4)); }),
            "PagedKVCache: 2 scales from scale 1 end at 3, past the 2 of a head: read fewer");
  EXPECT_EQ(a.flat_scale(k.scales_raw_ptr()), 16);
}

// Rows of the scales' pool.
TEST(Scales, HaveRowsOfTheirOwn) {
  auto a = fix_aq();
  const PagedKVCache k = a.k(1);
  EXPECT_EQ(k.scale_stride(), 24);
  EXPECT_EQ(k.scale_row_idx(seq(0), tok(5)), RowIdx{1});
  EXPECT_EQ(k.num_scale_rows(), 100);
  EXPECT_EQ(k.scale_tma_coords(seq(0), tok(2)), (PageCoords{0, 3}));
}

// An e4m3 cache of one block: two heads of 8, granules of 4, one layer, pages of 2.
struct Fp8Fixture {
  std::vector<std::uint8_t> pool = std::vector<std::uint8_t>(2 * 2 * 2 * 8, 0);
  std::vector<float> scales = std::vector<float>(2 * 2 * 2 * 2, 1.0F);
  std::vector<std::uint32_t> lengths{2}, table = std::vector<std::uint32_t>(24, 0);
  PagedCacheParams params{.dtype = DType::e4m3,
                          .kv_params = {2, 8},
                          .page_size = 2,
                          .scale_dtype = DType::f32,
                          .quantization_granularity = 4};
  [[nodiscard]] PagedKVCache k() {
    return PagedKVCacheCollection(
               params, {.blocks = {reinterpret_cast<std::byte*>(pool.data()), DType::e4m3, {1, 2, 1, 2, 2, 8}},
                        .cache_lengths = {lengths.data(), {1}},
                        .lookup_table = {table.data(), {1, 24}},
                        .scales = AnyView<6>{test::bytes_of(scales), DType::f32, {1, 2, 1, 2, 2, 2}}})
        .get_key_cache(LayerIdx{0});
  }
};

// One element with and without its scale.
TEST(QuantizedLoad, MultipliesByTheScaleAndLoadQuantizedDoesNot) {
  Fp8Fixture f;
  f.pool[0] = 0x3C;
  f.pool[1] = 0x3C;
  f.pool[4] = 0xB0;
  f.scales[0] = 0.25F;
  f.scales[1] = 2.0F;
  const PagedKVCache k = f.k();
  EXPECT_EQ(k.load<1>(seq(0), head(0), tok(0), dim(0))[0], 0.375F);
  EXPECT_EQ(k.load_quantized<1>(seq(0), head(0), tok(0), dim(0))[0], 1.5F);
  EXPECT_EQ(k.load<1>(seq(0), head(0), tok(0), dim(4))[0], -1.0F);
  EXPECT_EQ((k.load<4>(seq(0), head(0), tok(0), dim(0))), (std::array<float, 4>{0.375F, 0.375F, 0, 0}));
  EXPECT_EQ((k.load_quantized<1, e4m3>(seq(0), head(0), tok(0), dim(4))[0].bits), 0xB0);
}

// One scale per load, so a vector over two granules would be dequantized wrongly.
TEST(QuantizedLoad, RejectsAVectorOverTwoGranulesAndItsOwnTypeAsOutput) {
  Fp8Fixture f;
  const PagedKVCache k = f.k();
  EXPECT_EQ(message_of<GeometryError>([&] { (void)k.load<4>(seq(0), head(0), tok(0), dim(2)); }),
            "PagedKVCache.load: elements 2 to 6 belong to scales 0 to 1, and one load applies one scale: stay inside 4 "
            "elements");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)k.load<1, e4m3>(seq(0), head(0), tok(0), dim(0)); }),
            "PagedKVCache.load: e4m3 of a quantized cache of e4m3 would lose the scale: load another type, or use "
            "load_quantized");
  EXPECT_NO_THROW((void)k.load_quantized<8>(seq(0), head(0), tok(0), dim(0)));
}

// The value of token 1 is in block 3, its scale in block 2.
TEST(QuantizedLoad, FindsScalesThroughTheirOwnTable) {
  auto f = test::paged_fixture({1, 4}, {5, 2, 1, 4, 1, 4}, {2}, test::table_of({{3}}, 24, 4), 24, 1, 2);
  f.params.scale_dtype = DType::f32;
  f.params.quantization_granularity = 4;
  f.scales_extents = {5, 2, 1, 4, 1, 1};
  f.scale_pool = test::counting(40);
  f.scales_table = test::table_of({{2}}, 24, 4);
  const PagedKVCache k = f.k(0);
  EXPECT_EQ(f.flat(k.block_paged_ptr<1>(seq(0), tok(1), head(0))), 3 * 32 + 4);
  EXPECT_EQ(k.load_scale<1>(seq(0), head(0), tok(1), dim(0))[0], 2 * 8 + 1.0F);
  EXPECT_EQ((k.load<1, double>(seq(0), head(0), tok(1), dim(2))[0]), (3 * 32 + 6) * 17.0);
  EXPECT_EQ(k.row_idx(seq(0), tok(1)), RowIdx{25});
  EXPECT_EQ(k.scale_row_idx(seq(0), tok(1)), RowIdx{17});
  EXPECT_EQ(k.scale_tma_coords(seq(0), tok(1)), (PageCoords{0, 2}));
}

// Every granularity, including a partial last granule, against double arithmetic over explicit indices. Values are
// small integers, so that the product is exact and any wrong scale is detected.
TEST(QuantizedLoad, AgreesWithDoubleArithmeticForEveryGranularity) {
  for (std::int64_t granularity = 1; granularity <= 9; ++granularity) {
    auto a = fix_aq(granularity);
    const std::int64_t G = (8 + granularity - 1) / granularity;
    ASSERT_EQ(a.params.head_dim_granularity(), G);
    for (std::size_t i = 0; i < a.scale_pool.size(); ++i) a.scale_pool[i] = static_cast<float>(i % 61 + 1);
    for (int l = 0; l < 3; ++l) {
      for (int t = 0; t < 12; ++t) {
        const std::int64_t block = std::array{3, 0, 1}[static_cast<std::size_t>(t / 4)];
        for (int h = 0; h < 2; ++h) {
          for (int d = 0; d < 8; ++d) {
            const std::int64_t row = (block * 6 + 3 + l) * 4 + t % 4;  // V: slot 1
            const double value = static_cast<double>((row * 2 + h) * 8 + d);
            const double scale = static_cast<double>(((row * 2 + h) * G + d / granularity) % 61 + 1);
            ASSERT_EQ((a.v(l).load<1, double>(seq(0), head(h), tok(t), dim(d))[0]), value * scale)
                << granularity << " " << l << " " << t << " " << h << " " << d;
          }
        }
      }
    }
  }
}

// bf16 scales: 1.0078125 * 1.0078125 = 1.01568603515625 is rounded to bf16 (1.015625) before it becomes a float. A
// product kept in f32 would show more digits.
TEST(QuantizedLoad, RoundsTheProductToTheScalesType) {
  std::vector<std::uint16_t> pool(2, 0x3F81), scales(2, 0x3F81);
  const std::vector<std::uint32_t> lengths{1}, table(24, 0);
  const PagedCacheParams params{.dtype = DType::f16,
                                .kv_params = {1, 1},
                                .page_size = 1,
                                .scale_dtype = DType::bf16,
                                .quantization_granularity = 1};
  pool[0] = 0x3C08;  // f16 1.0078125
  const PagedKVCacheCollection collection(
      params, {.blocks = {reinterpret_cast<std::byte*>(pool.data()), DType::f16, {1, 2, 1, 1, 1, 1}},
               .cache_lengths = {lengths.data(), {1}},
               .lookup_table = {table.data(), {1, 24}},
               .scales = AnyView<6>{reinterpret_cast<std::byte*>(scales.data()), DType::bf16, {1, 2, 1, 1, 1, 1}}});
  EXPECT_EQ(collection.get_key_cache(LayerIdx{0}).load<1>(seq(0), head(0), tok(0), dim(0))[0], 1.015625F);

  // The element is rounded to the scale's type first: f16 1.0009765625 has no bf16 and becomes 1, so the
  // product is the scale.
  pool[0] = 0x3C01;
  EXPECT_EQ(collection.get_key_cache(LayerIdx{0}).load<1>(seq(0), head(0), tok(0), dim(0))[0], 1.0078125F);
}

TEST(ScaleCalls, NameWhatIsMissing) {
  auto a = fix_a();
  const PagedKVCache plain = a.k(0);
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)plain.load_quantized<1>(seq(0), head(0), tok(0), dim(0)); }),
            "PagedKVCache.load_quantized: the cache is not quantized: use load");
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)plain.load_scale<1>(seq(0), head(0), tok(0), dim(0)); }),
            "PagedKVCache.load_scale: the cache is not quantized: give it a scale dtype");
  EXPECT_THROW((void)plain.scales_block_paged_ptr(seq(0), tok(0), head(0)), UnsupportedError);
  EXPECT_THROW((void)plain.scale_stride(), UnsupportedError);
  EXPECT_THROW((void)plain.scale_row_idx(seq(0), tok(0)), UnsupportedError);
  EXPECT_THROW((void)plain.scale_tma_coords(seq(0), tok(0)), UnsupportedError);
  EXPECT_THROW((void)plain.num_scale_rows(), UnsupportedError);
  EXPECT_THROW(plain.store_scale(seq(0), head(0), tok(0), dim(0), std::array{1.0F}), UnsupportedError);

  a.params.scale_dtype = DType::f32;  // quantized, but without scales
  const PagedKVCache bare = a.k(0);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)bare.load_scale<1>(seq(0), head(0), tok(0), dim(0)); }),
            "PagedKVCache.load_scale: the cache is quantized but has no scales: hand them to the collection");
  EXPECT_THROW((void)bare.scales_block_paged_ptr(seq(0), tok(0), head(0)), GeometryError);
  EXPECT_THROW((void)bare.scale_row_idx(seq(0), tok(0)), GeometryError);
  EXPECT_THROW((void)(bare.load<1, double>(seq(0), head(0), tok(0), dim(0))), GeometryError);
  EXPECT_EQ(bare.scales_raw_ptr(), nullptr);
  EXPECT_NO_THROW((void)bare.load_quantized<1>(seq(0), head(0), tok(0), dim(0)));
}

TEST(StoreScale, WritesTheGranuleOfItsElementInTheScalesType) {
  auto a = fix_aq();
  a.k(1).store_scale(seq(0), head(1), tok(5), dim(3), std::array{-1.0F, -2.0F});
  EXPECT_EQ(a.scale_pool[22], -1.0F);
  EXPECT_EQ(a.scale_pool[23], -2.0F);
  EXPECT_EQ(std::count_if(a.scale_pool.begin(), a.scale_pool.end(), [](float x) { return x < 0; }), 2);
  EXPECT_EQ(message_of<GeometryError>([&] { a.k(1).store_scale(seq(0), head(1), tok(5), dim(3), std::array{1.0}); }),
            "PagedKVCache.store_scale: f64 given, and scales are f32: convert them first");
  EXPECT_THROW(a.k(1).store_scale(seq(0), head(1), tok(5), dim(4), std::array{1.0F, 1.0F}), IndexError);
}

// The limit is the extent of the scales' pool, not of the values': with one block less there, the write of
// block 4 is dropped.
TEST(StoreScale, DropsAgainstTheScalesOwnPool) {
  auto a = fix_aq();
  a.scales_extents[0] = 4;
  const std::vector<float> before = a.scale_pool;
  a.k(0).store_scale(seq(1), head(0), tok(4), dim(0), std::array{-1.0F});
  EXPECT_EQ(a.scale_pool, before);
  EXPECT_EQ(a.drops.count, 1);
  EXPECT_EQ(
      message_of<IndexError>([&] { (void)a.k(0).load_scale<1>(seq(1), head(0), tok(4), dim(0)); }),
      "PagedKVCache: scales_lookup_table[1][1] is 4, outside the scales pool's [0, 4), so token 4 of sequence 1 has no "
      "page: allocate one");
  EXPECT_NO_THROW((void)a.k(0).load_quantized<1>(seq(1), head(0), tok(4), dim(0)));  // the value is there
}

// Scales of every other granule are NaN, so that using the wrong scale is detected.
TEST(QuantizedLoad, NeverReadsANeighborsScale) {
  auto a = fix_aq();
  const PagedKVCache k = a.k(1);
  std::fill(a.scale_pool.begin(), a.scale_pool.end(), std::numeric_limits<float>::quiet_NaN());
  a.scale_pool[22] = 2.0F;
  EXPECT_EQ((k.load<4, double>(seq(0), head(1), tok(5), dim(0))), (std::array<double, 4>{176, 178, 180, 182}));
  EXPECT_TRUE(std::isnan(k.load<1, double>(seq(0), head(1), tok(5), dim(4))[0]));
}

// A window of scales is fetched in chunks of 16 bytes, so the slot is rounded down to a multiple of 4 f32 scales; the
// block is unchanged.
TEST(ScaleTmaCoords, RoundTheSlotDownToAChunk) {
  auto f = test::paged_fixture({1, 2}, {3, 1, 1, 8, 1, 2}, {2}, test::table_of({{1, 0}}, 24, 2), 24, 1, 2);
  f.params.kv_params.is_mla = true;
  f.params.scale_dtype = DType::f32;
  f.params.quantization_granularity = 2;
  f.scales_extents = {3, 1, 1, 8, 1, 1};
  f.scale_pool = test::counting(24);
  for (int t = 0; t < 16; ++t) {
    EXPECT_EQ(f.k(0).scale_tma_coords(seq(0), tok(t)), (PageCoords{t % 8 / 4 * 4, t < 8 ? 1 : 0}));
  }
}

}  // namespace
}  // namespace kvscope::paged_quantized_test
