// One small kernel per mistake. `wrong` 0: the correct kernel; 1 (and 2): with the mistake.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// B14: half a warp waits at one barrier, half at another. 32 threads.
KERNEL b14_barrier_in_a_branch(int* out, int wrong) {
  __shared__ int values[32];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (!wrong || threadIdx.x < 16) {
    __syncthreads();
    out[threadIdx.x] = values[31 - threadIdx.x];
  } else {
    asm volatile("bar.sync 1;" ::: "memory");
    out[threadIdx.x] = 0;
  }
}

// B18: four floats from an address that is a multiple of four bytes only.
KERNEL b18_misaligned(float4* out, const float* in, int wrong) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x + (wrong ? 1 : 0));
}

// B20: a sum that begins with the previous contents of shared memory.
KERNEL b20_sum_not_zeroed(int* out, const int* in, int wrong) {
  __shared__ int sum;
  if (!wrong && threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (unsigned i = 0; i < blockDim.x; ++i) {
    if (threadIdx.x == i) sum += in[i];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = sum;
}

// B27: a barrier of 128 arrivals at which only the first lane of each warp arrives. 128 threads.
KERNEL b27_only_leaders_arrive(int* out, int wrong) {
  __shared__ uint64_t done;
  if (threadIdx.x == 0) mbarrier_init(&done, 128);
  __syncthreads();
  if (!wrong || threadIdx.x % 32 == 0) mbarrier_arrive(&done);
  mbarrier_wait(&done, 0);
  out[threadIdx.x] = 1;
}

// B28: one arrival too many. wrong 1: while bytes are pending. wrong 2: with none, so that it counts for the next
// phase, which completes before its producers are done. 64 threads: warp 0 produces, warp 1 consumes.
KERNEL b28_one_arrival_too_many(int* out, const int* in, int wrong) {
  __shared__ __align__(16) int buffer[32];
  __shared__ uint64_t full;
  const unsigned t = threadIdx.x, lane = t % 32;
  if (t == 0) mbarrier_init(&full, wrong == 1 ? 1 : 32);
  __syncthreads();

  if (wrong == 1) {
    if (t == 0) {
      mbarrier_arrive_expect_tx(&full, 256);  // more than lands: nothing completes between the two
      mbarrier_arrive(&full);
      bulk_load(buffer, in, 128, &full);
      bulk_load(buffer, in, 128, &full);
    }
    mbarrier_wait(&full, 0);
    out[t] = buffer[lane];
    return;
  }

  for (int round = 0; round < 2; ++round) {
    if (t < 32) {
      buffer[lane] = in[32 * round + lane];
      mbarrier_arrive(&full);
      if (wrong == 2 && round == 0 && lane == 31) mbarrier_arrive(&full);
    } else {
      mbarrier_wait(&full, round);
      out[32 * round + lane] = buffer[31 - lane];
    }
    if (round == 0) __syncthreads();  // the buffer has been read
  }
}

// B31: every CTA waits for a flag that the last CTA sets. With one resident CTA, the last one never starts.
KERNEL b31_spin_for_a_later_cta(int* out, int* flag) {
  volatile int* watched = flag;
  if (blockIdx.x + 1 == gridDim.x) *watched = 1;
  while (*watched == 0) {
  }
  out[blockIdx.x] = 1;
}

// B32: an endless loop.
KERNEL b32_endless_loop(int* out, int wrong) {
  volatile int* steps = out;
  for (int i = 0; wrong || i < 10; ++i) *steps = i;
}

// B33: a shuffle of the whole warp while half of it has exited (wrong 0: exited lanes do not count) or waits for
// all lanes elsewhere (wrong 1).
KERNEL b33_shuffle_without_partner(int* out, int wrong) {
  const unsigned lane = threadIdx.x;
  int value = static_cast<int>(lane);
  if (lane >= 16) {
    if (!wrong) return;
    asm volatile("{.reg .pred p; setp.ne.s32 p, %0, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}" : "+r"(value));
  } else {
    asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(value));
  }
  out[lane] = value;
}

// B35: two warps store to one word. wrong 1: different values; wrong 2: the same value. 64 threads.
KERNEL b35_two_writers(int* out, int wrong) {
  __shared__ int word;
  const int warp = static_cast<int>(threadIdx.x / 32);
  if (threadIdx.x % 32 == 0 && (wrong || warp == 0)) word = wrong == 1 ? 5 + warp : 5;
  __syncthreads();
  out[threadIdx.x] = word;
}
