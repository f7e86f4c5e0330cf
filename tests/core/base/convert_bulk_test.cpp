// Bulk conversions and integers: the loops give the same elements as the single conversions.
#include "core/base/convert.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/errors.h"
#include "core/base/random.h"

namespace kvscope::convert_bulk_test {
namespace {

constexpr DType kAll[] = {DType::f64,  DType::f32,  DType::f16, DType::bf16, DType::e4m3,
                          DType::e5m2, DType::e8m0, DType::i8,  DType::u8,   DType::i16,
                          DType::u16,  DType::i32,  DType::u32, DType::i64,  DType::u64};
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t stream) {
  const CounterRng rng(30, stream);
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(rng.bits(i) & 0xff);
  return bytes;
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// An empty tensor has no bytes: a null pointer is not read, copied or written, whatever the dtypes.
TEST(ConvertBulkTest, NoElementsTouchNoBytes) {
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      for (const std::int64_t count : {0, -1}) convert(from, nullptr, to, nullptr, count, Overflow::saturate);
    }
  }
}

// Lengths on both sides of the width of a vector and of a chunk, from an odd address: a vector loop that skips its
// remainder, or one that requires alignment, passes a test with 1024 aligned elements.
TEST(ConvertBulkTest, EveryTypeIsReadAsItsElementsAreOneByOne) {
  for (const DType dtype : kAll) {
    const auto size = static_cast<std::size_t>(size_of(dtype));
    for (const std::size_t n : {0u, 1u, 3u, 15u, 16u, 17u, 511u, 512u, 513u, 4099u}) {
      const auto bytes = random_bytes(n * size + 1, static_cast<std::uint64_t>(dtype));
      const std::byte* src = bytes.data() + 1;
      std::vector<double> doubles(n + 1, -77);
      std::vector<float> floats(n + 1, -77);
      to_doubles(dtype, src, std::span(doubles).first(n));
      to_floats(dtype, src, std::span(floats).first(n));
      for (std::size_t i = 0; i < n; ++i) {
        const double one = load_as_double(dtype, src + i * size);
        ASSERT_TRUE(same_number(doubles[i], one)) << name(dtype) << " " << i;
        // i64 and u64 excepted, the double is exact and the float is its rounding.
        if (dtype != DType::i64 && dtype != DType::u64) {
          ASSERT_TRUE(same_number(static_cast<double>(floats[i]), static_cast<double>(static_cast<float>(one))))
              << name(dtype) << " " << i;
        }
      }
      EXPECT_EQ(doubles[n], -77) << "wrote past the end";
      EXPECT_EQ(floats[n], -77.0f) << "wrote past the end";
    }
  }
}

// All 65,536 patterns through the vector loops, which treat f16's subnormals separately.
TEST(ConvertBulkTest, EverySixteenBitPatternIsReadByDefinition) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  std::vector<float> halves(patterns.size()), brains(patterns.size());
  to_floats(DType::f16, reinterpret_cast<const std::byte*>(patterns.data()), halves);
  to_floats(DType::bf16, reinterpret_cast<const std::byte*>(patterns.data()), brains);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31);
    const double mantissa = static_cast<double>(i & 1023);
    const double sign = i >= 32768 ? -1 : 1;
    const double want = exponent == 31  ? (mantissa == 0 ? kInf : std::nan(""))
                        : exponent == 0 ? std::ldexp(mantissa, -24)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_TRUE(same_number(static_cast<double>(halves[i]), sign * want)) << i;
    const float brain = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16);
    ASSERT_TRUE(same_number(static_cast<double>(brains[i]), static_cast<double>(brain))) << i;
  }
}

// Every pair of types. Except for 64-bit integers, every conversion through double is one exact widening and one
// rounding, so load and store of single elements are the oracle of the loop.
TEST(ConvertBulkTest, EveryPairOfTypesConvertsAsItsElementsDoOneByOne) {
  constexpr std::size_t kCount = 1027;
  for (const DType from : kAll) {
    const auto from_size = static_cast<std::size_t>(size_of(from));
    const auto src = random_bytes(kCount * from_size, 100 + static_cast<std::uint64_t>(from));
    for (const DType to : kAll) {
      if (from == DType::i64 || from == DType::u64) continue;
      const auto to_size = static_cast<std::size_t>(size_of(to));
      for (const Overflow o : {Overflow::saturate, Overflow::non_saturating}) {
        std::vector<std::byte> got(kCount * to_size), want(kCount * to_size);
        convert(from, src.data(), to, got.data(), kCount, o);
        for (std::size_t i = 0; i < kCount; ++i) {
          store_from_double(to, load_as_double(from, src.data() + i * from_size), want.data() + i * to_size, o);
        }
        if (from == to) want = src;  // the same type is copied, NaN payloads and infinities included
        ASSERT_EQ(got, want) << name(from) << " -> " << name(to);
      }
    }
  }
}

template <class To, class From>
To convert_one(From value, Overflow overflow = Overflow::non_saturating) {
  To result{};
  convert(dtype_of<From>, reinterpret_cast<const std::byte*>(&value), dtype_of<To>,
          reinterpret_cast<std::byte*>(&result), 1, overflow);
  return result;
}

// 2^53 + 1 is the first integer that a double does not represent: a conversion through double would change a slot
// number or a hash.
TEST(ConvertBulkTest, SixtyFourBitIntegersGoDirectlyAndSaturate) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::uint64_t kUMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(convert_one<std::uint64_t>(std::int64_t{9007199254740993}), 9007199254740993u);
  EXPECT_EQ(convert_one<std::uint64_t>(kMax), 9223372036854775807u);
  EXPECT_EQ(convert_one<std::uint64_t>(std::int64_t{-1}), 0u);
  EXPECT_EQ(convert_one<std::int64_t>(kUMax), kMax);
  EXPECT_EQ(convert_one<std::int64_t>(std::uint64_t{1} << 63), kMax);
  EXPECT_EQ(convert_one<std::int32_t>(kMax), 2147483647);
  EXPECT_EQ(convert_one<std::int32_t>(kMin), -2147483647 - 1);
  EXPECT_EQ(convert_one<std::uint8_t>(std::int64_t{256}), 255);
  EXPECT_EQ(convert_one<std::uint8_t>(std::int64_t{255}), 255);
  EXPECT_EQ(convert_one<std::int8_t>(std::int64_t{-129}), -128);
  EXPECT_EQ(convert_one<std::uint64_t>(std::int8_t{-5}), 0u);
  EXPECT_EQ(convert_one<std::int64_t>(std::uint32_t{4294967295}), 4294967295);
}

// Through a double these values are rounded twice: first to a float's midpoint, then to even, away from the nearest.
TEST(ConvertBulkTest, SixtyFourBitIntegersBecomeFloatsInOneRounding) {
  const std::int64_t past_tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(convert_one<float>(past_tie), 0x1.000002p60f);
  EXPECT_EQ(convert_one<float>(-past_tie), -0x1.000002p60f);
  EXPECT_EQ(static_cast<float>(static_cast<double>(past_tie)), 0x1p60f) << "the double rounding this guards against";
  const std::uint64_t bf16_tie = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 55) + 1;
  EXPECT_EQ(to_double(convert_one<bf16>(bf16_tie)), 0x1.02p63);
  const CounterRng rng(31, 0);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t u = rng.bits(i) >> rng.integer(i + 1000000, 0, 40);
    const auto s = static_cast<std::int64_t>(u);
    ASSERT_EQ(convert_one<float>(u), static_cast<float>(u)) << u;
    ASSERT_EQ(convert_one<float>(s), static_cast<float>(s)) << s;
    ASSERT_EQ(convert_one<double>(u), static_cast<double>(u)) << u;
    float f = 0;
    to_floats(DType::i64, reinterpret_cast<const std::byte*>(&s), {&f, 1});
    ASSERT_EQ(f, static_cast<float>(s)) << s;
  }
  EXPECT_EQ(convert_one<double>(std::numeric_limits<std::int64_t>::min()), -0x1p63);
  EXPECT_EQ(convert_one<float>(std::numeric_limits<std::int64_t>::min()), -0x1p63f);
}

template <class T>
void expect_integer_ladder() {
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double past = std::ldexp(1.0, std::numeric_limits<T>::digits);
  for (const Overflow o : {Overflow::saturate, Overflow::non_saturating}) {
    const auto stored = [&](double x) {
      T result = 77;
      store_from_double(dtype_of<T>, x, reinterpret_cast<std::byte*>(&result), o);
      return result;
    };
    EXPECT_EQ(stored(std::nan("")), T{0});
    EXPECT_EQ(stored(kInf), std::numeric_limits<T>::max());
    EXPECT_EQ(stored(-kInf), std::numeric_limits<T>::min());
    EXPECT_EQ(stored(past), std::numeric_limits<T>::max());
    EXPECT_EQ(stored(past * 4), std::numeric_limits<T>::max());
    EXPECT_EQ(stored(low), std::numeric_limits<T>::min());
    EXPECT_EQ(stored(low - past / 4 - 1), std::numeric_limits<T>::min());
    EXPECT_EQ(stored(past / 2), static_cast<T>(std::numeric_limits<T>::max() / 2 + 1));
    EXPECT_EQ(stored(2.999), T{2});
    EXPECT_EQ(stored(0.999), T{0});
    EXPECT_EQ(stored(-0.999), T{0});
    EXPECT_EQ(stored(-2.999), std::is_signed_v<T> ? static_cast<T>(-2) : T{0});
    const double largest_below = std::nextafter(past, 0);
    EXPECT_EQ(stored(largest_below), static_cast<T>(largest_below));
  }
}

TEST(ConvertBulkTest, DoublesBecomeIntegersTowardsZeroAndStopAtTheEnds) {
  expect_integer_ladder<std::int8_t>();
  expect_integer_ladder<std::uint8_t>();
  expect_integer_ladder<std::int16_t>();
  expect_integer_ladder<std::uint16_t>();
  expect_integer_ladder<std::int32_t>();
  expect_integer_ladder<std::uint32_t>();
  expect_integer_ladder<std::int64_t>();
  expect_integer_ladder<std::uint64_t>();
}

TEST(ConvertBulkTest, FourBitElementsAreRejectedInBulk) {
  double x = 0;
  float f = 0;
  auto* bytes = reinterpret_cast<std::byte*>(&x);
  EXPECT_THROW((void)load_as_double(DType::e2m1, bytes), UnsupportedError);
  EXPECT_THROW(store_from_double(DType::e2m1, 1, bytes, Overflow::saturate), UnsupportedError);
  EXPECT_THROW(to_doubles(DType::e2m1, bytes, {&x, 1}), UnsupportedError);
  EXPECT_THROW(to_floats(DType::e2m1, bytes, {&f, 1}), UnsupportedError);
  EXPECT_THROW(convert(DType::e2m1, bytes, DType::f32, bytes, 1, Overflow::saturate), UnsupportedError);
  EXPECT_THROW(convert(DType::f32, bytes, DType::e2m1, bytes, 1, Overflow::saturate), UnsupportedError);
}

}  // namespace
}  // namespace kvscope::convert_bulk_test
