#include "core/attention/kv_operand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/cache/collections.h"

namespace kvscope::attention::kv_operand_test {
namespace {

// A pool with a different number in every element, and the weights of a softmax computed from
// PagedKVCache::load alone.
struct Pool {
  static constexpr std::int64_t kHeads = 2, kSize = 8, kPage = 4, kLayers = 3, kBlocks = 5;
  std::vector<std::uint8_t> elements;
  std::vector<float> scales;
  std::vector<std::uint32_t> table = std::vector<std::uint32_t>(2 * 24, 4u);
  std::vector<std::uint32_t> scales_table = std::vector<std::uint32_t>(2 * 32, 4u);
  std::vector<std::uint32_t> lengths{9, 2};

  Pool() {
    elements.resize(static_cast<std::size_t>(kBlocks * 2 * kLayers * kPage * kHeads * kSize));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::uint8_t>((i * 37 + i / 64) % 0x5a);
    scales.resize(elements.size() / 4);
    for (std::size_t i = 0; i < scales.size(); ++i)
      scales[i] = 0.25f + static_cast<float>(i % 53) / 64;  // products exact in float, as load makes them
    table[0] = 3, table[1] = 0, table[2] = 1, table[24] = 2;
    scales_table[0] = 1, scales_table[1] = 3, scales_table[2] = 0, scales_table[32] = 2;
  }

  [[nodiscard]] PagedKVCacheCollection collection(bool quantized) {
    PagedCacheParams params;
    params.dtype = DType::e4m3;
    params.kv_params = {.num_heads = kHeads, .head_size = kSize};
    params.page_size = kPage;
    PagedTensors tensors;
    tensors.blocks = {
        reinterpret_cast<std::byte*>(elements.data()), DType::e4m3, {kBlocks, 2, kLayers, kPage, kHeads, kSize}};
    tensors.cache_lengths = {lengths.data(), {2}};
    tensors.lookup_table = {table.data(), {2, 24}};
    tensors.max_seq_length = 1;
    tensors.max_cache_length = 10;
    if (quantized) {
      params.scale_dtype = DType::f32;
      params.quantization_granularity = 4;
      tensors.scales = AnyView<6>{
          reinterpret_cast<std::byte*>(scales.data()), DType::f32, {kBlocks, 2, kLayers, kPage, kHeads, kSize / 4}};
      tensors.scales_lookup_table = LookupTable{scales_table.data(), {2, 32}};
    }
    return {params, tensors};
  }
};

template <class Cache>
double loaded(const Cache& cache, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
  return static_cast<double>(cache.template load<1, float>(SeqIdx{b}, HeadIdx{h}, TokIdx{t}, DimIdx{d})[0]);
}

// One query of every sequence over the cached tokens, checked against sums over Cache::load.
template <class Cache>
void expect_attention_over(const Cache& k_cache, const Cache& v_cache, const PagedRows& k, const PagedRows& v) {
  const std::vector<double> q = [] {
    std::vector<double> x(2 * 4 * 8);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.05 * static_cast<double>(i % 7) - 0.1;
    return x;
  }();
  const std::int64_t offsets[] = {0, 1, 2},
                     lengths[] = {k_cache.cache_length(SeqIdx{0}), k_cache.cache_length(SeqIdx{1})};
  Problem p;
  p.batch = 2;
  p.query_heads = 4;
  p.q = reinterpret_cast<const std::byte*>(q.data());
  p.q_dtype = DType::f64;
  p.query_offsets = offsets;
  p.key_lengths = lengths;
  p.k = k;
  p.v = v;
  p.options.scale = 0.02;
  const Result r = reference(p);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      std::vector<double> weights;
      for (std::int64_t t = 0; t < lengths[b]; ++t) {
        double dot = 0;
        for (std::int64_t d = 0; d < k.head_size; ++d) {
          dot += q[static_cast<std::size_t>((b * 4 + h) * k.head_size + d)] * loaded(k_cache, b, h / 2, t, d);
        }
        weights.push_back(std::exp(0.02 * dot));
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::int64_t d = 0; d < v.head_size; ++d) {
        double expected = 0;
        for (std::size_t t = 0; t < weights.size(); ++t) {
          expected += weights[t] / sum * loaded(v_cache, b, h / 2, static_cast<std::int64_t>(t), d);
        }
        EXPECT_NEAR(r.o(static_cast<std::size_t>(b), static_cast<std::size_t>(h), static_cast<std::size_t>(d)),
                    expected, 1e-9 * (1 + std::fabs(expected)));
      }
    }
  }
}

TEST(KvOperand, PagedLayerHasTheStridesOfTheWholePool) {
  Pool pool;
  const PagedRows k = rows_of(pool.collection(false).get_key_cache(LayerIdx{1}));
  EXPECT_EQ(k.data, reinterpret_cast<const std::byte*>(pool.elements.data()) + 64);
  EXPECT_EQ(k.block_stride, 384);
  EXPECT_EQ(k.token_stride, 16);
  EXPECT_EQ(k.head_stride, 8);
  EXPECT_EQ(k.blocks, 5);
  EXPECT_EQ(k.page_size, 4);
  EXPECT_EQ(k.table_stride, 24);
  EXPECT_EQ(k.scales, nullptr);
}

// The same rows from the pool alone, as in files: no table, and the scales at the same place.
TEST(KvOperand, APoolsRowsAreTheLayersRowsWithoutATable) {
  Pool pool;
  const Shape<6> extents{5, 2, 3, 4, 2, 8};
  const auto* data = reinterpret_cast<const std::byte*>(pool.elements.data());
  PagedRows v = rows_of_pool(data, DType::e4m3, extents, KOrV::v, LayerIdx{1});
  EXPECT_EQ(v.data, data + 256);
  EXPECT_EQ(v.dtype, DType::e4m3);
  EXPECT_EQ(v.block_stride, 384);
  EXPECT_EQ(v.token_stride, 16);
  EXPECT_EQ(v.head_stride, 8);
  EXPECT_EQ(v.blocks, 5);
  EXPECT_EQ(v.page_size, 4);
  EXPECT_EQ(v.heads, 2);
  EXPECT_EQ(v.head_size, 8);
  EXPECT_EQ(v.table, nullptr);
  const auto* scales = reinterpret_cast<const std::byte*>(pool.scales.data());
  set_scales(v, scales, DType::f32, {5, 2, 3, 4, 2, 2}, KOrV::v, LayerIdx{1}, 4);
  EXPECT_EQ(v.scales, scales + 64 * 4);
  EXPECT_EQ(v.scale_dtype, DType::f32);
  EXPECT_EQ(v.granularity, 4);
  EXPECT_EQ(v.scale_block_stride, 96);
  EXPECT_EQ(v.scale_token_stride, 4);
  EXPECT_EQ(v.scale_head_stride, 2);
  // Elements of two bytes: the offset counts elements.
  EXPECT_EQ(rows_of_pool(data, DType::bf16, extents, KOrV::k, LayerIdx{2}).data, data + 2 * 128);
}

TEST(KvOperand, PagedCacheReadsWhatLoadReads) {
  Pool pool;
  const PagedKVCacheCollection c = pool.collection(false);
  for (const std::int64_t layer : {0, 2}) {
    const PagedKVCache k = c.get_key_cache(LayerIdx{layer}), v = c.get_value_cache(LayerIdx{layer});
    expect_attention_over(k, v, rows_of(k), rows_of(v));
  }
}

// The scales have a separate table with another row stride: sequence 1 detects a stride taken from the wrong table.
TEST(KvOperand, QuantizedCacheReadsItsScalesThroughTheirOwnTable) {
  Pool pool;
  const PagedKVCacheCollection c = pool.collection(true);
  const PagedKVCache k = c.get_key_cache(LayerIdx{1}), v = c.get_value_cache(LayerIdx{1});
  EXPECT_EQ(rows_of(k).scales_table_stride, 32);
  expect_attention_over(k, v, rows_of(k), rows_of(v));
}

TEST(KvOperand, ContinuousCacheIsOnePageASequence) {
  std::vector<float> elements(3 * 2 * 2 * 12 * 2 * 8);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 101) * 0.125f;
  std::vector<std::uint32_t> lengths{11, 5}, table{2, 0};
  ContinuousTensors tensors;
  tensors.blocks = {reinterpret_cast<std::byte*>(elements.data()), DType::f32, {3, 2, 2, 12, 2, 8}};
  tensors.cache_lengths = {lengths.data(), {2}};
  tensors.lookup_table = {table.data(), {2}};
  tensors.max_seq_length = 1;
  tensors.max_cache_length = 12;
  const ContinuousBatchingKVCacheCollection c({.num_heads = 2, .head_size = 8}, tensors);
  const ContinuousBatchingKVCache k = c.get_key_cache(LayerIdx{1}), v = c.get_value_cache(LayerIdx{1});
  EXPECT_EQ(rows_of(k).page_size, 12);
  EXPECT_EQ(rows_of(k).table_stride, 1);
  expect_attention_over(k, v, rows_of(k), rows_of(v));
}

TEST(KvOperand, MlaValuesAreTheFrontOfTheKeys) {
  Pool pool;
  const PagedKVCacheCollection c = pool.collection(false);
  const PagedKVCache k = c.get_key_cache(LayerIdx{0});
  PagedRows v = rows_of(k);
  v.head_size = 6;
  expect_attention_over(k, k, rows_of(k), v);
}

}  // namespace
}  // namespace kvscope::attention::kv_operand_test
