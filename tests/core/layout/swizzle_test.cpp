#include "core/layout/swizzle.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace kvscope::swizzle_test {
namespace {

// Bit by bit, from the drawing: bit z of the result is bit z of the offset, flipped by the Y bit `shift` away from it.
std::int64_t by_bits(std::int64_t offset, int bits, int base, int shift) {
  std::int64_t result = 0;
  for (int bit = 0; bit < 62; ++bit) {
    std::int64_t value = offset >> bit & 1;
    const int lowest_z = base + (shift < 0 ? -shift : 0);
    if (bit >= lowest_z && bit < lowest_z + bits) value ^= offset >> (bit + shift) & 1;
    result |= value << bit;
  }
  return result;
}

template <class F>
std::string geometry_message(F f) {
  try {
    (void)f();
  } catch (const GeometryError& e) {
    return e.what();
  }
  return "no GeometryError";
}

TEST(SwizzleTest, ModesHaveTheirBytesAndNames) {
  // 16 bytes for no swizzle, not 0: every formula of a box works in chunks.
  EXPECT_EQ(bytes(SwizzleMode::none), 16);
  EXPECT_EQ(bytes(SwizzleMode::b32), 32);
  EXPECT_EQ(bytes(SwizzleMode::b64), 64);
  EXPECT_EQ(bytes(SwizzleMode::b128), 128);
  EXPECT_EQ(name(SwizzleMode::none), "no swizzle");
  EXPECT_EQ(name(SwizzleMode::b32), "32B swizzle");
  EXPECT_EQ(name(SwizzleMode::b64), "64B swizzle");
  EXPECT_EQ(name(SwizzleMode::b128), "128B swizzle");
  EXPECT_EQ(name(static_cast<SwizzleMode>(4)), "invalid swizzle");
}

TEST(SwizzleTest, GranularityIsTheModesBytesInElements) {
  const std::vector<std::pair<DType, std::vector<std::int64_t>>> table = {{DType::e4m3, {16, 32, 64, 128}},
                                                                          {DType::bf16, {8, 16, 32, 64}},
                                                                          {DType::f32, {4, 8, 16, 32}},
                                                                          {DType::i64, {2, 4, 8, 16}}};
  for (const auto& [dtype, row] : table) {
    for (std::size_t mode = 0; mode < row.size(); ++mode) {
      EXPECT_EQ(swizzle_granularity(dtype, static_cast<SwizzleMode>(mode)), row[mode]) << name(dtype) << " " << mode;
    }
  }
  EXPECT_THROW((void)swizzle_granularity(DType::e2m1, SwizzleMode::b128), UnsupportedError);
}

void expect_pairs(const Swizzle& s, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  for (const auto& [from, to] : pairs) EXPECT_EQ(s(from), to) << s.text() << " of " << from;
}

// The hardware modes on element offsets, written out.
TEST(SwizzleTest, WorkedOffsetsOfTheHardwareModes) {
  const Swizzle bf16_128 = make_swizzle(DType::bf16, SwizzleMode::b128);
  EXPECT_EQ(bf16_128, Swizzle(3, 3, 3));
  expect_pairs(bf16_128, {{0, 0}, {8, 8}, {64, 72}, {72, 64}, {128, 144}, {448, 504}, {512, 512}, {584, 576}});
  const Swizzle fp8_64 = make_swizzle(DType::e4m3, SwizzleMode::b64);
  EXPECT_EQ(fp8_64, Swizzle(2, 4, 3));
  expect_pairs(fp8_64, {{64, 64}, {128, 144}, {192, 208}, {256, 288}, {384, 432}, {400, 416}, {512, 512}});
  expect_pairs(Swizzle(3, 0, 3), {{7, 7}, {8, 9}, {16, 18}, {63, 56}});
  expect_pairs(Swizzle(3, 0, 4), {{15, 15}, {16, 17}, {31, 30}, {64, 68}, {127, 120}});
}

TEST(SwizzleTest, TheBaseOfAModeIsTheChunkInElements) {
  EXPECT_EQ(make_swizzle(DType::e4m3, SwizzleMode::b128), Swizzle(3, 4, 3));
  EXPECT_EQ(make_swizzle(DType::f32, SwizzleMode::b32), Swizzle(1, 2, 3));
  EXPECT_EQ(make_swizzle(DType::i64, SwizzleMode::b64), Swizzle(2, 1, 3));
  const Swizzle none = make_swizzle(DType::bf16, SwizzleMode::none);
  EXPECT_EQ(none.bits(), 0);
  for (std::int64_t offset = 0; offset < 5000; ++offset) EXPECT_EQ(none(offset), offset);
}

// Every small (bits, base, shift), with both directions of the shift. A mask on the wrong side of a negative shift
// still gives an involution, so the bits are also compared with the drawing of the header.
TEST(SwizzleTest, IsTheDrawnXorABijectionAndItsOwnInverseOverTheWholeGrid) {
  int grid = 0;
  for (int bits = 0; bits <= 4; ++bits) {
    for (int base = 0; base <= 4; ++base) {
      for (int shift = -5; shift <= 5; ++shift) {
        if (std::abs(shift) < bits) {
          EXPECT_THROW(Swizzle(bits, base, shift), GeometryError) << bits << "," << base << "," << shift;
          continue;
        }
        ++grid;
        const Swizzle s(bits, base, shift);
        ASSERT_EQ(s.size(), std::int64_t{1} << (bits + base + std::abs(shift)));
        EXPECT_EQ(s.cosize(), s.size());
        std::vector<bool> hit(static_cast<std::size_t>(s.size()));
        for (std::int64_t offset = 0; offset < s.size(); ++offset) {
          const std::int64_t to = s(offset);
          ASSERT_EQ(to, by_bits(offset, bits, base, shift)) << s.text() << " of " << offset;
          ASSERT_LT(to, s.size());
          ASSERT_EQ(s(to), offset);
          ASSERT_FALSE(hit[static_cast<std::size_t>(to)]);
          hit[static_cast<std::size_t>(to)] = true;
          ASSERT_EQ(s(offset + 3 * s.size()), to + 3 * s.size()) << "repeats after size()";
        }
      }
    }
  }
  EXPECT_EQ(grid, 5 * (11 + 10 + 8 + 6 + 4));
}

TEST(SwizzleTest, FarOffsetsKeepTheirHighBits) {
  const Swizzle s(3, 4, 3);
  const std::int64_t far = (std::int64_t{1} << 61) + 128;
  EXPECT_EQ(s(far), far + 16);
}

TEST(SwizzleTest, ImpossibleParametersAreRejectedTogether) {
  EXPECT_EQ(geometry_message([] { return Swizzle(3, 4, 2); }),
            "swizzle (3,4,2) rejected: shift: 2 moves 3 bits onto themselves: use at least 3 or at most -3");
  EXPECT_EQ(geometry_message([] { return Swizzle(-1, -2, 3); }),
            "swizzle (-1,-2,3) rejected, 2 faults:\n  bits: -1 is negative: use 0 or more\n"
            "  base: -2 is negative: use 0 or more");
  EXPECT_EQ(geometry_message([] { return Swizzle(20, 23, 20); }),
            "swizzle (20,23,20) rejected: bits + base + |shift| = 63 is outside [0, 63)");
  EXPECT_EQ(Swizzle(20, 22, 20).size(), std::int64_t{1} << 62);
  EXPECT_THROW(Swizzle(1, 0, -2147483647 - 1), GeometryError);
  EXPECT_THROW(Swizzle(2147483647, 2147483647, 2147483647), GeometryError);
}

TEST(SwizzleTest, RowsAndAccessesGiveTheirLogarithms) {
  EXPECT_EQ(make_swizzle(8, 64, 8), Swizzle(3, 3, 3));
  EXPECT_EQ(make_swizzle(4, 64, 16), Swizzle(2, 4, 2));
  EXPECT_EQ(make_swizzle(9, 100, 8), Swizzle(3, 3, 3)) << "rounded down";
  EXPECT_EQ(
      geometry_message([] { return make_swizzle(8, 64, 64); }),
      "swizzle of 8 rows of 64, 64 at a time rejected: access_size: 64 is not below half of a row: a row of 64 has one "
      "access");
  EXPECT_THROW((void)make_swizzle(8, 8, 4), GeometryError) << "3 row bits, but only 1 access bit to flip";
  EXPECT_EQ(geometry_message([] { return make_swizzle(0, 64, -8); }),
            "swizzle of 0 rows of 64, -8 at a time rejected, 2 faults:\n  num_rows: 0 is below 1\n"
            "  access_size: -8 is below 1");
}

TEST(SwizzleTest, PrintsItsThreeNumbers) {
  EXPECT_EQ(Swizzle(3, 4, 3).text(), "(3,4,3)");
  EXPECT_EQ(Swizzle(2, 0, -3).text(), "(2,0,-3)");
}

}  // namespace
}  // namespace kvscope::swizzle_test
