// K07: one tensor copy. Shared memory is filled with 0xCD, a box is copied to `offset`, and all of shared memory
// is written out: it shows which bytes the copy wrote, and which it did not.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

extern "C" {
extern __shared__ __align__(1024) unsigned char window[];
__shared__ uint64_t full;
}

struct Coordinates {
  int c[5];  // innermost first
};

template <int kRank>
DEVICE void load(const TensorMapSlot* map, const Coordinates& at, unsigned char* out, unsigned offset, unsigned bytes,
                 unsigned tx) {
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) window[i] = 0xCD;
  fence_proxy_async();  // each thread, for its own stores: the copy follows
  if (threadIdx.x == 0) mbarrier_init(&full, 1);
  __syncthreads();

  if (threadIdx.x == 0) {
    const uint32_t to = shared_address(window) + offset;
    mbarrier_arrive_expect_tx(&full, tx);
    if (kRank == 1) tensor_load_1d(to, map, at.c[0], &full);
    if (kRank == 2) tensor_load_2d(to, map, at.c[0], at.c[1], &full);
    if (kRank == 3) tensor_load_3d(to, map, at.c[0], at.c[1], at.c[2], &full);
    if (kRank == 4) tensor_load_4d(to, map, at.c[0], at.c[1], at.c[2], at.c[3], &full);
    if (kRank == 5) tensor_load_5d(to, map, at.c[0], at.c[1], at.c[2], at.c[3], at.c[4], &full);
  }
  mbarrier_wait(&full, 0);
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = window[i];
}

#define LOAD_KERNEL(rank)                                                                                  \
  KERNEL load_##rank##d(const __grid_constant__ TensorMapSlot map, const __grid_constant__ Coordinates at, \
                        unsigned char* out, unsigned offset, unsigned bytes, unsigned tx) {                \
    load<rank>(&map, at, out, offset, bytes, tx);                                                          \
  }
LOAD_KERNEL(1)
LOAD_KERNEL(2)
LOAD_KERNEL(3)
LOAD_KERNEL(4)
LOAD_KERNEL(5)
