// Small caches whose elements identify their place: element i of a pool holds the number i. In the comments of the
// tests:
//
//   fix_a   paged f32, 4 real pages and the null page, K and V, 3 layers, pages of 4, 2 heads of 8     [5,2,3,4,2,8]
//   fix_aq  fix_a with f32 scales, one for 4 elements                                                  [5,2,3,4,2,2]
//   fix_m   MLA: one slot, 1 head                                                                      [5,1,3,4,1,8]
//   fix_c   continuous f32: 3 sequences of 5 tokens, 2 layers, 2 heads of 4                            [3,2,2,5,2,4]
//   fix_p   for populate: pages of 16, 64 rows a block, K and V, 2 layers, 10 real pages
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/cache/collections.h"

namespace kvscope::test {

constexpr SeqIdx seq(std::int64_t i) {
  return SeqIdx{i};
}
constexpr HeadIdx head(std::int64_t i) {
  return HeadIdx{i};
}
constexpr TokIdx tok(std::int64_t i) {
  return TokIdx{i};
}
constexpr DimIdx dim(std::int64_t i) {
  return DimIdx{i};
}
constexpr LayerIdx layer(std::int64_t i) {
  return LayerIdx{i};
}

// The message of the error that `call` throws; another type or none fails the test.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline std::byte* bytes_of(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

inline std::vector<float> counting(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// A table from its rows, each padded with `fill` to `columns`.
inline std::vector<std::uint32_t> table_of(const std::vector<std::vector<std::uint32_t>>& rows, std::int64_t columns,
                                           std::uint32_t fill) {
  std::vector<std::uint32_t> table;
  for (const auto& row : rows) {
    table.insert(table.end(), row.begin(), row.end());
    table.resize(table.size() + static_cast<std::size_t>(columns) - row.size(), fill);
  }
  return table;
}

// A paged cache of f32 with everything it looks at.
struct PagedFixture {
  PagedCacheParams params;
  Shape<6> extents;           // [NB, kv, L, P, H, D]
  Shape<6> scales_extents{};  // [NB, kv, L, P, H, G]
  std::vector<float> pool, scale_pool;
  std::vector<std::uint32_t> lengths, table, scales_table;
  std::int64_t columns;
  std::uint32_t max_seq_length, max_cache_length;
  StoreDrops drops;

  [[nodiscard]] PagedTensors tensors() {
    const auto batch = static_cast<std::int64_t>(lengths.size());
    PagedTensors t{.blocks = {bytes_of(pool), DType::f32, extents},
                   .cache_lengths = {lengths.data(), {batch}},
                   .lookup_table = {table.data(), {batch, columns}},
                   .max_seq_length = max_seq_length,
                   .max_cache_length = max_cache_length,
                   .drops = &drops};
    if (!scale_pool.empty()) t.scales = AnyView<6>{bytes_of(scale_pool), DType::f32, scales_extents};
    if (!scales_table.empty()) t.scales_lookup_table = LookupTable{scales_table.data(), {batch, columns}};
    return t;
  }
  [[nodiscard]] PagedKVCacheCollection collection() { return {params, tensors()}; }
  [[nodiscard]] PagedKVCache k(std::int64_t l) { return collection().get_key_cache(layer(l)); }
  [[nodiscard]] PagedKVCache v(std::int64_t l) { return collection().get_value_cache(layer(l)); }

  // Element index of an address inside the pool (or the scales).
  [[nodiscard]] std::int64_t flat(const std::byte* address) { return (address - bytes_of(pool)) / 4; }
  [[nodiscard]] std::int64_t flat_scale(const std::byte* address) { return (address - bytes_of(scale_pool)) / 4; }
};

inline PagedFixture paged_fixture(const KVCacheStaticParams& kv_params, const Shape<6>& extents,
                                  std::vector<std::uint32_t> lengths, std::vector<std::uint32_t> table,
                                  std::int64_t columns, std::uint32_t max_seq_length, std::uint32_t max_cache_length) {
  return {.params = {.dtype = DType::f32, .kv_params = kv_params, .page_size = extents[3]},
          .extents = extents,
          .pool = counting(count_of(extents)),
          .scale_pool = {},
          .lengths = std::move(lengths),
          .table = std::move(table),
          .scales_table = {},
          .columns = columns,
          .max_seq_length = max_seq_length,
          .max_cache_length = max_cache_length,
          .drops = {}};
}

inline PagedFixture fix_a() {
  return paged_fixture({2, 8}, {5, 2, 3, 4, 2, 8}, {9, 2}, table_of({{3, 0, 1}, {2}}, 24, 4), 24, 2, 10);
}

inline PagedFixture fix_aq(std::int64_t granularity = 4) {
  PagedFixture fixture = fix_a();
  fixture.params.scale_dtype = DType::f32;
  fixture.params.quantization_granularity = granularity;
  fixture.params.dtype = DType::f32;
  fixture.scales_extents = {5, 2, 3, 4, 2, fixture.params.head_dim_granularity()};
  fixture.scale_pool = counting(count_of(fixture.scales_extents));
  return fixture;
}

inline PagedFixture fix_m(std::int64_t layers = 3) {
  return paged_fixture({1, 8, true}, {5, 1, layers, 4, 1, 8}, {9, 2}, table_of({{3, 0, 1}, {2}}, 24, 4), 24, 2, 10);
}

// The pool is one page more than the 10 real ones; only its geometry matters to populate.
inline PagedFixture fix_p(const std::vector<std::uint32_t>& row = {5, 9, 2, 7, 1, 0, 3, 8}, std::int64_t columns = 24) {
  return paged_fixture({1, 64}, {11, 2, 2, 16, 1, 64}, {0}, table_of({row}, columns, 10), columns, 128, 128);
}

struct ContinuousFixture {
  KVCacheStaticParams kv_params{2, 4};
  Shape<6> extents{3, 2, 2, 5, 2, 4};
  std::vector<float> pool = counting(480);
  std::vector<std::uint32_t> lengths{3, 0};
  std::vector<std::uint32_t> table{2, 0};

  [[nodiscard]] ContinuousTensors tensors() {
    const auto batch = static_cast<std::int64_t>(lengths.size());
    return {.blocks = {bytes_of(pool), DType::f32, extents},
            .cache_lengths = {lengths.data(), {batch}},
            .lookup_table = {table.data(), {batch}},
            .max_seq_length = 2,
            .max_cache_length = 5};
  }
  [[nodiscard]] ContinuousBatchingKVCacheCollection collection() { return {kv_params, tensors()}; }
  [[nodiscard]] ContinuousBatchingKVCache k(std::int64_t l) { return collection().get_key_cache(layer(l)); }
  [[nodiscard]] ContinuousBatchingKVCache v(std::int64_t l) { return collection().get_value_cache(layer(l)); }
  [[nodiscard]] std::int64_t flat(const std::byte* address) { return (address - bytes_of(pool)) / 4; }
};

}  // namespace kvscope::test
