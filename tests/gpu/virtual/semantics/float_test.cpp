// Floating point: the assembler's results for constants, and every rounding of every operation compared with an oracle
// of long integers: the exact result must be between the two adjacent numbers that the rounding allows.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::float_test {
namespace {

constexpr std::uint64_t kInf = 0x7f800000, kNan = 0x7fffffff;

// As an H100 computes (docs/hardware).
TEST(Float, NanIsCanonicalExceptInDouble) {
  EXPECT_EQ(one("add.f32", {kInf, 0xff800000}), kNan);
  EXPECT_EQ(one("mul.f32", {0x7fc12345, 0x3f800000}), kNan);
  EXPECT_EQ(one("neg.f32", {0x7fc12345}), kNan);
  EXPECT_EQ(one("abs.f32", {0xffc12345}), kNan);
  EXPECT_EQ(one("fma.rn.f16", {0x7e01, 0x3c00, 0x3c00}), 0x7fffu);
  EXPECT_EQ(one("neg.f16", {0x7e01}), 0x7fffu);
  EXPECT_EQ(one("abs.bf16", {0xff81}), 0x7fffu);
  constexpr std::uint64_t kQuiet = 0x7ff8000000000123, kSignaling = 0xfff0000000000456, kOne = 0x3ff0000000000000;
  EXPECT_EQ(one("add.f64", {kQuiet, kOne}), kQuiet);
  EXPECT_EQ(one("add.f64", {kOne, kSignaling}), kSignaling | 0x0008000000000000);
  EXPECT_EQ(one("sub.rz.f64", {kOne, kSignaling}), kSignaling | 0x0008000000000000);  // the sign too
  EXPECT_EQ(one("mul.f64", {kQuiet, kSignaling}), kSignaling | 0x0008000000000000);   // the second of two
  EXPECT_EQ(one("div.rn.f64", {kQuiet, kSignaling}), kQuiet);                         // the dividend
  EXPECT_EQ(one("fma.rn.f64", {kQuiet, kOne, kSignaling}), kSignaling | 0x0008000000000000);
  EXPECT_EQ(one("fma.rn.f64", {kOne, kQuiet, kSignaling}), kQuiet);
  EXPECT_EQ(one("neg.f64", {kSignaling}), kSignaling | 0x0008000000000000);
  EXPECT_EQ(one("max.f64", {kQuiet, kSignaling}), kSignaling | 0x0008000000000000);
  EXPECT_EQ(one("sqrt.rn.f64", {0xbff0000000000000}), 0xfff8000000000000);
}

// A product below the least normal number that rounds up to it is flushed; without .ftz it is that number.
TEST(Float, FlushingComesBeforeRounding) {
  EXPECT_EQ(one("mul.f32", {0x3f7fffff, 0x00800000}), 0x00800000u);
  EXPECT_EQ(one("mul.ftz.f32", {0x3f7fffff, 0x00800000}), 0u);
  EXPECT_EQ(one("mul.rm.ftz.f32", {0xbf7fffff, 0x00800000}), 0x80000000u);
  EXPECT_EQ(one("fma.rn.ftz.f32", {0x3f7fffff, 0x00800000, 0}), 0u);
  EXPECT_EQ(one("fma.rn.ftz.f32", {0x3f800000, 0x00800000, 0}), 0x00800000u);
  EXPECT_EQ(one("mul.ftz.f16", {0x3bff, 0x0400}), 0u);
  EXPECT_EQ(one("fma.rn.ftz.f16", {0x0400, 0x3c00, 0}), 0x0400u);
}

TEST(Float, FlushingSaturatingAndRelu) {
  EXPECT_EQ(one("add.f32", {1, 1}), 2u);
  EXPECT_EQ(one("add.ftz.f32", {1, 0x80000001}), 0u);
  EXPECT_EQ(one("mul.ftz.f32", {0x80800000, 0x3f000000}), 0x80000000u);  // the result is subnormal: -0
  EXPECT_EQ(one("neg.ftz.f32", {1}), 0x80000000u);
  EXPECT_EQ(one("add.sat.f32", {0x80000000, 0x80000000}), 0u);
  EXPECT_EQ(one("add.sat.f32", {kNan, 0}), 0u);
  EXPECT_EQ(one("fma.rn.sat.f32", {bits(2.0f), bits(2.0f), 0}), bits(1.0f));
}

// The processor's own arithmetic in each rounding, without a constant that the compiler could compute.
float by_processor(const std::string& op, int rounding, bool flushes, std::array<float, 3> in) {
  const auto flushed = [&](float x) {
    return flushes && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  };
  volatile float a = flushed(in[0]), b = flushed(in[1]), c = flushed(in[2]), d = 0;
  std::fesetround(rounding);
  if (op == "add") d = a + b;
  if (op == "sub") d = a - b;
  if (op == "mul") d = a * b;
  if (op == "fma") d = std::fma(a, b, c);
  std::fesetround(FE_TONEAREST);
  return flushed(d);
}

// Each half of a pair in each rounding: a swapped half, or one that uses the other's operands, has other bits.
TEST(Float, PairsOfF32ComputeEachHalfByItself) {
  const std::array<std::uint32_t, 12> numbers{0x3f800001, 0xbf7fffff, 0x00000001, 0x807fffff, 0x7f7fffff, 0x00800000,
                                              0x33800001, 0xff800000, 0x7fc12345, 0x80000000, 0x4b000001, 0xc2c80003};
  const std::array<std::pair<const char*, int>, 4> roundings{
      {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}}};
  std::size_t next = 0;
  const auto pick = [&] { return numbers[(next = next * 5 + 7) % numbers.size()]; };
  for (const std::string op : {"add", "sub", "mul", "fma"}) {
    for (const auto& direction : roundings) {
      for (const bool flushes : {false, true}) {
        const std::string word = op + "." + direction.first + (flushes ? ".ftz.f32x2" : ".f32x2");
        for (int i = 0; i < 40; ++i) {
          std::array<float, 3> upper{}, lower{};
          std::vector<Lanes> in;
          for (std::size_t k = 0; k < (op == "fma" ? 3u : 2u); ++k) {
            const std::uint32_t hi =
                numbers[static_cast<std::size_t>(i * 7 + static_cast<int>(k) * 5) % numbers.size()];
            const std::uint32_t lo = pick();
            upper[k] = std::bit_cast<float>(hi);
            lower[k] = std::bit_cast<float>(lo);
            in.push_back(all(std::uint64_t{hi} << 32 | lo));
          }
          const auto expected = [&](const std::array<float, 3>& of) {
            const float x = by_processor(op, direction.second, flushes, of);
            return std::isnan(x) ? std::uint32_t{0x7fffffff} : std::bit_cast<std::uint32_t>(x);
          };
          const std::uint64_t wanted = std::uint64_t{expected(upper)} << 32 | expected(lower);
          for (const Simd simd : simds()) {
            const Outcome out = run({.word = word, .in = in, .simd = simd});
            ASSERT_EQ(out.d[0][5], wanted) << word << " case " << i;
          }
        }
      }
    }
  }
}

TEST(Float, HalvesRoundOnce) {
  EXPECT_EQ(one("add.f16x2", {0x3c007bff, 0x14007bff}), 0x3c017c00u);
  EXPECT_EQ(one("fma.rn.f16x2", {0xbc013c01, 0x3c013c01, 0x3c008000}), 0x98003c02u);
  EXPECT_EQ(one("fma.rn.relu.f16x2", {0xbc013c01, 0x3c013c01, 0x3c008000}), 0x00003c02u);
  EXPECT_EQ(one("fma.rn.sat.f16x2", {0xbc013c01, 0x3c013c01, 0x3c008000}), 0x00003c00u);
  EXPECT_EQ(one("fma.rn.oob.f16", {0x7ff7, 0x3c00, 0x4000}), 0x4000u);
  EXPECT_EQ(one("add.bf16", {0x3f80, 0x3b80}), 0x3f80u);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(one("add.bf16", {0x3f81, 0x3b80}), 0x3f82u);
}

TEST(Float, QuotientsReciprocalsAndRoots) {
  EXPECT_EQ(one("div.approx.f32", {bits(1.0f), 0x7f000000}), 0u);  // 2^127
  EXPECT_EQ(one("div.full.f32", {bits(1.0f), 0x7f000000}), 0x00400000u);
  EXPECT_EQ(one("div.approx.f32", {bits(1.0f), 0x7e800000}), 0x00800000u);  // 2^126 itself is divided by
  EXPECT_EQ(one("div.approx.f32", {kInf, 0x7f000000}), kNan);
  EXPECT_EQ(one("rcp.rn.f32", {0x80000000}), 0xff800000u);
  EXPECT_EQ(one("rcp.rn.f32", {0xff800000}), 0x80000000u);
  EXPECT_EQ(one("sqrt.rn.f32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(one("sqrt.rn.f32", {0xbf800000}), kNan);
  EXPECT_EQ(one("sqrt.rp.f64", {bits(-1.0)}), 0xfff8000000000000u);
  EXPECT_EQ(one("rsqrt.approx.f32", {0x80000000}), 0xff800000u);
  EXPECT_EQ(one("rsqrt.approx.ftz.f32", {1}), kInf);
  EXPECT_EQ(one("rcp.approx.ftz.f64", {bits(3.0)}), 0x3fd5555500000000u);
  EXPECT_EQ(one("rsqrt.approx.f64", {bits(4.0)}), bits(0.5));
}

TEST(Float, ExponentialsAndLogarithms) {
  EXPECT_EQ(one("ex2.approx.f32", {bits(-127.0f)}), 0x00400000u);
  EXPECT_EQ(one("ex2.approx.f32", {bits(-149.0f)}), 0x00000001u);
  EXPECT_EQ(one("ex2.approx.ftz.f32", {bits(-127.0f)}), 0u);
  EXPECT_EQ(one("ex2.approx.f32", {1}), bits(1.0f));
  EXPECT_EQ(one("ex2.approx.f32", {bits(128.0f)}), kInf);
  EXPECT_EQ(one("ex2.approx.f32", {0xff800000}), 0u);
  EXPECT_EQ(one("ex2.approx.f32", {kInf}), kInf);
  EXPECT_EQ(one("ex2.approx.f32", {0x7fc00001}), kNan);
  EXPECT_EQ(one("lg2.approx.f32", {0}), 0xff800000u);
  EXPECT_EQ(one("lg2.approx.f32", {0x80000000}), 0xff800000u);
  EXPECT_EQ(one("lg2.approx.f32", {0x00400000}), 0xc2fe0000u);
  EXPECT_EQ(one("lg2.approx.ftz.f32", {0x00400000}), 0xff800000u);
  EXPECT_EQ(one("lg2.approx.f32", {bits(-1.0f)}), kNan);
  EXPECT_EQ(one("lg2.approx.f32", {kInf}), kInf);
  EXPECT_EQ(one("sin.approx.f32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(one("sin.approx.f32", {kInf}), kNan);
  EXPECT_EQ(one("cos.approx.f32", {0}), bits(1.0f));
  EXPECT_EQ(one("tanh.approx.f32", {0xff800000}), bits(-1.0f));
}

// Within one rounding of the true value, computed by the host's library in long double, whose error is far smaller.
// (2 ulp are allowed because the value may be next to a tie.)
TEST(Float, FunctionsAreTheRoundedTrueValues) {
  Random random{3};
  const auto expect_near = [](std::uint64_t got, long double truth, const std::string& what) {
    const auto rounded = static_cast<float>(truth);
    const float value = as_float(got);
    if (rounded == value) return;
    const long double ulp = std::max(std::ldexp(1.0L, std::ilogb(truth == 0 ? 1e-40L : truth) - 23), 0x1p-149L);
    EXPECT_LE(std::fabs(static_cast<long double>(value) - truth), 0.5001L * ulp) << what;
  };
  for (int i = 0; i < 3000; ++i) {
    Case c;
    c.simd = best_simd();
    Lanes x, wide;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::uint64_t r = random.next();
      x[lane] = (r & 0x807fffffu) | (96 + (r >> 40) % 39) << 23;     // 2^-31 to 2^7
      wide[lane] = (r & 0x807fffffu) | (1 + (r >> 40) % 253) << 23;  // all
    }
    if (i % 50 != 0) continue;
    const auto all_lanes = [&](const char* word, const Lanes& in, long double (*f)(long double), bool positive) {
      c.word = word;
      c.in = {in};
      if (positive) {
        for (std::uint64_t& v : c.in[0]) v &= 0x7fffffffu;
      }
      const Outcome outcome = run(c);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        expect_near(outcome.d[0][lane], f(as_float(c.in[0][lane])),
                    std::string(word) + " " + std::to_string(as_float(c.in[0][lane])));
      }
    };
    all_lanes(
        "ex2.approx.f32", x, [](long double v) { return std::exp2(v); }, false);
    all_lanes(
        "lg2.approx.f32", wide, [](long double v) { return std::log2(v); }, true);
    all_lanes(
        "rsqrt.approx.f32", wide, [](long double v) { return 1 / std::sqrt(v); }, true);
    all_lanes(
        "tanh.approx.f32", x, [](long double v) { return std::tanh(v); }, false);
    all_lanes(
        "sin.approx.f32", wide, [](long double v) { return std::sin(v); }, false);
    all_lanes(
        "cos.approx.f32", wide, [](long double v) { return std::cos(v); }, false);
  }
}

TEST(Float, MinAndMaxKnowTheSignsOfZeroAndNan) {
  for (const auto& [a, b] : {std::pair{0u, 0x80000000u}, std::pair{0x80000000u, 0u}}) {
    EXPECT_EQ(one("min.f32", {a, b}), 0x80000000u);
    EXPECT_EQ(one("max.f32", {a, b}), 0u);
    EXPECT_EQ(one("min.f16", {a >> 16, b >> 16}), 0x8000u);
    EXPECT_EQ(one("max.bf16x2", {a, b}), 0u);
  }
  EXPECT_EQ(one("min.f64", {0, 1ull << 63}), 1ull << 63);
  EXPECT_EQ(one("min.f32", {0x7fc00000, bits(3.0f)}), bits(3.0f));
  EXPECT_EQ(one("max.f32", {bits(3.0f), 0xffc00000}), bits(3.0f));
  EXPECT_EQ(one("max.f32", {0x7fc00000, 0xffc00000}), kNan);
  EXPECT_EQ(one("max.NaN.f32", {bits(3.0f), 0xffc00000}), kNan);
  EXPECT_EQ(one("max.NaN.f16x2", {0x3c007e01, 0x40004000}), 0x40007fffu);
  EXPECT_EQ(one("min.xorsign.abs.f32", {bits(-3.0f), bits(2.0f)}), bits(-2.0f));
  EXPECT_EQ(one("max.xorsign.abs.f32", {bits(-3.0f), bits(-2.0f)}), bits(3.0f));
  EXPECT_EQ(one("copysign.f32", {bits(-1.0f), bits(2.0f)}), bits(-2.0f));
  EXPECT_EQ(one("copysign.f64", {bits(1.0), bits(-2.0)}), bits(2.0));
}

// --- roundings -------------------------------------------------------------------------------------------------------
// The oracle represents numbers as integers of 5120 bits: slow but simple.

class Big {  // an integer times 2^-2400, signed, 5120 bits
 public:
  static constexpr int kWords = 160;
  static constexpr int kPoint = 2400;
  Big() = default;
  explicit Big(double x) {
    if (x == 0) return;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    for (int i = 0; i < 53; ++i) {
      if ((significand >> i & 1) != 0) set(exponent - 53 + i + kPoint);
    }
    if (x < 0) negate();
  }
  void set(int bit) { words_[static_cast<std::size_t>(bit / 32)] |= 1u << (bit % 32); }
  [[nodiscard]] Big plus(const Big& other) const {
    Big sum;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      carry += std::uint64_t{words_[i]} + other.words_[i];
      sum.words_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return sum;
  }
  void negate() {
    for (std::uint32_t& word : words_) word = ~word;
    Big unit;
    unit.words_[0] = 1;
    *this = plus(unit);
  }
  [[nodiscard]] int sign() const {
    if ((words_.back() >> 31) != 0) return -1;
    for (const std::uint32_t word : words_) {
      if (word != 0) return 1;
    }
    return 0;
  }
  // x * y, which is exact on the grid of 2^-2400.
  static Big product(double x, double y) {
    if (x == 0 || y == 0) return {};
    int ex = 0, ey = 0;
    const auto sx = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(x), &ex), 53));
    const auto sy = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(y), &ey), 53));
    __extension__ typedef unsigned __int128 Wide;
    const Wide p = static_cast<Wide>(sx) * sy;
    Big b;
    for (int i = 0; i < 106; ++i) {
      if ((p >> i & 1) != 0) b.set(ex + ey - 106 + i + kPoint);
    }
    if ((x < 0) != (y < 0)) b.negate();
    return b;
  }

 private:
  std::array<std::uint32_t, kWords> words_{};
};

int compare(const Big& exact, double x) {
  Big minus(x);
  minus.negate();
  return exact.plus(minus).sign();
}

// Whether y is the rounding of the number that `side` compares with (side(x) < 0: it is below x), by y's adjacent
// numbers.
template <class T, class Side>
bool is_rounded(T y, const char* rounding, Side side) {
  const T inf = std::numeric_limits<T>::infinity();
  const T most = std::numeric_limits<T>::max();
  const std::string r = rounding;
  if (std::isinf(y)) {
    const int s = y > 0 ? 1 : -1;
    const double last = static_cast<double>(y > 0 ? most : -most);
    if (r == "rz" || (r == "rm" && s > 0) || (r == "rp" && s < 0)) return false;
    // Beyond the largest number; to nearest, by half its last place.
    if (r != "rn") return s * side(last) > 0;
    if (sizeof(T) == 8) return s * side(last) > 0;
    return s * side(s * 0x1.ffffffp127) >= 0;
  }
  const int at = side(static_cast<double>(y));
  if (at == 0) return true;
  const T below = std::nextafter(y, -inf);
  const T above = std::nextafter(y, inf);
  if (r == "rm") return at > 0 && (above == inf || side(static_cast<double>(above)) < 0);
  if (r == "rp") return at < 0 && (below == -inf || side(static_cast<double>(below)) > 0);
  if (r == "rz") {
    if (y > 0 || (y == 0 && !std::signbit(y))) return at > 0 && (above == inf || side(static_cast<double>(above)) < 0);
    return at < 0 && (below == -inf || side(static_cast<double>(below)) > 0);
  }
  // To nearest: at most half way to the adjacent number. Half ways are doubles for floats; for doubles they are
  // compared, by the exactness of the caller, only up to the adjacent numbers.
  const T next = at > 0 ? above : below;
  if (sizeof(T) == 8)
    return std::isinf(next) || (at > 0 ? side(static_cast<double>(next)) < 0 : side(static_cast<double>(next)) > 0);
  const double middle = std::isinf(next) ? (at > 0 ? 0x1.ffffffp127 : -0x1.ffffffp127)
                                         : (static_cast<double>(y) + static_cast<double>(next)) / 2;
  const int beyond = at * side(middle);
  const bool even = (std::bit_cast<std::uint32_t>(static_cast<float>(y)) & 1) == 0;
  return beyond < 0 || (beyond == 0 && even);
}

template <class T>
T edge(Random& random) {
  static constexpr double kFloats[] = {
      0.0,           1.0, 1.5,     0x1p-149,  0x1.fffffcp-127, 0x1p-126, 0x1.fffffep127, 0x1.000002p0,
      0x1.fffffep-1, 3.0, 0x1p-24, 0x1.8p-24, 0x1p24,          0x1p-64,  0x1.555556p-2};
  static constexpr double kDoubles[] = {0x1p-1074,
                                        0x1.fffffffffffffp-1023,
                                        0x1p-1022,
                                        0x1.fffffffffffffp1023,
                                        0x1.0000000000001p0,
                                        0x1.fffffffffffffp-1,
                                        0x1p-53,
                                        0x1.8p-53,
                                        0x1p-540,
                                        0x1p53};
  const std::uint64_t x = random.next();
  double value = 0;
  switch (x % 4) {
    case 0:
      value = kFloats[(x >> 8) % std::size(kFloats)];
      break;
    case 1:
      if (sizeof(T) == 8) {
        value = kDoubles[(x >> 8) % std::size(kDoubles)];
      } else {
        value = std::ldexp(static_cast<double>(0x800000u + (x >> 40 & 0x7fffff)), static_cast<int>(x >> 8 & 15) - 30);
      }
      break;
    case 2:
      value = sizeof(T) == 8 ? std::ldexp(static_cast<double>((x >> 11) | 1), static_cast<int>(x >> 4 & 31) - 70)
                             : std::ldexp(static_cast<double>(0x800000u + (x >> 40 & 0x7fffff)),
                                          static_cast<int>(x >> 8 & 255) - 172);
      break;
    default:
      value = static_cast<double>((x >> 8) % 1000) / 8;
      break;
  }
  if ((x >> 63) != 0) value = -value;
  return static_cast<T>(value);
}

template <class T>
void check_roundings(const char* type, std::uint64_t seed, int rounds) {
  Random random{seed};
  const auto value_of = [](std::uint64_t x) {
    return sizeof(T) == 8 ? static_cast<T>(as_double(x)) : static_cast<T>(as_float(x));
  };
  for (int i = 0; i < rounds; ++i) {
    std::array<Lanes, 3> in;
    for (Lanes& lanes : in) {
      for (std::uint64_t& x : lanes) x = bits(edge<T>(random));
    }
    for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
      const auto each = [&](const std::string& op, int sources, auto side) {
        Case c;
        c.word = op + "." + rounding + "." + type;
        c.in.assign(in.begin(), in.begin() + sources);
        for (const Simd simd : simds()) {
          c.simd = simd;
          const Outcome outcome = run(c);
          for (std::size_t lane = 0; lane < 32; ++lane) {
            const T a = value_of(in[0][lane]);
            const T b = value_of(in[1][lane]);
            const T x = value_of(in[2][lane]);
            const T y = value_of(outcome.d[0][lane]);
            if (std::isnan(y) || (op == "div" && b == 0)) continue;
            ASSERT_TRUE(is_rounded(y, rounding, [&](double v) { return side(double{a}, double{b}, double{x}, v); }))
                << c.word << std::hexfloat << " " << a << " " << b << " " << x << " = " << y;
          }
        }
      };
      each("add", 2, [](double a, double b, double, double v) { return compare(Big(a).plus(Big(b)), v); });
      each("sub", 2, [](double a, double b, double, double v) { return compare(Big(a).plus(Big(-b)), v); });
      each("mul", 2, [](double a, double b, double, double v) { return compare(Big::product(a, b), v); });
      each("fma", 3,
           [](double a, double b, double c, double v) { return compare(Big::product(a, b).plus(Big(c)), v); });
      // a / b compared with v is a compared with v b, reversed for a negative b.
      each("div", 2, [](double a, double b, double, double v) {
        if (b == 0) return 0;
        Big vb = Big::product(v, b);
        vb.negate();
        const int s = Big(a).plus(vb).sign();
        return b < 0 ? -s : s;
      });
      each("sqrt", 1, [](double a, double, double, double v) {
        if (v < 0) return 1;
        Big vv = Big::product(v, v);
        vv.negate();
        return Big(a).plus(vv).sign();
      });
    }
  }
}

TEST(Roundings, EveryOperationOfF32InEveryDirection) {
  check_roundings<float>("f32", 5, 12);
}

TEST(Roundings, EveryOperationOfF64InEveryDirection) {
  check_roundings<double>("f64", 6, 12);
}

// x - x is +0, and -0 rounded down; a zero sum of equal signs keeps the sign.
TEST(Roundings, ZerosHaveTheSignOfTheirRounding) {
  for (const char* r : {"rn", "rz", "rp", "rm"}) {
    const bool down = std::string(r) == "rm";
    const std::string f32 = std::string(".") + r + ".f32";
    const std::string f64 = std::string(".") + r + ".f64";
    EXPECT_EQ(one("sub" + f32, {bits(3.0f), bits(3.0f)}), down ? 0x80000000u : 0u) << r;
    EXPECT_EQ(one("sub" + f64, {bits(3.0), bits(3.0)}), down ? 1ull << 63 : 0u) << r;
    EXPECT_EQ(one("add" + f32, {0, 0x80000000}), down ? 0x80000000u : 0u) << r;
    EXPECT_EQ(one("add" + f64, {0, 1ull << 63}), down ? 1ull << 63 : 0u) << r;
    EXPECT_EQ(one("add" + f32, {0, 0}), 0u);
    EXPECT_EQ(one("add" + f64, {1ull << 63, 1ull << 63}), 1ull << 63);
    EXPECT_EQ(one("fma" + f32, {bits(2.0f), bits(2.0f), bits(-4.0f)}), down ? 0x80000000u : 0u);
    EXPECT_EQ(one("fma" + f64, {bits(2.0), bits(2.0), bits(-4.0)}), down ? 1ull << 63 : 0u);
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::float_test
