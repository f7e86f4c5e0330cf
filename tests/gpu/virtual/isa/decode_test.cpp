#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::decode_test {
namespace {

std::string kernel(const std::string& body) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 px) {\n"
         ".reg .b32 r<8>; .reg .f32 f<8>; .reg .b64 rd<8>; .reg .pred p<4>;\n" +
         body + "\nret;\n}\n";
}

std::string file(const std::string& name) {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/isa/data/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Decode, DecodesEachWordOnce) {
  const Module module = parse_module(kernel("add.s32 r1, r1, 1;\nmov.u32 r2, 5;\nadd.s32 r2, r1, r2;"), "k.ptx");
  const Decoded d = decode(module);
  EXPECT_EQ(d.instrs.size(), 3u);  // add.s32, mov.u32, ret
  ASSERT_EQ(d.of.size(), 1u);
  EXPECT_EQ(d.of[0], (std::vector<std::int32_t>{0, 1, 0, 2}));
  EXPECT_EQ(d.at(0, 2).opcode, Opcode::add);
  EXPECT_EQ(d.at(0, 3).opcode, Opcode::ret);
  EXPECT_TRUE(d.errors.empty());
  EXPECT_TRUE(d.unsupported.empty());
}

// An unsupported statement is not an error of the file: it may never be reached.
TEST(Decode, ListsUnsupportedStatementsAndLoads) {
  const Module module = parse_module(
      kernel("mov.u32 r1, 0;\nmultimem.ld.sync.aligned;\nfoo.bar r1, r2;\nld.shared.v3.u32 r1, [r2];"), "k.ptx");
  const Decoded d = decode(module);
  EXPECT_TRUE(d.errors.empty());
  ASSERT_EQ(d.unsupported.size(), 3u);
  EXPECT_EQ(d.unsupported[0].statement, 1);
  EXPECT_EQ(d.unsupported[0].message, "needs memory of several GPUs, not modeled");
  EXPECT_EQ(d.unsupported[1].statement, 2);
  EXPECT_EQ(d.unsupported[1].message, "unknown opcode 'foo'");
  EXPECT_EQ(d.unsupported[2].statement, 3);
  EXPECT_EQ(d.unsupported[2].message, "unknown modifier '.v3'");
  EXPECT_EQ(d.at(0, 1).opcode, Opcode::unsupported);
}

// If the selectors were ignored, it would compute with the whole register.
TEST(Decode, PartsOfARegisterCannotRunAndTheWordWithoutThemCan) {
  const Module module = parse_module(kernel("vabsdiff4.u32.u32.u32 r1, r2, r3, r4;\n"
                                            "vabsdiff4.u32.u32.u32 r1, r2.b3210, r3, r4;"),
                                     "k.ptx");
  const Decoded d = decode(module);
  EXPECT_TRUE(d.errors.empty());
  ASSERT_EQ(d.unsupported.size(), 1u);
  EXPECT_EQ(d.unsupported[0].statement, 1);
  EXPECT_EQ(d.unsupported[0].message, "selects parts of a register, not modeled");
  EXPECT_TRUE(d.at(0, 0).unsupported.empty());
}

TEST(Decode, TellsOneErrorAStatementAndTwentyAtMost) {
  std::string body = "add.f64 r1, r1, r1;\n";  // three operands are wrong
  for (int i = 0; i < 30; ++i) body += "add.s32 r1, r1, f1;\n";
  const Module module = parse_module(kernel(body), "k.ptx");
  const Decoded d = decode(module);
  ASSERT_EQ(d.errors.size(), 20u);
  EXPECT_EQ(d.errors[0].message, "add.f64: operand 1 'r1' is 32 bits wide, expected 64");
  EXPECT_EQ(d.errors[0].at, (TextPlace{6, 1}));
  EXPECT_EQ(d.errors[1].at, (TextPlace{7, 1}));
  EXPECT_EQ(d.of[0].size(), module.functions[0].body.size());  // all are decoded in spite of the errors
}

// wgmma exists on sm_90a alone; 32-byte loads from sm_100 on.
TEST(Decode, HoldsInstructionsToTheTarget) {
  const Module wgmma = parse_module(kernel("wgmma.fence.sync.aligned;"), "k.ptx");
  EXPECT_TRUE(decode(wgmma, 90).unsupported.empty());
  ASSERT_EQ(decode(wgmma, 100).unsupported.size(), 1u);
  EXPECT_EQ(decode(wgmma, 100).unsupported[0].message, "needs sm_90a, this machine is sm_100");
  const Module wide = parse_module(kernel("ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [rd1];"), "k.ptx");
  EXPECT_TRUE(decode(wide, 100).unsupported.empty());
  ASSERT_EQ(decode(wide, 90).unsupported.size(), 1u);
  EXPECT_EQ(decode(wide, 90).unsupported[0].message, "needs sm_100, this machine is sm_90");
  const Module barrier = parse_module(kernel("barrier.cluster.arrive;"), "k.ptx");
  ASSERT_EQ(decode(barrier, 80).unsupported.size(), 1u);
  EXPECT_EQ(decode(barrier, 80).unsupported[0].message, "needs sm_90, this machine is sm_80");
}

// The two dialects of the compiler: f32 registers are .f32 for sm_90a and .b32 for sm_100a.
TEST(Decode, AcceptsTheOutputOfNvcc) {
  for (const char* name : {"block_sums.sm_90a.ptx", "block_sums.sm_100a.ptx"}) {
    const Module module = parse_module(file(name), name);
    const Decoded d = decode(module);
    EXPECT_TRUE(d.unsupported.empty()) << name << d.unsupported[0].message;
    EXPECT_TRUE(d.errors.empty()) << name << d.errors[0].message;
    std::map<Opcode, int> counts;
    for (const auto& function : d.of) {
      for (const std::int32_t i : function) ++counts[d.instrs[static_cast<std::size_t>(i)].opcode];
    }
    EXPECT_EQ(counts[Opcode::shfl], 5) << name;
    EXPECT_EQ(counts[Opcode::bar_sync], 1) << name;
    EXPECT_EQ(counts[Opcode::atom], 1) << name;
    EXPECT_EQ(counts[Opcode::fma], 1) << name;
    EXPECT_EQ(counts[Opcode::call], 1) << name;
    EXPECT_EQ(counts[Opcode::cvt], 2) << name;  // to f16 and back
  }
}

}  // namespace
}  // namespace kvscope::ptx::decode_test
