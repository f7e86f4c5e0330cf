// A text and the module it is.
#include "core/ptx/text/parser.h"

#include <gtest/gtest.h>

#include <string>

namespace kvscope::ptx {
namespace {

constexpr const char* kScale = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .u32 n) .maxntid 128, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3+-4];
DONE:
  ret;
}
)";

TEST(Parser, ReadsAnOrdinaryKernel) {
  const Module m = parse_module(kScale, "scale.ptx");
  EXPECT_EQ(m.version, 90);
  EXPECT_EQ(m.target, 90);
  EXPECT_EQ(m.target_suffix, 'a');
  ASSERT_EQ(m.functions.size(), 1u);
  const Function& f = m.functions[0];
  EXPECT_TRUE(f.entry && f.defined);
  EXPECT_EQ(f.parameter_bytes, 12);
  EXPECT_EQ(f.limits.max_threads[0], 128);
  EXPECT_EQ(f.registers.size(), 11u);
  ASSERT_EQ(f.body.size(), 9u);
  const Statement& branch = f.body[4];
  EXPECT_EQ(branch.opcode, "bra");
  EXPECT_EQ(name(f.registers[static_cast<std::size_t>(branch.guard)]), "%p1");
  EXPECT_EQ(f.operands_of(branch)[0].index, 8);
  const Operand load = f.operands_of(f.body[7])[1];
  EXPECT_EQ(load.kind, OperandKind::address);
  EXPECT_EQ(load.value, -4);
  EXPECT_EQ(name(f.registers[static_cast<std::size_t>(f.elements_of(load)[0].index)]), "%rd3");
}

}  // namespace
}  // namespace kvscope::ptx
