// cvt: the assembler's results for constants, every 16-bit pattern to 8 bits and back compared with an oracle of
// integer arithmetic, every float type from integers and floats in every rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::convert_test {
namespace {

constexpr std::uint64_t kNan = 0x7fffffff;
std::uint64_t s32(int x) {
  return static_cast<std::uint32_t>(x);
}

TEST(Convert, FloatsToIntegersSaturate) {
  EXPECT_EQ(one("cvt.rzi.s32.f32", {0x7f800000}), 0x7fffffffu);
  EXPECT_EQ(one("cvt.rzi.u32.f32", {bits(5e9f)}), 0xffffffffu);
  EXPECT_EQ(one("cvt.rzi.s32.f32", {bits(-3e9f)}), 0x80000000u);
  EXPECT_EQ(one("cvt.rzi.u32.f32", {bits(-3e9f)}), 0u);
  EXPECT_EQ(one("cvt.rni.s32.f32", {kNan}), 0u);
  EXPECT_EQ(one("cvt.rni.s64.f32", {kNan}), 1ull << 63);
  EXPECT_EQ(one("cvt.rzi.u64.f64", {0x7ff8000000000000u}), 1ull << 63);
  EXPECT_EQ(one("cvt.rzi.s32.f64", {0x7ff8000000000000u}), 0x80000000u);
  EXPECT_EQ(one("cvt.rmi.s32.f32", {bits(-2.5f)}), s32(-3));
  EXPECT_EQ(one("cvt.rpi.s32.f32", {bits(-2.5f)}), s32(-2));
  EXPECT_EQ(one("cvt.rni.s32.f32", {bits(2.5f)}), 2u);
  EXPECT_EQ(one("cvt.rni.s32.f32", {bits(3.5f)}), 4u);
  EXPECT_EQ(one("cvt.rpi.s32.f32", {1}), 1u);
  EXPECT_EQ(one("cvt.rpi.ftz.s32.f32", {1}), 0u);
  EXPECT_EQ(one("cvt.rzi.u8.f32", {bits(300.0f)}), 0xffu);
  EXPECT_EQ(one("cvt.rzi.s8.f32", {bits(-300.0f)}), 0xff80u);
  EXPECT_EQ(one("cvt.rzi.u8.f64", {0x7ff8000000000000u}), 0x80u);
  EXPECT_EQ(one("cvt.rzi.u8.f32", {kNan}), 0u);
  EXPECT_EQ(one("cvt.rzi.u64.f64", {bits(0x1.fffffffffffffp63)}), 0xfffffffffffff800u);
  EXPECT_EQ(one("cvt.rzi.s64.f32", {bits(0x1p63f)}), 0x7fffffffffffffffu);
  EXPECT_EQ(one("cvt.rni.s16.f16", {0x4100}), 2u);  // 2.5
  EXPECT_EQ(one("cvt.rni.s32.bf16", {0xc020}), s32(-2));
}

// Register widths: results fill the register according to their type's sign, sources are the low bits.
TEST(Convert, NarrowIntegersInWiderRegisters) {
  EXPECT_EQ(one("cvt.sat.u8.s32", {300}), 0xffu);
  EXPECT_EQ(one("cvt.sat.u8.s32", {s32(-1)}), 0u);
  EXPECT_EQ(one("cvt.sat.s8.s32", {s32(-300)}), 0xff80u);
  EXPECT_EQ(one("cvt.s8.s32", {s32(-300)}), 0xffd4u);
  EXPECT_EQ(one("cvt.u8.s32", {s32(-300)}), 0x00d4u);
  EXPECT_EQ(one("cvt.s8.s32", {s32(-300)}, {4, 4}), 0xffffffd4u);
  EXPECT_EQ(one("cvt.u8.s32", {s32(-300)}, {8, 4}), 0xd4u);
  EXPECT_EQ(one("cvt.s32.s8", {0x0001ff80}, {4, 4}), 0xffffff80u);
  EXPECT_EQ(one("cvt.u32.u8", {0xffffffff12345678u}, {4, 8}), 0x78u);
  EXPECT_EQ(one("cvt.s64.s16", {0x12348000}, {8, 4}), 0xffffffffffff8000u);
  EXPECT_EQ(one("cvt.u16.u32", {0x12345678}, {4, 4}), 0x5678u);
  EXPECT_EQ(one("cvt.s64.s32", {0x80000000}), 0xffffffff80000000u);
  EXPECT_EQ(one("cvt.u64.u32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(one("cvt.sat.u32.s64", {~0ull}), 0u);
  EXPECT_EQ(one("cvt.sat.s32.u64", {~0ull}), 0x7fffffffu);
  EXPECT_EQ(one("cvt.rn.f32.u8", {0x1ff}, {4, 2}), bits(255.0f));
}

TEST(Convert, IntegersToFloats) {
  EXPECT_EQ(one("cvt.rn.f32.s32", {16777217}), 0x4b800000u);
  EXPECT_EQ(one("cvt.rp.f32.s32", {16777217}), 0x4b800001u);
  EXPECT_EQ(one("cvt.rn.f32.u32", {0xffffffff}), 0x4f800000u);
  EXPECT_EQ(one("cvt.rz.f32.u64", {~0ull}), 0x5f7fffffu);
  EXPECT_EQ(one("cvt.rn.f16.u32", {65519}), 0x7bffu);
  EXPECT_EQ(one("cvt.rn.f16.u32", {65520}), 0x7c00u);
  EXPECT_EQ(one("cvt.rm.f64.s64", {static_cast<std::uint64_t>(-0x20000000000001)}), bits(-0x1.0000000000001p53));
}

TEST(Convert, FloatsToWholeNumbersKeepTheSignOfZero) {
  EXPECT_EQ(one("cvt.rni.f32.f32", {bits(2.5f)}), bits(2.0f));
  EXPECT_EQ(one("cvt.rni.f32.f32", {bits(3.5f)}), bits(4.0f));
  EXPECT_EQ(one("cvt.rni.f32.f32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(one("cvt.rzi.f64.f64", {bits(-0.7)}), 1ull << 63);
  EXPECT_EQ(one("cvt.rpi.f16.f16", {0x3c01}), 0x4000u);
  EXPECT_EQ(one("cvt.sat.f32.f32", {kNan}), 0u);
  EXPECT_EQ(one("cvt.sat.f32.f32", {0x80000000}), 0u);
  EXPECT_EQ(one("cvt.sat.f32.f32", {bits(7.0f)}), bits(1.0f));
  EXPECT_EQ(one("cvt.ftz.f32.f32", {0x80000001}), 0x80000000u);
}

TEST(Convert, HalvesFromFloats) {
  EXPECT_EQ(one("cvt.f32.f16", {0x7e01}), kNan);
  EXPECT_EQ(one("cvt.f32.f16", {0x0001}), bits(0x1p-24f));
  EXPECT_EQ(one("cvt.f32.bf16", {0x7f81}), 0x7f810000u);  // a shift: the NaN payload is kept
  EXPECT_EQ(one("cvt.rn.f16.f32", {bits(65519.0f)}), 0x7bffu);
  EXPECT_EQ(one("cvt.rn.f16.f32", {bits(65520.0f)}), 0x7c00u);
  EXPECT_EQ(one("cvt.rn.satfinite.f16.f32", {bits(65520.0f)}), 0x7bffu);
  EXPECT_EQ(one("cvt.rz.f16.f32", {bits(1e30f)}), 0x7bffu);
  EXPECT_EQ(one("cvt.rn.f16.f32", {0x33000000}), 0u);  // 2^-25: a tie, to even
  EXPECT_EQ(one("cvt.rn.f16.f32", {0x33000001}), 0x0001u);
  EXPECT_EQ(one("cvt.rn.f16.f32", {0xffc12345}), 0x7fffu);
  EXPECT_EQ(one("cvt.rn.bf16.f32", {0x3f808000}), 0x3f80u);
  EXPECT_EQ(one("cvt.rn.bf16.f32", {0x3f818000}), 0x3f82u);
  EXPECT_EQ(one("cvt.rn.bf16.f32", {0x7f7f8000}), 0x7f80u);
  EXPECT_EQ(one("cvt.rn.bf16.f32", {0x00008001}), 0x0001u);
  EXPECT_EQ(one("cvt.rn.bf16.f32", {0xff800001}), 0x7fffu);
  EXPECT_EQ(one("cvt.rn.bf16x2.f32", {bits(1.0f), bits(2.0f)}), 0x3f804000u);  // the first becomes the upper half
  EXPECT_EQ(one("cvt.rn.f16x2.f32", {bits(1.0f), bits(2.0f)}), 0x3c004000u);
  EXPECT_EQ(one("cvt.rn.relu.bf16x2.f32", {bits(-1.0f), kNan}), 0x00007fffu);
}

TEST(Convert, EightBitPairs) {
  const std::uint64_t nan = kNan, minus_inf = 0xff800000;
  const auto e4m3 = [](std::uint64_t a, std::uint64_t b) { return one("cvt.rn.satfinite.e4m3x2.f32", {a, b}); };
  const auto e5m2 = [](std::uint64_t a, std::uint64_t b) { return one("cvt.rn.satfinite.e5m2x2.f32", {a, b}); };
  EXPECT_EQ(e4m3(bits(448.0f), bits(464.0f)), 0x7e7eu);
  EXPECT_EQ(e4m3(nan, minus_inf), 0x7ffeu);
  EXPECT_EQ(e4m3(bits(0x1p-10f), bits(1.5f * 0x1p-10f)), 0x0001u);
  EXPECT_EQ(e4m3(bits(1e-8f), bits(-3e-3f)), 0x0082u);
  EXPECT_EQ(e4m3(bits(-0.0f), bits(1.0f)), 0x8038u);
  EXPECT_EQ(e5m2(bits(448.0f), bits(464.0f)), 0x5f5fu);
  EXPECT_EQ(e5m2(nan, minus_inf), 0x7ffbu);
  EXPECT_EQ(e5m2(bits(0x1p-10f), bits(1.5f * 0x1p-10f)), 0x1416u);
  EXPECT_EQ(e5m2(bits(1e-8f), bits(-3e-3f)), 0x009au);
  EXPECT_EQ(e5m2(bits(-0.0f), bits(1.0f)), 0x803cu);
  EXPECT_EQ(e5m2(bits(57344.0f), bits(61440.0f)), 0x7b7bu);
  EXPECT_EQ(one("cvt.rn.relu.satfinite.e4m3x2.f32", {bits(-1.0f), nan}), 0x007fu);
  EXPECT_EQ(one("cvt.rn.f16x2.e4m3x2", {0x7f08}), 0x7fff2400u);
  EXPECT_EQ(one("cvt.rn.f16x2.e4m3x2", {0xff81}), 0x7fff9800u);
  EXPECT_EQ(one("cvt.rn.f16x2.e4m3x2", {0x7e00}), 0x5f000000u);
  EXPECT_EQ(one("cvt.rn.f16x2.e5m2x2", {0x7c7d}), 0x7c007fffu);
  EXPECT_EQ(one("cvt.rn.f16x2.e5m2x2", {0x0480}), 0x04008000u);
}

// Formats of 6 and 4 bits, and ue8m0. Every code and the values half way between two codes, against a search over all
// codes: the nearest one, at a tie the even one.
struct Narrow {
  const char* pair;
  int exponent_bits, fraction_bits, shift;  // shift of the upper number of a pair
  [[nodiscard]] int codes() const { return 1 << (exponent_bits + fraction_bits); }  // of one sign
  [[nodiscard]] double value(int code) const {
    const int fraction = code % (1 << fraction_bits), exponent = code >> fraction_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                         : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
  [[nodiscard]] std::uint64_t nearest(float x) const {
    if (std::isnan(x)) return static_cast<std::uint64_t>(codes() - 1);
    int best = 0;
    for (int code = 0; code < codes(); ++code) {
      const double size = std::min(std::abs(double{x}), 1e6);  // past the largest number
      const double distance = std::abs(value(code) - size), least = std::abs(value(best) - size);
      if (distance < least || (distance == least && code % 2 == 0)) best = code;
    }
    return static_cast<std::uint64_t>(best + (std::signbit(x) ? codes() : 0));
  }
};
const Narrow kNarrows[] = {{"e2m3x2", 2, 3, 8}, {"e3m2x2", 3, 2, 8}, {"e2m1x2", 2, 1, 4}};

TEST(Convert, SixAndFourBitsRoundToTheNearestCode) {
  for (const Narrow& n : kNarrows) {
    std::vector<float> values{std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f,
                              1e-30f};
    for (int code = 0; code < n.codes(); ++code) {
      const auto exact = static_cast<float>(n.value(code));
      values.push_back(exact);
      if (code + 1 == n.codes()) continue;
      const auto middle = static_cast<float>((n.value(code) + n.value(code + 1)) / 2);
      values.insert(values.end(), {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 100.0f)});
    }
    for (std::uint32_t upper = 0; upper < 0x10000; upper += 37) values.push_back(std::bit_cast<float>(upper << 16));
    const std::string word = std::string("cvt.rn.satfinite.") + n.pair + ".f32";
    const std::string relu = std::string("cvt.rn.relu.satfinite.") + n.pair + ".f32";
    for (const float x : values) {
      for (const float y : {x, -x}) {
        const std::uint64_t code = n.nearest(y), other = n.nearest(1.5f);
        ASSERT_EQ(one(word, {bits(y), bits(1.5f)}), code << n.shift | other) << word << " " << y;
        ASSERT_EQ(one(word, {bits(1.5f), bits(y)}), other << n.shift | code) << word << " " << y;
        const std::uint64_t positive = y <= 0 ? 0 : code;
        ASSERT_EQ(one(relu, {bits(y), bits(1.5f)}), positive << n.shift | other) << relu << " " << y;
      }
    }
  }
}

TEST(Convert, EveryCodeOfSixAndFourBitsToF16) {
  for (const Narrow& n : kNarrows) {
    const std::string word = std::string("cvt.rn.f16x2.") + n.pair, relu = std::string("cvt.rn.relu.f16x2.") + n.pair;
    for (int code = 0; code < 2 * n.codes(); ++code) {
      const double size = n.value(code % n.codes());
      int exponent = 0;
      const double part = std::frexp(size, &exponent);
      const auto magnitude = size == 0 ? 0U : static_cast<unsigned>((exponent + 14) * 1024 + (2 * part - 1) * 1024);
      const std::uint64_t f16 = magnitude | (code >= n.codes() ? 0x8000U : 0U);
      const std::uint64_t pair = static_cast<std::uint64_t>(code) << n.shift | 1U;
      const auto low = static_cast<std::uint64_t>(n.fraction_bits == 3   ? 0x3000
                                                  : n.fraction_bits == 2 ? 0x2c00
                                                                         : 0x3800);
      ASSERT_EQ(one(word, {pair}), f16 << 16 | low) << word << " " << code;
      ASSERT_EQ(one(relu, {pair}), (code >= n.codes() ? 0 : f16) << 16 | low) << relu << " " << code;
    }
  }
}

// Powers of two: the magnitude rounded down or up; 2^-127 is the least, past 2^127 is NaN or, with .satfinite, 2^127.
TEST(Convert, ScalesArePowersOfTwo) {
  std::vector<float> values{0.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()};
  for (int exponent = -149; exponent < 128; ++exponent) {
    const float x = std::ldexp(1.0f, exponent);
    values.insert(values.end(),
                  {x, std::nextafter(x, 0.0f), std::nextafter(x, std::numeric_limits<float>::infinity())});
  }
  for (const float x : values) {
    for (const bool up : {false, true}) {
      for (const bool finite : {false, true}) {
        int code = 0;
        for (int power = -127; power < 128; ++power) {  // the highest power up to x, then the first one not below x
          if (std::ldexp(1.0, power) <= double{x}) code = power + 127;
        }
        if (up && double{x} > std::ldexp(1.0, code - 127)) ++code;
        if (std::isinf(x)) code = 255;
        if (finite && code == 255) code = 254;
        if (std::isnan(x)) code = 255;
        const std::string word = std::string("cvt.") + (up ? "rp" : "rz") + (finite ? ".satfinite" : "") + ".ue8m0x2.";
        ASSERT_EQ(one(word + "f32", {bits(x), bits(2.0f)}), static_cast<std::uint64_t>(code) << 8 | 128U) << word << x;
        ASSERT_EQ(one(word + "f32", {bits(2.0f), bits(-x)}), 128U << 8 | static_cast<std::uint64_t>(code))
            << word << -x;
        if ((bits(x) & 0xffff) != 0) continue;
        ASSERT_EQ(one(word + "bf16x2", {bits(x) | 0x4000}), static_cast<std::uint64_t>(code) << 8 | 128U) << word << x;
      }
    }
  }
  for (std::uint64_t code = 0; code < 256; ++code) {
    const std::uint64_t bf16 = code == 255 ? 0x7fff : bits(std::ldexp(1.0f, static_cast<int>(code) - 127)) >> 16;
    ASSERT_EQ(one("cvt.rn.bf16x2.ue8m0x2", {code << 8 | 0x7f}), bf16 << 16 | 0x3f80) << code;
  }
}

TEST(Convert, Tf32AndPacks) {
  EXPECT_EQ(one("cvt.rna.tf32.f32", {0x3f801000}), 0x3f802000u);
  EXPECT_EQ(one("cvt.rn.tf32.f32", {0x3f801000}), 0x3f800000u);
  EXPECT_EQ(one("cvt.rz.tf32.f32", {0x3f801fff}), 0x3f800000u);
  // NaN as an H100 converts it: .rna drops lower bits only.
  EXPECT_EQ(one("cvt.rn.tf32.f32", {0xffc00001}), 0x7fffe000u);
  EXPECT_EQ(one("cvt.rna.tf32.f32", {0xffffffff}), 0xffffe000u);
  EXPECT_EQ(one("cvt.rna.tf32.f32", {0x7f800001}), 0x7f800000u);
  EXPECT_EQ(one("cvt.rna.satfinite.tf32.f32", {0xffffffff}), 0xffffc000u);
  EXPECT_EQ(one("cvt.f64.f32", {0xff800001}), 0xfff8000020000000u);
  EXPECT_EQ(one("cvt.ftz.f64.f32", {0xff800001}), 0x7fffffffe0000000u);
  EXPECT_EQ(one("cvt.f64.f16", {0xfc03}), 0xfff80c0000000000u);
  EXPECT_EQ(one("cvt.rn.f32.f64", {0xfff0000000000001}), 0xffc00000u);
  EXPECT_EQ(one("cvt.rn.bf16.f64", {0xffffffffffffffff}), 0xffffu);
  EXPECT_EQ(one("cvt.f32.f32", {0xff800001}), 0xff800001u);
  EXPECT_EQ(one("cvt.rm.ftz.f16.f32", {0x8066a089}), 0x8001u);  // the source is not flushed
  EXPECT_EQ(one("cvt.rna.tf32.f32", {0x7f7fffff}), 0x7f800000u);
  EXPECT_EQ(one("cvt.rna.satfinite.tf32.f32", {0x7f7fffff}), 0x7f7fe000u);
  EXPECT_EQ(one("cvt.pack.sat.s8.s32.b32", {300, s32(-300), 12345678}), 0x614e7f80u);
  EXPECT_EQ(one("cvt.pack.sat.u16.s32", {70000, s32(-300)}), 0xffff0000u);
}

// --- all patterns ----------------------------------------------------------------------------------------------------

// A finite number as significand * 2^exponent.
struct Number {
  std::uint64_t significand;
  int exponent;
};
Number number_of(std::uint64_t magnitude, int fraction_bits, int bias) {
  const std::uint64_t fraction = magnitude & ((1ull << fraction_bits) - 1);
  const auto biased = static_cast<int>(magnitude >> fraction_bits);
  return biased == 0 ? Number{fraction, 1 - bias - fraction_bits}
                     : Number{fraction | 1ull << fraction_bits, biased - bias - fraction_bits};
}
// a - b, sign only.
int order(const Number& a, const Number& b) {
  __extension__ typedef unsigned __int128 Wide;
  const int low = std::min(a.exponent, b.exponent);
  if (a.significand == 0 || b.significand == 0) {
    return static_cast<int>(a.significand != 0) - static_cast<int>(b.significand != 0);
  }
  if (a.exponent - low > 100) return 1;
  if (b.exponent - low > 100) return -1;
  const Wide x = static_cast<Wide>(a.significand) << (a.exponent - low);
  const Wide y = static_cast<Wide>(b.significand) << (b.exponent - low);
  return x < y ? -1 : x > y ? 1 : 0;
}
// The 8-bit pattern nearest to a number, by exhaustive search: the number is between the midpoints to the adjacent
// patterns.
std::uint64_t nearest_of_8(const Number& x, int fraction_bits, int bias, std::uint64_t largest) {
  for (std::uint64_t code = 0; code < largest; ++code) {
    const Number here = number_of(code, fraction_bits, bias);
    const Number next = number_of(code + 1, fraction_bits, bias);
    // (here + next) / 2: both are multiples of the last place of `here`.
    const int low = std::min(here.exponent, next.exponent);
    const Number middle{(here.significand << (here.exponent - low)) + (next.significand << (next.exponent - low)),
                        low - 1};
    const int beyond = order(x, middle);
    if (beyond < 0 || (beyond == 0 && code % 2 == 0)) return code;
  }
  return largest;
}

struct Eight {
  const char* name;
  int fraction_bits, bias;
  std::uint64_t largest, infinity;  // 0: it has none
};
const Eight kEights[] = {{"e4m3x2", 3, 7, 0x7e, 0}, {"e5m2x2", 2, 15, 0x7b, 0x7c}};

// f16 in pairs; bf16 through f32, which is exact.
TEST(Convert, Every16BitPatternToEightBits) {
  for (const Eight& eight : kEights) {
    for (const bool brain : {false, true}) {
      const int fraction_bits = brain ? 7 : 10;
      const int bias = brain ? 127 : 15;
      const std::uint64_t infinity = brain ? 0x7f80 : 0x7c00;
      std::vector<std::uint64_t> expected(0x8000);
      for (std::uint64_t code = 0; code < 0x8000; ++code) {
        expected[code] = code > infinity    ? 0x7f
                         : code == infinity ? eight.largest
                                            : nearest_of_8(number_of(code, fraction_bits, bias), eight.fraction_bits,
                                                           eight.bias, eight.largest);
      }
      Case c;
      c.simd = best_simd();
      c.word = std::string("cvt.rn.satfinite.") + eight.name + (brain ? ".f32" : ".f16x2");
      for (std::uint64_t code = 0; code < 0x10000; code += 64) {
        Lanes low, high, pair;
        for (std::size_t i = 0; i < 32; ++i) {
          low[i] = (code + i) << 16;
          high[i] = (code + 32 + i) << 16;
          pair[i] = (code + 32 + i) << 16 | (code + i);
        }
        c.in = brain ? std::vector<Lanes>{high, low} : std::vector<Lanes>{pair};
        const Outcome outcome = run(c);
        for (std::size_t i = 0; i < 32; ++i) {
          const auto of = [&](std::uint64_t x) {
            const std::uint64_t magnitude = expected[x & 0x7fff];
            return magnitude == 0x7f ? 0x7f : magnitude | (x >> 15) << 7;
          };
          ASSERT_EQ(outcome.d[0][i], of(code + 32 + i) << 8 | of(code + i)) << c.word << std::hex << " " << code + i;
        }
      }
    }
  }
}

TEST(Convert, EveryEightBitPatternToF16) {
  for (const Eight& eight : kEights) {
    for (std::uint64_t code = 0; code < 256; ++code) {
      const std::uint64_t magnitude = code & 0x7f;
      std::uint64_t expected = 0x7fff;
      if (magnitude <= eight.largest) {
        const Number x = number_of(magnitude, eight.fraction_bits, eight.bias);
        for (std::uint64_t f16 = 0; f16 < 0x7c00; ++f16) {
          if (order(x, number_of(f16, 10, 15)) == 0) expected = f16 | (code >> 7) << 15;
        }
      } else if (magnitude == eight.infinity) {
        expected = 0x7c00 | (code >> 7) << 15;
      }
      Case c;
      c.word = std::string("cvt.rn.f16x2.") + eight.name;
      c.in = {all(code << 8 | code)};
      ASSERT_EQ(run(c).d[0][0], expected << 16 | expected) << c.word << " " << code;
    }
  }
}

// Every f16 to f32 and back, and every bf16, is unchanged, except NaN.
TEST(Convert, Every16BitPatternToFloatAndBack) {
  for (const Simd simd : simds()) {
    for (const bool brain : {false, true}) {
      for (std::uint64_t code = 0; code < 0x10000; code += 32) {
        Lanes x;
        for (std::size_t i = 0; i < 32; ++i) x[i] = code + i;
        const std::string type = brain ? "bf16" : "f16";
        const Outcome wide = run({.word = "cvt.f32." + type, .in = {x}, .simd = simd});
        const Outcome back = run({.word = "cvt.rn." + type + ".f32", .in = {wide.d[0]}, .simd = simd});
        for (std::size_t i = 0; i < 32; ++i) {
          const std::uint64_t infinity = brain ? 0x7f80 : 0x7c00;
          const std::uint64_t expected = (x[i] & 0x7fff) > infinity ? 0x7fff : x[i];
          ASSERT_EQ(back.d[0][i], expected) << type << " " << x[i];
        }
      }
    }
  }
}

// A float's rounding to 16 bits in every direction, compared with the adjacent 16-bit patterns.
TEST(Convert, RoundingTo16BitsInEveryDirection) {
  Random random{17};
  for (const bool brain : {false, true}) {
    const int fraction_bits = brain ? 7 : 10;
    const int bias = brain ? 127 : 15;
    const std::uint64_t infinity = brain ? 0x7f80 : 0x7c00;
    for (int round = 0; round < 200; ++round) {
      Lanes x;
      for (std::uint64_t& v : x) {
        const std::uint64_t r = random.next();
        const std::uint64_t exponent = brain ? 1 + (r >> 40) % 253 : 95 + (r >> 40) % 50;
        v = (r & 0x80000000u) | exponent << 23 | (r % 3 == 0 ? (r & 0x7f0000u) | 0x8000u : r & 0x7fffffu);
      }
      for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
        const std::string word = std::string("cvt.") + rounding + (brain ? ".bf16.f32" : ".f16.f32");
        if (!understand(word).unsupported.empty()) continue;
        for (const Simd simd : simds()) {
          const Outcome outcome = run({.word = word, .in = {x}, .simd = simd});
          for (std::size_t i = 0; i < 32; ++i) {
            const Number exact = number_of(x[i] & 0x7fffffffu, 23, 127);
            const bool negative = (x[i] >> 31) != 0;
            const std::uint64_t got = outcome.d[0][i] & 0x7fff;
            ASSERT_EQ(outcome.d[0][i] >> 15, negative ? 1u : 0u);
            // The largest pattern not above the number.
            std::uint64_t below = 0, above = infinity;
            while (above - below > 1) {
              const std::uint64_t middle = (below + above) / 2;
              (order(exact, number_of(middle, fraction_bits, bias)) >= 0 ? below : above) = middle;
            }
            const bool is_exact = order(exact, number_of(below, fraction_bits, bias)) == 0;
            std::uint64_t expected = below;
            const Number low = number_of(below, fraction_bits, bias);
            const Number half{2 * low.significand + 1, low.exponent - 1};
            const int beyond = order(exact, half);
            switch (rounding[1]) {
              case 'n':
                expected = beyond > 0 || (beyond == 0 && below % 2 == 1) ? below + 1 : below;
                break;
              case 'm':
                expected = negative && !is_exact ? below + 1 : below;
                break;
              case 'p':
                expected = !negative && !is_exact ? below + 1 : below;
                break;
              default:
                break;
            }
            ASSERT_EQ(got, expected) << word << " " << std::hex << x[i];
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::convert_test
