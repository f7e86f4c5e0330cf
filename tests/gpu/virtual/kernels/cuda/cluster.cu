// K19: two CTAs that share their shared memory: a ring of values, arrivals at the other's barrier, a multicast copy,
// stores that count as bytes.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

extern "C" {
__shared__ int mailbox[64];
__shared__ __align__(16) int landing[4];
__shared__ __align__(128) unsigned char both[1024];
__shared__ uint64_t remote;  // 64 arrivals of the other CTA
__shared__ uint64_t copied;  // 1024 bytes, whichever CTA issued the copy
__shared__ uint64_t stored;  // 16 bytes by st.async
}

enum Bug { kNone = 0, kNoLastBarrier = 30 };  // B30

DEVICE void store_cluster(uint32_t at, int value) {
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}
DEVICE int load_cluster(uint32_t at) {
  int value;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
  return value;
}

// out: [2][64 + 64 + 4 + 1024 / 4]: values from the ring, from a remote load, from st.async, from the shared copy.
// The map: 16 rows of 64 bytes, box {64, 16}, no swizzle; 64 threads.
DEVICE void both_ctas(int bug, const TensorMapSlot* map, int* out) {
  const int t = static_cast<int>(threadIdx.x);
  const uint32_t rank = cluster_rank(), other = rank ^ 1;
  int* mine = out + rank * (64 + 64 + 4 + 256);
  if (t == 0) {
    mbarrier_init(&remote, 64);
    mbarrier_init(&copied, 1);
    mbarrier_init(&stored, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&copied, 1024);
    mbarrier_arrive_expect_tx(&stored, 16);
  }
  cluster_sync();

  // Around the ring: a store to the other CTA's mailbox, and an arrival that announces it.
  store_cluster(map_to_rank(shared_address(&mailbox[t]), other), 1000 * static_cast<int>(rank) + t);
  asm volatile(
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(map_to_rank(shared_address(&remote), other))
      : "memory");

  // One copy for both, issued by rank 0; each barrier is credited with all bytes.
  if (rank == 0 && t == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(both)),
        "l"(map), "r"(0), "r"(0), "r"(shared_address(&copied)), "h"(static_cast<uint16_t>(3))
        : "memory");

  // Four words to the other CTA's buffer, counted by its barrier.
  if (t < 4)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
                     map_to_rank(shared_address(&landing[t]), other)),
                 "r"(50 * (static_cast<int>(rank) + 1) + t), "r"(map_to_rank(shared_address(&stored), other))
                 : "memory");

  uint32_t arrived = 0;
  while (!arrived)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p;}"
        : "=r"(arrived)
        : "r"(shared_address(&remote))
        : "memory");
  mine[t] = mailbox[t];
  mbarrier_wait(&copied, 0);
  for (int i = t; i < 256; i += 64) mine[132 + i] = reinterpret_cast<const int*>(both)[i];
  mbarrier_wait(&stored, 0);
  if (t < 4) mine[128 + t] = landing[t];

  // Reads the other CTA's mailbox after its neighbor has stored to it: the CTA must exist until both are done.
  __syncthreads();
  mine[64 + t] = load_cluster(map_to_rank(shared_address(&mailbox[t ^ 1]), other));
  if (bug != kNoLastBarrier) cluster_sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_pair(const __grid_constant__ TensorMapSlot map, int* out, int bug) {
  both_ctas(bug, &map, out);
}
