// The tables of lab tasks are those of a real pager: no block holds two pages of a sequence.
#include "apps/labs/block_draw.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "apps/labs/course.h"
#include "apps/labs/graders.h"
#include "apps/labs/tma_case.h"
#include "core/base/json.h"
#include "core/base/random.h"

namespace kvscope::labs::block_draw_test {
namespace {

TEST(BlockDraw, GivesEachBlockOnce) {
  std::set<std::int64_t> used;
  std::int64_t next = 0;
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < 10; ++i) drawn.push_back(draw_block(used, [&] { return next++ / 3 % 10; }));  // each three times
  EXPECT_THAT(drawn, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Regression: the table row of many students named a block twice.
TEST(BlockDraw, TheTableRowOfLab01NamesNoBlockTwice) {
  Lab lab;
  lab.name = "address";
  const auto grader = address_grader(lab, {});
  for (int student = 0; student < 500; ++student) {
    const auto files = grader->task_files("student " + std::to_string(student));
    ASSERT_EQ(files.size(), 1u);
    const json::Value task = json::parse(files[0].text, "task.json");
    const json::Array& row = *task.find("table_row")->as_array();
    std::set<std::int64_t> blocks;
    for (const json::Value& block : row) {
      EXPECT_TRUE(blocks.insert(*block.as_i64()).second) << files[0].text;
      EXPECT_LT(*block.as_i64(), *task.find("blocks_without_the_null_page")->as_i64());
      EXPECT_GT(*block.as_i64(), 0);
    }
    EXPECT_EQ(blocks.size(), 6u);
  }
}

TEST(BlockDraw, ATileByTmaHasNoBlockTwice) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const std::int64_t pages : {1, 2, 4}) {
      const TmaCase made = make_tma(CounterRng(seed, 0), 9, pages);
      ASSERT_EQ(std::ssize(made.rows), 9 * pages);
      for (std::int64_t tile = 0; tile < 9; ++tile) {
        const auto first = made.rows.begin() + tile * pages;
        EXPECT_EQ(std::set<std::int32_t>(first, first + pages).size(), static_cast<std::size_t>(pages)) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::labs::block_draw_test
