// Compile-time constants of gather_rows, shared by the kernel and its host code.
//
//   gather          a CTA copies rows_of_cta rows            grid.x = rows / that, rounded up
//   remap, tma_row  a thread converts one index              grid.x = indices / kThreads, rounded up
//   compact         a warp compacts one list                 grid.x = lists / kWarps, rounded up
#pragma once

#include <cstdint>

#include "gpu/kernels/common/host_device.h"

namespace kvscope::gpu::gather_rows {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
// Chunks in flight per thread.
inline constexpr int kChunks = 4;

// Elements of a chunk: 16 bytes of the wider type.
HOST_DEVICE constexpr std::int64_t chunk_elements(std::int64_t in_bytes, std::int64_t out_bytes) {
  return 16 / (in_bytes > out_bytes ? in_bytes : out_bytes);
}

// Rows per CTA: as many as its threads have in flight, at least one row and at most one per thread.
// Example: 8 heads of 128 bf16 are 128 chunks: 1024 / 128 = 8 rows.
HOST_DEVICE constexpr int rows_of_cta(int row_chunks) {
  const int rows = kThreads * kChunks / row_chunks;
  return rows < 1 ? 1 : rows > kThreads ? kThreads : rows;
}

}  // namespace kvscope::gpu::gather_rows
