// Prepares a launch of paged_prefill: the tensor maps, the grid, the entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/tma/tile_map.h"
#include "gpu/kernels/paged_prefill/config.h"
#include "gpu/kernels/paged_prefill/params.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

// K or V of a layer, as boxes of 64 elements of one head and min(page_size, 128) tokens of a page.
inline TensorMap prefill_cache_map(const PagedCache& cache, DType dtype) {
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * 2; };
  TensorMap map;
  map.data_type = tma_data_type(dtype);
  map.rank = 4;
  map.base = reinterpret_cast<std::uint64_t>(cache.data);
  map.dims = {static_cast<std::uint64_t>(cache.head_size), static_cast<std::uint64_t>(cache.heads),
              static_cast<std::uint64_t>(cache.page_size), static_cast<std::uint64_t>(cache.blocks)};
  map.strides = {bytes(cache.head_size), bytes(cache.token_stride), bytes(cache.block_stride)};
  map.box = {prefill::kPanel, 1, static_cast<std::uint32_t>(std::min(cache.page_size, prefill::kKeys)), 1};
  map.swizzle = TmaSwizzle::b128;
  map.l2 = L2Promotion::b256;
  return map;
}

// Queries [total, heads, head_size], as boxes of 64 elements of one head and 128 queries.
inline TensorMap prefill_query_map(std::uint64_t base, std::int64_t total, std::int64_t heads, std::int64_t head_size,
                                   DType dtype) {
  TensorMap map;
  map.data_type = tma_data_type(dtype);
  map.rank = 3;
  map.base = base;
  map.dims = {static_cast<std::uint64_t>(head_size), static_cast<std::uint64_t>(heads),
              static_cast<std::uint64_t>(std::max<std::int64_t>(total, 1))};
  map.strides = {static_cast<std::uint64_t>(head_size) * 2, static_cast<std::uint64_t>(heads * head_size) * 2};
  map.box = {prefill::kPanel, 1, prefill::kQueries};
  map.swizzle = TmaSwizzle::b128;
  map.l2 = L2Promotion::b256;
  return map;
}

// `most_queries`: the number of queries of the sequence with the most, at least 1.
inline KernelLaunch prefill_launch(DType dtype, std::int64_t head_size, std::int64_t query_heads,
                                   std::int64_t sequences, std::int64_t most_queries) {
  KernelLaunch launch;
  launch.kernel = "paged_prefill";
  launch.entry = "paged_prefill_" + std::string(name(dtype)) + "_d" + std::to_string(head_size);
  launch.grid = {(most_queries + prefill::kQueries - 1) / prefill::kQueries, query_heads, sequences};
  launch.block = {prefill::kThreads, 1, 1};
  launch.dynamic_shared = prefill::shared_bytes(static_cast<int>(head_size));
  return launch;
}

}  // namespace kvscope::gpu
