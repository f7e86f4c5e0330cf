// cvt.rs: a number between two codes becomes the upper one for as many random bits as its distance from the lower one is of
// their distance. Compared with a search over the codes of each format, and with the mean over all random bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::stochastic_test {
namespace {

struct Target {
  const char* name;
  int exponent_bits, fraction_bits, random_bits;
  std::uint64_t largest;  // code of the largest finite number
  bool has_infinity;
  std::uint64_t nan;
  int bits;  // of a code in the result, with the sign at bit exponent_bits + fraction_bits

  [[nodiscard]] double value(std::uint64_t code) const {
    const auto fraction = static_cast<double>(code % (1U << fraction_bits));
    const int exponent = static_cast<int>(code >> fraction_bits), bias = (1 << (exponent_bits - 1)) - 1;
    const double one = std::ldexp(1, fraction_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                         : std::ldexp(fraction + one, exponent - bias - fraction_bits);
  }
  // The largest code whose value is at most |x|.
  [[nodiscard]] std::uint64_t below(double size) const {
    std::uint64_t low = 0, high = largest + 1;
    while (high - low > 1) {
      const std::uint64_t middle = (low + high) / 2;
      (value(middle) <= size ? low : high) = middle;
    }
    return low;
  }
  // The code that |x| becomes. `random`: random_bits bits.
  [[nodiscard]] std::uint64_t rounded(double size, std::uint64_t random, bool finite) const {
    const std::uint64_t past = has_infinity && !finite ? largest + 1 : largest;
    const std::uint64_t low = below(size);
    const double step = low == largest ? value(largest) - value(largest - 1) : value(low + 1) - value(low);
    if (low == largest && size >= value(largest) + step) return past;
    const double part = (size - value(low)) / step;  // exact: both differences are of 24 bits
    const auto first = static_cast<std::uint64_t>(std::ldexp(part, random_bits));
    if (first + random < std::uint64_t{1} << random_bits) return low;
    return low == largest ? past : low + 1;
  }
  [[nodiscard]] std::uint64_t sign() const { return std::uint64_t{1} << (exponent_bits + fraction_bits); }
  [[nodiscard]] std::uint64_t code_of(float x, std::uint64_t random, bool relu, bool finite) const {
    if (std::isnan(x)) return nan;
    if (relu && std::signbit(x)) return 0;
    const std::uint64_t low_random = random % (std::uint64_t{1} << random_bits);
    return rounded(std::abs(double{x}), low_random, finite) | (std::signbit(x) ? sign() : 0);
  }
};

constexpr Target kPairs[] = {{"f16x2", 5, 10, 13, 0x7bff, true, 0x7fff, 16},
                             {"bf16x2", 8, 7, 16, 0x7f7f, true, 0x7fff, 16}};
constexpr Target kFours[] = {{"e4m3x4", 4, 3, 8, 0x7e, false, 0x7f, 8},
                             {"e5m2x4", 5, 2, 8, 0x7b, false, 0x7f, 8},
                             {"e2m3x4", 2, 3, 8, 0x1f, false, 0x1f, 8},
                             {"e3m2x4", 3, 2, 8, 0x1f, false, 0x1f, 8},
                             {"e2m1x4", 2, 1, 8, 0x07, false, 0x07, 4}};

// Every code of small formats and some of large ones, and numbers between it and the next.
std::vector<float> numbers(const Target& t) {
  std::vector<float> out{0.0f,
                         -0.0f,
                         std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::denorm_min(),
                         std::numeric_limits<float>::max(),
                         -std::numeric_limits<float>::max(),
                         1e30f,
                         1e-30f};
  const std::uint64_t every = t.largest > 256 ? 97 : 1;
  for (std::uint64_t code = 0; code <= t.largest; code += every) {
    const double low = t.value(code), high = 2 * low - (code == 0 ? -t.value(1) : t.value(code - 1));
    for (const double part : {0.0, 1.0 / 512, 0.25, 0.5, 0.7, 255.0 / 256, 1 - 0x1p-13}) {
      const auto x = static_cast<float>(low + part * (high - low));
      out.insert(out.end(), {x, -x, std::nextafter(x, 0.0f)});
    }
  }
  return out;
}

// Which random bits each source has, first source first (PTX ISA, "cvt", rbits). Fours of 8 and 6 bits: a byte each, the
// first source the highest. e2m1x4: the upper bytes of both halves for the first two, the lower ones for the others.
std::vector<int> places_of(const Target& t, bool four) {
  if (!four) return {16, 0};
  return t.bits == 4 ? std::vector<int>{8, 24, 0, 16} : std::vector<int>{24, 16, 8, 0};
}

void check(const Target& t, bool four, bool relu, bool finite) {
  const std::string word =
      std::string("cvt.rs") + (relu ? ".relu" : "") + (finite ? ".satfinite." : ".") + t.name + ".f32";
  const std::vector<float> values = numbers(t);
  const std::vector<int> places = places_of(t, four);
  Random random{7};
  const std::uint32_t edges[] = {0, 0xffffffffu, 0x80008000u, 0x7fff7fffu, 0x1fff1fffu, 0x00ff00ffu, 0x01000100u};
  for (std::size_t from = 0; from < values.size(); from += 8) {
    Case c{.word = word};
    c.in.resize(places.size() + 1);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t s = 0; s < places.size(); ++s)
        c.in[s][lane] = bits(values[(from + lane + 5 * s) % values.size()]);
      c.in.back()[lane] = random.next() % 4 == 0 ? edges[random.next() % 7] : random.next() & 0xffffffffu;
    }
    for (const Simd simd : simds()) {
      c.simd = simd;
      const Outcome outcome = run(c);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        std::uint64_t expected = 0;
        for (std::size_t s = 0; s < places.size(); ++s) {
          const std::uint64_t code = t.code_of(as_float(c.in[s][lane]), c.in.back()[lane] >> places[s], relu, finite);
          expected |= code << (static_cast<std::size_t>(t.bits) * (places.size() - 1 - s));
        }
        ASSERT_EQ(outcome.d[0][lane], expected)
            << word << std::hex << " of " << c.in[0][lane] << ", random bits " << c.in.back()[lane];
      }
    }
  }
}

TEST(Stochastic, EachSourceRoundsByItsOwnRandomBits) {
  for (const bool relu : {false, true}) {
    for (const Target& t : kPairs) {
      check(t, false, relu, false);
      check(t, false, relu, true);
    }
    for (const Target& t : kFours) check(t, true, relu, true);
  }
}

// Worked numbers: 1 + 3/16 in e4m3 is half way from code 38 + 1 to code 38 + 2.
TEST(Stochastic, HalfWayIsRoundedUpByHalfOfTheRandomBits) {
  const std::uint64_t x = bits(1.1875f);
  const auto e4m3 = [&](std::uint64_t random) { return one("cvt.rs.satfinite.e4m3x4.f32", {x, x, x, x, random}); };
  EXPECT_EQ(e4m3(0), 0x39393939u);
  EXPECT_EQ(e4m3(0x7f7f7f7f), 0x39393939u);
  EXPECT_EQ(e4m3(0x80808080), 0x3a3a3a3au);
  EXPECT_EQ(e4m3(0xff00ff00), 0x3a393a39u);
  // The upper three bits of each half are not used for f16.
  const std::uint64_t y = bits(1.0f + 0x1p-11f);
  EXPECT_EQ(one("cvt.rs.f16x2.f32", {y, y, 0xefff0fff}), 0x3c003c00u);
  EXPECT_EQ(one("cvt.rs.f16x2.f32", {y, y, 0xf0001000}), 0x3c013c01u);
  // From the largest number, the carry gives infinity, or with .satfinite the largest number.
  const std::uint64_t largest = bits(65504.0f + 8.0f);
  EXPECT_EQ(one("cvt.rs.f16x2.f32", {largest, bits(-65512.0f), 0x1fff1fff}), 0x7c00fc00u);
  EXPECT_EQ(one("cvt.rs.satfinite.f16x2.f32", {largest, bits(-65512.0f), 0x1fff1fff}), 0x7bfffbffu);
  EXPECT_EQ(one("cvt.rs.satfinite.e2m1x4.f32", {bits(6.0f), bits(-1.5f), bits(0.25f), bits(100.0f), 0}), 0x7b07u);
}

// A number with no more dropped bits than random bits: the mean over all random bits is the number itself.
TEST(Stochastic, TheMeanOverAllRandomBitsIsTheNumber) {
  Random random{11};
  for (const Target& t : kPairs) {
    for (int round = 0; round < 6; ++round) {
      const int exponent = static_cast<int>(random.next() % 12) - 10;
      const double x = std::ldexp(1.0 + static_cast<double>(random.next() % 0x800000u) / 0x800000u, exponent);
      const std::uint64_t count = std::uint64_t{1} << t.random_bits;
      double sum = 0;
      for (std::uint64_t r = 0; r < count; r += 32) {
        Case c{.word = std::string("cvt.rs.") + t.name + ".f32"};
        c.in = {all(bits(static_cast<float>(x))), all(0), Lanes{}};
        for (std::size_t lane = 0; lane < 32; ++lane) c.in[2][lane] = (r + lane) << 16;
        const Outcome outcome = run(c);
        for (const std::uint64_t d : outcome.d[0]) sum += t.value(d >> 16);
      }
      EXPECT_EQ(sum / static_cast<double>(count), x) << t.name;
    }
  }
  for (const Target& t : kFours) {
    for (std::uint64_t code = 0; code < t.largest; ++code) {
      const double x =
          t.value(code) + (t.value(code + 1) - t.value(code)) * static_cast<double>(random.next() % 256) / 256;
      double sum = 0;
      for (std::uint64_t r = 0; r < 256; r += 32) {
        Case c{.word = std::string("cvt.rs.satfinite.") + t.name + ".f32"};
        c.in = {all(bits(static_cast<float>(x))), all(0), all(0), all(0), Lanes{}};
        for (std::size_t lane = 0; lane < 32; ++lane) c.in[4][lane] = (r + lane) << places_of(t, true)[0];
        const Outcome outcome = run(c);
        for (const std::uint64_t d : outcome.d[0]) sum += t.value(d >> (3 * t.bits));
      }
      EXPECT_EQ(sum / 256, x) << t.name << " " << code;
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::stochastic_test
