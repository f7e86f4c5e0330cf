// What CUDA's headers give a kernel, for clang without a CUDA toolkit: the qualifiers, vector types, and the functions
// that kernels of the labs need. Included before a submission by `kvscope lab` (apps/labs/compile_cuda.cpp).
// Functions that CUDA computes to the last bits (expf, logf) are approximate here: a relative error of 2^-21.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __restrict__ __restrict
#define INFINITY __builtin_huge_valf()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define CUDA_VERSION 11050
#define LAB_FUNCTION static __device__ __forceinline__

// --- types -----------------------------------------------------------------------------------------------------------

// An assignment moves the whole vector in one instruction; clang would split the copy of a struct.
#define LAB_ASSIGN(type, name, count)                                                    \
  __device__ __forceinline__ name& operator=(const name& other) {                        \
    typedef type Whole __attribute__((ext_vector_type(count), __may_alias__));           \
    *reinterpret_cast<Whole*>(this) = *reinterpret_cast<const Whole*>(&other);           \
    return *this;                                                                        \
  }
#define LAB_PAIR(type, name, align2)                                                     \
  struct name##1 {                                                                       \
    type x;                                                                              \
  };                                                                                     \
  struct alignas(align2) name##2 {                                                       \
    type x, y;                                                                           \
    LAB_ASSIGN(type, name##2, 2)                                                         \
  };                                                                                     \
  LAB_FUNCTION name##2 make_##name##2(type x, type y) { return {x, y}; }
#define LAB_VECTORS(type, name, align2, align4)                                          \
  LAB_PAIR(type, name, align2)                                                           \
  struct name##3 {                                                                       \
    type x, y, z;                                                                        \
  };                                                                                     \
  struct alignas(align4) name##4 {                                                       \
    type x, y, z, w;                                                                     \
    LAB_ASSIGN(type, name##4, 4)                                                         \
  };                                                                                     \
  LAB_FUNCTION name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }      \
  LAB_FUNCTION name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
LAB_VECTORS(signed char, char, 2, 4)
LAB_VECTORS(unsigned char, uchar, 2, 4)
LAB_VECTORS(short, short, 4, 8)
LAB_VECTORS(unsigned short, ushort, 4, 8)
LAB_VECTORS(int, int, 8, 16)
LAB_VECTORS(unsigned, uint, 8, 16)
LAB_VECTORS(float, float, 8, 16)
LAB_PAIR(long long, longlong, 16)
LAB_PAIR(unsigned long long, ulonglong, 16)
LAB_PAIR(double, double, 16)
#undef LAB_VECTORS
#undef LAB_PAIR
#undef LAB_ASSIGN

struct dim3 {
  unsigned x, y, z;
};

#include <__clang_cuda_builtin_vars.h>

// --- addresses, bits, numbers ----------------------------------------------------------------------------------------

LAB_FUNCTION unsigned long long __cvta_generic_to_shared(const void* p) {
  return (unsigned long long)(__attribute__((address_space(3))) const void*)p;
}
LAB_FUNCTION float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
LAB_FUNCTION unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
LAB_FUNCTION float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
LAB_FUNCTION int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
LAB_FUNCTION int __popc(unsigned x) { return __builtin_popcount(x); }
LAB_FUNCTION int __ffs(int x) { return __builtin_ffs(x); }
LAB_FUNCTION int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
template <class T>
LAB_FUNCTION T min(T a, T b) { return b < a ? b : a; }
template <class T>
LAB_FUNCTION T max(T a, T b) { return a < b ? b : a; }
LAB_FUNCTION float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
LAB_FUNCTION float fminf(float a, float b) { return __builtin_fminf(a, b); }
LAB_FUNCTION float fabsf(float x) { return __builtin_fabsf(x); }
LAB_FUNCTION float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LAB_FUNCTION float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LAB_FUNCTION float sqrtf(float x) { return __builtin_sqrtf(x); }
LAB_FUNCTION float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
LAB_FUNCTION float __fdividef(float a, float b) { return a / b; }
LAB_FUNCTION float exp2f(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
LAB_FUNCTION float log2f(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The product x * log2(e) in two parts, so that its rounding error does not grow with x.
LAB_FUNCTION float expf(float x) {
  const float high = x * 1.44269504f;
  const float low = __builtin_fmaf(x, 1.44269504f, -high) + x * 1.92596299e-8f;
  return __builtin_isinf(x) ? exp2f(x) : exp2f(high) * (1.0f + low * 0.693147181f);
}
LAB_FUNCTION float __expf(float x) { return exp2f(x * 1.44269504f); }
LAB_FUNCTION float logf(float x) { return log2f(x) * 0.693147181f; }
LAB_FUNCTION float __logf(float x) { return log2f(x) * 0.693147181f; }

// --- order and exchange ----------------------------------------------------------------------------------------------

LAB_FUNCTION void __syncwarp(unsigned mask = 0xffffffffu) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }
LAB_FUNCTION void __threadfence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
LAB_FUNCTION void __threadfence_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }

// `low` is the limit of the lanes: 0 for shfl.up, 31 for the others; the upper bits select segments of `width` lanes.
#define LAB_SHUFFLE(name, mode, low)                                                                       \
  LAB_FUNCTION unsigned name(unsigned mask, unsigned x, unsigned lane, int width = 32) {                   \
    unsigned y;                                                                                            \
    asm volatile("shfl.sync." mode ".b32 %0, %1, %2, %3, %4;"                                              \
                 : "=r"(y)                                                                                 \
                 : "r"(x), "r"(lane), "r"(((32u - (unsigned)width) << 8) | low), "r"(mask));               \
    return y;                                                                                              \
  }                                                                                                        \
  LAB_FUNCTION int name(unsigned mask, int x, unsigned lane, int width = 32) {                             \
    return (int)name(mask, (unsigned)x, lane, width);                                                      \
  }                                                                                                        \
  LAB_FUNCTION float name(unsigned mask, float x, unsigned lane, int width = 32) {                         \
    return __uint_as_float(name(mask, __float_as_uint(x), lane, width));                                   \
  }
LAB_SHUFFLE(__shfl_sync, "idx", 31u)
LAB_SHUFFLE(__shfl_xor_sync, "bfly", 31u)
LAB_SHUFFLE(__shfl_down_sync, "down", 31u)
LAB_SHUFFLE(__shfl_up_sync, "up", 0u)
#undef LAB_SHUFFLE

LAB_FUNCTION unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned lanes;
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %1, 0;\nvote.sync.ballot.b32 %0, p, %2;\n}"
               : "=r"(lanes)
               : "r"(predicate), "r"(mask));
  return lanes;
}
LAB_FUNCTION int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
LAB_FUNCTION int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

#define LAB_ATOMIC(name, type, instruction, constraint)                                                    \
  LAB_FUNCTION type name(type* at, type x) {                                                               \
    type old;                                                                                              \
    asm volatile("atom." instruction " %0, [%1], %2;" : "=" constraint(old) : "l"(at), constraint(x) : "memory"); \
    return old;                                                                                            \
  }
LAB_ATOMIC(atomicAdd, int, "add.s32", "r")
LAB_ATOMIC(atomicAdd, unsigned, "add.u32", "r")
LAB_ATOMIC(atomicAdd, float, "add.f32", "f")
LAB_ATOMIC(atomicMax, int, "max.s32", "r")
LAB_ATOMIC(atomicMax, unsigned, "max.u32", "r")
LAB_ATOMIC(atomicMin, int, "min.s32", "r")
LAB_ATOMIC(atomicMin, unsigned, "min.u32", "r")
LAB_ATOMIC(atomicExch, int, "exch.b32", "r")
LAB_ATOMIC(atomicExch, unsigned, "exch.b32", "r")
#undef LAB_ATOMIC
#undef LAB_FUNCTION
