// K16: every 16-bit pattern to fp8 and back.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::convert_test {
namespace {

// The value of sign, exponent and fraction. `infinities`: the largest exponent is infinity and NaN; otherwise only the
// pattern of all ones is NaN.
double number(std::uint32_t bits, int exponent_bits, int fraction_bits, bool infinities) {
  const auto fraction = static_cast<int>(bits & ((1U << fraction_bits) - 1U));
  const auto exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1U));
  const double sign = (bits >> (exponent_bits + fraction_bits) & 1U) != 0 ? -1 : 1;
  const int top = (1 << exponent_bits) - 1, bias = top / 2;
  if (infinities && exponent == top)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (!infinities && exponent == top && fraction == (1 << fraction_bits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
}

struct Fp8 {
  int exponent_bits, fraction_bits;
  bool infinities;
  std::uint32_t most;  // the largest number's bits

  // By exhaustive search: the nearest number, ties to an even last bit; the largest number for overflows.
  [[nodiscard]] std::uint32_t nearest(double x) const {
    if (std::isnan(x)) return 0x7f;
    const std::uint32_t sign = std::signbit(x) ? 0x80 : 0;
    const double size = std::abs(x);
    if (size >= number(most, exponent_bits, fraction_bits, infinities)) return sign | most;
    std::uint32_t best = 0;
    for (std::uint32_t code = 1; code <= most; ++code) {
      const double now = std::abs(size - number(code, exponent_bits, fraction_bits, infinities));
      const double then = std::abs(size - number(best, exponent_bits, fraction_bits, infinities));
      if (now < then || (now == then && code % 2 == 0)) best = code;
    }
    return sign | best;
  }
};
constexpr Fp8 kE4m3{4, 3, false, 0x7e}, kE5m2{5, 2, true, 0x7b};

std::vector<std::uint32_t> pairs() {
  std::vector<std::uint32_t> values(32768);
  for (std::uint32_t i = 0; i < 32768; ++i) values[i] = 2 * i | (2 * i + 1) << 16;
  return values;
}

// Runs `kernel` on all 65 536 patterns of a format with these exponent bits. The checksums are of the results of the
// toolkit's host conversions (__nv_cvt_bfloat16raw_to_fp8, __nv_cvt_halfraw_to_fp8, saturating).
void encodes_every_pattern(const char* kernel, int exponent_bits, std::uint64_t e4m3_fnv, std::uint64_t e5m2_fnv) {
  Gpu gpu("convert.ptx");
  const std::uint64_t in = gpu.upload("pairs", pairs()), e4m3 = gpu.zeros("e4m3", 65536),
                      e5m2 = gpu.zeros("e5m2", 65536);
  gpu.run_clean(
      {.kernel = kernel, .grid = {128, 1, 1}, .block = {256, 1, 1}, .values = {e4m3, e5m2, in, value(32768)}});
  const std::vector<std::uint8_t> to_e4m3 = gpu.download<std::uint8_t>(e4m3, 65536),
                                  to_e5m2 = gpu.download<std::uint8_t>(e5m2, 65536);
  EXPECT_EQ(fnv_of(to_e4m3), e4m3_fnv);
  EXPECT_EQ(fnv_of(to_e5m2), e5m2_fnv);
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536 && wrong < 5; ++bits) {
    const double x = number(bits, exponent_bits, 15 - exponent_bits, true);
    for (const bool first : {true, false}) {
      const std::uint32_t expected = (first ? kE4m3 : kE5m2).nearest(x), got = (first ? to_e4m3 : to_e5m2)[bits];
      if (got == expected) continue;
      ++wrong;
      ADD_FAILURE() << std::hex << bits << " to " << (first ? "e4m3 " : "e5m2 ") << got << ", expected " << expected;
    }
  }
}

// One rounding, never through a third format: through fp16 the ties of small bf16 numbers would round differently.
TEST(K16, EncodesEveryBf16PatternAsTheNearestFp8) {
  encodes_every_pattern("encode_bf16", 8, 0xd8b2feb674a31125U, 0x22c10a2b6f34bb85U);
}
TEST(K16, EncodesEveryFp16PatternAsTheNearestFp8) {
  encodes_every_pattern("encode_f16", 5, 0x55456763debf12a5U, 0xd102d7d39f29d5a5U);
}

TEST(K16, DecodesEveryFp8PatternExactly) {
  Gpu gpu("convert.ptx");
  const std::uint64_t e4m3 = gpu.zeros("e4m3", 512), e5m2 = gpu.zeros("e5m2", 512);
  gpu.run_clean({.kernel = "decode_fp8", .block = {128, 1, 1}, .values = {e4m3, e5m2}});
  const std::vector<std::uint16_t> from_e4m3 = gpu.download<std::uint16_t>(e4m3, 256),
                                   from_e5m2 = gpu.download<std::uint16_t>(e5m2, 256);
  EXPECT_EQ(fnv_of(from_e4m3), 0x096c3b1155f57ce9U);  // as __nv_cvt_fp8_to_halfraw on the host
  EXPECT_EQ(fnv_of(from_e5m2), 0xa3a0c24a486ab619U);
  for (std::uint32_t code = 0; code < 256; ++code)
    for (const bool first : {true, false}) {
      const double expected = first ? number(code, 4, 3, false) : number(code, 5, 2, true);
      const std::uint32_t got = (first ? from_e4m3 : from_e5m2)[code];
      if (std::isnan(expected)) {
        EXPECT_EQ(got, 0x7fffU) << std::hex << code;
      } else {
        EXPECT_EQ(number(got, 5, 10, true), expected) << std::hex << code;
        EXPECT_EQ(got >> 15, code >> 7) << std::hex << code;  // also for zero
      }
    }
}

}  // namespace
}  // namespace kvscope::ptx::test::convert_test
