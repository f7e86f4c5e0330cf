// K15: printf, a failed assertion, a trap.
#include <cassert>
#include <cstdint>
#include <cstdio>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

KERNEL say(const float* x) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 2) printf("thread %d of %s has %f\n", t, t == 0 ? "the first" : "the second", x[t]);
  if (t == 3) printf("%u%% %c %x %lld %5.2f|%-4d|\n", 40u, 'k', 0xbeef, -5000000000ll, 2.345, 7);
}

KERNEL check_sorted(const int* x) {
  const int t = static_cast<int>(threadIdx.x);
  assert(t == 0 || x[t - 1] <= x[t]);
}

KERNEL stop_at_negative(const int* x) {
  if (x[threadIdx.x] < 0) __trap();
}
