#include "apps/labs/wave_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.h"

namespace kvscope::labs::wave_program_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const WaveBlock kBlock{3, {4, 2}, {6, 3}};  // 3 tiles by two waves, the second of which copies half as much

std::vector<std::string> texts(const std::string& program, std::int64_t wave = 0) {
  std::vector<std::string> result;
  for (const WaveOp& op : WaveProgram::parse(program, "p").unroll(kBlock, wave)) result.push_back(to_text(op));
  return result;
}

std::string fault_of(const std::string& program) {
  try {
    (void)WaveProgram::parse(program, "p").unroll(kBlock, 0);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// One statement of a wait shows the value of an expression.
std::string waits_for(const std::string& expression) {
  return texts("start\n wait vmcnt(" + expression + ")\ntile").at(0);
}

TEST(WaveProgram, ExecutesStartOnceAndTheRestForEachTile) {
  EXPECT_THAT(texts("start\n issue K 0 into 0\ntile\n read K i from i % 2 # a comment\n barrier when i == 1\n"),
              ElementsAre("issue K 0 into 0", "read K 0 from 0", "read K 1 from 1", "barrier", "read K 2 from 0"));
}

TEST(WaveProgram, NamesHaveTheValuesOfTheWave) {
  EXPECT_THAT(
      texts("start\n wait vmcnt(k_copies)\n wait vmcnt(v_copies + 10 * wave)\n wait vmcnt(waves * tiles)\ntile", 1),
      ElementsAre("wait vmcnt(2)", "wait vmcnt(13)", "wait vmcnt(6)"));
}

// Without precedence 2 + 3 * 4 were 20; rounded toward zero -7 / 2 were -3 and -7 % 2 were -1.
TEST(WaveProgram, ComputesExpressions) {
  EXPECT_EQ(waits_for("2 + 3 * 4"), "wait vmcnt(14)");
  EXPECT_EQ(waits_for("(2 + 3) * 4"), "wait vmcnt(20)");
  EXPECT_EQ(waits_for("20 - 3 - 4"), "wait vmcnt(13)");
  EXPECT_EQ(waits_for("10 + (0 - 7) / 2"), "wait vmcnt(6)");
  EXPECT_EQ(waits_for("(0 - 7) % 2"), "wait vmcnt(1)");
  EXPECT_EQ(waits_for("40 / 3 / 2"), "wait vmcnt(6)");
}

TEST(WaveProgram, JoinsConditions) {
  EXPECT_THAT(texts("tile\n barrier when i > 0 and i + 1 < tiles\n wait vmcnt(i) when i >= 1 and i != 2\n"),
              ElementsAre("barrier", "wait vmcnt(1)"));
  EXPECT_THAT(texts("tile\n wait vmcnt(i) when i <= 0\n wait vmcnt(9) when wave == 1\n"), ElementsAre("wait vmcnt(0)"));
}

TEST(WaveProgram, RejectsFaultsByLine) {
  EXPECT_THAT(fault_of("tile\n red K i from 0"), HasSubstr("line 2: 'red' is no statement: did you mean \"read\"?"));
  EXPECT_THAT(fault_of("tile\n read Q i from 0"), HasSubstr("line 2: 'Q' is no operand"));
  EXPECT_THAT(fault_of("tile\n read K i into 0"), HasSubstr("line 2: expected 'from', not 'into'"));
  EXPECT_THAT(fault_of("tile\n issue K i"), HasSubstr("expected 'into', not 'the end of the line'"));
  EXPECT_THAT(fault_of("tile\n wait 4"), HasSubstr("expected 'vmcnt', not '4'"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(4"), HasSubstr("expected ')'"));
  EXPECT_THAT(fault_of("tile\n barrier now"), HasSubstr("'now' follows a statement that is complete"));
  EXPECT_THAT(fault_of("tile\n barrier when i"), HasSubstr("comparison is missing"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(copies)"), HasSubstr("'copies' is no number and no name"));
  EXPECT_THAT(fault_of("tile\n compute score"), HasSubstr("'score' is no computation: did you mean \"scores\"?"));
  EXPECT_THAT(fault_of("start\n wait vmcnt(i)\ntile"), HasSubstr("line 2: 'i' has no value before the first tile"));
  EXPECT_THAT(fault_of("start\n compute scores\ntile"), HasSubstr("no tile is computed before the first one"));
  EXPECT_THAT(fault_of("barrier"), HasSubstr("line 1: a statement before 'start' or 'tile'"));
  EXPECT_THAT(fault_of("tile\ntile"), HasSubstr("'tile' occurs twice"));
  EXPECT_THAT(fault_of("tile\nstart"), HasSubstr("'start' must be the first line"));
  EXPECT_THAT(fault_of("# nothing"), HasSubstr("has no line 'tile'"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(12345678)"), HasSubstr("the number 12345678 is larger than 1000000"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(" + std::string(60, '(') + "1"), HasSubstr("more than 40 parentheses"));
}

// A submission of 256 KiB does not fill the report.
TEST(WaveProgram, CutsLongWordsInMessages) {
  for (const char* const line : {"tile\n ", "tile\n wait vmcnt(", "tile\n barrier "}) {
    EXPECT_LT(fault_of(line + std::string(100'000, 'x')).size(), 300U);
  }
  EXPECT_LT(fault_of("tile\n wait vmcnt(" + std::string(100'000, '1')).size(), 300U);
}

TEST(WaveProgram, CollectsTheFaultsOfAllLines) {
  const std::string fault = fault_of("tile\n red K i from 0\n barrier\n wait 4\n");
  EXPECT_THAT(fault, HasSubstr("line 2"));
  EXPECT_THAT(fault, HasSubstr("line 4"));
}

TEST(WaveProgram, RejectsValuesOutOfRange) {
  EXPECT_THAT(fault_of("tile\n issue K i + 1 into 0"),
              HasSubstr("line 2: tile 3 is outside [0, 2] in a run of 3 tiles"));
  EXPECT_THAT(fault_of("tile\n read V i from i"), HasSubstr("stage 2 is outside [0, 1]"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(64)"), HasSubstr("vmcnt(64) is outside [0, 63]"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(0 - 1)"), HasSubstr("vmcnt(-1) is outside [0, 63]"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(4 / i)"), HasSubstr("4 / 0"));
  EXPECT_THAT(fault_of("tile\n wait vmcnt(1000 * 1000 * 1000)"), HasSubstr("the value 1000000000 is outside"));
}

}  // namespace
}  // namespace kvscope::labs::wave_program_test
