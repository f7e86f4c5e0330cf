// Integer arithmetic: the assembler's results for constants, and properties tested with 128-bit integers.
#include <gtest/gtest.h>

#include <bit>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::integer_test {
namespace {

constexpr std::uint64_t kMinus1 = 0xffffffffu;
__extension__ typedef __int128 Wide;

TEST(Integer, SumsWrapAndSatClampsAtBothEndsOfS32) {
  EXPECT_EQ(one("add.s32", {0x7fffffff, 1}), 0x80000000u);
  EXPECT_EQ(one("add.sat.s32", {0x7fffffff, 1}), 0x7fffffffu);
  EXPECT_EQ(one("add.sat.s32", {0x80000000, kMinus1}), 0x80000000u);
  EXPECT_EQ(one("sub.sat.s32", {0x80000000, 1}), 0x80000000u);
  EXPECT_EQ(one("sub.u16", {0, 1}), 0xffffu);
  EXPECT_EQ(one("add.u64", {0xffffffffffffffffu, 2}), 1u);
  EXPECT_EQ(one("add.u16x2", {0xffff0001, 0x0001ffff}), 0u);  // no carry crosses
}

TEST(Integer, ACarryGoesFromOneInstructionToTheNext) {
  Case c;
  c.word = "sub.cc.u32";
  c.in = {all(0), all(1)};
  const Outcome borrow = run(c);
  EXPECT_EQ(borrow.d[0][3], 0xffffffffu);
  EXPECT_EQ(borrow.p[3], 1u);
  c.word = "subc.u32";
  c.in = {all(5), all(2)};
  c.before = all(1);  // the incoming borrow
  EXPECT_EQ(run(c).d[0][3], 2u);
  c.before = all(0);
  EXPECT_EQ(run(c).d[0][3], 3u);
  c.word = "addc.cc.u64";
  c.in = {all(~0ull), all(0)};
  c.before = all(1);
  EXPECT_EQ(run(c).d[0][9], 0u);
  EXPECT_EQ(run(c).p[9], 1u);
  c.word = "mad.lo.cc.u32";
  c.in = {all(0xffffffff), all(0xffffffff), all(0xffffffff)};
  EXPECT_EQ(run(c).d[0][0], 0u);
  EXPECT_EQ(run(c).p[0], 1u);
  c.word = "madc.hi.u32";
  EXPECT_EQ(run(c).d[0][0], 0xfffffffeu);
  c.in[2] = all(0);
  EXPECT_EQ(run(c).d[0][0], 0xffffffffu);
}

// A carry between the halves, or an unsigned product of signed halves, would change the upper word.
TEST(Integer, ProductsOfTheTwoHalvesSignedAndUnsigned) {
  EXPECT_EQ(one("mul.lo.s32", {0x89abcdef, 0xfedcba98}), 0xad05ebe8u);
  EXPECT_EQ(one("mul.hi.s32", {0x89abcdef, 0xfedcba98}), 0x0086a1c9u);
  EXPECT_EQ(one("mul.hi.u32", {0x89abcdef, 0xfedcba98}), 0x890f2a50u);
  EXPECT_EQ(one("mul.wide.s16", {0xfff9, 300}), 0xfffff7ccu);
  EXPECT_EQ(one("mad.wide.s32", {0xffffffff, 3, 0x100000000u}), 0xfffffffdu);
  EXPECT_EQ(one("mad.hi.sat.s32", {0x40000000, 0x40000000, 0x7fffffff}), 0x7fffffffu);
  EXPECT_EQ(one("mul24.lo.u32", {0x89abcdef, 0xfedcba98}), 0x3305ebe8u);
  EXPECT_EQ(one("mul24.hi.u32", {0x89abcdef, 0xfedcba98}), 0x94223305u);
  EXPECT_EQ(one("mul24.lo.s32", {0x89abcdef, 0xfedcba98}), 0xac05ebe8u);
  EXPECT_EQ(one("mul24.hi.s32", {0x89abcdef, 0xfedcba98}), 0x0b99ac05u);
}

TEST(Integer, DivisionByZeroAndOfTheLowestNumber) {
  for (const char* op : {"div", "rem"}) {
    for (const char* type : {".u16", ".s16", ".u32", ".s32", ".u64", ".s64"}) {
      const std::uint64_t ones = type[2] == '1' ? 0xffffu : type[2] == '3' ? 0xffffffffu : ~0ull;
      EXPECT_EQ(one(std::string(op) + type, {7, 0}), ones) << op << type;
    }
  }
  EXPECT_EQ(one("div.s32", {0x80000000, kMinus1}), 0x80000000u);
  EXPECT_EQ(one("rem.s32", {0x80000000, kMinus1}), 0u);
  EXPECT_EQ(one("div.s64", {1ull << 63, ~0ull}), 1ull << 63);
  EXPECT_EQ(one("div.s32", {static_cast<std::uint32_t>(-7), 2}), static_cast<std::uint32_t>(-3));
  EXPECT_EQ(one("rem.s32", {static_cast<std::uint32_t>(-7), 2}), static_cast<std::uint32_t>(-1));
}

TEST(Integer, TheMinimumHasNoOpposite) {
  EXPECT_EQ(one("abs.s32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(one("neg.s16", {0x8000}), 0x8000u);
  EXPECT_EQ(one("abs.s64", {static_cast<std::uint64_t>(-5)}), 5u);
}

TEST(Integer, MinMaxAndTheirRelu) {
  EXPECT_EQ(one("min.s32", {kMinus1, 1}), kMinus1);
  EXPECT_EQ(one("min.u32", {kMinus1, 1}), 1u);
  EXPECT_EQ(one("max.relu.s32", {kMinus1, 0xfffffff0}), 0u);
  EXPECT_EQ(one("min.s16x2", {0xffff0005, 0x00010003}), 0xffff0003u);
  EXPECT_EQ(one("max.relu.s16x2", {0xffff0005, 0xfffe0003}), 0x00000005u);
  EXPECT_EQ(one("sad.u32", {3, 10, 100}), 107u);
  EXPECT_EQ(one("sad.s32", {0x80000000, 0x7fffffff, 1}), 0u);
}

TEST(Integer, DotProductsOfBytes) {
  const std::uint64_t a = 0x80ff017f, b = 0x05fe8103;
  EXPECT_EQ(one("dp4a.u32.u32", {a, b, 100}), 0x000101e4u);
  EXPECT_EQ(one("dp4a.u32.s32", {a, b, 100}), 0x000001e4u);
  EXPECT_EQ(one("dp4a.s32.u32", {a, b, 100}), 0xfffffee4u);
  EXPECT_EQ(one("dp4a.s32.s32", {a, b, 100}), 0xfffffee4u);
  EXPECT_EQ(one("dp2a.lo.s32.s32", {0x8000017f, 0x02fe8003, 100}), 0x004004e1u);
  EXPECT_EQ(one("dp2a.hi.s32.s32", {0x8000017f, 0x02fe8003, 100}), 0xfffefd66u);
  EXPECT_EQ(one("vabsdiff4.u32.u32.u32", {0x10ff0005, 0x20010a05, 9}), 0x10fe0a00u);
  EXPECT_EQ(one("vabsdiff4.u32.u32.u32.add", {0x10ff0005, 0x20010a05, 9}), 9u + 0x10 + 0xfe + 0x0a);
}

TEST(Integer, CountingAndFindingBits) {
  EXPECT_EQ(one("popc.b64", {0xf0f0000000000001u}), 9u);
  EXPECT_EQ(one("clz.b32", {0}), 32u);
  EXPECT_EQ(one("clz.b64", {0}), 64u);
  EXPECT_EQ(one("brev.b32", {0x00012340}), 0x02c48000u);
  EXPECT_EQ(one("bfind.s32", {0x80000000}), 0x1eu);
  EXPECT_EQ(one("bfind.s32", {kMinus1}), 0xffffffffu);
  EXPECT_EQ(one("bfind.u64", {1ull << 40}), 40u);
  EXPECT_EQ(one("bfind.shiftamt.u32", {0x00010000}), 15u);
  EXPECT_EQ(one("fns.b32", {0xaaaaaaaa, 0, 2}), 3u);
  EXPECT_EQ(one("fns.b32", {0xaaaaaaaa, 3, 0}), 3u);
  EXPECT_EQ(one("fns.b32", {0xaaaaaaaa, 2, 0}), 0xffffffffu);
  EXPECT_EQ(one("fns.b32", {0xaaaaaaaa, 31, static_cast<std::uint32_t>(-2)}), 0x1du);
}

// Positions and lengths past the register, and those of more than eight bits.
TEST(Integer, FieldsAreTakenOutAndPutIn) {
  constexpr std::uint64_t a = 0x89abcdef;
  EXPECT_EQ(one("bfe.u32", {a, 8, 8}), 0xcdu);
  EXPECT_EQ(one("bfe.u32", {a, 0x108, 8}), 0xcdu);
  EXPECT_EQ(one("bfe.u32", {a, 28, 8}), 8u);
  EXPECT_EQ(one("bfe.u32", {a, 32, 8}), 0u);
  EXPECT_EQ(one("bfe.s32", {a, 8, 8}), 0xffffffcdu);
  EXPECT_EQ(one("bfe.s32", {a, 28, 8}), 0xfffffff8u);
  EXPECT_EQ(one("bfe.s32", {a, 32, 8}), 0xffffffffu);
  EXPECT_EQ(one("bfe.s32", {a, 8, 0}), 0u);
  EXPECT_EQ(one("bfe.u32", {a, 0, 64}), a);
  EXPECT_EQ(one("bfe.s64", {0x8000000000000000u, 60, 10}), 0xfffffffffffffff8u);
  constexpr std::uint64_t f = 0x5a5a5aff;
  EXPECT_EQ(one("bfi.b32", {f, a, 8, 8}), 0x89abffefu);
  EXPECT_EQ(one("bfi.b32", {f, a, 28, 8}), 0xf9abcdefu);
  EXPECT_EQ(one("bfi.b32", {f, a, 32, 8}), a);
  EXPECT_EQ(one("bfi.b32", {f, a, 0, 32}), f);
  EXPECT_EQ(one("bfi.b32", {f, a, 0, 64}), f);
  EXPECT_EQ(one("bfi.b32", {f, a, 8, 264}), 0x89abffefu);
  EXPECT_EQ(one("bfi.b32", {f, a, 8, 0}), a);
}

TEST(Integer, MasksClampOrWrap) {
  EXPECT_EQ(one("bmsk.clamp.b32", {4, 8}), 0xff0u);
  EXPECT_EQ(one("bmsk.clamp.b32", {30, 8}), 0xc0000000u);
  EXPECT_EQ(one("bmsk.clamp.b32", {32, 4}), 0u);
  EXPECT_EQ(one("bmsk.clamp.b32", {4, 32}), 0xfffffff0u);
  EXPECT_EQ(one("bmsk.clamp.b32", {0, 33}), 0xffffffffu);
  EXPECT_EQ(one("bmsk.wrap.b32", {32, 4}), 0xfu);
  EXPECT_EQ(one("bmsk.wrap.b32", {4, 32}), 0u);
  EXPECT_EQ(one("bmsk.wrap.b32", {0, 33}), 1u);
  EXPECT_EQ(one("szext.clamp.s32", {0x89abcdef, 0}), 0u);
  EXPECT_EQ(one("szext.clamp.s32", {0x89abcdef, 32}), 0x89abcdefu);
  EXPECT_EQ(one("szext.wrap.s32", {0x89abcdef, 32}), 0u);
  EXPECT_EQ(one("szext.wrap.s32", {0x89abcdef, 40}), 0xffffffefu);
  EXPECT_EQ(one("szext.clamp.u32", {0x89abcdef, 8}), 0xefu);
}

// Compared with 128-bit arithmetic on random numbers: every width, signed and unsigned.
TEST(Integer, ArithmeticAgreesWith128Bits) {
  Random random{7};
  for (int round = 0; round < 40; ++round) {
    for (const int width : {16, 32, 64}) {
      for (const bool is_signed : {false, true}) {
        const std::uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
        const auto value = [&](std::uint64_t x) {
          x &= mask;
          if (is_signed && (x >> (width - 1) & 1) != 0) return static_cast<Wide>(x) - (static_cast<Wide>(1) << width);
          return static_cast<Wide>(x);
        };
        const auto cut = [&](Wide x) { return static_cast<std::uint64_t>(x) & mask; };
        const std::uint64_t a = random.next() & mask;
        const std::uint64_t b = random.next() >> (random.next() % 60) & mask;
        const std::uint64_t c = random.next() & mask;
        const std::string type = std::string(is_signed ? ".s" : ".u") + std::to_string(width);
        const Wide product = value(a) * value(b);
        EXPECT_EQ(one("add" + type, {a, b}), cut(value(a) + value(b)));
        EXPECT_EQ(one("sub" + type, {a, b}), cut(value(a) - value(b)));
        EXPECT_EQ(one("mul.lo" + type, {a, b}), cut(product));
        EXPECT_EQ(one("mul.hi" + type, {a, b}), cut(product >> width)) << type << a << " " << b;
        EXPECT_EQ(one("mad.lo" + type, {a, b, c}), cut(product + value(c)));
        EXPECT_EQ(one("mad.hi" + type, {a, b, c}), cut((product >> width) + value(c)));
        EXPECT_EQ(one("min" + type, {a, b}), cut(value(a) < value(b) ? value(a) : value(b)));
        EXPECT_EQ(one("max" + type, {a, b}), cut(value(a) > value(b) ? value(a) : value(b)));
        const Wide distance = value(a) > value(b) ? value(a) - value(b) : value(b) - value(a);
        EXPECT_EQ(one("sad" + type, {a, b, c}), cut(distance + value(c)));
        if (b != 0) {
          EXPECT_EQ(one("div" + type, {a, b}), cut(value(a) / value(b)));
          EXPECT_EQ(one("rem" + type, {a, b}), cut(value(a) % value(b)));
        }
        if (width == 64) continue;
        const std::uint64_t twice = width == 16 ? 0xffffffffu : ~0ull;
        EXPECT_EQ(one("mul.wide" + type, {a, b}), static_cast<std::uint64_t>(product) & twice);
        const std::uint64_t wide_c = random.next() & twice;
        EXPECT_EQ(one("mad.wide" + type, {a, b, wide_c}), (static_cast<std::uint64_t>(product) + wide_c) & twice);
      }
    }
  }
}

TEST(Integer, BitCountsAgreeWithCountingOneByOne) {
  Random random{11};
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t x = random.next() >> (random.next() % 64);
    const auto x32 = static_cast<std::uint32_t>(x);
    EXPECT_EQ(one("popc.b32", {x32}), static_cast<std::uint64_t>(std::popcount(x32)));
    EXPECT_EQ(one("popc.b64", {x}), static_cast<std::uint64_t>(std::popcount(x)));
    EXPECT_EQ(one("clz.b32", {x32}), static_cast<std::uint64_t>(std::countl_zero(x32)));
    EXPECT_EQ(one("clz.b64", {x}), static_cast<std::uint64_t>(std::countl_zero(x)));
    std::uint64_t reversed = 0;
    for (int i = 0; i < 64; ++i) reversed |= (x >> i & 1) << (63 - i);
    EXPECT_EQ(one("brev.b64", {x}), reversed);
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::integer_test
