// The registers panel of a tile that wgmma reads through descriptors: the core matrices of core/fragment's addresses, in
// a tile staged by core/staging. Every cell leads to the chunk at its address and back.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "core/fragment/wgmma_descriptor.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/pool_scene.h"
#include "viz/geometry/operand_layout.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/operand_paint.h"
#include "viz/view/panel.h"

namespace kvscope::viz::operand_panel_test {
namespace {

constexpr std::int64_t kKeys = 64, kDims = 64, kDepth = 16;
const QRectF kBody(20, 20, 360, 470);

// B of S = Q K^T: 64 keys are the columns, 16 dims of each are k. Four products read the tile.
std::vector<trace::Event> wgmma_events() {
  testing_support::TileOrder order;
  order.head_size = kDims;
  std::vector<trace::Event> events = testing_support::staged_for_wgmma(order);
  for (std::int64_t read = 0; read < kDims / kDepth; ++read) {
    const WgmmaDescriptor descriptor{2 * kDepth * read, 16, 1024, 0, SwizzleMode::b128};
    trace::OperandRead e;
    e.read = read;
    e.operand = 1;
    e.start = descriptor.start;
    e.leading = descriptor.leading;
    e.stride = descriptor.stride;
    e.span = 128;
    e.lines = kKeys;
    e.depth = kDepth;
    events.emplace_back(e);
    for (std::int64_t key = 0; key < kKeys; ++key) {
      for (std::int64_t k = 0; k < kDepth; k += 8) {
        events.emplace_back(trace::OperandChunk{read, key, k, wgmma_address(descriptor, WgmmaMajor::k, 2, key, k)});
      }
    }
  }
  return events;
}

struct OperandScene {
  Staged staged{run_of(10, one_of_each())};
  Tile tile = fold_tile(wgmma_events());
  TileState now = tile_state(tile, tile.events);
  OperandScene() {
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
  }
  void pin(const Selection& selection) {
    staged.scene.pinned = selection;
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, selection);
  }
};

TEST(OperandPanel, EveryCoreMatrixCellLeadsToTheKeyAndDimsOfItsAddressAndBack) {
  OperandScene of;
  ASSERT_TRUE(shows_operands(of.tile));
  const std::unique_ptr<Panel> panel = make_registers_panel();
  for (std::int64_t operand = 0; operand < 4; ++operand) {
    of.pin(of_tile_chunk({5, operand * kDepth}));
    const auto at = operand_now(kBody, of.staged.scene);
    ASSERT_TRUE(at);
    ASSERT_EQ(at->operand, operand) << "the product that reads the selected chunk";
    EXPECT_EQ(at->down, kKeys);
    EXPECT_EQ(at->across, 2);
    const TileOperand& shown = of.tile.operands[static_cast<std::size_t>(operand)];
    for (std::int64_t n = shown.first_chunk; n < shown.first_chunk + shown.chunks; ++n) {
      const TileOperandChunk& chunk = of.tile.operand_chunks[static_cast<std::size_t>(n)];
      const QRectF rect = at->rect_of(of.tile, n);
      ASSERT_TRUE(kBody.contains(rect)) << n;
      const Selection expected = of_tile_chunk({chunk.line, operand * kDepth + chunk.k});
      ASSERT_EQ(panel->hit(rect.center(), kBody, of.staged.scene), expected);
      const Lit lit = resolve(of.staged.scene.state(), of.staged.scene.facts(), &of.tile, expected);
      ASSERT_EQ(panel->anchor(lit, kBody, of.staged.scene), rect);
    }
    const TileRead& read = of.tile.reads[static_cast<std::size_t>(shown.read)];
    EXPECT_EQ(read.row, 0);
    EXPECT_EQ(read.rows, kKeys);
    EXPECT_EQ(read.column, operand * kDepth);
    EXPECT_EQ(read.columns, kDepth);
  }
}

TEST(OperandPanel, CellsHaveNamesAndPiecesLeadToOtherProducts) {
  OperandScene of;
  of.pin(of_tile_chunk({5, 0}));
  const std::unique_ptr<Panel> panel = make_registers_panel();
  const std::vector<PanelCell> cells = panel->cells(kBody, of.staged.scene, 10'000);
  ASSERT_EQ(cells.size(), 128U + 3U);
  for (const PanelCell& cell : cells) {
    EXPECT_FALSE(cell.name.isEmpty());
    EXPECT_EQ(panel->hit(cell.rect.center(), kBody, of.staged.scene), cell.object);
  }
  EXPECT_EQ(cells.back().object, of_tile_chunk({0, 3 * kDepth}));
  EXPECT_TRUE(panel->summary(of.staged.scene).contains(QStringLiteral("4 of 4 operands")));
  EXPECT_EQ(panel->subtitle(of.staged.scene), QStringLiteral("wgmma"));
  EXPECT_EQ(chain(of.tile, of.now, of.staged.scene.pinned_lit.tile).find("lane"), std::string::npos);
}

// Half of the second product's chunks have been read: the ones before are there, the others are not.
TEST(OperandPanel, AnOperandArrivesChunkByChunk) {
  const Tile tile = fold_tile(wgmma_events());
  const TileRead& second = tile.reads[1];
  const TileState now = tile_state(tile, second.event + 1 + 64);
  EXPECT_EQ(now.operand_chunks, 128 + 64);
  EXPECT_EQ(arrival_of_read(tile, now, 0), Arrival::there);
  EXPECT_EQ(arrival_of_read(tile, now, 1), Arrival::moving);
  EXPECT_EQ(arrival_of_read(tile, now, 2), Arrival::outlined);
  EXPECT_EQ(shown_operand(tile, now, {}), 1);
}

TEST(OperandFold, ChunksBelongToAnOperandRightBeforeThem) {
  std::vector<trace::Event> events = wgmma_events();
  events.emplace_back(trace::OperandChunk{7, 0, 0, 0});
  EXPECT_THROW(static_cast<void>(fold_tile(events)), InputError);
  events = wgmma_events();
  events.emplace_back(trace::OperandChunk{3, -1, 0, 0});
  EXPECT_THROW(static_cast<void>(fold_tile(events)), InputError);
}

}  // namespace
}  // namespace kvscope::viz::operand_panel_test
