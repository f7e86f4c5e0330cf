// A paged cache for benchmarks: one layer, sequences of equal length, blocks in a fixed random order, and numbers that
// are cheap to generate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/dtype.h"
#include "gpu/kernels/common/paged_cache.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct BenchCacheShape {
  DType dtype = DType::bf16;
  std::int64_t page_size = 16, batch = 8, tokens = 4096, kv_heads = 8;
  std::int64_t head_size = 128;  // MLA: 576, or 656 bytes
  int slots = 2;                 // K and V; MLA: 1
  bool scaled = false;           // one f32 scale per head
  bool filled = true;            // false: its bytes are zero, because the kernel writes them
};

struct BenchCache {
  DeviceArray pool, scales, table, lengths;
  PagedCache k, v;
};
[[nodiscard]] BenchCache make_bench_cache(Device& device, const BenchCacheShape& shape, std::uint64_t seed);

// Finite numbers of magnitude below 4, repeating every 64 KiB; tokens of fp8 MLA caches in their byte layout.
[[nodiscard]] std::vector<std::byte> bench_noise(DType dtype, std::int64_t bytes, std::uint64_t seed);
[[nodiscard]] std::vector<std::byte> bench_fp8_tokens(std::int64_t tokens, std::uint64_t seed);

}  // namespace kvscope::gpu
