// Elements of a cache in kernels: chunks of 4, 8 or 16 bytes in registers, converted to floats and back with one
// rounding, to nearest, ties to even.
//
//   Chunk<16> x = load_chunk<16>(p);                 8 bf16: one 16-byte access
//   float f[8];
//   widen<bf16>(x, f);                               exact
//   store_chunk(q, narrow<e4m3>(f));                 8 bytes
//
// The first element is in the lowest bits of the first word. bf16, f16 and f32 overflow to infinity, e4m3 saturates at
// 448, as the conversion instructions do; a NaN becomes the instruction's NaN (7fff in 16 bits, 7f in e4m3).
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

namespace kvscope::gpu {

// Storage only: arithmetic is on floats.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};
struct e4m3 {
  uint8_t bits;
};
using f32 = float;

template <int kBytes>
struct alignas(kBytes) Chunk {
  uint32_t words[kBytes / 4];
};
template <class T>
inline constexpr int kPerChunk = 16 / static_cast<int>(sizeof(T));  // elements of 16 bytes

// Precondition: the pointer is aligned to kBytes.
template <int kBytes>
DEVICE Chunk<kBytes> load_chunk(const void* p) {
  return *static_cast<const Chunk<kBytes>*>(p);
}
template <int kBytes>
DEVICE void store_chunk(void* p, const Chunk<kBytes>& chunk) {
  *static_cast<Chunk<kBytes>*>(p) = chunk;
}

// --- conversions of pairs, as the instructions have them; the low half is the first element --------------------------

DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE uint32_t pack_f16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE uint16_t pack_e4m3(float low, float high) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE float2 unpack_bf16(uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
DEVICE float2 unpack_f16(uint32_t pair) {
  float2 f;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.f32.f16 %0, low;\n"
      "cvt.f32.f16 %1, high;\n"
      "}"
      : "=f"(f.x), "=f"(f.y)
      : "r"(pair));
  return f;
}
// Exact: every e4m3 is an f16.
DEVICE uint32_t e4m3_to_f16(uint16_t pair) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return halves;
}
DEVICE float2 unpack_e4m3(uint16_t pair) {
  return unpack_f16(e4m3_to_f16(pair));
}

// --- whole chunks ----------------------------------------------------------------------------------------------------

template <class T>
struct Convert;

template <>
struct Convert<f32> {
  static constexpr int kPerWord = 1;
  static DEVICE void widen(uint32_t word, float* out) { out[0] = __uint_as_float(word); }
  static DEVICE uint32_t narrow(const float* in) { return __float_as_uint(in[0]); }
};
template <>
struct Convert<bf16> {
  static constexpr int kPerWord = 2;
  static DEVICE void widen(uint32_t word, float* out) {
    const float2 f = unpack_bf16(word);
    out[0] = f.x, out[1] = f.y;
  }
  static DEVICE uint32_t narrow(const float* in) { return pack_bf16(in[0], in[1]); }
};
template <>
struct Convert<f16> {
  static constexpr int kPerWord = 2;
  static DEVICE void widen(uint32_t word, float* out) {
    const float2 f = unpack_f16(word);
    out[0] = f.x, out[1] = f.y;
  }
  static DEVICE uint32_t narrow(const float* in) { return pack_f16(in[0], in[1]); }
};
template <>
struct Convert<e4m3> {
  static constexpr int kPerWord = 4;
  static DEVICE void widen(uint32_t word, float* out) {
    const float2 low = unpack_e4m3(static_cast<uint16_t>(word)), high = unpack_e4m3(static_cast<uint16_t>(word >> 16));
    out[0] = low.x, out[1] = low.y, out[2] = high.x, out[3] = high.y;
  }
  static DEVICE uint32_t narrow(const float* in) {
    return pack_e4m3(in[0], in[1]) | static_cast<uint32_t>(pack_e4m3(in[2], in[3])) << 16;
  }
};

// Exact.
template <class T, int kCount>
DEVICE void widen(const Chunk<kCount* static_cast<int>(sizeof(T))>& chunk, float (&out)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / Convert<T>::kPerWord; ++i) {
    Convert<T>::widen(chunk.words[i], out + i * Convert<T>::kPerWord);
  }
}
// One rounding.
template <class T, int kCount>
DEVICE Chunk<kCount* static_cast<int>(sizeof(T))> narrow(const float (&in)[kCount]) {
  Chunk<kCount* static_cast<int>(sizeof(T))> chunk;
#pragma unroll
  for (int i = 0; i < kCount / Convert<T>::kPerWord; ++i) {
    chunk.words[i] = Convert<T>::narrow(in + i * Convert<T>::kPerWord);
  }
  return chunk;
}

}  // namespace kvscope::gpu
