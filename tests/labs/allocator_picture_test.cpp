#include "apps/labs/allocator_picture.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

namespace kvscope::labs::allocator_picture_test {
namespace {

const PoolScript& walk() {
  static const PoolScript script =
      random_walk({.blocks = 5, .page_size = 2, .calls = 40, .publishes = true, .evicts = true}, CounterRng(5, 1));
  return script;
}

// What the class of a student reports does not decide the next call: whether an append needs a block follows from the
// tokens, and what a share finds from the hashes.
TEST(PoolContents, PredictsWhatTheNextCallReturns) {
  const PoolScript& script = walk();
  ASSERT_EQ(script.contents.size(), script.states.size());
  int shares = 0, appends = 0;
  for (std::size_t i = 0; i < script.calls.size(); ++i) {
    const PoolCall& call = script.calls[i];
    const PoolContents& before = script.contents[i];
    const PoolState& after = script.states[i + 1];
    if (call.kind == PoolCall::Kind::share) {
      const auto found = before.found.find(call.other);
      EXPECT_EQ(after.result, found == before.found.end() ? kNoBlock : found->second) << i;
      ++shares;
    }
    if (call.kind != PoolCall::Kind::append || after.result == kNoBlock) continue;
    const auto tokens = before.tokens.find(call.sequence);
    const std::int64_t stored = tokens == before.tokens.end() ? 0 : tokens->second;
    EXPECT_EQ(static_cast<std::int64_t>(after.pages.at(call.sequence).size()), stored / script.page_size + 1) << i;
    ++appends;
  }
  EXPECT_GT(shares, 2);
  EXPECT_GT(appends, 5);
}

// A picture that draws the student's state as expected, or marks every block, does not show the fault.
TEST(AllocatorPicture, MarksTheBlocksThatDifferAndNoOthers) {
  const PoolScript& script = walk();
  for (std::size_t call = 0; call < script.calls.size(); ++call) {
    PoolState given = script.states[call + 1];
    if (given.free.size() < 2) continue;
    std::swap(given.free[0], given.free[1]);
    const PictureGrid grid = allocator_picture(script, call, given).grids.at(0);
    ASSERT_GE(grid.rows.size(), 3U);
    const PictureRow& right = grid.rows[grid.rows.size() - 2];
    const PictureRow& wrong = grid.rows.back();
    for (std::int64_t block = 0; block < script.blocks; ++block) {
      const bool differs = block == given.free[0] || block == given.free[1];
      const auto at = static_cast<std::size_t>(block);
      EXPECT_EQ(right.cells[at].mark == CellMark::expected, differs) << call << " block " << block;
      EXPECT_EQ(wrong.cells[at].mark == CellMark::wrong, differs) << call << " block " << block;
    }
  }
}

TEST(AllocatorPicture, ShowsAWrongCountOfHoldersAndALostBlock) {
  PoolScript script = walk();
  PoolState given = script.states[1];
  given.holders[0] = 7;
  const std::int64_t lost = given.free.back();
  given.free.pop_back();
  const PictureRow wrong = allocator_picture(script, 0, given).grids.at(0).rows.back();
  EXPECT_EQ(wrong.cells[0].note, "holders() is 7");
  EXPECT_EQ(wrong.cells[0].mark, CellMark::wrong);
  EXPECT_EQ(wrong.cells[static_cast<std::size_t>(lost)].text, "lost");
}

}  // namespace
}  // namespace kvscope::labs::allocator_picture_test
