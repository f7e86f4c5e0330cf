// Sparse and block-scaled matrix products, and conversions of 8, 6 and 4 bits: the statements of data/matrix_operands.txt,
// and whether ptxas accepts them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::matrix_forms_test {
namespace {

// "": accepted. The target is written as in PTX: sm_90a.
std::string rejection(const std::string& target, const std::string& statement) {
  const Parsed parsed = parse_text(
      ".version 9.0\n.target " + target + "\n.address_size 64\n.visible .entry k(.param .u64 q) {\n" +
          ".reg .b32 r<140>; .reg .b64 d<140>; .reg .pred p<4>; .reg .f32 f<140>; .reg .b16 h<9>; .reg .b8 c<5>;\n" +
          statement + ";\nret;\n}\n",
      "t.ptx");
  if (!parsed.errors.empty()) return parsed.errors[0].message;
  const Decoded decoded = decode(parsed.module, std::stoi(target.substr(3)));
  if (!decoded.errors.empty()) return decoded.errors[0].message;
  if (!decoded.unsupported.empty()) return decoded.unsupported[0].message;
  return "";
}

// "ok sm_90a statement" or "no sm_90a statement".
TEST(MatrixForms, AreAcceptedAsByTheAssembler) {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/isa/data/matrix_operands.txt");
  int accepted = 0, rejected = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string verdict, target, statement;
    words >> verdict >> target;
    std::getline(words, statement);
    const std::string why = rejection(target, statement);
    EXPECT_EQ(why.empty(), verdict == "ok") << line << "\n  " << why;
    (verdict == "ok" ? accepted : rejected)++;
  }
  EXPECT_GT(accepted, 60);
  EXPECT_GT(rejected, 40);
}

TEST(MatrixForms, NameTheWrongSelectorByteAndLane) {
  const std::string sparse =
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3},{r0,r1},{r2,r3},{f0,f1,f2,f3},";
  EXPECT_EQ(rejection("sm_90a", sparse + "r5,4"), "the sparsity selector must be 0 to 3");
  EXPECT_EQ(rejection("sm_90a", sparse + "5,0"), "the metadata of A must be a register");
  const std::string scaled =
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 "
      "{f0,f1,f2,f3},{r0,r1,r2,r3},{r2,r3},{f0,f1,f2,f3},r5,";
  EXPECT_EQ(rejection("sm_120a", scaled + "{1,0},r6,{0,0}"), "the byte of the scales must be 0 to 3, a multiple of 2");
  EXPECT_EQ(rejection("sm_120a", scaled + "{0,2},r6,{0,0}"), "the lane of the scales of A must be 0 to 1");
  EXPECT_EQ(rejection("sm_90a", scaled + "{0,0},r6,{0,0}"), "needs sm_120a, this machine is sm_90");
}

}  // namespace
}  // namespace kvscope::ptx::matrix_forms_test
