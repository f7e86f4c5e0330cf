// K06: an array passes through a ring of three stages, filled by cp.async two tiles ahead. Words past the array's end
// are requested with a smaller source size, and are zeros.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

constexpr int kStages = 3;
constexpr int kThreads = 64;  // of a tile: 2 words per thread

// out: [tiles * 128] of in[n], zeros after it; each thread reads its neighbor's words.
KERNEL ring_copy(uint32_t* out, const uint32_t* in, int n) {
  __shared__ __align__(16) uint32_t ring[kStages][2 * kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int tiles = (n + 2 * kThreads - 1) / (2 * kThreads);

  const auto fetch = [&](int tile) {
    if (tile < tiles) {
      const int first = tile * 2 * kThreads + 2 * t;
      const int words = n - first;  // of two: 0, 4 or 8 bytes exist
      const uint32_t valid = words >= 2 ? 8 : words == 1 ? 4 : 0;
      cp_async<8>(&ring[tile % kStages][2 * t], in + first, valid);
    }
    cp_async_commit();  // an empty group counts: group i is always tile i
  };

  fetch(0);
  fetch(1);
  for (int tile = 0; tile < tiles; ++tile) {
    cp_async_wait<1>();  // this thread's part of the tile has landed
    __syncthreads();     // all parts have landed, and all reads of the next stage to fill are complete
    fetch(tile + 2);
    const int neighbour = (t + 1) % kThreads;
    const uint32_t* stage = ring[tile % kStages];
    uint32_t* to = out + tile * 2 * kThreads;
    to[2 * neighbour] = stage[2 * neighbour];
    to[2 * neighbour + 1] = stage[2 * neighbour + 1];
  }
}
