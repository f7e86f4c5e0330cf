// Asynchronous copies as functions. This file is not submitted.
#pragma once

#define DEVICE static __device__ __forceinline__

DEVICE unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// Copies 16 bytes from global to shared memory. Returns before they have landed.
DEVICE void copy_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
}
// Ends a group of this thread's copies.
DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most the newest `kPending` groups of this thread are in flight.
template <int kPending>
DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
// Copies shared to global memory by the copy engine, and waits for it. One thread calls it for all bytes.
DEVICE void bulk_store(void* global, const void* shared, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared_address(shared)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// Makes this thread's earlier stores to shared memory visible to the copy engine.
DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
