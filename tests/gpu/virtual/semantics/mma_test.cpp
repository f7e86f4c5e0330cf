// mma: results in registers compared with a product computed from the published fragment maps by separate code: the
// maps are written here again, lane by lane, from the manual's tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "gpu/virtual/semantics/matrix_product.h"
#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::mma_test {
namespace {

using Tile = std::vector<double>;  // [row][column]

struct Shape {
  int m, n, k;
};

// A(i,k), B(k,n), C(i,n) of the integer vectors.
int a_of(int i, int k) {
  return (i + 2 * k) % 5 - 2;
}
int b_of(int k, int n) {
  return (3 * k + n) % 7 - 3;
}

std::uint64_t fnv(const std::vector<std::uint32_t>& words) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint32_t word : words) {
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

// A number's bits in an element type; every number here is a small integer or a short binary fraction.
std::uint64_t encode(Type type, double x) {
  const auto f32 = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  switch (type) {
    case Type::f64:
      return std::bit_cast<std::uint64_t>(x);
    case Type::f32:
    case Type::tf32:
      return f32;
    case Type::bf16:
      return f32 >> 16;
    case Type::f16:
    case Type::e4m3:
    case Type::e5m2: {
      if (x == 0) return 0;
      int exponent = 0;
      const double fraction = std::frexp(std::fabs(x), &exponent);  // [0.5, 1)
      const int bits = type == Type::f16 ? 10 : type == Type::e4m3 ? 3 : 2;
      const int bias = type == Type::e4m3 ? 7 : 15;
      const auto mantissa = static_cast<std::uint64_t>((2 * fraction - 1) * (1 << bits));
      const std::uint64_t sign = x < 0 ? (type == Type::f16 ? 0x8000u : 0x80u) : 0u;
      return sign | static_cast<std::uint64_t>(exponent - 1 + bias) << bits | mantissa;
    }
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));  // an integer: its low bits
  }
}
int width_of_type(Type type) {
  static const std::map<Type, int> kWidths{{Type::f64, 64}, {Type::f32, 32},  {Type::s32, 32}, {Type::tf32, 32},
                                           {Type::f16, 16}, {Type::bf16, 16}, {Type::e4m3, 8}, {Type::e5m2, 8},
                                           {Type::s8, 8},   {Type::u8, 8},    {Type::s4, 4},   {Type::u4, 4},
                                           {Type::b1, 1}};
  return kWidths.at(type);
}

// Fills the registers of a fragment; at(e, r, g, t) returns the number of the tile at that place.
std::vector<Lanes> registers(Type type, int count, const std::function<double(int e, int r, int g, int t)>& at) {
  std::vector<Lanes> all_registers(static_cast<std::size_t>(count));
  const int width = width_of_type(type);
  const int register_bits = width == 64 ? 64 : 32;
  const std::uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
  for (int r = 0; r < count; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      std::uint64_t& word = all_registers[static_cast<std::size_t>(r)][static_cast<std::size_t>(lane)];
      for (int e = 0; e < register_bits / width; ++e) {
        word |= (encode(type, at(e, r, lane / 4, lane % 4)) & mask) << (width * e);
      }
    }
  }
  return all_registers;
}

struct Mma {
  std::string word;
  Shape shape;
  Type a, b, d;
};

// Executes it on A(i,k), B(k,n), C(i,n) and returns D, row-major.
Tile run_mma(const Mma& mma, const std::function<double(int, int)>& a, const std::function<double(int, int)>& b,
             const std::function<double(int, int)>& c, SumMode sum, Simd simd) {
  const int e_of_ab = std::max(1, 32 / width_of_type(mma.a));
  const int in_register = 32 * e_of_ab;
  const bool m8 = mma.shape.m == 8;
  Case x;
  x.word = mma.word;
  x.sum = sum;
  x.simd = simd;
  const auto add = [&x](std::vector<Lanes> more) { x.in.insert(x.in.end(), more.begin(), more.end()); };
  add(registers(mma.a, mma.shape.m * mma.shape.k / in_register, [&](int e, int r, int g, int t) {
    const int row = m8 ? g : g + 8 * (r % 2);
    return a(row, t * e_of_ab + e + 4 * e_of_ab * (m8 ? 0 : r / 2));
  }));
  add(registers(mma.b, mma.shape.k * mma.shape.n / in_register,
                [&](int e, int r, int g, int t) { return b(t * e_of_ab + e + 4 * e_of_ab * r, g); }));
  const bool half = mma.d == Type::f16;
  const int count_d = mma.shape.m * mma.shape.n / (half ? 64 : 32);
  add(registers(mma.d, count_d, [&](int e, int i, int g, int t) {
    return half ? c(g + 8 * i, 2 * t + e) : c(g + 8 * (i / 2), 2 * t + i % 2);
  }));
  const Outcome outcome = run(x);
  Tile d(static_cast<std::size_t>(mma.shape.m * mma.shape.n));
  if (outcome.d.size() != static_cast<std::size_t>(count_d)) {
    ADD_FAILURE() << mma.word << " writes " << outcome.d.size() << " registers";
    return d;
  }
  for (int i = 0; i < count_d; ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint64_t word = outcome.d[static_cast<std::size_t>(i)][static_cast<std::size_t>(lane)];
      const auto put = [&](int row, int column, double value) {
        d[static_cast<std::size_t>(row * mma.shape.n + column)] = value;
      };
      const int g = lane / 4;
      const int t = lane % 4;
      if (half) {
        for (int e = 0; e < 2; ++e) {
          put(g + 8 * i, 2 * t + e, float_of_f16_bits(static_cast<std::uint16_t>(word >> (16 * e))));
        }
        continue;
      }
      const double value = mma.d == Type::f64   ? std::bit_cast<double>(word)
                           : mma.d == Type::s32 ? static_cast<double>(static_cast<std::int32_t>(word))
                                                : double{as_float(word)};
      put(g + 8 * (i / 2), 2 * t + i % 2, value);
    }
  }
  return d;
}

std::string word_of(const std::string& shape, const std::string& d, const std::string& a, const std::string& b,
                    const std::string& c, const std::string& tail = "") {
  return "mma.sync.aligned." + shape + ".row.col" + (tail.empty() ? "" : "." + tail) + "." + d + "." + a + "." + b +
         "." + c;
}

std::vector<Mma> every_mma() {
  std::vector<Mma> all_mma;
  const auto add = [&all_mma](Shape s, const std::string& d, const std::string& a, const std::string& b,
                              const std::string& tail = "") {
    const std::string shape = "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k);
    all_mma.push_back(
        {word_of(shape, d, a, b, d, tail), s, *type_from_name(a), *type_from_name(b), *type_from_name(d)});
  };
  for (const int k : {8, 16}) {
    for (const char* d : {"f32", "f16"}) add({16, 8, k}, d, "f16", "f16");
    add({16, 8, k}, "f32", "bf16", "bf16");
  }
  for (const int k : {4, 8}) add({16, 8, k}, "f32", "tf32", "tf32");
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) {
      for (const char* d : {"f32", "f16"}) {
        for (const int k : {16, 32}) add({16, 8, k}, d, a, b);
      }
    }
  }
  for (const char* tail : {"", "satfinite"}) {
    for (const char* a : {"s8", "u8"}) {
      for (const char* b : {"s8", "u8"}) {
        add({8, 8, 16}, "s32", a, b, tail);
        for (const int k : {16, 32}) add({16, 8, k}, "s32", a, b, tail);
      }
    }
    for (const char* a : {"s4", "u4"}) {
      for (const char* b : {"s4", "u4"}) {
        add({8, 8, 32}, "s32", a, b, tail);
        for (const int k : {32, 64}) add({16, 8, k}, "s32", a, b, tail);
      }
    }
  }
  for (const char* tail : {"", "rn", "rz", "rm", "rp"}) {
    add({8, 8, 4}, "f64", "f64", "f64", tail);
    for (const int k : {4, 8, 16}) add({16, 8, k}, "f64", "f64", "f64", tail);
  }
  return all_mma;
}

// Small integers are exact in every type and mode; the numbers of a tile are distinct somewhere, so a register, lane or
// half word in the wrong place is detected. For unsigned types the numbers are 2 and 3 higher.
TEST(Mma, EveryShapeAndTypeMultipliesTheTilesThatTheFragmentMapsName) {
  for (const Mma& mma : every_mma()) {
    const auto is_unsigned = [](Type t) { return t == Type::u8 || t == Type::u4; };
    const int up_a = is_unsigned(mma.a) ? 2 : 0;
    const int up_b = is_unsigned(mma.b) ? 3 : 0;
    for (const SumMode sum : {SumMode::seq, SumMode::exact, SumMode::hopper}) {
      for (const Simd simd : simds()) {
        const Tile d = run_mma(
            mma, [&](int i, int k) { return a_of(i, k) + up_a; }, [&](int k, int n) { return b_of(k, n) + up_b; },
            [](int i, int n) { return i - n; }, sum, simd);
        for (int i = 0; i < mma.shape.m; ++i) {
          for (int n = 0; n < mma.shape.n; ++n) {
            int expected = i - n;
            for (int k = 0; k < mma.shape.k; ++k) expected += (a_of(i, k) + up_a) * (b_of(k, n) + up_b);
            ASSERT_EQ(d[static_cast<std::size_t>(i * mma.shape.n + n)], expected)
                << mma.word << " D(" << i << ", " << n << ") mode " << static_cast<int>(sum);
          }
        }
      }
    }
  }
}

struct Golden {
  Shape shape;
  std::array<int, 4> first;
  int last;
  int sum;
  std::uint64_t fnv_f32, fnv_s32;
};
// D of the integer vectors, row-major, little endian.
const Golden kGolden[] = {
    {{16, 8, 8}, {13, -2, -10, -11}, 21, 525, 0xbf2d01d15c005179u, 0xe5b3baae1af208aau},
    {{16, 8, 16}, {10, -14, -24, -20}, 18, 522, 0x2b7627f38ea962f1u, 0x95854b635767e211u},
    {{16, 8, 32}, {-7, -10, 1, 5}, 1, 505, 0x5f985cebdfd22145u, 0xc106079bb15e07cdu},
    {{64, 8, 16}, {10, -14, -24, -20}, 42, 14353, 0xf01bd9661e934f71u, 0},
    {{64, 16, 32}, {-7, -10, 1, 5}, 52, 24587, 0x2c209bc511a60a05u, 0x6995e629a7a76ce8u},
    {{64, 64, 16}, {10, -14, -24, -20}, -14, 17, 0x164126ae312ca430u, 0},
    {{64, 256, 16}, {10, -14, -24, -20}, -175, -1572822, 0xaff893c2654a1084u, 0},
};

void expect_golden(const Golden& golden, const Tile& d, bool as_integers) {
  std::vector<std::uint32_t> words;
  double sum = 0;
  for (const double x : d) {
    sum += x;
    words.push_back(as_integers ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x))
                                : std::bit_cast<std::uint32_t>(static_cast<float>(x)));
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(d[i], golden.first[i]);
  EXPECT_EQ(d.back(), golden.last);
  EXPECT_EQ(sum, golden.sum);
  EXPECT_EQ(fnv(words), as_integers ? golden.fnv_s32 : golden.fnv_f32) << golden.shape.m << "x" << golden.shape.n;
}

TEST(Mma, ChecksumsOfTheIntegerVectors) {
  const auto run_golden = [](const Golden& golden, const Mma& mma, bool as_integers) {
    expect_golden(golden,
                  run_mma(
                      mma, a_of, b_of, [](int i, int n) { return i - n; }, SumMode::seq, best_simd()),
                  as_integers);
  };
  run_golden(kGolden[0], {word_of("m16n8k8", "f32", "f16", "f16", "f32"), {16, 8, 8}, Type::f16, Type::f16, Type::f32},
             false);
  run_golden(kGolden[0],
             {word_of("m16n8k8", "f32", "tf32", "tf32", "f32"), {16, 8, 8}, Type::tf32, Type::tf32, Type::f32}, false);
  run_golden(kGolden[1],
             {word_of("m16n8k16", "f32", "bf16", "bf16", "f32"), {16, 8, 16}, Type::bf16, Type::bf16, Type::f32},
             false);
  run_golden(kGolden[1], {word_of("m16n8k16", "s32", "s8", "s8", "s32"), {16, 8, 16}, Type::s8, Type::s8, Type::s32},
             true);
  run_golden(kGolden[2],
             {word_of("m16n8k32", "f32", "e4m3", "e5m2", "f32"), {16, 8, 32}, Type::e4m3, Type::e5m2, Type::f32},
             false);
  run_golden(kGolden[2], {word_of("m16n8k32", "s32", "s8", "s8", "s32"), {16, 8, 32}, Type::s8, Type::s8, Type::s32},
             true);
}

TEST(MatrixProducts, ChecksumsOfTheTilesOfFourWarps) {
  for (const Golden& golden : kGolden) {
    const Shape s = golden.shape;
    std::vector<float> a, b, d;
    std::vector<std::int32_t> ia, ib, id;
    for (int i = 0; i < s.m; ++i) {
      for (int k = 0; k < s.k; ++k) ia.push_back(a_of(i, k));
      for (int n = 0; n < s.n; ++n) id.push_back(i - n);
    }
    for (int k = 0; k < s.k; ++k) {
      for (int n = 0; n < s.n; ++n) ib.push_back(b_of(k, n));
    }
    a.assign(ia.begin(), ia.end());
    b.assign(ib.begin(), ib.end());
    for (const SumMode sum : {SumMode::seq, SumMode::exact, SumMode::hopper}) {
      for (const Simd simd : simds()) {
        d.assign(id.begin(), id.end());
        multiply_add({s.m, s.n, s.k, Type::f16, Type::f16, Type::f32, sum}, a.data(), b.data(), d.data(), simd);
        expect_golden(golden, Tile(d.begin(), d.end()), false);
      }
    }
    if (golden.fnv_s32 == 0) continue;
    multiply_add({s.m, s.n, s.k, Type::s8, Type::s8, Type::s32}, ia.data(), ib.data(), id.data());
    expect_golden(golden, Tile(id.begin(), id.end()), true);
  }
}

// In mode seq each product is rounded to f32, then added: also where a fused operation would round otherwise, because the
// product is subnormal, zero or infinite. Shapes leave columns over for vectors of 16, 8 and 4.
TEST(Mma, SumsInOrderAreThoseOfAPlainLoopOnEveryInstructionSet) {
  std::mt19937 random(5);
  const auto number = [&](int range) {  // of bf16
    const auto exponent = static_cast<int>(random() % static_cast<unsigned>(2 * range + 1)) - range;
    const float x = std::ldexp(static_cast<float>(128 + random() % 128), exponent - 7);
    return random() % 16 == 0 ? 0.0f : random() % 2 == 0 ? x : -x;
  };
  for (const int range : {4, 50, 60, 75, 127}) {
    for (const auto& [m, n, k] :
         {std::array{16, 8, 16}, {16, 24, 16}, {16, 72, 32}, {8, 128, 8}, {5, 13, 3}, {64, 256, 16}}) {
      const auto size = [](int x, int y) { return static_cast<std::size_t>(x * y); };
      std::vector<float> a(size(m, k)), b(size(k, n)), c(size(m, n));
      for (std::vector<float>* matrix : {&a, &b, &c}) {
        for (float& x : *matrix) x = number(matrix == &c ? std::min(2 * range, 127) : range);
      }
      std::vector<float> expected = c;
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          volatile float sum = c[size(i, n) + static_cast<std::size_t>(j)];
          for (int x = 0; x < k; ++x) {
            const volatile float product =
                a[size(i, k) + static_cast<std::size_t>(x)] * b[size(x, n) + static_cast<std::size_t>(j)];
            sum = sum + product;
          }
          expected[size(i, n) + static_cast<std::size_t>(j)] =
              std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : sum;
        }
      }
      for (const Simd simd : simds()) {
        std::vector<float> d = c;
        multiply_add({m, n, k, Type::bf16, Type::bf16, Type::f32, SumMode::seq}, a.data(), b.data(), d.data(), simd);
        EXPECT_EQ(std::memcmp(d.data(), expected.data(), 4 * d.size()), 0)
            << m << " " << n << " " << k << " range " << range << " on " << static_cast<int>(simd);
      }
    }
  }
}

// A number of s, e exponent bits and m bits of a significand; the highest exponent is infinity and NaN, except that e4m3 has
// one NaN and no infinity.
float number_of(Type type, std::uint32_t code) {
  if (type == Type::bf16) return std::bit_cast<float>(code << 16);
  if (type == Type::tf32) return std::bit_cast<float>(code & 0xffffe000u);
  const int e = type == Type::e4m3 ? 4 : 5, m = type == Type::f16 ? 10 : type == Type::e4m3 ? 3 : 2;
  const int bias = (1 << (e - 1)) - 1, highest = (1 << e) - 1;
  const int exponent = static_cast<int>(code >> m) & highest, fraction = static_cast<int>(code) & ((1 << m) - 1);
  float x = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - m)
                          : std::ldexp(static_cast<float>((1 << m) + fraction), exponent - bias - m);
  if (type == Type::e4m3 ? exponent == highest && fraction == 7 : exponent == highest)
    x = type != Type::e4m3 && fraction == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
  return (code >> (e + m) & 1) != 0 ? -x : x;
}

// Random registers. Turn 0: any bits, subnormal numbers, infinities and NaN too. For bf16 and tf32, exponents decide between fused
// and separate operations: near 0 in turn 1, products that are subnormal in turn 2, and sums near the largest number in turn 3.
TEST(Mma, RandomRegistersGiveTheSumsOfAPlainLoopOnEveryInstructionSet) {
  Random random{11};
  for (const Mma& mma : every_mma()) {
    const auto [m, n, k] = mma.shape;
    if (mma.d != Type::f32 || m != 16) continue;
    const int width = width_of_type(mma.a), each = 32 / width;
    for (int turn = 0; turn < 16; ++turn) {
      const auto words = [&](int count, bool of_c) {
        std::vector<Lanes> all_words(static_cast<std::size_t>(count));
        for (Lanes& lanes : all_words) {
          for (std::uint64_t& word : lanes) {
            word = random.next() & 0xffffffffu;
            if (turn % 4 == 0) continue;
            if (of_c || mma.a == Type::bf16 || mma.a == Type::tf32) {
              const std::uint32_t exponents[] = {0, 0x3f803f80u, of_c ? 0x00800080u : 0x1c001c00u,
                                                 of_c ? 0x7e807e80u : 0x5f005f00u};
              word = (word & 0x80ff80ffu) ^ exponents[turn % 4];
            }
            if (random.next() % 8 == 0) word = 0;
          }
        }
        return all_words;
      };
      const std::vector<Lanes> a = words(m * k / (32 * each), false), b = words(k * n / (32 * each), false),
                               c = words(4, true);
      const auto code = [&](const std::vector<Lanes>& of, int r, int lane, int e) {
        const std::uint64_t word = of[static_cast<std::size_t>(r)][static_cast<std::size_t>(lane)];
        return static_cast<std::uint32_t>(word >> (width * e) & ((std::uint64_t{1} << width) - 1));
      };
      std::vector<Lanes> expected(4);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          const auto r = static_cast<std::size_t>(2 * (i / 8) + j % 2),
                     lane = static_cast<std::size_t>(4 * (i % 8) + j / 2);
          volatile float sum = as_float(c[r][lane]);
          for (int x = 0; x < k; ++x) {
            const int t = x % (4 * each) / each, e = x % each, group = x / (4 * each);
            const float of_a = number_of(mma.a, code(a, i / 8 + 2 * group, 4 * (i % 8) + t, e));
            const float of_b = number_of(mma.b, code(b, group, 4 * j + t, e));
            const volatile float product = of_a * of_b;
            sum = sum + product;
          }
          expected[r][lane] = std::isnan(sum) ? 0x7fffffffu : bits(static_cast<float>(sum));
        }
      }
      Case x{.word = mma.word};
      for (const auto* operand : {&a, &b, &c}) x.in.insert(x.in.end(), operand->begin(), operand->end());
      for (const Simd simd : simds()) {
        x.simd = simd;
        EXPECT_EQ(run(x).d, expected) << mma.word << " turn " << turn << " on " << static_cast<int>(simd);
      }
    }
  }
}

// The registers of lanes 0 and 31, low number in the low half.
TEST(Mma, FragmentsOfTheIntegerVectorsInBf16) {
  const auto a = registers(Type::bf16, 4, [](int e, int r, int g, int t) {
    return double{static_cast<double>(a_of(g + 8 * (r % 2), 2 * t + e + 8 * (r / 2)))};
  });
  const auto b = registers(Type::bf16, 2,
                           [](int e, int r, int g, int t) { return static_cast<double>(b_of(2 * t + e + 8 * r, g)); });
  EXPECT_EQ(a[0][0], 0x0000c000u);
  EXPECT_EQ(a[1][0], 0xc0003f80u);
  EXPECT_EQ(a[2][0], 0x3f80bf80u);
  EXPECT_EQ(a[3][0], 0xbf804000u);
  EXPECT_EQ(b[0][0], 0x0000c040u);
  EXPECT_EQ(b[1][0], 0x40400000u);
  EXPECT_EQ(a[0][31], 0xbf804000u);
  EXPECT_EQ(a[1][31], 0x40000000u);
  EXPECT_EQ(a[2][31], 0x0000c000u);
  EXPECT_EQ(a[3][31], 0xc0003f80u);
  EXPECT_EQ(b[0][31], 0xc0403f80u);
  EXPECT_EQ(b[1][31], 0x0000c040u);
}

struct SumRow {
  const char* what;
  double c;
  std::function<double(int)> a, b;
  std::uint32_t seq, exact, hopper;
};

// One output element, K = 16, in the three orders of adding.
TEST(Mma, TheThreeWaysOfAddingDifferWhereTheyShould) {
  const auto always = [](double x) { return [x](int) { return x; }; };
  const auto only = [](int at, double x) { return [at, x](int k) { return k == at ? x : 0.0; }; };
  const SumRow rows[] = {
      {"2^24 and ones", 0x1p24, always(1), always(1), 0x4b800000, 0x4b800008, 0x4b800008},
      {"1 and 2^-24", 1, always(0x1p-12), always(0x1p-12), 0x3f800000, 0x3f800008, 0x3f800008},
      {"1 and 2^-26", 1, always(0x1p-13), always(0x1p-13), 0x3f800000, 0x3f800002, 0x3f800000},
      {"1 and eight 2^-25", 1, [](int k) { return k < 8 ? 0x1p-12 : 0.0; }, always(0x1p-13), 0x3f800000, 0x3f800002,
       0x3f800002},
      {"1 and 1.5 * 2^-23", 1, only(0, 1.5 * 0x1p-11), only(0, 0x1p-12), 0x3f800002, 0x3f800002, 0x3f800001},
      {"-1 and -1.5 * 2^-23", -1, only(0, -1.5 * 0x1p-11), only(0, 0x1p-12), 0xbf800002, 0xbf800002, 0xbf800001},
      {"small ones before 1", 0, [](int k) { return k < 15 ? 0x1p-12 : 1.0; },
       [](int k) { return k < 15 ? 0x1p-12 : 1.0; }, 0x3f800008, 0x3f800008, 0x3f800007},
      {"cancelling", 0x1p-30, [](int k) { return k == 0   ? 1.0
                                                 : k == 1 ? -1.0
                                                          : 0.0; }, always(1), 0, 0x30800000, 0},
  };
  for (const char* type : {"f16", "bf16"}) {
    const Mma mma{word_of("m16n8k16", "f32", type, type, "f32"),
                  {16, 8, 16},
                  *type_from_name(type),
                  *type_from_name(type),
                  Type::f32};
    for (const SumRow& row : rows) {
      for (const Simd simd : simds()) {
        const auto bits_in = [&](SumMode mode) {
          const Tile d = run_mma(
              mma, [&](int, int k) { return row.a(k); }, [&](int k, int) { return row.b(k); },
              [&](int, int) { return row.c; }, mode, simd);
          return bits(static_cast<float>(d[77]));
        };
        EXPECT_EQ(bits_in(SumMode::seq), row.seq) << type << " " << row.what;
        EXPECT_EQ(bits_in(SumMode::exact), row.exact) << type << " " << row.what;
        EXPECT_EQ(bits_in(SumMode::hopper), row.hopper) << type << " " << row.what;
      }
    }
  }
}

// A float as sign, integer and power of two, for sums in integers alone.
struct Parts {
  std::int64_t significand = 0;
  int exponent = 0;
};
Parts parts_of(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, 24)), exponent - 24};
}
// Multiples of 2^unit, toward zero.
std::int64_t cut(Parts x, int unit) {
  const int shift = x.exponent - unit;
  if (x.significand == 0 || shift <= -63) return 0;
  return shift < 0 ? x.significand / (std::int64_t{1} << -shift) : x.significand * (std::int64_t{1} << shift);
}

struct HopperType {
  Type type;
  int bits;   // of a significand, with the leading one
  int least;  // exponent of a normal number
};

// One element as docs/15_virtual_gpu.md describes it.
float hopper_sum(const HopperType& of, Type d, float c, const std::vector<float>& a, const std::vector<float>& b) {
  const bool fp8 = of.bits <= 4;
  const auto exponent_of = [](float x, int least) { return std::max(std::ilogb(x), least); };
  int highest = std::numeric_limits<int>::min();
  if (c != 0) highest = exponent_of(c, d == Type::f16 ? -14 : -126);
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] != 0 && b[k] != 0) highest = std::max(highest, exponent_of(a[k], of.least) + exponent_of(b[k], of.least));
  }
  if (highest == std::numeric_limits<int>::min()) return c;
  int unit = highest - (fp8 ? 13 : 25);
  std::int64_t sum = cut(parts_of(c), unit);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Parts x = parts_of(a[k]), y = parts_of(b[k]);
    sum += cut({x.significand * y.significand, x.exponent + y.exponent}, unit);
  }
  const int kept = d == Type::f16 ? 11 : fp8 ? 14 : 24;
  const int lowest = d == Type::f16 ? -24 : fp8 ? -139 : -149;  // the last bit of a subnormal number
  const int leading = sum == 0 ? 0 : 64 - std::countl_zero(static_cast<std::uint64_t>(std::abs(sum)));
  const int drop = std::max({leading - kept, lowest - unit, 0});
  const float zero = d != Type::f16 && sum < 0 ? -0.0f : 0.0f;
  if (drop > 40) return zero;
  const std::int64_t step = std::int64_t{1} << drop;
  std::int64_t result = sum / step;
  if (d == Type::f16) {  // to nearest, ties to even
    const std::int64_t rest = 2 * std::abs(sum % step);
    if (rest > step || (rest == step && result % 2 != 0)) result += sum < 0 ? -1 : 1;
  }
  unit += drop;
  const double value = std::ldexp(static_cast<double>(result), unit);
  if (std::abs(value) >= (d == Type::f16 ? 65536.0 : 0x1p128)) return std::copysign(INFINITY, static_cast<float>(sum));
  return result == 0 ? zero : static_cast<float>(value);
}

TEST(Mma, SumsOfHopperAreThoseOfIntegersOnEveryInstructionSet) {
  std::mt19937 random(9);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const HopperType types[] = {
      {Type::bf16, 8, -126}, {Type::f16, 11, -14}, {Type::tf32, 11, -126}, {Type::e4m3, 4, -6}, {Type::e5m2, 3, -14}};
  for (const HopperType& of : types) {
    // Numbers near the least exponent, near 1, near the largest, and of all sizes.
    const int most = of.type == Type::e4m3 ? 7 : of.least == -14 ? 14 : 126;
    for (const auto& [low, high] :
         {std::pair{of.least - of.bits, of.least + 4}, {-3, 3}, {most - 3, most}, {of.least, most}}) {
      const auto number = [&, lowest = low, range = high - low + 1] {
        if (below(12) == 0) return below(2) == 0 ? 0.0f : -0.0f;
        const int exponent = lowest + below(range);
        const int bits = std::min(of.bits, of.bits + exponent - of.least);  // fewer for a subnormal number
        const int significand = (1 << std::max(bits - 1, 0)) + (bits > 1 ? below(1 << (bits - 1)) : 0);
        const float x = std::ldexp(static_cast<float>(significand), exponent - std::max(bits - 1, 0));
        return below(2) == 0 ? x : -x;
      };
      for (const Type d : {Type::f32, Type::f16}) {
        if (d == Type::f16 && of.bits > 4 && of.type != Type::f16) continue;
        const int m = 16, n = 24, k = of.bits <= 4 ? 32 : of.type == Type::tf32 ? 8 : 16;
        std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n));
        std::generate(a.begin(), a.end(), number);
        std::generate(b.begin(), b.end(), number);
        std::fill_n(a.begin() + 3 * k, k, 0.0f);  // a row without products: C stays, -0 too
        for (float& x : c) {
          x = below(4) == 0 ? (below(2) == 0 ? 0.0f : -0.0f)
                            : std::ldexp(static_cast<float>(1 + below(2047)), low + high - 10 + below(8));
          if (d == Type::f16) x = std::abs(x) < 65504 ? std::ldexp(std::round(std::ldexp(x, 10)), -10) : 1.0f;
          if (!(std::abs(x) < 0x1p127f)) x = 0x1p127f;
        }
        std::vector<float> expected = c;
        for (int i = 0; i < m; ++i) {
          for (int j = 0; j < n; ++j) {
            std::vector<float> row(a.begin() + i * k, a.begin() + (i + 1) * k), column;
            for (int x = 0; x < k; ++x) column.push_back(b[static_cast<std::size_t>(x * n + j)]);
            float& element = expected[static_cast<std::size_t>(i * n + j)];
            element = hopper_sum(of, d, element, row, column);
          }
        }
        for (const Simd simd : simds()) {
          std::vector<float> found = c;
          multiply_add({m, n, k, of.type, of.type, d, SumMode::hopper}, a.data(), b.data(), found.data(), simd);
          for (std::size_t e = 0; e < found.size(); ++e)
            ASSERT_EQ(bits(found[e]), bits(expected[e]))
                << name(of.type) << " " << low << " to " << high << ", element " << e;
        }
      }
    }
  }
}

// An infinity or NaN in A, B or C changes the elements that it contributes to, and no others.
TEST(Mma, SpecialNumbersStayInTheirRowAndColumn) {
  const int m = 16, n = 24, k = 16;
  const float inf = std::numeric_limits<float>::infinity();
  for (const float special : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> a(16 * 16, 0.5f), b(16 * 24, 3.0f), c(16 * 24, 1.0f);
    const MatrixProduct product{m, n, k, Type::bf16, Type::bf16, Type::f32, SumMode::hopper};
    for (const Simd simd : simds()) {
      std::vector<float> x = a, y = b, d = c;
      x[5 * 16 + 3] = special;  // row 5
      y[7 * 24 + 9] = special;  // column 9
      d[2 * 24 + 4] = special;
      multiply_add(product, x.data(), y.data(), d.data(), simd);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          const float found = d[static_cast<std::size_t>(i * n + j)];
          if (i == 5 || j == 9 || (i == 2 && j == 4)) {
            EXPECT_TRUE(std::isnan(special) ? std::isnan(found) : found == special) << i << " " << j;
          } else {
            EXPECT_EQ(found, 25.0f) << i << " " << j;
          }
        }
      }
    }
  }
}

// Wraps, or saturates: 16 * 127 * 127 added to nearly 2^31.
TEST(Mma, IntegersWrapUnlessSatfiniteClampsThem) {
  const Mma wraps{word_of("m16n8k16", "s32", "s8", "s8", "s32"), {16, 8, 16}, Type::s8, Type::s8, Type::s32};
  const Mma clamps{
      word_of("m16n8k16", "s32", "s8", "s8", "s32", "satfinite"), {16, 8, 16}, Type::s8, Type::s8, Type::s32};
  const auto of = [](const Mma& mma, int a, int c) {
    return run_mma(
        mma, [a](int, int) { return a; }, [](int, int) { return 127; }, [c](int, int) { return c; }, SumMode::seq,
        Simd::baseline)[5];
  };
  EXPECT_EQ(of(wraps, 127, 0x7fffffff), static_cast<double>(static_cast<std::int32_t>(0x7fffffffu + 258064u)));
  EXPECT_EQ(of(clamps, 127, 0x7fffffff), 0x7fffffff);
  EXPECT_EQ(of(clamps, -127, std::numeric_limits<std::int32_t>::min()), std::numeric_limits<std::int32_t>::min());
}

TEST(Mma, OneBitCountsDifferencesOrCommonOnes) {
  for (const std::string& shape : {std::string("m8n8k128"), std::string("m16n8k128"), std::string("m16n8k256")}) {
    const Shape s{shape[1] == '8' ? 8 : 16, 8, shape.back() == '6' ? 256 : 128};
    for (const bool both_ones : {false, true}) {
      const Mma mma{"mma.sync.aligned." + shape + ".row.col.s32.b1.b1.s32." + (both_ones ? "and" : "xor") + ".popc", s,
                    Type::b1, Type::b1, Type::s32};
      const auto a = [](int i, int k) { return (i * 7 + k * k) % 3 == 0 ? 1 : 0; };
      const auto b = [](int k, int n) { return (n * 5 + k * 11) % 4 < 2 ? 1 : 0; };
      const Tile d = run_mma(
          mma, a, b, [](int i, int n) { return i - n; }, SumMode::seq, Simd::baseline);
      for (int i = 0; i < s.m; ++i) {
        for (int n = 0; n < 8; ++n) {
          int expected = i - n;
          for (int k = 0; k < s.k; ++k) expected += both_ones ? (a(i, k) & b(k, n)) : (a(i, k) ^ b(k, n));
          ASSERT_EQ(d[static_cast<std::size_t>(8 * i + n)], expected) << mma.word << " " << i << " " << n;
        }
      }
    }
  }
}

// Infinities dominate numbers, and NaN and inf - inf are the canonical NaN in every mode.
TEST(Mma, InfinityAndNan) {
  const Mma mma{word_of("m16n8k16", "f32", "bf16", "bf16", "f32"), {16, 8, 16}, Type::bf16, Type::bf16, Type::f32};
  const double inf = std::numeric_limits<double>::infinity();
  for (const SumMode sum : {SumMode::seq, SumMode::exact, SumMode::hopper}) {
    for (const Simd simd : simds()) {
      const auto of = [&](double first, double second) {
        const Tile d = run_mma(
            mma, [&](int, int k) { return k == 3   ? first
                                          : k == 9 ? second
                                                   : 0.0; }, [](int, int) { return 1.0; },
            [](int, int) { return 1.0; }, sum, simd);
        return bits(static_cast<float>(d[19]));
      };
      EXPECT_EQ(of(inf, 2), 0x7f800000u);
      EXPECT_EQ(of(-inf, 2), 0xff800000u);
      EXPECT_EQ(of(inf, -inf), 0x7fffffffu);
      EXPECT_EQ(of(std::numeric_limits<double>::quiet_NaN(), 1), 0x7fffffffu);
    }
  }
}

TEST(Movmatrix, RowsBecomeColumns) {
  Lanes a{};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    a[lane] = (16 * g + 2 * t) | (16 * g + 2 * t + 1) << 16;  // element (row, column) is 16 row + column
  }
  const Outcome outcome = run({.word = "movmatrix.sync.aligned.m8n8.trans.b16", .in = {a}});
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    EXPECT_EQ(outcome.d[0][lane], (16 * (2 * t) + g) | (16 * (2 * t + 1) + g) << 16) << lane;
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::mma_test
