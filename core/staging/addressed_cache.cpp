#include "core/staging/addressed_cache.h"

#include "core/cache/collections.h"
#include "core/scenario/pool_extents.h"

namespace kvscope {
namespace {

// The address of the pool, which is never read. It is far from 0, so that a map whose base moves back stays positive,
// and a multiple of every required alignment.
constexpr std::uintptr_t kPoolAddress = std::uintptr_t{1} << 40;

std::byte* pool_address() {
  return reinterpret_cast<std::byte*>(kPoolAddress);
}

PagedKVCache paged_cache(const Scenario& scenario, const CacheState& state, const PoolMemory& memory, KOrV kv,
                         LayerIdx layer) {
  const ModelGeometry& model = scenario.model;
  const auto batch = static_cast<std::int64_t>(state.batch.size());
  PagedCacheParams params{
      scenario.cache.dtype, {model.kv_heads, model.head_size, model.is_mla}, scenario.cache.page_size};
  PagedTensors tensors;
  tensors.blocks =
      AnyView<6>(memory.blocks, scenario.cache.dtype, pool_extents(scenario, memory.layers, model.head_size));
  tensors.cache_lengths = CacheLengths(state.cache_lengths.data(), {batch});
  tensors.lookup_table = LookupTable(state.lookup_table.data(), {batch, state.table_columns}, {state.table_columns, 1});
  tensors.max_seq_length = state.max_seq_length;
  tensors.max_cache_length = state.max_cache_length;
  if (const auto& quantization = scenario.cache.quantization) {
    params.scale_dtype = quantization->scale_dtype;
    params.quantization_granularity = quantization->granularity;
    tensors.scales = AnyView<6>(memory.scales, quantization->scale_dtype,
                                pool_extents(scenario, memory.layers, params.head_dim_granularity()));
  }
  return PagedKVCacheCollection(params, tensors).get_cache(kv, layer);
}

ContinuousBatchingKVCache continuous_cache(const Scenario& scenario, const CacheState& state, const PoolMemory& memory,
                                           KOrV kv, LayerIdx layer) {
  const ModelGeometry& model = scenario.model;
  const auto batch = static_cast<std::int64_t>(state.batch.size());
  ContinuousTensors tensors;
  tensors.blocks =
      AnyView<6>(memory.blocks, scenario.cache.dtype, pool_extents(scenario, memory.layers, model.head_size));
  tensors.cache_lengths = CacheLengths(state.cache_lengths.data(), {batch});
  tensors.lookup_table = StridedView<const std::uint32_t, 1>(state.lookup_table.data(), {batch}, {state.table_columns});
  tensors.max_seq_length = state.max_seq_length;
  tensors.max_cache_length = state.max_cache_length;
  return ContinuousBatchingKVCacheCollection({model.kv_heads, model.head_size}, tensors).get_cache(kv, layer);
}

}  // namespace

StepCache step_cache(const Scenario& scenario, const CacheState& state, const PoolMemory& memory, KOrV kv,
                     LayerIdx layer) {
  if (scenario.cache.kind == CacheKind::paged) return paged_cache(scenario, state, memory, kv, layer);
  return continuous_cache(scenario, state, memory, kv, layer);
}

AddressedCache::AddressedCache(const Scenario& scenario, const CacheState& state, KOrV kv, LayerIdx layer)
    : cache_(step_cache(scenario, state, {pool_address(), pool_address(), scenario.model.layers}, kv, layer)) {}

RowIdx AddressedCache::row_idx(SeqIdx batch_row, TokIdx token) const {
  return std::visit([&](const auto& cache) { return cache.row_idx(batch_row, token); }, cache_);
}

std::int64_t AddressedCache::num_kv_rows() const {
  return std::visit([](const auto& cache) { return cache.num_kv_rows(); }, cache_);
}

std::int64_t AddressedCache::byte(SeqIdx batch_row, TokIdx token, HeadIdx head, DimIdx dim) const {
  return std::visit([&](const auto& cache) { return byte_of(cache.block_paged_ptr(1, batch_row, token, head, dim)); },
                    cache_);
}

std::int64_t AddressedCache::byte_of(const std::byte* address) {
  return byte_of(reinterpret_cast<std::uintptr_t>(address));
}

std::int64_t AddressedCache::byte_of(std::uint64_t address) {
  return static_cast<std::int64_t>(address - kPoolAddress);
}

}  // namespace kvscope
