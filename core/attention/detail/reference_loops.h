// The bodies of the reference's inner loops for vectors of W doubles: W = 2, 4, 8 are SSE2, AVX2, AVX-512. Included by
// one source file per instruction set, each compiled with its own flags. Everything is in an unnamed namespace and
// calls nothing of the standard library: an inline function compiled here with AVX-512 must not become the copy that
// the linker keeps for the whole program.
#pragma once

#include "core/attention/detail/reference_kernels.h"

namespace kvscope::attention {
namespace {

// Vectors of W doubles, and the same as integers. Written as specializations, because g++ 12 ignores the attribute on a
// dependent size.
template <int W>
struct Lanes;
template <>
struct Lanes<2> {
  typedef double Vec __attribute__((vector_size(16)));
  typedef long long Bits __attribute__((vector_size(16)));
};
template <>
struct Lanes<4> {
  typedef double Vec __attribute__((vector_size(32)));
  typedef long long Bits __attribute__((vector_size(32)));
};
template <>
struct Lanes<8> {
  typedef double Vec __attribute__((vector_size(64)));
  typedef long long Bits __attribute__((vector_size(64)));
};

template <int W>
struct Loops {
  using Vec = typename Lanes<W>::Vec;
  using Bits = typename Lanes<W>::Bits;
  static constexpr int kParts = 8 / W;  // vectors that make eight lanes

  static Vec load(const double* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(double* p, Vec x) { __builtin_memcpy(p, &x, sizeof x); }

  static void widen_f32(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      float x;
      __builtin_memcpy(&x, source + 4 * i, sizeof x);
      target[i] = static_cast<double>(x);
    }
  }

  static void widen_bf16(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
      float x;
      __builtin_memcpy(&x, &bits, sizeof x);
      target[i] = static_cast<double>(x);
    }
  }

  // seee eemm mmmm mmmm: the fields are moved to a float's places with an exponent that is 112 too small; multiplying
  // by 2^112 corrects that exactly, also for subnormals. Exponent 31 is infinity or NaN and becomes the float's 255.
  static void widen_f16(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
      const std::uint32_t fields = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
      float scaled;
      __builtin_memcpy(&scaled, &fields, sizeof scaled);
      scaled *= 0x1p112f;
      std::uint32_t bits;
      __builtin_memcpy(&bits, &scaled, sizeof bits);
      bits = (fields >= 0x0f800000u ? fields | 0x7f800000u : bits) | sign;
      float x;
      __builtin_memcpy(&x, &bits, sizeof x);
      target[i] = static_cast<double>(x);
    }
  }

  // ((0+4) + (2+6)) + ((1+5) + (3+7)): halves are added to each other, which every vector width can do in registers.
  static double fold(const Vec* parts) {
    double lane[8];
    __builtin_memcpy(lane, parts, sizeof lane);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }

  static void fetch(const std::byte* row, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  }

  template <int R>
  static void dots_of(const double* q, const double* k, std::int64_t keys, std::int64_t padded, double* scores,
                      std::int64_t score_stride, const Ahead& ahead) {
    for (std::int64_t t = 0; t < keys; ++t, k += padded) {
      if (t < ahead.count) fetch(ahead.rows[t], ahead.bytes);
      Vec sum[R][kParts] = {};
      for (std::int64_t d = 0; d < padded; d += kLanes) {
        for (int part = 0; part < kParts; ++part) {
          const Vec x = load(k + d + part * W);
          for (int r = 0; r < R; ++r) sum[r][part] += load(q + r * padded + d + part * W) * x;
        }
      }
      for (int r = 0; r < R; ++r) scores[r * score_stride + t] = fold(sum[r]);
    }
  }

  static void dots(const double* q, std::int64_t rows, const double* k, std::int64_t keys, std::int64_t padded,
                   double* scores, std::int64_t score_stride, const Ahead& ahead) {
    constexpr int kRows = W == 2 ? 2 : 4;
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      dots_of<kRows>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                     r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      dots_of<1>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride, r == 0 ? ahead : Ahead{});
    }
  }

  // Twelve sums stay in registers over all keys.
  template <int R>
  static void accumulate_of(const double* weights, std::int64_t weight_stride, const double* v, std::int64_t v_stride,
                            std::int64_t keys, std::int64_t padded, double* sums, const Ahead& ahead) {
    Bits magnitude;  // everything but the sign
    for (int i = 0; i < W; ++i) magnitude[i] = 0x7fffffffffffffffLL;
    const std::int64_t rows_a_step = (ahead.count * W + padded - 1) / padded;
    std::int64_t fetched = 0;
    for (std::int64_t d = 0; d < padded; d += W) {
      for (std::int64_t i = 0; i < rows_a_step && fetched < ahead.count; ++i) fetch(ahead.rows[fetched++], ahead.bytes);
      Vec sum[R][3];
      for (int r = 0; r < R; ++r) {
        for (int s = 0; s < 3; ++s) sum[r][s] = load(sums + (r * 3 + s) * padded + d);
      }
      const double* column = v + d;
      for (std::int64_t t = 0; t < keys; ++t, column += v_stride) {
        const Vec y = load(column);
        for (int r = 0; r < R; ++r) {
          const Vec x = y * weights[r * weight_stride + t];
          sum[r][0] += x;
          sum[r][1] += (Vec)((Bits)x & magnitude);
          sum[r][2] += x * x;
        }
      }
      for (int r = 0; r < R; ++r) {
        for (int s = 0; s < 3; ++s) store(sums + (r * 3 + s) * padded + d, sum[r][s]);
      }
    }
  }

  static void accumulate(const double* weights, std::int64_t weight_stride, std::int64_t rows, const double* v,
                         std::int64_t v_stride, std::int64_t keys, std::int64_t padded, double* sums,
                         const Ahead& ahead) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      accumulate_of<4>(weights + r * weight_stride, weight_stride, v, v_stride, keys, padded, sums + r * 3 * padded,
                       r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      accumulate_of<1>(weights + r * weight_stride, weight_stride, v, v_stride, keys, padded, sums + r * 3 * padded,
                       r == 0 ? ahead : Ahead{});
    }
  }

  static const ReferenceKernels* kernels() {
    static constexpr ReferenceKernels kKernels = {widen_f32, widen_f16, widen_bf16, dots, accumulate};
    return &kKernels;
  }
};

}  // namespace
}  // namespace kvscope::attention
