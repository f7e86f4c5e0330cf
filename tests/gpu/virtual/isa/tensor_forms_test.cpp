// Forms of tcgen05 and cluster launch control: the statements of data/tensor_operands.txt, and whether ptxas accepts
// them.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::tensor_forms_test {
namespace {

std::string kernel_with(const std::string& statement) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 q) {\n"
         ".reg .b32 r<140>; .reg .b64 d<10>; .reg .pred p<4>; .reg .b128 b<3>; .reg .f32 f<10>; .reg .b16 h<9>;\n"
         ".shared .align 128 .b8 s[1024];\n" +
         statement + "\nret;\n}\n";
}

// "": accepted.
std::string rejection(const std::string& statement, int target = 100) {
  const Parsed parsed = parse_text(kernel_with(statement), "t.ptx");
  if (!parsed.errors.empty()) return parsed.errors[0].message;
  const Decoded decoded = decode(parsed.module, target);
  if (!decoded.errors.empty()) return decoded.errors[0].message;
  if (!decoded.unsupported.empty()) return decoded.unsupported[0].message;
  return "";
}

// "ok statement": accepted by ptxas and supported. "no statement": neither. "un statement": accepted, and unsupported
// by name.
TEST(TensorForms, AreAcceptedAsByTheAssembler) {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/isa/data/tensor_operands.txt");
  int count = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++count;
    const std::string verdict = line.substr(0, 2), statement = line.substr(3), why = rejection(statement);
    if (verdict == "ok") {
      EXPECT_EQ(why, "") << statement;
    } else if (verdict == "un") {
      EXPECT_NE(why.find("not modeled"), std::string::npos) << statement << ": " << why;
    } else {
      EXPECT_NE(why, "") << statement;
    }
  }
  EXPECT_GT(count, 100);
}

TEST(TensorForms, NeedSm100aAndNothingLater) {
  const std::string wait = "tcgen05.wait::ld.sync.aligned;";
  EXPECT_EQ(rejection(wait, 90), "needs sm_100a, this machine is sm_90");
  EXPECT_EQ(rejection(wait, 103), "");
  EXPECT_EQ(rejection(wait, 120), "needs sm_100a, this machine is sm_120");
  const std::string query = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p0, b0;";
  EXPECT_EQ(rejection(query, 90), "needs sm_100, this machine is sm_90");
  EXPECT_EQ(rejection(query, 120), "");
}

TEST(TensorForms, SayWhatIsWrong) {
  EXPECT_EQ(rejection("tcgen05.alloc.cta_group::1.sync.aligned.b32 [r0], 48;"),
            "column count must be a power of two from 32 to 512");
  EXPECT_EQ(rejection("tcgen05.ld.sync.aligned.16x256b.x1.b32 {r0, r1}, [r2];"),
            "tcgen05.ld.sync.aligned.16x256b.x1.b32: operand 1 has 2 elements, expected 4");
  EXPECT_EQ(rejection("tcgen05.mma.cta_group::1.kind::f16 [r0], d0, d1, r1, p0, 16;"),
            "the scale of D must be a number from 0 to 15");
}

}  // namespace
}  // namespace kvscope::ptx::tensor_forms_test
