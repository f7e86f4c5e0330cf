// The cache types of a step over a pool that the caller owns, or over a pool that is never allocated. Without memory
// they still compute every address but no value, so a pool of 80 GiB can be explained on a laptop.
//
// Addresses are bytes from the pool's first, as in explain's link "byte" and in locate(). The pool holds K and V of all
// layers, and the null page at its end; the scales of a quantized cache are another pool with its own byte 0.
// Example: tiny model (2 layers, 2 heads of 8, f32), pages of 4, table row 0 = {7, 3}: byte_of(block_paged_ptr(sequence
// 0, token 5, head 1, dim 3)) of K in layer 1 is 3436.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "core/base/index.h"
#include "core/cache/continuous_kv_cache.h"
#include "core/cache/paged_kv_cache.h"
#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"

namespace kvscope {

using StepCache = std::variant<PagedKVCache, ContinuousBatchingKVCache>;

struct PoolMemory {
  std::byte* blocks = nullptr;  // pool_extents(scenario, layers, head size), row-major
  std::byte* scales = nullptr;  // pool_extents(scenario, layers, granules); unused without quantization
  std::int64_t layers = 0;      // layers in the pool: all of the model's, or one
};

// One layer's K or V. `state` and the memory must outlive it. It addresses sequences by batch row, not by number.
[[nodiscard]] StepCache step_cache(const Scenario& scenario, const CacheState& state, const PoolMemory& memory, KOrV kv,
                                   LayerIdx layer);

class AddressedCache {
 public:
  // One layer's K or V of a pool of all layers that has no memory.
  AddressedCache(const Scenario& scenario, const CacheState& state, KOrV kv, LayerIdx layer);

  [[nodiscard]] const PagedKVCache* paged() const { return std::get_if<PagedKVCache>(&cache_); }  // null: continuous
  [[nodiscard]] const StepCache& cache() const { return cache_; }

  // The row and the addresses that the cache type computes for a token's element.
  [[nodiscard]] RowIdx row_idx(SeqIdx batch_row, TokIdx token) const;
  [[nodiscard]] std::int64_t num_kv_rows() const;
  [[nodiscard]] std::int64_t byte(SeqIdx batch_row, TokIdx token, HeadIdx head, DimIdx dim) const;

  // [bytes] from the pool's first. Precondition: the pointer came from this cache.
  [[nodiscard]] static std::int64_t byte_of(const std::byte* address);
  [[nodiscard]] static std::int64_t byte_of(std::uint64_t address);

 private:
  StepCache cache_;
};

}  // namespace kvscope
