// Integer arithmetic: the values that the assembler computes from constants, and the laws against 128-bit integers.
#include <gtest/gtest.h>

#include "tests/core/ptx/rows/one_op.h"

namespace kvscope::ptx::testing {
namespace {

constexpr std::uint64_t kMinus1 = 0xffffffffu;

TEST(Integer, SumsWrapAndSatClampsAtBothEndsOfS32) {
  EXPECT_EQ(one("add.s32", {0x7fffffff, 1}), 0x80000000u);
  EXPECT_EQ(one("add.sat.s32", {0x7fffffff, 1}), 0x7fffffffu);
  EXPECT_EQ(one("add.sat.s32", {0x80000000, kMinus1}), 0x80000000u);
  EXPECT_EQ(one("sub.sat.s32", {0x80000000, 1}), 0x80000000u);
  EXPECT_EQ(one("sub.u16", {0, 1}), 0xffffu);
  EXPECT_EQ(one("add.u64", {0xffffffffffffffffu, 2}), 1u);
}

// Halves that a carry crosses, or that are multiplied unsigned, would show in the upper word.
TEST(Integer, ProductsOfTheTwoHalvesSignedAndUnsigned) {
  EXPECT_EQ(one("mul.lo.s32", {0x89abcdef, 0xfedcba98}), 0xad05ebe8u);
  EXPECT_EQ(one("mul.hi.s32", {0x89abcdef, 0xfedcba98}), 0x0086a1c9u);
  EXPECT_EQ(one("mul.hi.u32", {0x89abcdef, 0xfedcba98}), 0x890f2a50u);
  EXPECT_EQ(one("mul.wide.s16", {0xfff9, 300}), 0xfffff7ccu);
  EXPECT_EQ(one("mad.wide.s32", {0xffffffff, 3, 0x100000000u}), 0xfffffffdu);
  EXPECT_EQ(one("mad.hi.sat.s32", {0x40000000, 0x40000000, 0x7fffffff}), 0x7fffffffu);
}

}  // namespace
}  // namespace kvscope::ptx::testing
