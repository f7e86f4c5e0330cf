// Compile-time constants of append_tokens, shared by the kernel and its host code.
//
//   copy       a CTA moves kThreads * kChunks chunks of one sequence; grid.x: chunks of the longest / that, rounded up
//   quantize   `lanes` threads share a granule; grid.x: granules of the longest * lanes / kThreads, rounded up
//   both       grid.y: sequences; grid.z: 2, K and V, or 1 where one slot serves as both
#pragma once

#include <cstdint>

#include "gpu/kernels/common/host_device.h"

namespace kvscope::gpu::append_tokens {

inline constexpr int kThreads = 256;
// Chunks in flight per thread: 64 bytes per thread saturate an H200's memory.
inline constexpr int kChunks = 4;
// Maximum chunks of a granule that one lane holds in registers. 32 lanes hold granules of 640 f32 or 1280 bf16.
inline constexpr int kGranuleChunks = 5;

// Elements of a chunk: 16 bytes of the wider type, so that neither side needs more than one access.
HOST_DEVICE constexpr std::int64_t chunk_elements(std::int64_t in_bytes, std::int64_t out_bytes) {
  return 16 / (in_bytes > out_bytes ? in_bytes : out_bytes);
}

// Lanes that share a granule of `chunks` chunks: a power of two, enough for at most kGranuleChunks each, and enough
// that their stores together fill a sector of 32 bytes. `stored` is the size of a converted chunk [bytes]. Examples:
// 128 bf16 are 16 chunks that become 8 bytes each: 4 lanes. 32 bf16, 4 chunks: 4. 576 f32, 144 chunks: 32.
HOST_DEVICE constexpr int granule_lanes(int chunks, int stored) {
  int lanes = 1;
  while (lanes < 32 && (lanes * kGranuleChunks < chunks || (lanes < chunks && lanes * stored < 32))) lanes *= 2;
  return lanes;
}

}  // namespace kvscope::gpu::append_tokens
