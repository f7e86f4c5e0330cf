// A paged cache for tests of kernels: several layers, K and V, ragged sequences on scattered blocks. All memory that a
// kernel must not read is poison.
//
//   CacheFixture cache({.dtype = DType::bf16, .page_size = 16, .lengths = {0, 1, 15, 16, 17, 100}});
//   cache.collection().get_key_cache(LayerIdx{1})      the model's view
//   UploadedCache there = cache.upload(device);
//   there.layer(1, Slot::key)                           a kernel's view of the same
//
// Every byte of a slot without a token is poison: 0xff bytes, a NaN in every float type, also in the scales. Blocks are
// assigned by a fixed shuffle, so adjacent pages of a sequence are not adjacent in memory. Unused table entries contain
// the null page (blocks - 1, all poison) or, with `sentinels`, a number past the pool. Values are small numbers that
// are exact in the type, different in every element of a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "core/attention/problem.h"
#include "core/base/dtype.h"
#include "core/cache/collections.h"
#include "gpu/kernels/common/paged_cache.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

enum class Slot : std::uint8_t { key = 0, value = 1 };

struct CacheShape {
  DType dtype = DType::bf16;
  std::int64_t page_size = 16;  // [tokens]
  std::int64_t layers = 2;
  std::int64_t kv_heads = 2;
  std::int64_t head_size = 128;         // [elements]
  bool mla = false;                     // one slot that is both K and V
  std::vector<std::int64_t> lengths{};  // [sequences] tokens in the cache
  std::vector<std::int64_t> room{};     // [sequences] additional tokens for which pages are assigned; empty: none
  std::int64_t granularity = 0;         // e4m3: elements of a head that share a scale (f32); 0: not quantized
  bool sentinels = false;               // unused table entries are past the pool, not the null page
  std::uint64_t seed = 1;
  [[nodiscard]] std::int64_t length(std::int64_t sequence) const { return lengths[static_cast<std::size_t>(sequence)]; }
};

struct UploadedCache {
  DeviceArray pool;               // [blocks, kv, layers, page, heads, head_size]
  DeviceArray scales;             // [blocks, kv, layers, page, heads, granules] or nothing
  DeviceArray table;              // [sequences, table_stride]
  DeviceArray lengths;            // [sequences] u32
  std::vector<PagedCache> views;  // [layer * 2 + slot]
  [[nodiscard]] const PagedCache& layer(std::int64_t layer, Slot slot) const {
    return views[static_cast<std::size_t>(layer * 2 + static_cast<std::int64_t>(slot))];
  }
};

// What a faulty kernel may read besides the rows of the problem's K and V.
struct SurroundingCache {
  std::span<const std::byte> pool = {};                  // all layers
  std::int64_t layers = 1, layer = 0, layer_stride = 0;  // [elements]
  std::int64_t scale_layer_stride = 0;                   // [scales]
};

class CacheFixture {
 public:
  explicit CacheFixture(const CacheShape& shape);

  [[nodiscard]] const CacheShape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t sequences() const { return static_cast<std::int64_t>(shape_.lengths.size()); }
  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] std::int64_t table_stride() const { return static_cast<std::int64_t>(table_.shape(1)); }
  [[nodiscard]] const xt::xtensor<std::uint32_t, 2>& table() const { return table_; }  // [sequence, column]
  [[nodiscard]] std::vector<std::byte>& pool() { return pool_; }
  [[nodiscard]] const std::vector<std::byte>& pool() const { return pool_; }
  [[nodiscard]] std::vector<float>& scales() { return scales_; }
  [[nodiscard]] const std::vector<float>& scales() const { return scales_; }

  // The model's collection over this fixture's bytes: valid while the fixture exists and is not moved.
  [[nodiscard]] PagedKVCacheCollection collection();
  // For core/attention: K or V of a layer; `head_size` elements of each head (MLA: 512 of 576).
  [[nodiscard]] attention::PagedRows rows(std::int64_t layer, Slot slot, std::int64_t head_size = 0) const;
  // For a diagnosis: all layers of `pool`, a copy of this fixture's bytes, around one layer.
  [[nodiscard]] SurroundingCache around(std::int64_t layer, std::span<const std::byte> pool) const;
  [[nodiscard]] SurroundingCache around(std::int64_t layer) const { return around(layer, pool_); }

  [[nodiscard]] UploadedCache upload(Device& device) const;

 private:
  CacheShape shape_;
  std::int64_t blocks_ = 0, kv_ = 2, granules_ = 0;
  std::vector<std::byte> pool_;
  std::vector<float> scales_;
  xt::xtensor<std::uint32_t, 2> table_;
  std::vector<std::uint32_t> lengths_;
};

template <class T, std::size_t Rank>
[[nodiscard]] std::span<const std::byte> bytes_of_tensor(const xt::xtensor<T, Rank>& tensor) {
  return std::as_bytes(std::span(tensor.data(), tensor.size()));
}
template <class T, std::size_t Rank>
[[nodiscard]] DeviceArray upload_tensor(Device& device, std::string_view name, const xt::xtensor<T, Rank>& tensor) {
  return device.upload(name, bytes_of_tensor(tensor));
}

// Numbers in [-2, 2) that are exact in `dtype`, generated from a counter: element i of stream `seed`.
[[nodiscard]] std::vector<std::byte> exact_noise(DType dtype, std::int64_t count, std::uint64_t seed);

// The first byte that differs and the number of differing bytes, named by `place`; std::nullopt if equal.
[[nodiscard]] std::optional<std::string> first_difference(
    std::span<const std::byte> golden, std::span<const std::byte> got, std::int64_t element_bytes,
    const std::function<std::string(std::int64_t element)>& place);

}  // namespace kvscope::gpu
