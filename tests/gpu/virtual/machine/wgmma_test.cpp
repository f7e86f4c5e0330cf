// wgmma.mma_async: every type, every N, every layout of a descriptor, signs and scales, compared with a plain loop.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "tests/gpu/virtual/machine/one_kernel.h"
#include "tests/gpu/virtual/machine/wgmma_product.h"

namespace kvscope::ptx::test::wgmma_test {
namespace {

using ::testing::IsEmpty;

std::vector<int> legal_n(Type d) {
  std::vector<int> all;
  for (int n = 8; n <= 256; n += 8) {
    if (d != Type::s32 || n == 8 || n == 24 || n % 16 == 0) all.push_back(n);
  }
  return all;
}

struct Types {
  Type d, a, b;
};
std::vector<Types> every_type() {
  std::vector<Types> all{{Type::f32, Type::f16, Type::f16},
                         {Type::f16, Type::f16, Type::f16},
                         {Type::f32, Type::bf16, Type::bf16},
                         {Type::f32, Type::tf32, Type::tf32},
                         {Type::s32, Type::b1, Type::b1}};
  for (const Type a : {Type::e4m3, Type::e5m2}) {
    for (const Type b : {Type::e4m3, Type::e5m2}) {
      for (const Type d : {Type::f32, Type::f16}) all.push_back({d, a, b});
    }
  }
  for (const Type a : {Type::s8, Type::u8}) {
    for (const Type b : {Type::s8, Type::u8}) all.push_back({Type::s32, a, b});
  }
  return all;
}

std::string title(const WgmmaProduct& p) {
  return std::string(name(p.d)) + "." + std::string(name(p.a)) + "." + std::string(name(p.b)) + " n " +
         std::to_string(p.n) + " rows of " + std::to_string(p.row) + (p.a_along_m ? ", A along m" : "") +
         (p.b_along_n ? ", B along n" : "") + (p.a_in_registers ? ", A in registers" : "") + " signs " +
         std::to_string(p.sign_a) + " " + std::to_string(p.sign_b) + (p.adds ? "" : ", D = A B");
}

void expect_product(const WgmmaProduct& p) {
  SCOPED_TRACE(title(p));
  const WgmmaOutcome outcome = run_wgmma(p);
  EXPECT_THAT(outcome.messages, IsEmpty());
  std::vector<double> expected;
  for (int i = 0; i < kWgmmaRows; ++i) {
    for (int j = 0; j < p.n; ++j) {
      double sum = p.adds ? i - j : 0;
      for (int k = 0; k < wgmma_k(p.a); ++k) {
        sum += p.sign_a * integer_a(p.a, i, k) * p.sign_b * integer_b(p.b, k, j);
      }
      expected.push_back(sum);
    }
  }
  EXPECT_EQ(outcome.d, expected);
}

// The other parameters vary with N, so each N is tested with different ones.
WgmmaProduct turn(const Types& types, int n, int i) {
  constexpr int kRows[] = {128, 16, 64, 32};
  WgmmaProduct p{.n = n, .d = types.d, .a = types.a, .b = types.b, .row = kRows[i % 4]};
  const bool major = types.a == Type::f16 || types.a == Type::bf16;
  p.a_in_registers = i % 3 == 2;
  p.a_along_m = major && !p.a_in_registers && i % 5 < 2;
  p.b_along_n = major && i % 7 < 4;
  if (types.d != Type::s32) p.sign_a = i % 11 < 5 ? -1 : 1, p.sign_b = i % 13 < 6 ? -1 : 1;
  p.adds = i % 6 != 4;
  p.scale_by_register = i % 2 == 0;
  p.policy = i % 4 == 3 ? Policy::early : Policy::late;
  return p;
}

TEST(Wgmma, EveryTypeAndWidthIsTheProductOfAPlainLoop) {
  int i = 0;
  for (const Types& types : every_type()) {
    // Mixed fp8 types and mixed signs differ only in decoding: they are tested at three widths.
    const bool sibling = (bits(types.a) == 8 && (types.a == types.b || types.a == Type::u8 || types.d == Type::f16));
    for (const int n : sibling ? std::vector<int>{8, 96, 256} : legal_n(types.d)) expect_product(turn(types, n, i++));
  }
}

TEST(Wgmma, EveryLayoutOfBothOperandsSignAndScale) {
  for (const Types& types : every_type()) {
    const bool major = types.a == Type::f16 || types.a == Type::bf16;
    for (const int row : {16, 32, 64, 128}) {
      for (int flags = 0; flags < 8; ++flags) {
        WgmmaProduct p{.n = 24, .d = types.d, .a = types.a, .b = types.b, .row = row};
        p.a_along_m = (flags & 1) != 0, p.b_along_n = (flags & 2) != 0, p.a_in_registers = (flags & 4) != 0;
        if ((!major && (flags & 3) != 0) || (p.a_in_registers && p.a_along_m)) continue;
        expect_product(p);
      }
    }
    for (int flags = 0; flags < 8; ++flags) {
      WgmmaProduct p{.n = 8, .d = types.d, .a = types.a, .b = types.b};
      if (types.d != Type::s32) p.sign_a = (flags & 1) != 0 ? -1 : 1, p.sign_b = (flags & 2) != 0 ? -1 : 1;
      p.adds = (flags & 4) != 0;
      p.scale_by_register = flags % 3 == 0;
      expect_product(p);
    }
  }
}

// The dense product of a sparse A: b_at(k, j) of the columns that the metadata names.
void expect_sparse_product(const WgmmaProduct& p) {
  SCOPED_TRACE(title(p) + " selector " + std::to_string(p.selector));
  const WgmmaOutcome outcome = run_wgmma(p);
  EXPECT_THAT(outcome.messages, IsEmpty());
  std::vector<double> expected;
  for (int i = 0; i < kWgmmaRows; ++i) {
    for (int j = 0; j < p.n; ++j) {
      double sum = p.adds ? i - j : 0;
      for (int x = 0; x < wgmma_k(p.a); ++x)
        sum += p.sign_a * integer_a(p.a, i, x) * p.sign_b * integer_b(p.b, sparse_column(p.a, i, x), j);
      expected.push_back(sum);
    }
  }
  EXPECT_EQ(outcome.d, expected);
}

TEST(Wgmma, ASparseAMultipliesTheColumnsThatItsMetadataNames) {
  int i = 0;
  for (const Types& types : every_type()) {
    if (types.a == Type::b1) continue;
    const bool major = types.a == Type::f16 || types.a == Type::bf16;
    for (const int n : {8, 24, 96, 256}) {
      for (int selector = 0; selector < (bits(types.a) == 8 ? 1 : 2); ++selector) {
        constexpr int kRows[] = {128, 64, 16};
        WgmmaProduct p{.n = n, .d = types.d, .a = types.a, .b = types.b, .row = kRows[i % 3]};
        p.sparse = true;
        p.selector = selector;
        p.a_in_registers = i % 4 == 1;
        p.a_along_m = major && !p.a_in_registers && i % 5 < 2;
        p.b_along_n = major && i % 7 < 4;
        if (types.d != Type::s32) p.sign_a = i % 2 == 0 ? -1 : 1;
        p.adds = i % 6 != 4;
        p.scale_by_register = i % 2 == 0;
        p.policy = i % 4 == 3 ? Policy::early : Policy::late;
        expect_sparse_product(p);
        ++i;
      }
    }
  }
}

TEST(Wgmma, ASparseBNeedsRowsOfSixtyFourBytes) {
  WgmmaProduct p{.n = 8, .row = 32};
  p.sparse = true;
  EXPECT_THAT(run_wgmma(p).messages, ::testing::ElementsAre(::testing::HasSubstr("a row of 32 B holds no 64 B of k")));
}

TEST(Wgmma, DescriptorsMayBeNumbersInTheText) {
  for (const bool in_registers : {false, true}) {
    WgmmaProduct p;
    p.a_in_registers = in_registers, p.descriptors_in_text = true;
    expect_product(p);
  }
}

// Row by row, as 32 bits: checksums from independent programs.
TEST(Wgmma, ChecksumsOfTheIntegerVectors) {
  struct Golden {
    int n;
    Types types;
    std::uint64_t fnv;
  };
  for (const auto& [n, types, golden] : {Golden{8, {Type::f32, Type::bf16, Type::bf16}, 0xf01bd9661e934f71u},
                                         Golden{16, {Type::f32, Type::e4m3, Type::e5m2}, 0x2c209bc511a60a05u},
                                         Golden{16, {Type::s32, Type::s8, Type::s8}, 0x6995e629a7a76ce8u},
                                         Golden{64, {Type::f32, Type::f16, Type::f16}, 0x164126ae312ca430u},
                                         Golden{256, {Type::f32, Type::bf16, Type::bf16}, 0xaff893c2654a1084u}}) {
    std::vector<std::uint32_t> words;
    for (const double x : run_wgmma({.n = n, .d = types.d, .a = types.a, .b = types.b}).d) {
      words.push_back(types.d == Type::s32 ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x))
                                           : std::bit_cast<std::uint32_t>(static_cast<float>(x)));
    }
    const std::vector<std::byte> bytes = bytes_of(words);
    EXPECT_EQ(fnv(bytes.data(), bytes.size()), golden) << n;
  }
}

// Operands are kept as numbers from product to product. Two products with equal descriptors: all elements are 1, then 2.
TEST(Wgmma, AnOperandThatChangesBetweenProductsIsReadAgain) {
  std::string body = "mov.u32 %r3, s; shl.b32 %r1, %r0, 5; add.u32 %r1, %r1, %r3;\n";
  for (const std::string_view ones_or_twos : {"0x3f803f80", "0x40004000"}) {
    body += "bar.sync 0; mov.b32 %r2, " + std::string(ones_or_twos) + ";\n";
    body += "st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.b32 [%r1+16], {%r2, %r2, %r2, %r2};\n";
    body += "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n";
    body +=
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, 0x1000080040, 0x1000080040, 0, 1, "
        "1, 0, 0;\n";
    body += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
    body += "st.global.f32 [%rd0], %f0; add.s64 %rd0, %rd0, 4;\n";
  }
  const Ran ran = run({.body = body, .threads = 128});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.at<float>(0), 16.0F);
  EXPECT_EQ(ran.at<float>(1), 64.0F);
}

// Wraps, or saturates.
TEST(Wgmma, IntegersWrapUnlessSatfiniteClampsThem) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max(), kLeast = std::numeric_limits<std::int32_t>::min();
  for (const bool saturate : {false, true}) {
    for (const bool up : {false, true}) {
      const WgmmaProduct p{.n = 8,
                           .d = Type::s32,
                           .a = Type::s8,
                           .b = Type::u8,
                           .saturate = saturate,
                           .a_at = [up](int, int) { return up ? 127 : -128; },
                           .b_at = [](int, int) { return 255; },
                           .c_at = [&](int, int) { return up ? kMost - 1 : kLeast + 1; }};
      const double sum = up ? 127.0 * 255 * 32 - 1 : -128.0 * 255 * 32 + 1;  // past the end
      const double wrapped = up ? kLeast + sum - 1 : kMost + sum + 1;
      EXPECT_EQ(run_wgmma(p).d[17], saturate ? (up ? kMost : kLeast) : wrapped);
    }
  }
}

// One element in the three orders of adding: seven sums, those of row i and column i.
TEST(Wgmma, TheThreeWaysOfAddingDifferWhereTheyShould) {
  struct Sum {
    double c;
    std::function<double(int)> a, b;
    std::uint32_t seq, exact, hopper;
  };
  const auto always = [](double x) { return [x](int) { return x; }; };
  const auto first = [](double x) { return [x](int k) { return k == 0 ? x : 0.0; }; };
  const auto small_then_one = [](int k) { return k < 15 ? 0x1p-12 : 1.0; };
  const std::vector<Sum> sums{
      {0x1p24, always(1), always(1), 0x4b800000, 0x4b800008, 0x4b800008},
      {1, always(0x1p-12), always(0x1p-12), 0x3f800000, 0x3f800008, 0x3f800008},
      {1, always(0x1p-13), always(0x1p-13), 0x3f800000, 0x3f800002, 0x3f800000},
      {1, first(1.5 * 0x1p-11), always(0x1p-12), 0x3f800002, 0x3f800002, 0x3f800001},
      {-1, first(-1.5 * 0x1p-11), always(0x1p-12), 0xbf800002, 0xbf800002, 0xbf800001},
      {0, small_then_one, small_then_one, 0x3f800008, 0x3f800008, 0x3f800007},
      {0x1p-30, [](int k) { return k == 0   ? 1.0
                                   : k == 1 ? -1.0
                                            : 0.0; }, always(1), 0, 0x30800000, 0}};
  const auto sum_at = [&](int i) -> const Sum& { return sums[static_cast<std::size_t>(i) % sums.size()]; };
  for (const Type type : {Type::f16, Type::bf16}) {
    for (const bool registers : {false, true}) {
      for (const SumMode mode : {SumMode::seq, SumMode::exact, SumMode::hopper}) {
        WgmmaProduct p{.n = 8, .a = type, .b = type, .a_in_registers = registers, .sum = mode};
        p.a_at = [&](int i, int k) { return sum_at(i).a(k); };
        p.b_at = [&](int k, int j) { return sum_at(j).b(k); };
        p.c_at = [&](int i, int) { return sum_at(i).c; };
        const std::vector<double> d = run_wgmma(p).d;
        for (int i = 0; i < kWgmmaRows; ++i) {
          const int j = i % static_cast<int>(sums.size());
          const Sum& sum = sum_at(i);
          EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(d[static_cast<std::size_t>(i * 8 + j)])),
                    mode == SumMode::seq     ? sum.seq
                    : mode == SumMode::exact ? sum.exact
                                             : sum.hopper)
              << name(type) << " mode " << static_cast<int>(mode) << " sum " << j;
        }
      }
    }
  }
}

// In mode seq each product is rounded to f32, then added, on every instruction set: also where a fused operation would round
// otherwise, because a product is subnormal, zero or infinite. Some sums are NaN.
TEST(Wgmma, SumsInOrderAreThoseOfAPlainLoopOnEveryInstructionSet) {
  struct Numbers {
    Type type;
    int bits, range;  // of a significand; exponents from -range to range
  };
  int turn = 0;
  for (const Numbers& numbers : {Numbers{Type::f16, 11, 14},
                                 {Type::bf16, 8, 4},
                                 {Type::bf16, 8, 75},
                                 {Type::bf16, 8, 127},
                                 {Type::tf32, 11, 60},
                                 {Type::tf32, 11, 120},
                                 {Type::e4m3, 4, 6},
                                 {Type::e5m2, 3, 14}}) {
    for (const int n : {8, 24, 128}) {
      const int k = wgmma_k(numbers.type);
      std::mt19937 random(static_cast<unsigned>(++turn));
      const auto some = [&](int rows, int columns, int significant, int range) {
        std::vector<float> all;
        for (int i = 0; i < rows * columns; ++i) {
          const unsigned half = 1U << (significant - 1);
          const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * range + 1)) - range;
          const float x = std::ldexp(static_cast<float>(half + random() % half), exponent - significant + 1);
          all.push_back(random() % 16 == 0 ? 0.0F : random() % 2 == 0 ? x : -x);
        }
        return all;
      };
      const std::vector<float> a = some(kWgmmaRows, k, numbers.bits, numbers.range);
      const std::vector<float> b = some(k, n, numbers.bits, numbers.range);
      const std::vector<float> c = some(kWgmmaRows, n, 24, std::min(2 * numbers.range, 126));
      const auto at = [](const std::vector<float>& all, int columns, int row, int column) {
        return all[static_cast<std::size_t>(row * columns + column)];
      };
      WgmmaProduct p{.n = n, .a = numbers.type, .b = numbers.type};
      const bool major = bits(numbers.type) == 16;
      p.a_in_registers = turn % 3 == 0;
      p.a_along_m = major && !p.a_in_registers && turn % 2 == 0;
      p.b_along_n = major && turn % 4 < 2;
      p.sign_b = turn % 5 == 0 ? -1 : 1;
      p.adds = turn % 7 != 6;
      p.a_at = [&](int i, int x) { return double{at(a, k, i, x)}; };
      p.b_at = [&](int x, int j) { return double{at(b, n, x, j)}; };
      p.c_at = [&](int i, int j) { return double{at(c, n, i, j)}; };
      std::vector<std::uint32_t> expected;
      for (int i = 0; i < kWgmmaRows; ++i) {
        for (int j = 0; j < n; ++j) {
          volatile float sum = p.adds ? at(c, n, i, j) : 0.0F;
          for (int x = 0; x < k; ++x) {
            const volatile float product = static_cast<float>(p.sign_b) * at(a, k, i, x) * at(b, n, x, j);
            sum = sum + product;
          }
          expected.push_back(std::isnan(sum) ? 0x7fffffffU : std::bit_cast<std::uint32_t>(static_cast<float>(sum)));
        }
      }
      for (const Simd simd : {Simd::baseline, Simd::avx2, Simd::avx512}) {
        if (simd > best_simd()) continue;
        p.simd = simd;
        std::vector<std::uint32_t> words;
        for (const double x : run_wgmma(p).d) words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(x)));
        EXPECT_EQ(words, expected) << title(p) << " range " << numbers.range << " on " << static_cast<int>(simd);
      }
    }
  }
}

// The text is valid PTX: if the assembler is installed, it accepts a kernel of every type.
TEST(Wgmma, TheAssemblerTakesTheTextOfEveryType) {
  const char* const home = std::getenv("CUDA_HOME");
  std::filesystem::path assembler;
  for (const std::string& folder :
       {std::string(home != nullptr ? home : "") + "/bin", std::string("/usr/local/cuda/bin")}) {
    if (assembler.empty() && std::filesystem::exists(folder + "/ptxas")) assembler = folder + "/ptxas";
  }
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in $CUDA_HOME/bin or /usr/local/cuda/bin";
  std::string text = ".version 8.4\n.target sm_90a\n.address_size 64\n";
  int number = 0;
  for (const Types& types : every_type()) {
    for (const int n : {8, 24, 128}) {
      WgmmaProduct p = turn(types, n, number);
      p.saturate = types.d == Type::s32 && types.a != Type::b1 && number % 2 == 0;
      text += wgmma_text(p, "k" + std::to_string(number++));
    }
  }
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "kvscope_wgmma.ptx";
  std::ofstream(file) << text;
  const std::string said = file.string() + ".said";
  const std::string command = assembler.string() + " -arch=sm_90a -O0 " + file.string() + " -o /dev/null 2> " + said;
  const int status = std::system(command.c_str());
  std::ostringstream words;
  words << std::ifstream(said).rdbuf();
  EXPECT_EQ(status, 0) << command << '\n' << words.str();
  std::filesystem::remove(file);
  std::filesystem::remove(said);
}

}  // namespace
}  // namespace kvscope::ptx::test::wgmma_test
