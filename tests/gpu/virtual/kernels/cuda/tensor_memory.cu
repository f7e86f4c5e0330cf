// K25: C = A B^T of bf16, by tensor copies, tcgen05.mma and tensor memory. A CTA computes 128 x 64 of C: one thread loads stages
// of 64 elements of k, one multiplies, and four warps read the sums from tensor memory.
#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

extern "C" {
extern __shared__ __align__(1024) unsigned char stages[];  // kStages times A 128 x 64, then B 64 x 64, each in rows of 128 bytes
}

enum Bug { kNone = 0, kNoWaitForFull = 1, kNoWaitForDone = 2, kNoAfterFence = 3, kWrongStride = 4, kNoDealloc = 5, kRefillEarly = 6 };

constexpr int kM = 128, kN = 64, kK = 64, kStages = 2;
constexpr int kBytesOfA = kM * kK * 2, kBytesOfB = kN * kK * 2, kStageBytes = kBytesOfA + kBytesOfB;
// f32 += bf16 bf16: D f32, A and B bf16, N / 8 and M / 16.
constexpr uint32_t kDescription = 1 << 4 | 1 << 7 | 1 << 10 | kN / 8 << 17 | kM / 16 << 24;

DEVICE void allocate(uint32_t* address, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)), "r"(columns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
DEVICE void deallocate(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}
DEVICE void fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
DEVICE void fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
// K-major, 128-byte rows with a swizzle of 128 bytes: eight rows are `stride` bytes.
DEVICE uint64_t descriptor(uint32_t start, uint32_t stride) {
  return (start & 0x3ffff) >> 4 | 1ULL << 16 | static_cast<uint64_t>(stride >> 4) << 32 | 1ULL << 46 | 2ULL << 61;
}
DEVICE void multiply(uint32_t d, uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b),
      "r"(kDescription), "r"(static_cast<uint32_t>(adds))
      : "memory");
}
DEVICE void commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
DEVICE void load_columns(float (&x)[8], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7])
               : "r"(address));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// a [rows of a][k], b [rows of b][k]: tensor maps of boxes of 64 x 128 and 64 x 64 with the 128-byte swizzle. c [rows of a][n].
extern "C" __global__ void gemm(const __grid_constant__ TensorMapSlot a, const __grid_constant__ TensorMapSlot b, float* c, int k,
                                int n, int bug) {
  __shared__ uint64_t full[kStages], empty[kStages], done;
  __shared__ uint32_t address;
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, row = static_cast<int>(blockIdx.y) * kM,
            column = static_cast<int>(blockIdx.x) * kN, steps = k / kK;
  if (warp == 0) allocate(&address, kN);
  if (t == 32) {
    for (int s = 0; s < kStages; ++s) mbarrier_init(&full[s], 1), mbarrier_init(&empty[s], 1);
    mbarrier_init(&done, 1);
    fence_mbarrier_init();
  }
  fence_before();
  __syncthreads();
  fence_after();
  const uint32_t d = address;

  if (t == 0) {
    for (int i = 0; i < steps; ++i) {
      const int s = i % kStages;
      const uint32_t tile = shared_address(stages) + s * kStageBytes;
      if (i >= kStages && bug != kRefillEarly) mbarrier_wait(&empty[s], (i / kStages + 1) % 2);
      mbarrier_arrive_expect_tx(&full[s], kStageBytes);
      tensor_load_2d(tile, &a, i * kK, row, &full[s]);
      tensor_load_2d(tile + kBytesOfA, &b, i * kK, column, &full[s]);
    }
  } else if (t == 64) {
    for (int i = 0; i < steps; ++i) {
      const int s = i % kStages;
      const uint32_t tile = shared_address(stages) + s * kStageBytes;
      if (bug != kNoWaitForFull) mbarrier_wait(&full[s], i / kStages % 2);
      fence_after();
      for (int j = 0; j < kK / 16; ++j) {
        multiply(d, descriptor(tile + 32 * j, 1024), descriptor(tile + kBytesOfA + 32 * j, bug == kWrongStride ? 512 : 1024),
                 i + j > 0);
      }
      commit(&empty[s]);
    }
    commit(&done);
  }
  __syncwarp();
  if (bug != kNoWaitForDone) mbarrier_wait(&done, 0);
  if (bug != kNoAfterFence) fence_after();
  for (int j = 0; j < kN; j += 8) {
    float x[8];
    load_columns(x, d + (static_cast<uint32_t>(32 * warp) << 16) + j);
    float4* const to = reinterpret_cast<float4*>(c + static_cast<size_t>(row + t) * n + column + j);
    to[0] = make_float4(x[0], x[1], x[2], x[3]);
    to[1] = make_float4(x[4], x[5], x[6], x[7]);
  }
  fence_before();
  __syncthreads();
  if (warp == 0 && bug != kNoDealloc) deallocate(d, kN);
}
