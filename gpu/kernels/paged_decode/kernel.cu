// paged_decode: one new query token per sequence against its paged cache, split over keys, then combined.
//
//   batch 8, 32 query and 8 KV heads, 4096 keys, page 16, bf16, on 132 multiprocessors:
//     grid {8, 4, 8} = 256 CTAs of 160 threads, two per multiprocessor; a run is 1024 keys = 16 tiles of 32 KB, three
//     of which are in flight or in use; then paged_decode_combine_bf16, grid {64, 1, 1}
//
// plan.h computes the numbers; attend.cuh is the kernel, load.cuh its producers, combine.cuh the second kernel.
// attend_any.cuh is the kernel for everything that attend.cuh does not support: f32, head sizes other than 64 and 128,
// several scales per head, a soft cap, a window, ALiBi. Caches of e4m3 require queries of bf16.
#include "gpu/kernels/paged_decode/attend.cuh"
#include "gpu/kernels/paged_decode/attend_any.cuh"
#include "gpu/kernels/paged_decode/combine.cuh"
#include "gpu/kernels/paged_decode/params.h"

namespace kvscope::gpu {

#define PAGED_DECODE(type, head)                                                   \
  KERNEL __launch_bounds__(kDecodeThreads, 2)                                      \
      paged_decode_##type##_d##head(const __grid_constant__ PagedDecodeParams p) { \
    decode_attend<type, head, false>(p);                                           \
  }
PAGED_DECODE(bf16, 64)
PAGED_DECODE(bf16, 128)
PAGED_DECODE(f16, 64)
PAGED_DECODE(f16, 128)
PAGED_DECODE(e4m3, 64)
PAGED_DECODE(e4m3, 128)

#define PAGED_DECODE_ANY(type)                                                                                         \
  KERNEL __launch_bounds__(kDecodeAnyThreads) paged_decode_##type##_any(const __grid_constant__ PagedDecodeParams p) { \
    decode_attend_any<type, false>(p);                                                                                 \
  }
PAGED_DECODE_ANY(bf16)
PAGED_DECODE_ANY(f16)
PAGED_DECODE_ANY(e4m3)
PAGED_DECODE_ANY(f32)

#define PAGED_DECODE_COMBINE(type)                                                                                     \
  KERNEL __launch_bounds__(kCombineThreads) paged_decode_combine_##type(const __grid_constant__ PagedDecodeParams p) { \
    decode_combine<type>(p);                                                                                           \
  }
PAGED_DECODE_COMBINE(bf16)
PAGED_DECODE_COMBINE(f16)
PAGED_DECODE_COMBINE(f32)

}  // namespace kvscope::gpu
