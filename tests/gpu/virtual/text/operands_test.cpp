// Every form of operand, and its representation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::operands_test {
namespace {

using testing::ElementsAre;

TEST(Operands, RegistersAndNumbers) {
  EXPECT_EQ(operands_of("add.s32 %r1, %r2, -4"), "%r1 %r2 -4");
  EXPECT_EQ(operands_of("mov.b32 %r1, WARP_SZ"), "%r1 32");
  EXPECT_EQ(operands_of("add.s32 %r1, %r2, (3*4)+1"), "%r1 %r2 13");
  EXPECT_EQ(operands_of("mov.f32 %f1, 0f3F800000"), "%f1 f:3f800000");
  EXPECT_EQ(operands_of("mov.f64 %fd1, 1.5"), "%fd1 d:3ff8000000000000");
  EXPECT_EQ(operands_of("ret"), "");
}

TEST(Operands, SpecialRegistersAndTheirVectors) {
  EXPECT_EQ(operands_of("mov.u32 %r1, %ctaid.z"), "%r1 %ctaid.z");
  EXPECT_EQ(operands_of("mov.u32 %r1, %lanemask_lt"), "%r1 %lanemask_lt");
  EXPECT_EQ(operands_of("mov.u32 %r1, %envreg31"), "%r1 %envreg31");
  EXPECT_EQ(operands_of("mov.v4.u32 {%r1, %r2, %r3, _}, %tid"), "{%r1 %r2 %r3 _} {%tid.x %tid.y %tid.z 0}");
}

TEST(Operands, AddressesHaveABaseAndAnOffset) {
  EXPECT_EQ(operands_of("ld.global.u32 %r1, [%rd1]"), "%r1 [%rd1]");
  EXPECT_EQ(operands_of("ld.global.u32 %r1, [%rd1+4]"), "%r1 [%rd1+4]");
  EXPECT_EQ(operands_of("ld.global.u32 %r1, [%rd1+-4]"), "%r1 [%rd1+-4]");
  EXPECT_EQ(operands_of("ld.global.u32 %r1, [%rd1 + 2*8]"), "%r1 [%rd1+16]");
  EXPECT_EQ(operands_of("ld.param.u64 %rd1, [x+0]"), "%rd1 [&x]");
  EXPECT_EQ(operands_of("ld.param.u64 %rd1, [x+8]"), "%rd1 [&x+8]");
  EXPECT_EQ(operands_of("ld.local.u32 %r1, [16]"), "%r1 [16]");
  EXPECT_EQ(operands_of("ld.local.u32 %r1, [8+8]"), "%r1 [16]");
  EXPECT_EQ(operands_of("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, 7}], [%r2]"),
            "[%rd1 {%r1 7}] [%r2]");
  EXPECT_EQ(operands_of("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%r1, %r2}]"),
            "{%f1 %f2 %f3 %f4} [%rd1 %rd2 {%r1 %r2}]");
}

// `x[2]` is the address of an element: a value for mov, a location for a load.
TEST(Operands, SymbolsAreAddressesWithOffsets) {
  const std::string s = ".shared .align 16 .b8 a[64]; .shared .v2 .u64 b[4]; ";
  EXPECT_EQ(operands_of(s + "mov.u32 %r1, a"), "%r1 &a");
  EXPECT_EQ(operands_of(s + "mov.u32 %r1, a+2*2-1"), "%r1 &a+3");
  EXPECT_EQ(operands_of(s + "mov.u32 %r1, b[2]"), "%r1 &b+32");
  EXPECT_EQ(operands_of(s + "ld.shared.u64 %rd1, b[2]"), "%rd1 [&b+32]");
  EXPECT_EQ(operands_of("cvta.param.u64 %rd1, x"), "%rd1 &x");
  EXPECT_EQ(operands_of(s + "st.shared.u64 [a+8], a+4"), "[&a+8] &a+4");  // outside [ ] again
}

TEST(Operands, VectorsHoldRegistersNumbersAndSinks) {
  EXPECT_EQ(operands_of("ld.global.v4.u32 {%r1, _, %r2, _}, [%rd1]"), "{%r1 _ %r2 _} [%rd1]");
  EXPECT_EQ(operands_of("mov.b32 %r1, {0, %r2}"), "%r1 {0 %r2}");
  EXPECT_EQ(operands_of("mov.b64 {%r1, %r2}, %rd1"), "{%r1 %r2} %rd1");
}

TEST(Operands, PairsAndNegatedPredicates) {
  EXPECT_EQ(operands_of("setp.eq.s32 %p1|%p2, %r1, %r2"), "<%p1 %p2> %r1 %r2");
  EXPECT_EQ(operands_of("elect.sync _|%p1, -1"), "<_ %p1> -1");
  EXPECT_EQ(operands_of("shfl.sync.idx.b32 %r1|%p2, %r2, 0, 31, -1"), "<%r1 %p2> %r2 0 31 -1");
  EXPECT_EQ(operands_of("and.pred %p1, %p2, !%p3"), "%p1 %p2 !%p3");
  EXPECT_EQ(operands_of("mov.u32 %r1, !3"), "%r1 0");
}

TEST(Operands, CallsPassLists) {
  const std::string f =
      ".param .b32 a; .param .b32 b; P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _); ";
  EXPECT_EQ(operands_of(f + "call.uni (a), k, (a, b)"), "(&a) fn:k (&a &b)");
  EXPECT_EQ(operands_of(f + "call (a), %rd1, (b, 28), P"), "(&a) %rd1 (&b 28) table:P");
  EXPECT_EQ(operands_of("call k"), "fn:k");
  EXPECT_EQ(operands_of("call k, ()"), "fn:k ()");
}

TEST(Operands, AVectorRegisterIsTheVectorOfItsElements) {
  const std::string v = ".reg .v4 .f32 v, w; ";
  EXPECT_EQ(operands_of(v + "mov.v4.f32 v, {w.x, w.g, w.z, w.a}"), "{v.x v.y v.z v.w} {w.x w.y w.z w.w}");
  EXPECT_THAT(errors_of(with_body(".reg .v2 .f32 v;\nmov.f32 v.z, 1.0;")),
              ElementsAre("3:9: 'v.z': a vector of 2 registers has no part '.z'"));
  EXPECT_THAT(errors_of(with_body("mov.u32 %r1.x, 1;")),
              ElementsAre("2:9: '%r1.x' is not a vector: it has no part '.x'"));
}

// The part of a register must not be mistaken for the whole register: the value is not 0.
TEST(Operands, APartOfARegisterIsKept) {
  const Module m = parse_body("vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1, %r4;");
  const auto operands = kernel(m).operands_of(kernel(m).body[0]);
  EXPECT_EQ(operands[0].value, 0);
  EXPECT_EQ(operands[1].value, 'b' | '0' << 8);
  EXPECT_EQ(operands[2].value, 'h' | '1' << 8);
  EXPECT_EQ(operands[1].index, 2);
}

TEST(Operands, ColumnsAreWhereTheyBegin) {
  const Module m = parse_body("\tst.global.v2.u32 [%rd1+4], {%r1, %r2};");
  const auto operands = kernel(m).operands_of(kernel(m).body[0]);
  EXPECT_EQ(operands[0].column, 19);
  EXPECT_EQ(operands[1].column, 29);
  EXPECT_EQ(kernel(m).elements_of(operands[1])[1].column, 35);
}

}  // namespace
}  // namespace kvscope::ptx::operands_test
