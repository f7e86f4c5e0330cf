// Matrix products in mode hopper (matrix_product.h), eight columns at a time: the same bits as hopper_element (matrix_sums.h), which gives those
// elements that infinities or NaN contribute to. Compiled once per instruction set (CMakeLists.txt).
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/matrix_sums.h"

namespace kvscope::ptx::semantics {
namespace {

inline constexpr int kHopperColumns = 8;
typedef float HopperFloats __attribute__((vector_size(4 * kHopperColumns)));
typedef int HopperInts __attribute__((vector_size(4 * kHopperColumns)));
typedef double HopperDoubles __attribute__((vector_size(8 * kHopperColumns)));
typedef long long HopperLongs __attribute__((vector_size(8 * kHopperColumns)));

// Exponents of factors: those of 0 make that of a product less than any other.
inline constexpr int kExponentOfZero = -10'000, kLeastSum = -1'000;

struct HopperFactors {  // of eight columns of B
  HopperDoubles number[kMostHopperGroup];
  HopperInts exponent[kMostHopperGroup];
};

// The numbers, with 0 in place of infinities and NaN, which are set in `special`.
[[gnu::always_inline]] inline void take_factors(const float* from, int least, HopperDoubles& number,
                                                HopperInts& exponent, HopperInts& special) {
  HopperInts bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  const HopperInts biased = (bits >> 23) & 0xff;
  const HopperInts is_special = biased == 255;
  special |= is_special;
  bits &= ~is_special;
  number = __builtin_convertvector((HopperFloats)bits, HopperDoubles);
  exponent = biased - 127;
  exponent = exponent > least ? exponent : least + HopperInts{};
  exponent = (bits << 1) == 0 ? kExponentOfZero + HopperInts{} : exponent;
}

// Results are references, because functions for several instruction sets may not return wide vectors.
[[gnu::always_inline]] inline void powers_of_two(const HopperInts& exponents, HopperDoubles& out) {
  out = (HopperDoubles)((__builtin_convertvector(exponents, HopperLongs) + 1023) << 52);
}
[[gnu::always_inline]] inline void cut_to_integers(HopperDoubles& x) {
  x = __builtin_convertvector(__builtin_convertvector(x, HopperInts), HopperDoubles);
}

// Rounded toward zero, to `dropped` bits less than an f32; from 2^128 on, infinity.
[[gnu::always_inline]] inline void cut_to_floats(const HopperDoubles& x, int dropped, HopperFloats& out) {
  const HopperFloats nearest = __builtin_convertvector(x, HopperFloats);
  const HopperDoubles back = __builtin_convertvector(nearest, HopperDoubles);
  const HopperLongs no_sign = HopperLongs{} + 0x7fff'ffff'ffff'ffff;
  const HopperLongs above =
      ((HopperLongs)back & no_sign) > ((HopperLongs)x & no_sign);  // bits are ordered as numbers are
  HopperInts bits = (HopperInts)nearest + __builtin_convertvector(above, HopperInts);  // -1: one step toward zero
  const int kept = ~((1 << dropped) - 1);
  bits &= kept;
  const HopperInts infinity = (bits & static_cast<int>(0x8000'0000)) | 0x7f80'0000;
  const HopperLongs is_large = ((HopperLongs)x & no_sign) >= 0x47f0'0000'0000'0000;  // 2^128
  out = (HopperFloats)(__builtin_convertvector(is_large, HopperInts) != 0 ? infinity : bits);
}

// d += a b for one row of A. Elements of `special` columns stay as they are, and so do infinities and NaN of d.
[[gnu::always_inline]] inline void add_hopper_row(const HopperRules& rules, const float* a, int length,
                                                  const HopperFactors& b, const HopperInts& special, float* d) {
  HopperDoubles sum;
  HopperInts highest, stays = special;
  take_factors(d, rules.least_d, sum, highest, stays);
  highest = highest > kLeastSum ? highest : kLeastSum + HopperInts{};
  for (int k = 0; k < length; ++k) {
    const int biased = static_cast<int>(bits_as<u32>(a[k]) >> 23 & 0xff) - 127;
    const int exponent = a[k] == 0 ? kExponentOfZero : biased > rules.least_a ? biased : rules.least_a;
    const HopperInts of_product = b.exponent[k] + exponent;
    highest = of_product > highest ? of_product : highest;
  }
  const HopperInts empty = highest == kLeastSum;  // C is 0, and so are all products
  const HopperInts unit = (empty ? HopperInts{} : highest) - rules.fraction;
  HopperDoubles scale, product;
  powers_of_two(-unit, scale);
  sum *= scale;
  cut_to_integers(sum);
  for (int k = 0; k < length; ++k) {
    product = static_cast<double>(a[k]) * b.number[k] * scale;
    cut_to_integers(product);
    sum += product;
  }
  powers_of_two(unit, scale);
  sum *= scale;
  HopperFloats before, after;
  __builtin_memcpy(&before, d, sizeof before);
  if (rules.half) {
    for (int j = 0; j < kHopperColumns; ++j) {
      const float rounded = f16_to_f32(f64_to_f16(sum[j]));
      after[j] = rounded == 0 ? 0 : rounded;  // underflow gives +0
    }
  } else {
    cut_to_floats(sum, rules.dropped, after);
  }
  after = (empty | stays) != 0 ? before : after;
  __builtin_memcpy(d, &after, sizeof after);
}

inline bool is_special(float x) {
  return (bits_as<u32>(x) & 0x7f80'0000u) == 0x7f80'0000u;
}

inline void add_hopper_product(const MatrixProduct& p, const float* a, const float* b, float* d) {
  const HopperRules rules = hopper_rules(p);
  const auto add_element = [&](int i, int j) {
    float& x = d[i * p.n + j];
    x = hopper_element(p, x, a + i * p.k, b + j, p.n);
  };
  int j = 0;
  for (; p.k <= rules.group && j + kHopperColumns <= p.n; j += kHopperColumns) {
    HopperInts special = {};
    HopperFactors factors;
    for (int k = 0; k < p.k; ++k)
      take_factors(b + k * p.n + j, rules.least_b, factors.number[k], factors.exponent[k], special);
    for (int i = 0; i < p.m; ++i) {
      bool whole_row = false;
      for (int k = 0; k < p.k; ++k) whole_row |= is_special(a[i * p.k + k]);
      bool by_element[kHopperColumns];
      for (int x = 0; x < kHopperColumns; ++x)
        by_element[x] = whole_row || special[x] != 0 || is_special(d[i * p.n + j + x]);
      if (!whole_row) add_hopper_row(rules, a + i * p.k, p.k, factors, special, d + i * p.n + j);
      for (int x = 0; x < kHopperColumns; ++x) {
        if (by_element[x]) add_element(i, j + x);
      }
    }
  }
  for (; j < p.n; ++j) {
    for (int i = 0; i < p.m; ++i) add_element(i, j);
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
