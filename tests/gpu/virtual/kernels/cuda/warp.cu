// K03: lanes of one warp exchange values without memory.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

constexpr unsigned kAll = 0xffffffff;

// out: [5 * 32] sums of the whole warp by shfl.down (in lane 0) and by shfl.bfly (in all lanes), number of odd values,
// sums of eight adjacent lanes, the value of the last lane of each eight.
KERNEL warp_sums(int* out, const int* in) {
  const unsigned lane = threadIdx.x;
  const int mine = in[lane];

  int down = mine;
  for (int step = 16; step > 0; step /= 2) down += __shfl_down_sync(kAll, down, step);
  int butterfly = mine;
  for (int step = 16; step > 0; step /= 2) butterfly += __shfl_xor_sync(kAll, butterfly, step);
  int eight = mine;
  for (int step = 4; step > 0; step /= 2) eight += __shfl_xor_sync(kAll, eight, step, 8);

  out[lane] = down;
  out[32 + lane] = butterfly;
  out[64 + lane] = __popc(__ballot_sync(kAll, mine & 1));
  out[96 + lane] = eight;
  out[128 + lane] = __shfl_sync(kAll, mine, 7, 8);
}

// The lane that each lane reads, and whether it exists: 2 * lane + p. The three operands are loaded from memory, so one
// instruction of each kind tests all rows of a table.
template <int kMode>
DEVICE int source_lane(int b, int c) {
  int value = static_cast<int>(threadIdx.x), ok;
  if (kMode == 0)
    asm volatile("{.reg .pred p; shfl.sync.idx.b32 %0|p, %0, %2, %3, -1; selp.b32 %1, 1, 0, p;}"
                 : "+r"(value), "=r"(ok)
                 : "r"(b), "r"(c));
  if (kMode == 1)
    asm volatile("{.reg .pred p; shfl.sync.up.b32 %0|p, %0, %2, %3, -1; selp.b32 %1, 1, 0, p;}"
                 : "+r"(value), "=r"(ok)
                 : "r"(b), "r"(c));
  if (kMode == 2)
    asm volatile("{.reg .pred p; shfl.sync.down.b32 %0|p, %0, %2, %3, -1; selp.b32 %1, 1, 0, p;}"
                 : "+r"(value), "=r"(ok)
                 : "r"(b), "r"(c));
  if (kMode == 3)
    asm volatile("{.reg .pred p; shfl.sync.bfly.b32 %0|p, %0, %2, %3, -1; selp.b32 %1, 1, 0, p;}"
                 : "+r"(value), "=r"(ok)
                 : "r"(b), "r"(c));
  return 2 * value + ok;
}
// cases: [n] {mode, b, c}; out: [n * 32]
KERNEL shuffle_sources(int* out, const int* cases, int n) {
  for (int i = 0; i < n; ++i) {
    const int mode = cases[3 * i], b = cases[3 * i + 1], c = cases[3 * i + 2];
    int source = 0;
    if (mode == 0) source = source_lane<0>(b, c);
    if (mode == 1) source = source_lane<1>(b, c);
    if (mode == 2) source = source_lane<2>(b, c);
    if (mode == 3) source = source_lane<3>(b, c);
    out[32 * i + threadIdx.x] = source;
  }
}
