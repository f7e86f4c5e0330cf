// Tiles of 512 numbers pass through two stages of shared memory: while a tile is read, the next one is in flight.
// out[t] is a weighted sum of four numbers that another warp copied. One CTA of 128 threads.
#include "copies.h"

extern "C" __global__ void stream(const int* x, int* out, int tiles) {
  __shared__ __align__(16) int stage[2][512];
  const int t = threadIdx.x;
  int sum = 0;
  copy_16(&stage[0][4 * t], x + 4 * t);
  commit_copies();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < tiles) copy_16(&stage[(tile + 1) % 2][4 * t], x + (tile + 1) * 512 + 4 * t);
    commit_copies();
    for (int i = 0; i < 4; ++i) sum += (tile + 1) * stage[tile % 2][(4 * t + i + 256) % 512];
  }
  out[t] = sum;
}
