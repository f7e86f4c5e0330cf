// Single conversions of every pattern of every narrow float. The oracle uses only the definition table: the list of all
// values of a type, made with ldexp, and for rounding a search for the nearest of them.
#include "core/base/convert.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/base/random.h"

namespace kvscope::convert_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Overflow kBoth[] = {Overflow::saturate, Overflow::non_saturating};

struct Definition {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  double largest;  // [value]
  bool has_infinity;
  unsigned canonical_nan;  // [pattern]; e2m1: the largest
};
constexpr Definition kF16 = {5, 10, 15, 65504, true, 0x7e00};
constexpr Definition kBf16 = {8, 7, 127, 0x1.fep127, true, 0x7fc0};
constexpr Definition kE4m3 = {4, 3, 7, 448, false, 0x7f};
constexpr Definition kE5m2 = {5, 2, 15, 57344, true, 0x7f};
constexpr Definition kE2m1 = {2, 1, 1, 6, false, 0x7};

double defined_value(const Definition& d, unsigned magnitude) {
  const unsigned fields = 1u << d.mantissa_bits;
  const int exponent = static_cast<int>(magnitude / fields);
  const double mantissa = static_cast<double>(magnitude % fields) / fields;
  const double value = exponent == 0 ? std::ldexp(mantissa, 1 - d.bias) : std::ldexp(1 + mantissa, exponent - d.bias);
  if (value <= d.largest) return value;
  // f16, bf16, e5m2: exponent of all ones; e4m3: the one pattern past 448.
  return d.has_infinity && magnitude % fields == 0 ? kInf : kNan;
}

unsigned sign_bit(const Definition& d) {
  return 1u << (d.exponent_bits + d.mantissa_bits);
}

class Nearest {
 public:
  explicit Nearest(const Definition& d) : d_(d) {
    for (unsigned m = 0; m < sign_bit(d) && std::isfinite(defined_value(d, m)); ++m)
      values_.push_back(defined_value(d, m));
    // The next value if the type had one more: decides where overflow begins.
    next_ = 2 * values_.back() - values_[values_.size() - 2];
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  [[nodiscard]] double past() const { return next_; }

  [[nodiscard]] unsigned pattern(double x, Overflow overflow) const {
    if (std::isnan(x)) return d_.canonical_nan;
    const unsigned sign = std::signbit(x) ? sign_bit(d_) : 0;
    const double a = std::fabs(x);
    const auto above = static_cast<std::size_t>(std::lower_bound(values_.begin(), values_.end(), a) - values_.begin());
    if (above < values_.size() && values_[above] == a) return sign | static_cast<unsigned>(above);
    const auto low = static_cast<unsigned>(above) - 1;
    const double high_value = above < values_.size() ? values_[above] : next_;
    const double middle = (values_[low] + high_value) / 2;
    const unsigned nearest = a < middle || (a == middle && low % 2 == 0) ? low : low + 1;
    if (nearest < values_.size()) return sign | nearest;
    const auto largest = static_cast<unsigned>(values_.size() - 1);
    if (overflow == Overflow::saturate || d_.canonical_nan == largest) return sign | largest;
    return sign | (largest + 1);  // infinity, or e4m3's NaN
  }

 private:
  Definition d_;
  std::vector<double> values_;
  double next_ = 0;
};

template <class T>
void expect_every_pattern_decodes_and_comes_back(const Definition& d) {
  for (unsigned p = 0; p < 2 * sign_bit(d); ++p) {
    const T stored{static_cast<decltype(T::bits)>(p)};
    const unsigned magnitude = p % sign_bit(d);
    const double sign = p >= sign_bit(d) ? -1 : 1;
    const double want = sign * defined_value(d, magnitude);
    const double got = to_double(stored);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << std::hex << p;
      for (const Overflow o : kBoth) EXPECT_EQ(unsigned{from_double<T>(got, o).bits}, d.canonical_nan) << std::hex << p;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want)) << std::hex << p;
    EXPECT_EQ(unsigned{from_double<T>(got, Overflow::non_saturating).bits}, p) << std::hex << p;
    const unsigned saturated = std::isinf(want) ? p - 1 : p;  // the largest finite pattern is the one below infinity
    EXPECT_EQ(unsigned{from_double<T>(got, Overflow::saturate).bits}, saturated) << std::hex << p;
  }
}

TEST(ConvertTest, EveryPatternDecodesByDefinitionAndEncodesBack) {
  expect_every_pattern_decodes_and_comes_back<f16>(kF16);
  expect_every_pattern_decodes_and_comes_back<bf16>(kBf16);
  expect_every_pattern_decodes_and_comes_back<e4m3>(kE4m3);
  expect_every_pattern_decodes_and_comes_back<e5m2>(kE5m2);
  expect_every_pattern_decodes_and_comes_back<e2m1>(kE2m1);
}

// The doubles at which rounding is critical: each value, each midpoint, the numbers next to them in steps of double and
// of float, the overflow threshold and numbers far past it.
std::vector<double> edges(const Nearest& nearest) {
  std::vector<double> xs = {0,    0x1p-1074, 0x1p-1022, 0x1p-300, 0x1p-150,
                            1e39, 1e300,     kInf,      kNan,     std::numeric_limits<double>::max()};
  const auto around = [&](double x) {
    xs.insert(xs.end(), {x, std::nextafter(x, 0), std::nextafter(x, kInf)});
    const auto f = static_cast<float>(x);
    xs.push_back(static_cast<double>(std::nextafterf(f, 0)));
    xs.push_back(static_cast<double>(std::nextafterf(f, static_cast<float>(kInf))));
  };
  const std::vector<double>& values = nearest.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double next = i + 1 < values.size() ? values[i + 1] : nearest.past();
    around(values[i]);
    around((values[i] + next) / 2);
    xs.push_back(values[i] + (next - values[i]) / 4);
    xs.push_back(values[i] + (next - values[i]) * 3 / 4);
  }
  around(nearest.past());
  return xs;
}

template <class T>
void expect_nearest(const Definition& d) {
  const Nearest nearest(d);
  for (const double x : edges(nearest)) {
    for (const double signed_x : {x, -x}) {
      for (const Overflow o : kBoth) {
        ASSERT_EQ(unsigned{from_double<T>(signed_x, o).bits}, nearest.pattern(signed_x, o))
            << std::hexfloat << signed_x << (o == Overflow::saturate ? " saturate" : " non_saturating");
      }
    }
  }
}

TEST(ConvertTest, EveryMidpointAndItsNeighborsRoundToTheNearestTiesToEven) {
  expect_nearest<f16>(kF16);
  expect_nearest<bf16>(kBf16);
  expect_nearest<e4m3>(kE4m3);
  expect_nearest<e5m2>(kE5m2);
  expect_nearest<e2m1>(kE2m1);
}

TEST(ConvertTest, AnyDoubleRoundsToTheNearestValue) {
  const CounterRng rng(20, 1);
  const Nearest f16s(kF16), bf16s(kBf16), e4m3s(kE4m3), e5m2s(kE5m2), e2m1s(kE2m1);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const int range = i % 2 == 0 ? 160 : 12;  // half of them in the range of the 8-bit types
    const double x = std::ldexp(rng.uniform(2 * i) * 2 - 1, static_cast<int>(rng.integer(2 * i + 1, -range, range)));
    for (const Overflow o : kBoth) {
      ASSERT_EQ(from_double<f16>(x, o).bits, f16s.pattern(x, o)) << std::hexfloat << x;
      ASSERT_EQ(from_double<bf16>(x, o).bits, bf16s.pattern(x, o)) << std::hexfloat << x;
      ASSERT_EQ(from_double<e4m3>(x, o).bits, e4m3s.pattern(x, o)) << std::hexfloat << x;
      ASSERT_EQ(from_double<e5m2>(x, o).bits, e5m2s.pattern(x, o)) << std::hexfloat << x;
      ASSERT_EQ(from_double<e2m1>(x, o).bits, e2m1s.pattern(x, o)) << std::hexfloat << x;
    }
  }
}

// A second oracle: the conversions of the machine or the compiler.
TEST(ConvertTest, AgreesWithTheCompilersOwnConversions) {
  const CounterRng rng(21, 1);
  for (std::uint64_t i = 0; i < 1000000; ++i) {
    const auto raw = rng.bits(i);
    const auto wide = std::bit_cast<double>(raw);
    if (!std::isnan(wide)) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(from_double<float>(wide, Overflow::non_saturating)),
                std::bit_cast<std::uint32_t>(static_cast<float>(wide)));
    }
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(raw));
    if (std::isnan(single)) continue;
    const auto bits = static_cast<std::uint32_t>(raw);
    ASSERT_EQ(from_double<bf16>(static_cast<double>(single), Overflow::non_saturating).bits,
              (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
        << std::hexfloat << single;
#ifdef __FLT16_MANT_DIG__
    __extension__ using Half = _Float16;
    const double x = std::ldexp(rng.uniform(i) * 2 - 1, static_cast<int>(i % 48) - 27);
    ASSERT_EQ(from_double<f16>(x, Overflow::non_saturating).bits, std::bit_cast<std::uint16_t>(static_cast<Half>(x)))
        << std::hexfloat << x;
#endif
  }
#ifndef __FLT16_MANT_DIG__
  std::puts("f16 was not compared with the compiler's: it has no _Float16");
#endif
}

// Doubles at float's midpoints, subnormals and edges, against the machine's conversion.
TEST(ConvertTest, FloatsAreRoundedAsTheMachineRoundsThem) {
  const CounterRng rng(22, 1);
  for (std::uint64_t i = 0; i < 300000; ++i) {
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(rng.bits(i)) & 0x7fffffffu);
    const float g = std::nextafterf(f, std::numeric_limits<float>::infinity());
    if (!(g <= std::numeric_limits<float>::max())) continue;
    const double middle = (static_cast<double>(f) + static_cast<double>(g)) / 2;
    for (const double x : {middle, std::nextafter(middle, 0), std::nextafter(middle, kInf), -middle}) {
      ASSERT_EQ(from_double<float>(x, Overflow::non_saturating), static_cast<float>(x)) << std::hexfloat << x;
      ASSERT_EQ(from_double<float>(x, Overflow::saturate), static_cast<float>(x)) << std::hexfloat << x;
    }
  }
  const auto largest = std::numeric_limits<float>::max();
  EXPECT_EQ(from_double<float>(0x1.ffffffp127, Overflow::non_saturating), std::numeric_limits<float>::infinity());
  EXPECT_EQ(from_double<float>(0x1.fffffefffffffp127, Overflow::non_saturating), largest);
  EXPECT_EQ(from_double<float>(0x1.ffffffp127, Overflow::saturate), largest);
  EXPECT_EQ(from_double<float>(-kInf, Overflow::saturate), -largest);
  EXPECT_EQ(from_double<float>(-kInf, Overflow::non_saturating), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(from_double<float>(kNan, Overflow::saturate)));
}

TEST(ConvertTest, TheDocumentedPatternsOfTheEightBitFloats) {
  const auto e4 = [](double x, Overflow o) { return unsigned{from_double<e4m3>(x, o).bits}; };
  const auto e5 = [](double x, Overflow o) { return unsigned{from_double<e5m2>(x, o).bits}; };
  const double above_464 = static_cast<double>(std::nextafterf(464.0f, 500.0f));
  EXPECT_EQ(e4(448, Overflow::saturate), 0x7eu);
  EXPECT_EQ(e4(464, Overflow::saturate), 0x7eu);
  EXPECT_EQ(e4(464, Overflow::non_saturating), 0x7eu) << "a tie, to even";
  EXPECT_EQ(e4(above_464, Overflow::saturate), 0x7eu);
  EXPECT_EQ(e4(above_464, Overflow::non_saturating), 0x7fu);
  EXPECT_EQ(e4(kInf, Overflow::saturate), 0x7eu);
  EXPECT_EQ(e4(kInf, Overflow::non_saturating), 0x7fu);
  EXPECT_EQ(e4(-kInf, Overflow::saturate), 0xfeu);
  EXPECT_EQ(e4(kNan, Overflow::saturate), 0x7fu);
  EXPECT_EQ(e4(0x1p-10, Overflow::saturate), 0x00u);
  EXPECT_EQ(e4(static_cast<double>(std::nextafterf(0x1p-10f, 1.0f)), Overflow::saturate), 0x01u);
  EXPECT_EQ(e4(0x1p-9, Overflow::saturate), 0x01u);
  EXPECT_EQ(e4(-0.0, Overflow::saturate), 0x80u);
  EXPECT_EQ(e5(57344, Overflow::saturate), 0x7bu);
  EXPECT_EQ(e5(kInf, Overflow::saturate), 0x7bu);
  EXPECT_EQ(e5(kInf, Overflow::non_saturating), 0x7cu);
  EXPECT_EQ(to_double(e4m3{0x7e}), 448);
  EXPECT_EQ(to_double(e4m3{0x08}), 0x1p-6);
  EXPECT_EQ(to_double(e4m3{0x07}), 0.875 * 0x1p-6);
  EXPECT_EQ(to_double(e4m3{0x01}), 0x1p-9);
  EXPECT_TRUE(std::isnan(to_double(e4m3{0x7f})) && std::isnan(to_double(e4m3{0xff})));
  EXPECT_EQ(to_double(e5m2{0x7c}), kInf);
  EXPECT_EQ(to_double(e5m2{0x7b}), 57344);
  EXPECT_EQ(to_double(e5m2{0x04}), 0x1p-14);
  EXPECT_EQ(to_double(e5m2{0x01}), 0x1p-16);
  for (const int nan : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}) {
    EXPECT_TRUE(std::isnan(to_double(e5m2{static_cast<std::uint8_t>(nan)}))) << nan;
  }
}

// A conversion through f16 or bf16 rounds these values wrongly.
TEST(ConvertTest, RoundsOnceWhereGoingThroughANarrowerTypeWouldRoundTwice) {
  const auto via = [](auto middle, double x) { return to_double(middle(x)); };
  const auto half = [](double x) { return from_double<f16>(x, Overflow::saturate); };
  const auto brain = [](double x) { return from_double<bf16>(x, Overflow::saturate); };

  const double just_above_f16_tie = 1 + 0x1p-11 + 0x1p-30;
  EXPECT_EQ(to_double(half(just_above_f16_tie)), 1.0009765625);
  EXPECT_EQ(to_double(half(via(brain, just_above_f16_tie))), 1.0);
  EXPECT_EQ(to_double(half(static_cast<double>(static_cast<float>(just_above_f16_tie)))), 1.0)
      << "even float is too narrow as an intermediate type: the tail is lost and a tie appears";

  const double just_above_e4m3_tie = 1 + 0x1p-4 + 0x1p-20;  // between 1 and 1.125; f16 ends at 2^-10
  EXPECT_EQ(from_double<e4m3>(just_above_e4m3_tie, Overflow::saturate).bits, 0x39);
  EXPECT_EQ(from_double<e4m3>(via(half, just_above_e4m3_tie), Overflow::saturate).bits, 0x38);
  EXPECT_EQ(from_double<e4m3>(via(brain, just_above_e4m3_tie), Overflow::saturate).bits, 0x38);

  const double just_below_e5m2_tie = 1.375 - 0x1p-20;  // between 1.25 and 1.5; the tie itself goes up to 1.5
  EXPECT_EQ(to_double(from_double<e5m2>(just_below_e5m2_tie, Overflow::saturate)), 1.25);
  EXPECT_EQ(to_double(from_double<e5m2>(via(half, just_below_e5m2_tie), Overflow::saturate)), 1.5);
}

TEST(ConvertTest, ScalesArePowersOfTwoAndRoundToTheNearest) {
  const auto e8 = [](double x, Overflow o) { return unsigned{from_double<e8m0>(x, o).bits}; };
  for (unsigned p = 0; p < 255; ++p) {
    const double value = std::ldexp(1.0, static_cast<int>(p) - 127);
    EXPECT_EQ(to_double(e8m0{static_cast<std::uint8_t>(p)}), value);
    for (const Overflow o : kBoth) {
      EXPECT_EQ(e8(value, o), p);
      EXPECT_EQ(e8(std::nextafter(value, 0), o), p);
      EXPECT_EQ(e8(std::nextafter(value, kInf), o), p);
      const double middle = 1.5 * value;
      EXPECT_EQ(e8(std::nextafter(middle, 0), o), p);
      EXPECT_EQ(e8(middle, o), p % 2 == 0 ? p : p + 1) << "ties go to the even pattern";
      EXPECT_EQ(e8(std::nextafter(middle, kInf), o), p < 254 ? p + 1 : o == Overflow::saturate ? 0xfeu : 0xffu);
    }
  }
  EXPECT_TRUE(std::isnan(to_double(e8m0{0xff})));
  for (const double nothing : {0.0, -0.0, -1.0, -kInf}) {
    EXPECT_EQ(e8(nothing, Overflow::saturate), 0x00u);
    EXPECT_EQ(e8(nothing, Overflow::non_saturating), 0xffu);
  }
  for (const double tiny : {0x1p-128, 0x1p-1022, 0x1p-1074}) {
    EXPECT_EQ(e8(tiny, Overflow::saturate), 0x00u);
    EXPECT_EQ(e8(tiny, Overflow::non_saturating), 0x00u);
  }
  EXPECT_EQ(e8(kInf, Overflow::saturate), 0xfeu);
  EXPECT_EQ(e8(kInf, Overflow::non_saturating), 0xffu);
  EXPECT_EQ(e8(kNan, Overflow::saturate), 0xffu);
}

// Every NaN pattern of `from`, signaling ones too, in bulk: the bulk loop and the single conversion must agree.
template <class Bits>
void expect_nan_signs(DType from, Bits first, Bits last, std::size_t sign_bit) {
  std::vector<Bits> patterns;
  for (std::size_t p = first; p <= last; ++p) {
    patterns.push_back(static_cast<Bits>(p));
    patterns.push_back(static_cast<Bits>(p | sign_bit));
  }
  std::vector<std::uint8_t> out(patterns.size());
  const auto count = static_cast<std::int64_t>(patterns.size());
  const auto* src = reinterpret_cast<const std::byte*>(patterns.data());
  auto* dst = reinterpret_cast<std::byte*>(out.data());
  for (const DType to : {DType::e4m3, DType::e5m2}) {
    for (const Overflow overflow : kBoth) {
      convert(from, src, to, dst, count, overflow);
      EXPECT_EQ(std::count(out.begin(), out.end(), 0x7f), count) << name(from) << " " << name(to);
      convert(from, src, to, dst, count, overflow, NanSign::dropped);
      EXPECT_EQ(std::count(out.begin(), out.end(), 0x7f), count) << name(from) << " " << name(to);
      convert(from, src, to, dst, count, overflow, NanSign::kept);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] != (i % 2 == 0 ? 0x7f : 0xff);
      EXPECT_EQ(wrong, 0) << name(from) << " " << name(to);
    }
  }
}

// A lost sign (in the widening, or by masking the payload) shows only in negative NaNs, and the hardware treats
// signaling NaNs differently from quiet ones.
TEST(ConvertTest, NanSignIsDroppedOrKeptForEveryNan) {
  expect_nan_signs<std::uint16_t>(DType::bf16, 0x7f81, 0x7fff, 0x8000);
  expect_nan_signs<std::uint16_t>(DType::f16, 0x7c01, 0x7fff, 0x8000);
  expect_nan_signs<std::uint32_t>(DType::f32, 0x7f800001, 0x7fffffff, 0x80000000);
}

template <class T>
void expect_kept_sign(unsigned positive, unsigned negative) {
  for (const Overflow o : kBoth) {
    EXPECT_EQ(unsigned{from_double<T>(kNan, o, NanSign::kept).bits}, positive);
    EXPECT_EQ(unsigned{from_double<T>(-kNan, o, NanSign::kept).bits}, negative);
    EXPECT_EQ(unsigned{from_double<T>(-kNan, o, NanSign::dropped).bits}, positive);
    EXPECT_EQ(unsigned{from_double<T>(-kNan, o).bits}, positive) << "dropped is the default";
  }
}

TEST(ConvertTest, NanSignOfEveryNarrowType) {
  expect_kept_sign<f16>(0x7e00, 0xfe00);
  expect_kept_sign<bf16>(0x7fc0, 0xffc0);
  expect_kept_sign<e4m3>(0x7f, 0xff);
  expect_kept_sign<e5m2>(0x7f, 0xff);
  expect_kept_sign<e2m1>(0x7, 0xf);
  expect_kept_sign<e8m0>(0xff, 0xff);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(from_double<float>(-kNan, Overflow::saturate, NanSign::kept)), 0xffc00000u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(from_double<float>(-kNan, Overflow::saturate)), 0x7fc00000u);
}

// From one narrow type to another: the decoded NaN must have its sign, if the sign is to be kept. Only NaNs depend on
// this option.
TEST(ConvertTest, NanSignComesThroughDecoding) {
  for (int p = 0; p < 256; ++p) {
    const e4m3 from{static_cast<std::uint8_t>(p)};
    const double x = to_double(from);
    EXPECT_EQ(std::signbit(x), p >= 0x80) << p;
    EXPECT_EQ(std::signbit(to_double(e5m2{from.bits})), p >= 0x80) << p;
    const unsigned dropped = from_double<e5m2>(x, Overflow::saturate, NanSign::dropped).bits;
    const unsigned kept = from_double<e5m2>(x, Overflow::saturate, NanSign::kept).bits;
    EXPECT_EQ(kept, p == 0xff ? 0xffu : dropped) << p;
  }
}

}  // namespace
}  // namespace kvscope::convert_test
