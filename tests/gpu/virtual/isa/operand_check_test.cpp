// The exact messages.
#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::operand_check_test {
namespace {

std::string message_of(const std::string& statement) {
  const Parsed parsed = parse_text(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".func (.reg .b32 r) helper(.reg .b32 x) { ret; }\n"
      ".visible .entry k(.param .u64 px) {\n"
      ".reg .b32 r<8>; .reg .f32 f<8>; .reg .b64 rd<8>; .reg .u32 u<4>; .reg .b16 h<4>; .reg .pred p<4>;\n"
      ".reg .f64 d<4>; .shared .b32 sh[8];\n" +
          statement + "\nret;\n}\n",
      "t.ptx");
  if (!parsed.errors.empty()) return "parse: " + parsed.errors[0].message;
  const Decoded decoded = decode(parsed.module);
  if (decoded.errors.empty()) return decoded.unsupported.empty() ? "" : decoded.unsupported[0].message;
  EXPECT_EQ(decoded.errors[0].at.line, 8);
  EXPECT_EQ(decoded.errors[0].at.column, 1);
  return decoded.errors[0].message;
}

struct Case {
  const char* statement;
  const char* message;
};

TEST(OperandCheck, NamesTheOperandAndTheFault) {
  const Case cases[] = {
      {"add.f64 r1, r1, r1;", "add.f64: operand 1 'r1' is 32 bits wide, expected 64"},
      {"add.s32 r1, rd2, r1;", "add.s32: operand 2 'rd2' is 64 bits wide, expected 32"},
      {"shl.b64 rd1, rd1, rd2;", "shl.b64: operand 3 'rd2' is 64 bits wide, expected 32"},
      {"ld.global.b64 r1, [rd1];", "ld.global.b64: operand 1 'r1' is 32 bits wide, expected 64 or more"},
      {"add.u32 r1, f1, r1;", "add.u32: operand 2 'f1' is .f32, expected an integer or .b32"},
      {"add.f32 f1, u1, f1;", "add.f32: operand 2 'u1' is .u32, expected .f32 or .b32"},
      {"add.f16x2 r1, u1, r1;", "add.f16x2: operand 2 'u1' is .u32, expected .b32"},
      {"st.global.u16 [rd1], f1;", "st.global.u16: operand 2 'f1' is .f32, expected an integer or .b32"},
      {"ld.global.f32 d1, [rd1];", "ld.global.f32: operand 1 'd1' is .f64, expected .f32 or .b32"},
      {"add.s32 r1, p1, r1;", "add.s32: operand 2 'p1' is a predicate, expected .s32"},
      {"selp.b32 r1, r2, r3, r4;", "selp.b32: operand 4 'r4' is .b32, expected a predicate"},
      {"add.f32 f1, f1, 1;", "add.f32: operand 3 is an integer, expected a f32 (1.0 or 0f3f800000)"},
      {"mov.u32 r1, 1.5;", "mov.u32: operand 2 is a floating-point number, expected .u32"},
      {"mov.u32 r1, 0f3f800000;", "mov.u32: operand 2 is a 0f number, expected .u32"},
      {"add.s32 r1, r2;", "add.s32: 2 operands, expected 3"},
      {"bar.sync;", "bar.sync: 0 operands, expected 1 or 2"},
      {"ret r1;", "ret: 1 operand, expected 0"},
      {"add.s32 5, r1, r2;", "add.s32: operand 1 is an integer, expected a register to write"},
      {"add.s32 r1, [rd1], r2;", "add.s32: operand 2 is an address, expected a register or a number"},
      {"ld.u32 r1, rd1;", "ld.u32: operand 2 is a register, expected an address [...]"},
      {"ld.u32 r1, [f1];", "ld.u32: operand 2 'f1' is .f32, expected an address of 32 or 64 bits"},
      {"ld.global.u32 r1, [sh];", "ld.global.u32: operand 2 'sh' is in shared memory, expected global"},
      {"add.u32 r1, sh, 4;", "add.u32: operand 2 is a variable, expected a register: use mov"},
      {"add.s32 r1, %tid.x, 1;",
       "add.s32: operand 2 '%tid.x' is a special register, expected a register: read it with mov"},
      {"mov.u64 rd1, %tid.x;", "mov.u64: operand 2 '%tid.x' is 32 bits wide, expected 64"},
      {"add.s32 _, r1, r2;", "add.s32: operand 1 may not be _"},
      {"add.s32 {r1, r2}, r1, r2;", "add.s32: operand 1 is a vector, expected one .s32"},
      {"add.s32 r1, !p1, r2;", "add.s32: operand 2 is negated, but it is not a predicate that is read"},
      {"ld.global.v2.u32 r1, [rd1];", "ld.global.v2.u32: operand 1 is a register, expected a vector of 2"},
      {"ld.global.v4.u32 {r1, r2}, [rd1];", "ld.global.v4.u32: operand 1 has 2 elements, expected 4"},
      {"ld.global.v2.f32 {_, _}, [rd1];", "ld.global.v2.f32: operand 1 has no element but _"},
      {"ld.global.v2.u8 {r1, h1}, [rd1];", "ld.global.v2.u8: operand 1 has elements of 32 and of 16 bits"},
      {"st.global.v2.u32 [rd1], {_, r1};", "st.global.v2.u32: operand 2 has _ among what is read"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,_,f3,f4}, rd1, rd2, 1, 1, 1, 0, 0;",
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16: operand 1 has _ among what is read"},
      {"mov.b64 rd1, {r1, h2};", "mov.b64: operand 2 'h2' is 16 bits wide, expected 32"},
      {"mov.b64 rd1, {r1, r2, r3};", "mov.b64: operand 2 has 3 pieces, expected 2 or 4"},
      {"mov.b32 {h1, h2}, {h2, h3};", "mov.b32: packs or unpacks, not both: one operand is not a vector"},
      {"shfl.sync.idx.b32 _|p1, r1, 1, 2, -1;",
       "shfl.sync.idx.b32: operand 1 is _|p, but its first half must be a register"},
      {"elect.sync r1, -1;", "elect.sync: operand 1 is a register, expected a pair d|p"},
      {"add.s32 r1|p1, r1, r2;", "add.s32: operand 1 is a pair, expected one register"},
      {"lop3.b32 r1, r1, r1, r1, r2;", "lop3.b32: operand 5 'r2' is a register, expected a number"},
      {"mbarrier.arrive.shared::cluster.b64 rd1, [r1];",
       "mbarrier.arrive.shared::cluster.b64: operand 1 'rd1' is a register, expected _"},
      {"cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [r1], [rd1, {r1}], [r2];",
       "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes: operand 2 has 1 coordinate, expected "
       "2"},
      {"call k;", "call: 'k' is a kernel, expected a device function"},
      {"call (r1), helper;", "call: 'helper' has 1 parameters, found 0"},
      {"call helper, (r1);", "call: 'helper' has 1 results, found 0"},
  };
  for (const Case& c : cases) EXPECT_EQ(message_of(c.statement), c.message) << c.statement;
}

TEST(OperandCheck, ChecksTheRangesOfConstants) {
  const Case cases[] = {
      {"bar.sync 16;", "barrier number 0..15"},
      {"bar.sync -1;", "barrier number 0..15"},
      {"bar.sync 15;", ""},
      {"bar.sync 0, 40;", "thread count must be a multiple of 32"},
      {"bar.sync 0, 48;", "thread count must be a multiple of 32"},  // of 16 is not enough
      {"bar.sync 0, 64;", ""},
      {"bar.sync r1, r2;", ""},
      {"bar.arrive 1, 0;", "thread count must not be 0"},
      {"bar.red.popc.u32 r1, 0, 33, p1;", "thread count must be a multiple of 32"},
      {"bar.red.popc.u32 r1, 16, p1;", "barrier number 0..15"},
      {"cp.async.cg.shared.global [r1], [rd1], 8;", "cp.async.cg copies 16 bytes"},
      {"cp.async.ca.shared.global [r1], [rd1], 8;", ""},
      {"cp.async.ca.shared.global [r1], [rd1], 2;", "cp.async.ca copies 4, 8 or 16 bytes"},
      {"cp.async.ca.shared.global [r1], [rd1], 16, 17;", "source size must be 0..16"},
      {"cp.async.ca.shared.global [r1], [rd1], 8, 8;", ""},
      {"cp.async.ca.shared.global [r1], [rd1], 16, !p1;", ""},
      {"setmaxnreg.inc.sync.aligned.u32 20;", "value must be 24..256 and a multiple of 8"},
      {"setmaxnreg.inc.sync.aligned.u32 28;", "value must be 24..256 and a multiple of 8"},
      {"setmaxnreg.dec.sync.aligned.u32 264;", "value must be 24..256 and a multiple of 8"},
      {"setmaxnreg.dec.sync.aligned.u32 24;", ""},
      {"setmaxnreg.dec.sync.aligned.u32 256;", ""},
      {"cp.async.bulk.global.shared::cta.bulk_group [rd1], [r1], 24;", "size must be a multiple of 16"},
      {"mbarrier.arrive.shared.b64 _, [r1], 0;", "count must not be 0"},
      {"mbarrier.try_wait.parity.shared.b64 p1, [r1], 2;", "parity must be 0 or 1"},
      {"wgmma.wait_group.sync.aligned -1;", "group count must not be negative"},
      {"bfe.u32 r1, r1, 256, 1;", "position and length 0..255"},
      {"discard.global.L2 [rd1], 64;", "size must be 128"},
      {"pmevent 16;", "event number 0..15"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,f2,f3,f4}, rd1, rd2, 1, 2, 1, 0, 0;",
       "the signs of A and B must be 1 or -1"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,f2,f3,f4}, rd1, rd2, 1, 1, 1, 0;",
       "A by descriptor has a transposition too: 8 operands"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,f2,f3,f4}, {r1,r2,r3,r4}, rd2, 1, 1, 1, 0, 0;",
       "A in registers cannot be transposed: 7 operands"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,f2,f3,f4}, {r1,r2,r3,r4}, rd2, p1, 1, -1, 1;", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(message_of(c.statement), c.message) << c.statement;
}

}  // namespace
}  // namespace kvscope::ptx::operand_check_test
