// Arrival barriers and tensor copies as functions. This file is not submitted.
#pragma once

#define DEVICE static __device__ __forceinline__

// A tensor map, as the driver encodes it.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
using Barrier = unsigned long long;  // in shared memory

DEVICE unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// Makes a barrier whose phases need `arrivals` calls of barrier_arrive_expect and all announced bytes. One thread calls
// it, once; the others may use the barrier after a __syncthreads.
DEVICE void barrier_init(Barrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// One arrival, which announces `bytes` that copies will deliver in this phase.
DEVICE void barrier_arrive_expect(Barrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Waits until the phase of this parity is complete: 0 for the first phase, 1 for the second, 0 for the third. PTX defines
// no other parity.
DEVICE void barrier_wait(Barrier* barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
// Copies one box of the map, from this column and row on, to `shared`. Returns before it has landed; its bytes count
// for the barrier's current phase.
DEVICE void tensor_load(void* shared, const TensorMap* map, int column, int row, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
