#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx::operand_rules_test {
namespace {

// A rule as text, "=f32*4 r:b32" ..: role, type or space, elements, pair, coordinates.
std::string text_of(const OperandRule& rule) {
  std::string text;
  switch (rule.role) {
    case Role::written:
      text = "=";
      break;
    case Role::read_written:
      text = "+";
      break;
    case Role::address:
      text = "@" + std::string(name(rule.space));
      break;
    case Role::target:
      return "->";
    case Role::arguments:
      return "()";
    case Role::read:
      break;
  }
  if (rule.constant) text += "#";
  if (rule.wider) text += "~";
  if (rule.role != Role::address) text += rule.type == Type::none ? "_" : name(rule.type);
  if (rule.elements != 1) text += "*" + std::to_string(rule.elements);
  if (rule.coordinates != 0) text += ":" + std::to_string(rule.coordinates);
  if (rule.second != Type::none) text += rule.pair ? "|pred" : "|pred?";
  if (rule.alternative != Type::none) text += "/" + std::string(name(rule.alternative));
  if (rule.packs) text += "&";
  return text;
}

std::string rules(std::string_view word, int count) {
  const Instr instr = understand(word);
  EXPECT_EQ(instr.unsupported, "") << word;
  std::string text;
  for (const OperandRule& rule : operand_rules(instr, count)) text += (text.empty() ? "" : " ") + text_of(rule);
  return text;
}

TEST(OperandRules, GiveTypesAndWidths) {
  EXPECT_EQ(rules("add.s32", 3), "=s32 s32 s32");
  EXPECT_EQ(rules("mul.wide.s32", 3), "=s64 s32 s32");
  EXPECT_EQ(rules("mul.wide.u16", 3), "=u32 u16 u16");
  EXPECT_EQ(rules("mad.wide.u32", 4), "=u64 u32 u32 u64");  // the addend is wide too
  EXPECT_EQ(rules("shl.b64", 3), "=b64 b64 u32");           // an amount is 32 bits
  EXPECT_EQ(rules("shr.s16", 3), "=s16 s16 u32");
  EXPECT_EQ(rules("popc.b64", 2), "=u32 b64");
  EXPECT_EQ(rules("bfe.u64", 4), "=u64 u64 u32 u32");
  EXPECT_EQ(rules("lop3.b32", 5), "=b32 b32 b32 b32 #u32");
  EXPECT_EQ(rules("lop3.or.b32", 6), "=b32|pred b32 b32 b32 #u32 pred");
  EXPECT_EQ(rules("slct.b64.f32", 4), "=b64 b64 b64 f32");
  EXPECT_EQ(rules("set.eq.f32.s32", 3), "=f32 s32 s32");
  EXPECT_EQ(rules("cvt.u8.s64", 2), "=~u8 ~s64");
  EXPECT_EQ(rules("cvt.rn.bf16x2.f32", 3), "=bf16x2 f32 f32");
  EXPECT_EQ(rules("cvt.rn.f16x2.e4m3x2", 2), "=f16x2 e4m3x2");
  EXPECT_EQ(rules("cvt.pack.sat.u8.s32.b32", 4), "=b32 s32 s32 b32");
  EXPECT_EQ(rules("dp4a.u32.s32", 4), "=s32 u32 s32 s32");
  EXPECT_EQ(rules("mov.b64", 2), "=b64& b64&");
  EXPECT_EQ(rules("mov.v4.u32", 2), "=u32*4 u32*4");
  EXPECT_EQ(rules("selp.f64", 4), "=f64 f64 f64 pred");
}

TEST(OperandRules, GivePairsAndPredicates) {
  EXPECT_EQ(rules("setp.lt.f32", 3), "=pred|pred? f32 f32");
  EXPECT_EQ(rules("setp.lt.and.f32", 4), "=pred|pred? f32 f32 pred");
  EXPECT_EQ(rules("setp.lt.f16", 3), "=pred f16 f16");
  EXPECT_EQ(rules("setp.lt.f16x2", 3), "=pred|pred f16x2 f16x2");
  EXPECT_EQ(rules("shfl.sync.up.b32", 5), "=b32|pred? b32 b32 b32 u32");
  EXPECT_EQ(rules("elect.sync", 2), "=u32|pred u32");
  EXPECT_EQ(rules("vote.sync.ballot.b32", 3), "=b32 pred u32");
  EXPECT_EQ(rules("match.all.sync.b64", 3), "=b32|pred? b64 u32");
}

TEST(OperandRules, GiveSpacesOfAddresses) {
  EXPECT_EQ(rules("ld.shared::cluster.v2.f64", 2), "=~f64*2 @shared");
  EXPECT_EQ(rules("ld.u8", 2), "=~u8 @generic");
  EXPECT_EQ(rules("ld.const.u8", 2), "=~u8 @const");
  EXPECT_EQ(rules("st.param.b64", 2), "@param ~b64");
  EXPECT_EQ(rules("ld.global.L2::cache_hint.b32", 3), "=~b32 @global u64");
  EXPECT_EQ(rules("ld.global.b32", 3), "");  // a policy without .L2::cache_hint
  EXPECT_EQ(rules("atom.shared.cas.b64", 4), "=b64 @shared b64 b64");
  EXPECT_EQ(rules("red.global.add.noftz.v2.bf16x2", 2), "@global bf16x2*2");
  EXPECT_EQ(rules("cp.async.ca.shared.global", 3), "@shared @global #u32");
  EXPECT_EQ(rules("cp.async.ca.shared.global", 4), "@shared @global #u32 u32/pred");
  EXPECT_EQ(rules("cp.async.ca.shared.global.L2::cache_hint", 5), "@shared @global #u32 u32/pred u64");
  EXPECT_EQ(rules("cp.async.ca.shared.global.L2::cache_hint", 4), "@shared @global #u32 u64");
  EXPECT_EQ(rules("cp.async.bulk.global.shared::cta.bulk_group", 3), "@global @shared u32");
  EXPECT_EQ(rules("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", 4),
            "@shared @shared u32 @shared");
  EXPECT_EQ(rules("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::"
                  "cache_hint",
                  5),
            "@shared @generic:3 @shared u16 u64");
  EXPECT_EQ(rules("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group", 2), "@generic:5 @shared");
  EXPECT_EQ(rules("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes", 3),
            "@shared @generic:5 @shared");  // a column and four rows
}

TEST(OperandRules, FillOptionalOperandsFromTheLeft) {
  EXPECT_EQ(rules("bar.sync", 1), "u32");
  EXPECT_EQ(rules("bar.sync", 2), "u32 u32");
  EXPECT_EQ(rules("bar.sync", 3), "");
  EXPECT_EQ(rules("bar.sync", 0), "");
  EXPECT_EQ(rules("bar.red.popc.u32", 3), "=u32 u32 pred");      // the thread count is in the middle
  EXPECT_EQ(rules("bar.red.popc.u32", 4), "=u32 u32 u32 pred");  //
  EXPECT_EQ(rules("mbarrier.arrive.shared.b64", 2), "=u64 @shared");
  EXPECT_EQ(rules("mbarrier.arrive.shared.b64", 3), "=u64 @shared u32");
  EXPECT_EQ(rules("mbarrier.arrive.shared::cluster.b64", 2), "=_ @shared");  // no token for another CTA's barrier
  EXPECT_EQ(rules("mbarrier.try_wait.parity.shared.b64", 4), "=pred @shared u32 u32");
  EXPECT_EQ(rules("ret", 0), "");
  EXPECT_EQ(rules("ret", 1), "");
  EXPECT_EQ(rules("call.uni", 3), "-> -> ->");
  EXPECT_TRUE(operand_rules(understand("ret"), -1).empty());
}

// Register counts: m x k of A, k x n of B, m x n of C and D over 32 lanes (128 of a warpgroup).
TEST(OperandRules, CountTheRegistersOfAMatrix) {
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4), "=f32*4 b32*4 b32*2 f32*4");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 4), "=b32*2 b32*2 b32 b32*2");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4), "=f32*4 b32*4 b32*2 f32*4");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 4), "=f32*4 b32*4 b32*2 f32*4");
  EXPECT_EQ(rules("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", 4), "=s32*2 b32 b32 s32*2");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 4), "=s32*4 b32*4 b32*2 s32*4");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4), "=s32*4 b32*4 b32*2 s32*4");
  EXPECT_EQ(rules("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 4), "=f64*2 f64 f64 f64*2");
  EXPECT_EQ(rules("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 4), "=f64*4 f64*8 f64*4 f64*4");
  EXPECT_EQ(rules("ldmatrix.sync.aligned.m8n8.x2.shared.b16", 2), "=b32*2 @shared");
  EXPECT_EQ(rules("stmatrix.sync.aligned.m8n8.x4.shared.b16", 2), "@shared b32*4");
  // PTX ISA, "wmma": f16 inputs are eight registers in every shape, the other types as many as the elements need.
  EXPECT_EQ(rules("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", 4), "=b32*4 b32*8 b32*8 f32*8");
  EXPECT_EQ(rules("wmma.mma.sync.aligned.row.col.m32n8k16.f32.f32", 4), "=f32*8 b32*8 b32*8 f32*8");
  EXPECT_EQ(rules("wmma.mma.sync.aligned.row.col.m32n8k16.f32.bf16.bf16.f32", 4), "=f32*8 b32*8 b32*2 f32*8");
  EXPECT_EQ(rules("wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32", 4), "=s32*8 b32 b32*4 s32*8");
  EXPECT_EQ(rules("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", 4), "=f32*8 b32*4 b32*4 f32*8");
  EXPECT_EQ(rules("wmma.load.b.sync.aligned.col.m8n32k16.shared.s8", 3), "=b32*4 @shared u32");
  EXPECT_EQ(rules("wmma.load.a.sync.aligned.col.m8n32k16.shared.s8", 2), "=b32 @shared");
  EXPECT_EQ(rules("wmma.store.d.sync.aligned.row.m16n16k16.global.f16", 3), "@global b32*4 u32");
  EXPECT_EQ(rules("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 8),
            "+f32*128 b32*4/u64 u64 pred/u32 #s32 #s32 #u32 #u32");
  EXPECT_EQ(rules("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", 7),
            "+b32*2 b32*4/u64 u64 pred/u32 #s32 #s32 #u32");  // A in registers is not transposed
  EXPECT_EQ(rules("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32", 6), "+f32*8 b32*4/u64 u64 pred/u32 #s32 #s32");
  EXPECT_EQ(rules("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.u8", 4), "+s32*12 b32*4/u64 u64 pred/u32");
}

}  // namespace
}  // namespace kvscope::ptx::operand_rules_test
