// Six mistakes of the kinds that the virtual GPU found in published kernels, each in a small kernel of its own.
// `wrong` 0: with its fix; 1: as found.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

constexpr unsigned kWarp = 32, kMostWarps = 8;

DEVICE float warp_max(float x) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
  return x;
}
DEVICE float warp_sum(float x) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  return x;
}

// W1: softmax of a row by one CTA. The maximum and the sum use the same shared array: without a barrier between them, a
// warp writes its sum while another still reads the maxima.
KERNEL w1_softmax_reuses_shared(float* out, const float* in, int wrong) {
  __shared__ float of_warp[kMostWarps];
  const unsigned t = threadIdx.x, warp = t / kWarp, warps = blockDim.x / kWarp;
  const float x = in[t];
  float largest = warp_max(x);
  if (t % kWarp == 0) of_warp[warp] = largest;
  __syncthreads();
  for (unsigned w = 0; w < warps; ++w) largest = fmaxf(largest, of_warp[w]);
  if (!wrong) __syncthreads();  // all warps have read the maxima
  const float e = exp2f(x - largest), mine = warp_sum(e);
  if (t % kWarp == 0) of_warp[warp] = mine;
  __syncthreads();
  float sum = 0;
  for (unsigned w = 0; w < warps; ++w) sum += of_warp[w];
  out[t] = e / sum;
}

// W2: CTA 0 sets the accumulators to zero, and the other CTAs add to them: nothing orders the zeros before the sums. The
// fix: the host sets them to zero before the launch.
KERNEL w2_zeroes_accumulators(float* sums, const float* in, int wrong) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (wrong) sums[t] = 0;
    return;
  }
  atomicAdd(&sums[t], in[(blockIdx.x - 1) * blockDim.x + t]);
}

// W3: the backward pass of a layer norm, one row of 64 columns per warp. Pairs of warps share a row of partial sums. The
// wrong host code gives shared memory for blockDim / 64 rows: none for a block of 32 threads. The fix rounds up.
KERNEL w3_layernorm_backward(float* weight_gradient, const float* gradient, const float* normalized) {
  extern __shared__ float partial[];  // [pairs of warps][64]
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  float* const sums = partial + warp / 2 * 64;
  for (unsigned c = lane; c < 64; c += kWarp) {
    if (warp % 2 == 0) sums[c] = 0;
  }
  __syncthreads();
  for (unsigned c = lane; c < 64; c += kWarp) atomicAdd(&sums[c], gradient[row * 64 + c] * normalized[row * 64 + c]);
  __syncthreads();
  for (unsigned c = lane; c < 64; c += kWarp) {
    if (warp % 2 == 0) atomicAdd(&weight_gradient[c], sums[c]);
  }
}

// W4: the guard of the last CTA accepts the index n.
KERNEL w4_bound_is_greater(float* out, const float* in, unsigned n, int wrong) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (wrong ? i > n : i >= n) return;
  out[i] = 2 * in[i];
}

// W5: the last CTA adds the parts of all. Its atomic operation is relaxed: without a fence after it, its plain reads may
// return old values.
KERNEL w5_last_cta_without_fence(float* out, float* parts, unsigned* done, const float* in, int wrong) {
  __shared__ bool is_last;
  const unsigned t = threadIdx.x;
  parts[blockIdx.x * blockDim.x + t] = 2 * in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  if (t == 0) {
    __threadfence();
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
    if (!wrong) __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  float sum = 0;
  for (unsigned c = 0; c < gridDim.x; ++c) sum += parts[c * blockDim.x + t];
  out[t] = sum;
}

// W6: the CTA exits while a bulk copy still reads its shared memory.
KERNEL w6_exits_with_copies_in_flight(float* out, const float* in, int wrong) {
  __shared__ __align__(128) float tile[64];
  const unsigned t = threadIdx.x;
  tile[t] = 2 * in[t];
  fence_proxy_async();
  __syncthreads();
  if (t != 0) return;
  bulk_store(out, tile, sizeof tile);
  bulk_commit();
  if (!wrong) bulk_wait<0>();
}
