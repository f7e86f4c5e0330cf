// The picture of a failing interleaving: statements in the columns of their waves, and what the read lacks.
#include "apps/labs/wave_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvscope::labs::wave_picture_test {
namespace {

// The program of the handout's example: a barrier, and no wait.
WaveFault fault_of_program(const std::string& text, const WaveBlock& block, WaveFaultKind kind) {
  const WaveProgram program = WaveProgram::parse(text, "schedule.txt");
  std::vector<std::vector<WaveOp>> ops;
  for (std::int64_t w = 0; w < block.waves(); ++w) ops.push_back(program.unroll(block, w));
  const WaveSearch search = search_interleavings(ops);
  const auto& fault = search.faults[static_cast<std::size_t>(kind)];
  EXPECT_TRUE(fault.has_value());
  return fault.value_or(WaveFault());
}

const WaveBlock kBlock{1, {1, 1}, {1, 1}};

TEST(WavePicture, HasEachStatementInTheColumnOfItsWaveAndMarksTheLast) {
  const WaveFault fault = fault_of_program("tile\n  issue K i into 0\n  barrier\n  read K i from 0\n  compute scores\n",
                                           kBlock, WaveFaultKind::own_copy);
  const CasePicture picture = wave_picture(kBlock, fault);
  ASSERT_EQ(picture.grids.size(), 2U);
  const PictureGrid& steps = picture.grids[0];
  ASSERT_EQ(steps.rows.size(), fault.steps.size());
  for (std::size_t i = 0; i < steps.rows.size(); ++i) {
    const WaveStep& step = fault.steps[i];
    for (std::size_t w = 0; w < 2; ++w) {
      const bool executes = step.wave < 0 || step.wave == static_cast<std::int64_t>(w);
      EXPECT_EQ(steps.rows[i].cells[w].text, executes ? to_text(step.op) : "");
      EXPECT_EQ(steps.rows[i].cells[w].mark == CellMark::wrong, executes && i + 1 == steps.rows.size());
    }
  }
  const PictureRow& stage = picture.grids[1].rows[0];
  EXPECT_EQ(stage.heading, "K stage 0, read");
  EXPECT_EQ(stage.cells[0].note, "1 in flight");
  EXPECT_EQ(stage.cells[0].mark, CellMark::wrong);
  EXPECT_EQ(picture.grids[1].rows[3].cells[0].text, "empty");
  EXPECT_EQ(picture.grids[1].rows[3].cells[0].mark, CellMark::plain);
}

// Own copies have landed; the part of the other wave has not.
TEST(WavePicture, MarksOnlyThePartThatIsMissing) {
  const WaveFault fault =
      fault_of_program("tile\n  issue K i into 0\n  barrier\n  wait vmcnt(0)\n  read K i from 0\n  compute scores\n",
                       kBlock, WaveFaultKind::other_copy);
  const CasePicture picture = wave_picture(kBlock, fault);
  ASSERT_EQ(picture.grids.size(), 2U);
  const auto reader = static_cast<std::size_t>(fault.steps.back().wave);
  const PictureRow& stage = picture.grids[1].rows[0];
  EXPECT_EQ(stage.cells[reader].note, "landed");
  EXPECT_EQ(stage.cells[reader].mark, CellMark::plain);
  EXPECT_EQ(stage.cells[1 - reader].note, "1 in flight");
  EXPECT_EQ(stage.cells[1 - reader].mark, CellMark::wrong);
}

TEST(WavePicture, IsEmptyWithoutSteps) {
  EXPECT_TRUE(wave_picture(kBlock, WaveFault()).empty());
}

}  // namespace
}  // namespace kvscope::labs::wave_picture_test
