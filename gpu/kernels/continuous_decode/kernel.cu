// continuous_decode: paged_decode over a cache with one block per sequence. The block is looked up once, tokens are
// contiguous in it, and boxes of 64 slots may begin anywhere: a block of 100 slots is boxes of 0 .. 63 and 64 ..
// 127, of which the map ends at 99 and fills the rest with zeros.
//
// The device code is paged_decode's (attend.cuh and its includes) without the page lookup.
#include "gpu/kernels/continuous_decode/params.h"
#include "gpu/kernels/paged_decode/attend.cuh"
#include "gpu/kernels/paged_decode/attend_any.cuh"
#include "gpu/kernels/paged_decode/combine.cuh"

namespace kvscope::gpu {

#define CONTINUOUS_DECODE(type, head)                                                        \
  KERNEL __launch_bounds__(kDecodeThreads, 2)                                                \
      continuous_decode_##type##_d##head(const __grid_constant__ ContinuousDecodeParams p) { \
    decode_attend<type, head, true>(p);                                                      \
  }
CONTINUOUS_DECODE(bf16, 64)
CONTINUOUS_DECODE(bf16, 128)
CONTINUOUS_DECODE(f16, 64)
CONTINUOUS_DECODE(f16, 128)
CONTINUOUS_DECODE(e4m3, 64)
CONTINUOUS_DECODE(e4m3, 128)

#define CONTINUOUS_DECODE_ANY(type)                                                      \
  KERNEL __launch_bounds__(kDecodeAnyThreads)                                            \
      continuous_decode_##type##_any(const __grid_constant__ ContinuousDecodeParams p) { \
    decode_attend_any<type, true>(p);                                                    \
  }
CONTINUOUS_DECODE_ANY(bf16)
CONTINUOUS_DECODE_ANY(f16)
CONTINUOUS_DECODE_ANY(e4m3)
CONTINUOUS_DECODE_ANY(f32)

#define CONTINUOUS_DECODE_COMBINE(type)                                                    \
  KERNEL __launch_bounds__(kCombineThreads)                                                \
      continuous_decode_combine_##type(const __grid_constant__ ContinuousDecodeParams p) { \
    decode_combine<type>(p);                                                               \
  }
CONTINUOUS_DECODE_COMBINE(bf16)
CONTINUOUS_DECODE_COMBINE(f16)
CONTINUOUS_DECODE_COMBINE(f32)

}  // namespace kvscope::gpu
