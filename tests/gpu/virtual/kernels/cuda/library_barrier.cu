// K20: the C++ library's barrier and asynchronous copy, unchanged. The library issues the copy before it announces the
// bytes to the barrier, and waits for a token.
#include <cuda/barrier>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// out[i] = in[i] + in[255 - i], 256 values through shared memory, twice: the second half of each array in the next
// phase of the same barrier.
KERNEL library_copy(int* out, const int* in) {
  __shared__ alignas(16) int values[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();

  for (int half = 0; half < 2; ++half) {
    if (threadIdx.x == 0)
      cuda::memcpy_async(values, in + 256 * half, cuda::aligned_size_t<16>(sizeof(values)), barrier);
    barrier.arrive_and_wait();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) out[256 * half + i] = values[i] + values[255 - i];
    barrier.arrive_and_wait();  // all threads have read
  }
}
