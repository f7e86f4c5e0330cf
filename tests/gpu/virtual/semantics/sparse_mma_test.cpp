// mma.sp: random sparse tiles in registers, compared with a plain loop over the dense tile. Which lane's metadata describes
// which elements is written here again, from the figures of the PTX ISA ("Matrix Fragments for sparse mma").
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/semantics/matrix_product.h"
#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::sparse_mma_test {
namespace {

// Who holds the metadata of a shape: of the lanes 4 g + t, those with t / `lanes` == selector, `lanes` of each four.
enum class Held : std::uint8_t {
  rows_in_halves,  // lane: columns [t % lanes * columns, ..) of row g in bits 0 to 15, of row g + 8 in bits 16 to 31
  rows_by_lane,    // lane: columns [t % lanes / 2 * columns, ..) of row g + 8 (t % 2)
};
struct SparseShape {
  int k = 0;
  const char* a;
  const char* b;
  const char* d;
  int chunk = 4;    // elements that four bits describe
  int columns = 0;  // that one lane describes in a row
  int lanes = 1;
  Held held = Held::rows_in_halves;
  int e_bits = 16;  // of an element of A and B
};
const SparseShape kShapes[] = {
    {16, "f16", "f16", "f32", 4, 16, 1, Held::rows_in_halves, 16},
    {16, "f16", "f16", "f16", 4, 16, 1, Held::rows_in_halves, 16},
    {32, "f16", "f16", "f32", 4, 16, 2, Held::rows_in_halves, 16},
    {32, "f16", "f16", "f16", 4, 16, 2, Held::rows_in_halves, 16},
    {16, "bf16", "bf16", "f32", 4, 16, 1, Held::rows_in_halves, 16},
    {32, "bf16", "bf16", "f32", 4, 16, 2, Held::rows_in_halves, 16},
    {8, "tf32", "tf32", "f32", 2, 8, 1, Held::rows_in_halves, 32},
    {16, "tf32", "tf32", "f32", 2, 8, 2, Held::rows_in_halves, 32},
    {64, "e4m3", "e5m2", "f32", 4, 32, 4, Held::rows_by_lane, 8},
    {64, "e5m2", "e4m3", "f32", 4, 32, 4, Held::rows_by_lane, 8},
    {32, "s8", "s8", "s32", 4, 32, 2, Held::rows_by_lane, 8},
    {32, "u8", "s8", "s32", 4, 32, 2, Held::rows_by_lane, 8},
    {64, "s8", "u8", "s32", 4, 32, 4, Held::rows_by_lane, 8},
    {64, "s4", "s4", "s32", 8, 64, 2, Held::rows_by_lane, 4},
    {128, "s4", "u4", "s32", 8, 64, 4, Held::rows_by_lane, 4},
    {128, "u4", "s4", "s32", 8, 64, 4, Held::rows_by_lane, 4},
};

std::string word_of(const SparseShape& s, bool ordered) {
  return std::string("mma.sp") + (ordered ? "::ordered_metadata" : "") + ".sync.aligned.m16n8k" + std::to_string(s.k) +
         ".row.col." + s.d + "." + s.a + "." + s.b + "." + s.d;
}

// The bits of a small integer in a type.
std::uint64_t encode(const std::string& type, int x) {
  if (type == "f32" || type == "tf32") return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (type == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
  const auto small = [&](int fraction, int bias, int sign) -> std::uint64_t {
    if (x == 0) return 0;
    int exponent = 0;
    const double part = std::frexp(std::abs(x), &exponent);
    return static_cast<std::uint64_t>(x < 0 ? 1 : 0) << sign |
           static_cast<std::uint64_t>(exponent - 1 + bias) << fraction |
           static_cast<std::uint64_t>((2 * part - 1) * (1 << fraction));
  };
  if (type == "f16") return small(10, 15, 15);
  if (type == "e4m3") return small(3, 7, 7);
  if (type == "e5m2") return small(2, 15, 7);
  return static_cast<std::uint64_t>(std::int64_t{x}) & (type[1] == '4' ? 0xfu : type == "s32" ? 0xffffffffu : 0xffu);
}

struct Tiles {
  std::vector<int> stored, columns;  // [16][k / 2]
  std::vector<std::uint32_t> four;   // [16][k / chunk]
  std::vector<int> b, c;             // [k][8], [16][8]
};

// Two different indices of each chunk, in descending order for some chunks if the metadata need not be ordered.
Tiles random_tiles(const SparseShape& s, bool ordered, Random& random) {
  Tiles t;
  const auto below = [&](int n) { return static_cast<int>(random.next() % static_cast<std::uint64_t>(n)); };
  const auto number = [&](const char* type) { return below(type[0] == 'u' ? 4 : 5) - (type[0] == 'u' ? 0 : 2); };
  for (int row = 0; row < 16; ++row) {
    for (int chunk = 0; chunk < s.k / s.chunk; ++chunk) {
      int first = below(4), second = (first + 1 + below(3)) % 4;
      if ((ordered || s.chunk == 2) && first > second) std::swap(first, second);
      if (s.chunk == 2) first = 2 * below(2), second = first + 1;
      t.four.push_back(static_cast<std::uint32_t>(first | second << 2));
      const int base = chunk * s.chunk;
      if (s.chunk == 2) {
        t.columns.push_back(base + first / 2);
      } else if (s.chunk == 4) {
        t.columns.insert(t.columns.end(), {base + first, base + second});
      } else {
        t.columns.insert(t.columns.end(),
                         {base + 2 * first, base + 2 * first + 1, base + 2 * second, base + 2 * second + 1});
      }
    }
  }
  for (int i = 0; i < 16 * s.k / 2; ++i) t.stored.push_back(number(s.a));
  for (int i = 0; i < 8 * s.k; ++i) t.b.push_back(number(s.b));
  for (int i = 0; i < 128; ++i) t.c.push_back(below(9) - 4);
  return t;
}

// Registers of packed elements: at(e, r, g, t) is element e of register r.
template <class At>
std::vector<Lanes> fragment(const SparseShape& s, const char* type, int count, const At& at) {
  const int width = std::string(type) == "f16"                                 ? 16
                    : std::string(type) == "f32" || std::string(type) == "s32" ? 32
                                                                               : s.e_bits;
  std::vector<Lanes> out(static_cast<std::size_t>(count));
  for (int r = 0; r < count; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < 32 / width; ++e)
        out[static_cast<std::size_t>(r)][static_cast<std::size_t>(lane)] |= encode(type, at(e, r, lane / 4, lane % 4))
                                                                            << (e * width);
    }
  }
  return out;
}

Lanes metadata_of(const SparseShape& s, const Tiles& t, int selector, Random& random) {
  Lanes words{};
  const int chunks = s.k / s.chunk, of_lane = s.columns / s.chunk;
  for (int lane = 0; lane < 32; ++lane) {
    std::uint64_t& word = words[static_cast<std::size_t>(lane)];
    word = random.next() & 0xffffffffu;  // of a lane that is not selected
    const int g = lane / 4, of_four = lane % 4;
    if (of_four / s.lanes != selector) continue;
    word = 0;
    const int place = of_four % s.lanes;
    for (int i = 0; i < 8; ++i) {  // four bits each
      const bool halves = s.held == Held::rows_in_halves;
      const int row = halves ? g + 8 * (i / 4) : g + 8 * (place % 2);
      const int chunk = halves ? place * of_lane + i % 4 : place / 2 * of_lane + i;
      word |= std::uint64_t{t.four[static_cast<std::size_t>(row * chunks + chunk)]} << (4 * i);
    }
  }
  return words;
}

Case case_of(const SparseShape& s, const Tiles& t, bool ordered, int selector, Random& random) {
  const auto at = [](const std::vector<int>& m, int i) { return m[static_cast<std::size_t>(i)]; };
  Case x;
  x.word = word_of(s, ordered);
  const auto add = [&x](const std::vector<Lanes>& more) { x.in.insert(x.in.end(), more.begin(), more.end()); };
  const int per = 32 / s.e_bits, half_k = s.k / 2;
  add(fragment(s, s.a, 16 * half_k / (32 * per), [&](int e, int r, int g, int lane) {
    return at(t.stored, (g + 8 * (r % 2)) * half_k + lane * per + e + 4 * per * (r / 2));
  }));
  add(fragment(s, s.b, 8 * s.k / (32 * per),
               [&](int e, int r, int g, int lane) { return at(t.b, (lane * per + e + 4 * per * r) * 8 + g); }));
  const bool halves = std::string(s.d) == "f16";
  add(fragment(s, s.d, halves ? 2 : 4, [&](int e, int i, int g, int lane) {
    return halves ? at(t.c, (g + 8 * i) * 8 + 2 * lane + e) : at(t.c, (g + 8 * (i / 2)) * 8 + 2 * lane + i % 2);
  }));
  add({metadata_of(s, t, selector, random), all(static_cast<std::uint64_t>(selector))});
  return x;
}

double result_at(const SparseShape& s, const Outcome& outcome, int row, int column) {
  const bool halves = std::string(s.d) == "f16";
  const int lane = 4 * (row % 8) + column / 2, i = halves ? row / 8 : 2 * (row / 8) + column % 2;
  const std::uint64_t word = outcome.d[static_cast<std::size_t>(i)][static_cast<std::size_t>(lane)];
  if (halves) return float_of_f16_bits(static_cast<std::uint16_t>(word >> (16 * (column % 2))));
  return std::string(s.d) == "s32" ? static_cast<std::int32_t>(word) : double{as_float(word)};
}

TEST(SparseMma, EveryShapeAndSelectorMultipliesTheDenseTileThatTheMetadataDescribes) {
  Random random{11};
  for (const SparseShape& s : kShapes) {
    for (const bool ordered : {false, true}) {
      for (int selector = 0; selector < 4 / s.lanes; ++selector) {
        for (const SumMode sum : {SumMode::seq, SumMode::exact, SumMode::hopper}) {
          const Tiles t = random_tiles(s, ordered, random);
          std::vector<int> dense(static_cast<std::size_t>(16 * s.k));
          for (int i = 0; i < 16 * s.k / 2; ++i)
            dense[static_cast<std::size_t>(i / (s.k / 2) * s.k + t.columns[static_cast<std::size_t>(i)])] =
                t.stored[static_cast<std::size_t>(i)];
          Case x = case_of(s, t, ordered, selector, random);
          x.sum = sum;
          const Outcome outcome = run(x);
          for (int row = 0; row < 16; ++row) {
            for (int column = 0; column < 8; ++column) {
              int expected = t.c[static_cast<std::size_t>(8 * row + column)];
              for (int k = 0; k < s.k; ++k)
                expected +=
                    dense[static_cast<std::size_t>(row * s.k + k)] * t.b[static_cast<std::size_t>(8 * k + column)];
              ASSERT_EQ(result_at(s, outcome, row, column), expected)
                  << x.word << " selector " << selector << " D(" << row << ", " << column << ")";
            }
          }
        }
      }
    }
  }
}

// A dense product with zeros in A would give NaN: 0 * inf.
TEST(SparseMma, RowsOfBThatNoMetadataSelectsAreNotRead) {
  Random random{12};
  for (const SparseShape& s : kShapes) {
    if (std::string(s.d) == "s32") continue;
    Tiles t = random_tiles(s, true, random);
    const int chunks = s.k / s.chunk;
    for (int i = 0; i < 16 * chunks; ++i)
      t.four[static_cast<std::size_t>(i)] = t.four[static_cast<std::size_t>(i % chunks)];
    for (int i = 0; i < 16 * s.k / 2; ++i)
      t.columns[static_cast<std::size_t>(i)] = t.columns[static_cast<std::size_t>(i % (s.k / 2))];
    Case x = case_of(s, t, true, 0, random);
    const int per = 32 / s.e_bits, a_registers = 16 * (s.k / 2) / (32 * per);
    const std::string type = s.b;
    const std::uint64_t nan = type == "f16" ? 0x7fff : type == "bf16" ? 0x7fc0 : type == "tf32" ? 0x7fc00000 : 0x7f;
    for (int k = 0; k < s.k; ++k) {
      if (std::find(t.columns.begin(), t.columns.begin() + s.k / 2, k) != t.columns.begin() + s.k / 2) continue;
      const int r = k / (4 * per), lane = k % (4 * per) / per, e = k % per;
      for (int column = 0; column < 8; ++column) {
        std::uint64_t& word =
            x.in[static_cast<std::size_t>(a_registers + r)][static_cast<std::size_t>(4 * column + lane)];
        word |= nan << (e * s.e_bits);
      }
    }
    const Outcome outcome = run(x);
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column)
        ASSERT_FALSE(std::isnan(result_at(s, outcome, row, column))) << x.word << " " << row << " " << column;
    }
  }
}

TEST(SparseMma, IntegersWrapUnlessSatfiniteClampsThem) {
  Random random{13};
  SparseShape s = kShapes[10];
  Tiles t = random_tiles(s, true, random);
  std::fill(t.stored.begin(), t.stored.end(), 127);
  std::fill(t.b.begin(), t.b.end(), 127);
  std::fill(t.c.begin(), t.c.end(), std::numeric_limits<int>::max());
  Case x = case_of(s, t, true, 0, random);
  EXPECT_EQ(result_at(s, run(x), 3, 5), static_cast<std::int32_t>(0x7fffffffu + 16u * 127 * 127));
  x.word.insert(x.word.find(".s32."), ".satfinite");
  EXPECT_EQ(result_at(s, run(x), 3, 5), std::numeric_limits<int>::max());
}

TEST(SparseMetadata, AcceptsTwoDifferentIndicesAndOfTf32TwoValues) {
  for (std::uint32_t four = 0; four < 16; ++four) {
    const std::uint32_t first = four % 4, second = four / 4;
    EXPECT_EQ(is_valid_metadata(16, four, false), first != second) << four;
    EXPECT_EQ(is_valid_metadata(4, four, true), first < second) << four;
    EXPECT_EQ(is_valid_metadata(32, four, false), four == 4 || four == 14) << four;
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::sparse_mma_test
