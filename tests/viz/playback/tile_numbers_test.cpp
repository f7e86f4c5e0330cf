// Any number in an event of a tile: the tile is rejected, or everything that panels ask of it has an answer. Under the
// sanitizers a sum that overflows and an index outside of an array end the test.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "core/base/errors.h"
#include "tests/viz/playback/changed_tiles.h"
#include "tests/viz/playback/support.h"
#include "tests/viz/playback/tile_questions.h"
#include "tests/whole_grid.h"
#include "viz/playback/tile_fold.h"

namespace kvscope::viz::tile_numbers_test {
namespace {

using namespace testing_support;

TEST(TileNumbers, AreRejectedOrEveryQuestionHasAnAnswer) {
  const Facts facts = small_facts();
  for (const std::vector<trace::Event>& events : tiles_to_change()) ask_tile(fold_tile(events), facts);
  std::size_t accepted = 0, rejected = 0;
  for_changed_tiles(test::grid_step(7), [&](const std::vector<trace::Event>& events) {
    try {
      ask_tile(fold_tile(events), facts);
      ++accepted;
    } catch (const InputError&) {
      ++rejected;
    }
  });
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(rejected, 100u);
}

}  // namespace
}  // namespace kvscope::viz::tile_numbers_test
