// Instructions that only probes use: their behavior is the subject of the probe.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

namespace kvscope::gpu {

// The lane that the hardware selects from a mask; `chosen` is 1 in that lane. All lanes of the mask must execute this.
DEVICE uint32_t elect_leader(uint32_t mask, uint32_t& chosen) {
  uint32_t leader;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync %0|p, %2;\n"
      "selp.b32 %1, 1, 0, p;\n"
      "}"
      : "=r"(leader), "=r"(chosen)
      : "r"(mask)
      : "memory");
  return leader;
}

[[noreturn]] DEVICE void trap() {
  asm volatile("trap;");
  __builtin_unreachable();
}

// One product of a warp, 16 x 8 += (16 x 32 bytes) (32 bytes x 8); numbers of A and B by type.
enum class Number { bf16, f16, e4m3 };

#define WARP_PRODUCT(shape, type)                                                     \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type                \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <Number kNumber>
DEVICE void warp_product(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kNumber == Number::bf16) WARP_PRODUCT("m16n8k16", "bf16");
  if constexpr (kNumber == Number::f16) WARP_PRODUCT("m16n8k16", "f16");
  if constexpr (kNumber == Number::e4m3) WARP_PRODUCT("m16n8k32", "e4m3");
}
#undef WARP_PRODUCT

// The same of a warpgroup, 64 x 8, operands by descriptors. Eight-bit types have no transposed operands.
#define GROUP_PRODUCT(shape, type, how)                                                                             \
  asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." type "." type " {%0, %1, %2, %3}, %4, %5, 1, 1, 1" how \
               ";"                                                                                                  \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                     \
               : "l"(a), "l"(b)                                                                                     \
               : "memory")

template <Number kNumber>
DEVICE void group_product(float (&d)[4], uint64_t a, uint64_t b) {
  if constexpr (kNumber == Number::bf16) GROUP_PRODUCT("m64n8k16", "bf16", ", 0, 0");
  if constexpr (kNumber == Number::f16) GROUP_PRODUCT("m64n8k16", "f16", ", 0, 0");
  if constexpr (kNumber == Number::e4m3) GROUP_PRODUCT("m64n8k32", "e4m3", "");
}
#undef GROUP_PRODUCT

}  // namespace kvscope::gpu
