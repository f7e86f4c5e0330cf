// K11, K12, K13: threads that wait for each other: at named barriers, inside one warp, and across a grid.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// Warps 0 and 1 produce, warps 2 and 3 consume, 64 values per round. Barrier 1: the buffer is full; barrier 2: it is
// empty. Producers only arrive at the first, consumers only at the second.
KERNEL producer_consumer(int* out, const int* in, int rounds) {
  __shared__ int buffer[64];
  const int t = static_cast<int>(threadIdx.x);
  if (t < 64) {
    for (int round = 0; round < rounds; ++round) {
      if (round > 0) named_barrier_sync(2, 128);
      buffer[t] = 2 * in[64 * round + t];
      named_barrier_arrive(1, 128);
    }
  } else {
    for (int round = 0; round < rounds; ++round) {
      named_barrier_sync(1, 128);
      out[64 * round + t - 64] = buffer[127 - t] + 1;  // of the mirrored producer
      if (round + 1 < rounds) named_barrier_arrive(2, 128);
    }
  }
}

// All lanes of a warp acquire one lock in turn. The lane that holds it is at a later instruction than those that try.
KERNEL lock_in_a_warp(int* count, int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *static_cast<volatile int*>(count) = *static_cast<volatile int*>(count) + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Lane 0 sets a flag that the other lanes of its warp poll.
KERNEL flag_in_a_warp(int* out, int* flag) {
  volatile int* watched = flag;
  if (threadIdx.x != 0) {
    while (*watched == 0) {
    }
  } else {
    __threadfence();
    *watched = 7;
  }
  out[threadIdx.x] = *watched + static_cast<int>(threadIdx.x);
}

// Every CTA writes its number, waits for all of them, and reads its right neighbor's: `rounds` times.
KERNEL grid_barrier(int* values, unsigned* arrived, int rounds) {
  const unsigned ctas = gridDim.x;
  int mine = static_cast<int>(blockIdx.x);
  for (int round = 0; round < rounds; ++round) {
    int* now = values + (round & 1) * ctas;
    if (threadIdx.x == 0) now[blockIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1);
      while (*static_cast<volatile unsigned*>(arrived) < ctas * (round + 1)) {
      }
      __threadfence();
    }
    __syncthreads();
    mine = static_cast<volatile int*>(now)[(blockIdx.x + 1) % ctas] + 1;
  }
  if (threadIdx.x == 0) values[2 * ctas + blockIdx.x] = mine;
}
