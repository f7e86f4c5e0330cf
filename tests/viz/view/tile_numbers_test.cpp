// Any number in an event of a tile that is not rejected: the tile view paints it, in bounded time and memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "core/base/errors.h"
#include "tests/viz/playback/changed_tiles.h"
#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/pool_scene.h"
#include "tests/whole_grid.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::tile_numbers_test {
namespace {

TEST(TileNumbers, ThatAreNotRejectedArePainted) {
  Staged staged{run_of(10, one_of_each())};
  const Panels panels = make_panels();
  staged.scene.view = View::tile;
  std::size_t painted = 0, texts = 0;
  testing_support::for_changed_tiles(test::grid_step(5), [&](const std::vector<trace::Event>& events) {
    Tile tile;
    try {
      tile = fold_tile(events);
    } catch (const InputError&) {
      return;
    }
    TileState now = tile_state(tile, tile.events / 2);
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
    staged.scene.pinned = of_token(tile.opened.seq, tile.opened.first_token);
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, staged.scene.pinned);
    TextDevice device({1600, 1000});
    QPainter painter(&device);
    paint_board(painter, {1600, 1000}, panels, staged.scene);
    painter.end();
    ++painted;
    texts += device.texts().size();
    staged.scene.tile = nullptr;
    staged.scene.tile_now = nullptr;
  });
  EXPECT_GT(painted, 100u);
  EXPECT_GT(texts, 20 * painted);
}

}  // namespace
}  // namespace kvscope::viz::tile_numbers_test
