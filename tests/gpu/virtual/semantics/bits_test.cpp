// Logic, shifts, bytes, selection, moves and comparisons, compared with the assembler's results for constants.
#include <gtest/gtest.h>

#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::bits_test {
namespace {

TEST(Bits, LogicOfWordsAndPredicates) {
  EXPECT_EQ(one("and.b16", {0xff0f, 0x0fff}), 0x0f0fu);
  EXPECT_EQ(one("xor.b64", {~0ull, 1}), ~1ull);
  EXPECT_EQ(one("not.b32", {0x0f0f0f0f}), 0xf0f0f0f0u);
  EXPECT_EQ(one("cnot.b32", {0}), 1u);
  EXPECT_EQ(one("cnot.b32", {5}), 0u);
  for (const std::uint64_t a : {0u, 1u}) {
    for (const std::uint64_t b : {0u, 1u}) {
      EXPECT_EQ(one("and.pred", {a, b}), a & b);
      EXPECT_EQ(one("or.pred", {a, b}), a | b);
      EXPECT_EQ(one("xor.pred", {a, b}), a ^ b);
    }
    EXPECT_EQ(one("not.pred", {a}), 1 - a);
    EXPECT_EQ(one("mov.pred", {a}), a);
  }
}

TEST(Bits, ANegatedPredicateIsReadAsItsOpposite) {
  Case c;
  c.word = "and.pred";
  c.in = {all(1), all(0)};
  c.negated = 1u << 2;
  EXPECT_EQ(run(c).d[0][0], 1u);
  c.negated = 1u << 1;
  EXPECT_EQ(run(c).d[0][0], 0u);
  c.word = "selp.b32";
  c.in = {all(7), all(9), all(1)};
  c.negated = 1u << 3;
  EXPECT_EQ(run(c).d[0][0], 9u);
  c.word = "lop3.or.b32";
  c.in = {all(1), all(2), all(4), all(0), all(0)};
  c.pair = true;
  c.negated = 1u << 5;
  EXPECT_EQ(run(c).p[0], 1u);
  c.pair = false;
  c.word = "mov.pred";
  c.in = {all(1)};
  c.negated = 1u << 1;
  EXPECT_EQ(run(c).d[0][0], 0u);
}

TEST(Bits, Lop3ReadsItsTable) {
  for (const std::uint64_t table : {0x00u, 0x96u, 0xe8u, 0xcau, 0x1bu, 0xffu}) {
    EXPECT_EQ(one("lop3.b32", {0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, table}), table * 0x01010101u);
  }
  // d and p = (d != 0) and q
  EXPECT_EQ(both("lop3.and.b32", {1, 2, 4, 0xfe, 1}), (Both{7, 1}));
  EXPECT_EQ(both("lop3.and.b32", {1, 2, 4, 0xfe, 0}), (Both{7, 0}));
  EXPECT_EQ(both("lop3.or.b32", {1, 2, 4, 0x80, 1}), (Both{0, 1}));
}

TEST(Bits, ShiftAmountsClamp) {
  for (const std::uint64_t n : {32u, 40u, 0xffffffffu}) {
    EXPECT_EQ(one("shr.s32", {0x9abcdef0, n}), 0xffffffffu);
    EXPECT_EQ(one("shr.u32", {0x9abcdef0, n}), 0u);
    EXPECT_EQ(one("shl.b32", {0x9abcdef0, n}), 0u);
  }
  EXPECT_EQ(one("shr.s16", {0x9abc, 16}), 0xffffu);
  EXPECT_EQ(one("shl.b16", {0x9abc, 4}), 0xabc0u);
  EXPECT_EQ(one("shr.s64", {1ull << 63, 63}), ~0ull);
  EXPECT_EQ(one("shl.b64", {1, 64}), 0u);
  EXPECT_EQ(one("shl.b64", {1, 33}), 1ull << 33);
}

TEST(Bits, FunnelShifts) {
  constexpr std::uint64_t a = 0x11223344, b = 0xaabbccdd;
  EXPECT_EQ(one("shf.l.wrap.b32", {a, b, 4}), 0xabbccdd1u);
  EXPECT_EQ(one("shf.r.wrap.b32", {a, b, 4}), 0xd1122334u);
  EXPECT_EQ(one("shf.l.clamp.b32", {a, b, 32}), a);
  EXPECT_EQ(one("shf.l.wrap.b32", {a, b, 32}), b);
  EXPECT_EQ(one("shf.r.clamp.b32", {a, b, 36}), b);
  EXPECT_EQ(one("shf.r.wrap.b32", {a, b, 36}), 0xd1122334u);
}

TEST(Bits, PrmtAndItsModes) {
  constexpr std::uint64_t a = 0x83828180, b = 0x77767574;
  EXPECT_EQ(one("prmt.b32", {a, b, 0x7531}), 0x77758381u);
  EXPECT_EQ(one("prmt.b32", {a, b, 0xfedc}), 0u);
  EXPECT_EQ(one("prmt.b32", {a, b, 0x0123}), 0x80818283u);
  EXPECT_EQ(one("prmt.b32", {a, b, 0x4440}), 0x74747480u);
  EXPECT_EQ(one("prmt.b32", {a, b, 0x8888}), 0xffffffffu);
  struct Mode {
    const char* word;
    std::uint64_t d[4];
  };
  const Mode modes[] = {{"prmt.b32.f4e", {0x83828180, 0x74838281, 0x75748382, 0x76757483}},
                        {"prmt.b32.b4e", {0x75767780, 0x76778081, 0x77808182, 0x80818283}},
                        {"prmt.b32.rc8", {0x80808080, 0x81818181, 0x82828282, 0x83838383}},
                        {"prmt.b32.ecl", {0x83828180, 0x83828181, 0x83828282, 0x83838383}},
                        {"prmt.b32.ecr", {0x80808080, 0x81818180, 0x82828180, 0x83828180}},
                        {"prmt.b32.rc16", {0x81808180, 0x83828382, 0x81808180, 0x83828382}}};
  for (const Mode& mode : modes) {
    for (std::uint64_t c = 0; c < 4; ++c) EXPECT_EQ(one(mode.word, {a, b, c}), mode.d[c]) << mode.word << c;
  }
}

TEST(Bits, SelectionByPredicateAndBySign) {
  EXPECT_EQ(one("selp.b16", {1, 2, 1}), 1u);
  EXPECT_EQ(one("selp.f64", {bits(1.5), bits(2.5), 0}), bits(2.5));
  EXPECT_EQ(one("slct.u32.s32", {7, 9, 0}), 7u);
  EXPECT_EQ(one("slct.u32.s32", {7, 9, 0x80000000}), 9u);
  EXPECT_EQ(one("slct.u32.f32", {7, 9, bits(-0.0f)}), 7u);
  EXPECT_EQ(one("slct.u32.f32", {7, 9, 0x7fffffff}), 9u);
  EXPECT_EQ(one("slct.u32.f32", {7, 9, 0x80000001}), 9u);
  EXPECT_EQ(one("slct.ftz.u64.f32", {7, 9, 0x80000001}), 7u);
}

// Pieces: element 0 is the least significant. Byte pieces are in registers of 16 bits.
TEST(Bits, MovesOfPieces) {
  const auto pieces = [](const char* word, std::vector<int> widths, std::vector<std::uint64_t> in, int results) {
    Case c;
    c.word = word;
    c.register_bytes = std::move(widths);
    for (const std::uint64_t x : in) c.in.push_back(all(x));
    c.results = results;
    std::vector<std::uint64_t> d;
    for (const Lanes& lanes : run(c).d) d.push_back(lanes[21]);
    return d;
  };
  using V = std::vector<std::uint64_t>;
  EXPECT_EQ(pieces("mov.b32", {4, 2, 2}, {0x1111, 0x2222}, 1), (V{0x22221111}));
  EXPECT_EQ(pieces("mov.b32", {2, 2, 4}, {0x22221111}, 2), (V{0x1111, 0x2222}));
  EXPECT_EQ(pieces("mov.b64", {8, 4, 4}, {0x1, 0x2}, 1), (V{0x200000001}));
  EXPECT_EQ(pieces("mov.b64", {2, 2, 2, 2, 8}, {0x4444333322221111}, 4), (V{0x1111, 0x2222, 0x3333, 0x4444}));
  EXPECT_EQ(pieces("mov.b16", {2, 2, 2}, {0x12, 0x34}, 1), (V{0x3412}));
  EXPECT_EQ(pieces("mov.b16", {2, 2, 2}, {0x3412}, 2), (V{0x12, 0x34}));
}

struct Order {
  double a, b;
};
// false for NaN: eq ne lt le gt ge; true for NaN: equ neu ltu leu gtu geu; num, nan.
TEST(Compare, OrderedOnesAreFalseForNanNeToo) {
  const double nan = as_double(0x7ff8000000000000u);
  const Order orders[] = {{1, 2}, {2, 1}, {1, 1}, {-0.0, 0.0}, {nan, 1}, {1, nan}, {nan, nan}};
  for (const Order& o : orders) {
    const bool is_nan = o.a != o.a || o.b != o.b;
    const struct {
      const char* word;
      bool holds;
      bool takes_nan;
    } relations[] = {{"eq", o.a == o.b, false}, {"ne", o.a != o.b, false}, {"lt", o.a < o.b, false},
                     {"le", o.a <= o.b, false}, {"gt", o.a > o.b, false},  {"ge", o.a >= o.b, false},
                     {"equ", o.a == o.b, true}, {"neu", o.a != o.b, true}, {"ltu", o.a < o.b, true},
                     {"leu", o.a <= o.b, true}, {"gtu", o.a > o.b, true},  {"geu", o.a >= o.b, true}};
    for (const auto& r : relations) {
      const std::uint64_t expected = is_nan ? r.takes_nan : r.holds;
      const std::string word = std::string("setp.") + r.word;
      EXPECT_EQ(one(word + ".f64", {bits(o.a), bits(o.b)}), expected) << word;
      EXPECT_EQ(one(word + ".f32", {bits(static_cast<float>(o.a)), bits(static_cast<float>(o.b))}), expected) << word;
      const auto half = [](double x) {
        return x != x ? 0x7e00u : x == 2 ? 0x4000u : x == 1 ? 0x3c00u : bits(x) != 0 ? 0x8000u : 0u;
      };
      EXPECT_EQ(one(word + ".f16", {half(o.a), half(o.b)}), expected) << word;
      EXPECT_EQ(one(std::string("set.") + r.word + ".u32.f32",
                    {bits(static_cast<float>(o.a)), bits(static_cast<float>(o.b))}),
                expected * 0xffffffffu);
    }
    EXPECT_EQ(one("setp.nan.f32", {bits(static_cast<float>(o.a)), bits(static_cast<float>(o.b))}), is_nan);
    EXPECT_EQ(one("setp.num.f64", {bits(o.a), bits(o.b)}), !is_nan);
  }
}

TEST(Compare, SignsAliasesAndFlushing) {
  EXPECT_EQ(one("setp.lt.s32", {0xffffffff, 1}), 1u);
  EXPECT_EQ(one("setp.lt.u32", {0xffffffff, 1}), 0u);
  EXPECT_EQ(one("setp.lo.u32", {1, 0xffffffff}), 1u);
  EXPECT_EQ(one("setp.hs.u64", {1, ~0ull}), 0u);
  EXPECT_EQ(one("setp.gt.s16", {1, 0xffff}), 1u);
  EXPECT_EQ(one("setp.lt.f32", {0x80000001, 0}), 1u);
  EXPECT_EQ(one("setp.lt.ftz.f32", {0x80000001, 0}), 0u);
}

// p = cmp op c, q = not cmp op c.
TEST(Compare, TwoPredicatesAndABooleanBetween) {
  EXPECT_EQ(both("setp.lt.s32", {1, 2}), (Both{1, 0}));
  EXPECT_EQ(both("setp.lt.and.s32", {1, 2, 0}), (Both{0, 0}));
  EXPECT_EQ(both("setp.lt.or.s32", {1, 2, 1}), (Both{1, 1}));
  EXPECT_EQ(both("setp.lt.xor.s32", {1, 2, 1}), (Both{0, 1}));
  EXPECT_EQ(both("setp.gt.f16x2", {0x3c004000, 0x40003c00}), (Both{1, 0}));  // low: 2 > 1, high: 1 > 2
  EXPECT_EQ(both("setp.eq.bf16x2", {0x3f800000, 0x3f800001}), (Both{0, 1}));
}

TEST(Compare, SetWritesOnesOrOne) {
  EXPECT_EQ(one("set.gt.f32.s32", {5, 3}), 0x3f800000u);
  EXPECT_EQ(one("set.lt.u32.u64", {5, 3}), 0u);
  EXPECT_EQ(one("set.eq.f16x2.f16x2", {0x3c004000, 0x3c003c00}), 0x3c000000u);
  EXPECT_EQ(one("set.eq.u32.f16x2", {0x3c004000, 0x3c003c00}), 0xffff0000u);
  EXPECT_EQ(one("set.ne.bf16.bf16", {0x3f80, 0x4000}), 0x3f80u);
  EXPECT_EQ(one("set.ne.and.u32.s32", {1, 2, 0}), 0u);
}

TEST(Compare, ClassesOfNumbers) {
  const auto of = [](const char* what, std::uint64_t x) { return one(std::string("testp.") + what + ".f32", {x}); };
  EXPECT_EQ(of("normal", 0), 1u);  // zero counts as normal
  EXPECT_EQ(of("normal", 1), 0u);
  EXPECT_EQ(of("subnormal", 0x807fffff), 1u);
  EXPECT_EQ(of("subnormal", 0), 0u);
  EXPECT_EQ(of("finite", 0x7f7fffff), 1u);
  EXPECT_EQ(of("infinite", 0xff800000), 1u);
  EXPECT_EQ(of("number", 0x7f800001), 0u);
  EXPECT_EQ(of("notanumber", 0xffc00000), 1u);
  EXPECT_EQ(one("testp.subnormal.f64", {1}), 1u);
}

}  // namespace
}  // namespace kvscope::ptx::testing::bits_test
