// Products of a warpgroup (four warps, 128 threads, sm_90a): D[64 x N] (+)= A[64 x 16] B[16 x N], operands of 16 bits,
// sums in fp32. B is read from shared memory, A from shared memory or registers. One function per instruction, as in
// instructions.cuh.
//
//   wgmma_fence();                                            orders earlier writes of the registers of D and A
//   for (int k = 0; k < 8; ++k) product_n128<bf16>(s, q_at(k), k_at(k), k != 0);
//   wgmma_commit();
//   wgmma_wait<0>();
//   keep(s);                                                  s must not be accessed before this line
//
// Register i of D: row 16 (warp % 4) + lane / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (lane % 4) + i % 2. Register r of
// A: row 16 (warp % 4) + lane / 4 + 8 (r % 2), k = 8 (r / 2) + 2 (lane % 4), + 1: two adjacent elements of D, packed.
//
// Operands in shared memory are rows of 128 bytes, eight rows per block of 1024 bytes. Chunks of 16 bytes are
// swizzled: chunk c of row r is at place c ^ r % 8. The block begins at a multiple of 1024.
//
//   rows are m or n, columns k      k_major(start):         blocks of eight rows are contiguous; k + 16: start + 32
//   rows are k, columns n           n_major(start, step):   likewise; k + 16: start + 2048; n + 64: start + step
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/common/number.cuh"

namespace kvscope::gpu {

// Fields of a matrix descriptor, in units of 16 bytes: start 0..13, leading step 16..29, stride 32..45; 1 in 62..63:
// 128-byte swizzle. Example: n_major(1024, 8192) = 0x4000004002000040.
DEVICE uint64_t n_major(uint32_t start, uint32_t step) {
  return static_cast<uint64_t>((start & 0x3ffff) >> 4) | static_cast<uint64_t>(step >> 4) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | uint64_t{1} << 62;
}
DEVICE uint64_t k_major(uint32_t start) {
  return n_major(start, 16);
}

// Sets the registers of each thread of the warpgroup: fewer, so that another warpgroup can have more. Must be executed
// by all four warps; the kernel must have launch bounds.
template <int kRegisters>
DEVICE void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
DEVICE void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Prevents the compiler from moving accesses to these registers before this line.
template <int kCount>
DEVICE void keep(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
DEVICE void keep(uint32_t (&a)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// --- operands of the assembly: registers of D, their names -----------------------------------------------------------

#define D_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D_16(d, i) D_4(d, i), D_4(d, i + 4), D_4(d, i + 8), D_4(d, i + 12)
#define D_32(d, i) D_16(d, i), D_16(d, i + 16)
#define D_64(d) D_32(d, 0), D_32(d, 32)
#define D_128(d) D_32(d, 0), D_32(d, 32), D_32(d, 64), D_32(d, 96)
#define NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_32 \
  NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64                                                                     \
  NAMES_32                                                                           \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_128                                                                                \
  NAMES_64                                                                                       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// From descriptors, and with A in registers. `accumulate` is 0 or 1: 0 discards the previous value of D.
#define PRODUCT(shape, type, names, a, b, accumulate, how)                                                         \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " accumulate ", 0;\nwgmma.mma_async.sync.aligned." shape ".f32." type "." type \
  " {" names "}, " a ", " b ", p, 1, 1, " how ";\n}"

template <class T>
inline constexpr bool kIsBf16 = false;
template <>
inline constexpr bool kIsBf16<bf16> = true;

// 32 columns, A and B along k: scores of 32 keys.
template <class T>
DEVICE void product_n32(float (&d)[16], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kIsBf16<T>) {
    asm volatile(PRODUCT("m64n32k16", "bf16", NAMES_16, "%16", "%17", "%18", "0, 0")
                 : D_16(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  } else {
    asm volatile(PRODUCT("m64n32k16", "f16", NAMES_16, "%16", "%17", "%18", "0, 0")
                 : D_16(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  }
}
// 128 columns, A and B along k: scores of 128 keys.
template <class T>
DEVICE void product_n128(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kIsBf16<T>) {
    asm volatile(PRODUCT("m64n128k16", "bf16", NAMES_64, "%64", "%65", "%66", "0, 0")
                 : D_64(d)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  } else {
    asm volatile(PRODUCT("m64n128k16", "f16", NAMES_64, "%64", "%65", "%66", "0, 0")
                 : D_64(d)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  }
}
// 256 columns, A along k, B along n: weights times 256 dims of values.
template <class T>
DEVICE void product_n256(float (&d)[128], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kIsBf16<T>) {
    asm volatile(PRODUCT("m64n256k16", "bf16", NAMES_128, "%128", "%129", "%130", "0, 1")
                 : D_128(d)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  } else {
    asm volatile(PRODUCT("m64n256k16", "f16", NAMES_128, "%128", "%129", "%130", "0, 1")
                 : D_128(d)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
  }
}
// 256 columns, A and B along k: rows of two matrices.
template <class T>
DEVICE void product_n256_k_major(float (&d)[128], uint64_t a, uint64_t b, int accumulate) {
  static_assert(kIsBf16<T>);
  asm volatile(PRODUCT("m64n256k16", "bf16", NAMES_128, "%128", "%129", "%130", "0, 0")
               : D_128(d)
               : "l"(a), "l"(b), "r"(accumulate)
               : "memory");
}
// 64 columns, A in registers, B along n: weights times 64 dims of values.
template <class T>
DEVICE void weigh(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  if constexpr (kIsBf16<T>) {
    asm volatile(PRODUCT("m64n64k16", "bf16", NAMES_32, "{%32, %33, %34, %35}", "%36", "%37", "1")
                 : D_32(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
  } else {
    asm volatile(PRODUCT("m64n64k16", "f16", NAMES_32, "{%32, %33, %34, %35}", "%36", "%37", "1")
                 : D_32(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
  }
}
// The same with 128 columns.
template <class T>
DEVICE void weigh(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  if constexpr (kIsBf16<T>) {
    asm volatile(PRODUCT("m64n128k16", "bf16", NAMES_64, "{%64, %65, %66, %67}", "%68", "%69", "1")
                 : D_64(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
  } else {
    asm volatile(PRODUCT("m64n128k16", "f16", NAMES_64, "{%64, %65, %66, %67}", "%68", "%69", "1")
                 : D_64(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
  }
}

#undef PRODUCT

}  // namespace kvscope::gpu
