// Compares with the assembler of CUDA 13.0 (13.0.88, sm_90a and sm_100a); its recorded results are in data/.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::assembler_test {
namespace {

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/isa/data/" + file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

// The registers that the statements of data/operands.txt and operands_sm_100a.txt use.
std::string kernel_with(const std::string& statement, int target) {
  return ".version 9.0\n.target sm_" + std::to_string(target) +
         "a\n.address_size 64\n"
         ".visible .entry k(.param .b128 px) .maxnreg 64 {\n"
         ".reg .b8 %rb8_<8>; .reg .b128 %rb128_<8>; .reg .u32 %ru32_<8>; .reg .f32 %rf32_<8>;\n"
         ".reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; .reg .b16 %h<8>; .reg .pred %p<9>;\n"
         ".shared .b32 sh[8]; .local .b32 lo[8]; .reg .v4 .f32 vf; .reg .v2 .b32 vb;\n" +
         statement + ";\nLAB: ret;\n}\n";
}

// "": accepted.
std::string rejection(const std::string& statement, int target = 90) {
  const Parsed parsed = parse_text(kernel_with(statement, target), "t.ptx");
  if (!parsed.errors.empty()) return parsed.errors[0].message;
  const Decoded decoded = decode(parsed.module, target);
  if (!decoded.errors.empty()) return decoded.errors[0].message;
  if (!decoded.unsupported.empty()) return decoded.unsupported[0].message;
  return "";
}

// Kinds, widths, classes and ranges of operands: 300 statements. A fault here rejects output of nvcc, or runs
// statements that no GPU would.
TEST(Assembler, AcceptsAndRejectsTheSameStatements) {
  int asked = 0;
  for (const std::string& line : lines_of("operands.txt")) {
    const bool accepted = line.starts_with("ok ");
    const std::string statement = line.substr(3);
    const std::string message = rejection(statement);
    EXPECT_EQ(message.empty(), accepted) << statement << "\n  " << message;
    ++asked;
  }
  EXPECT_GT(asked, 250);
}

// cvt.rs and the copies of four rows, which sm_90a does not have.
TEST(Assembler, AcceptsAndRejectsTheSameStatementsForSm100a) {
  int accepted = 0, rejected = 0;
  for (const std::string& line : lines_of("operands_sm_100a.txt")) {
    const bool takes = line.starts_with("ok ");
    (takes ? accepted : rejected)++;
    const std::string statement = line.substr(3);
    const std::string message = rejection(statement, 100);
    EXPECT_EQ(message.empty(), takes) << statement << "\n  " << message;
    if (takes) {
      EXPECT_NE(rejection(statement, 90), "") << statement;
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(rejected, 45);
}

// Opcode words alone: derived from the grammar and, by adding, dropping and exchanging words, close to it.
TEST(Assembler, AcceptsAndRejectsTheSameWords) {
  int accepted = 0;
  int rejected = 0;
  for (const std::string& line : lines_of("words.txt")) {
    const bool takes = line.starts_with("ok ");
    (takes ? accepted : rejected)++;
    const Instr instr = understand(line.substr(3));
    EXPECT_EQ(instr.unsupported.empty(), takes) << line << "  " << instr.unsupported;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(rejected, 1000);
}

}  // namespace
}  // namespace kvscope::ptx::assembler_test
