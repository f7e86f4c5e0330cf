// The cells of a read and the pieces of a tile: every fill has a place and is found there, over every instruction that the
// tile view knows and over sizes down to 100 x 60.
#include "viz/geometry/registers_layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/dtype.h"
#include "tests/viz/geometry/staged_tile.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::registers_layout_test {
namespace {

using testing_support::staged_tile;
using testing_support::TileOrder;

const QRectF kBody(1000, 200, 354, 472);

template <class Check>
int for_each_tile(const Check& check) {
  int tiles = 0;
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        for (const std::int64_t head : {64, 128, 256}) {
          const auto tile = staged_tile({path, dtype, kv, path == StagingPath::tma ? 16 : 64, head, 64});
          if (!tile || tile->fills.empty()) continue;
          SCOPED_TRACE(fmt::format("{} {} {} head {}", path == StagingPath::tma ? "tma" : "lds", name(dtype),
                                   kv == KOrV::k ? "K" : "V", head));
          check(*tile);
          ++tiles;
          if (testing::Test::HasFailure()) return tiles;
        }
      }
    }
  }
  return tiles;
}

Tile bf16_k() {
  return *staged_tile({});
}

TEST(RegistersLayout, EveryFillOfEveryReadIsFoundWhereItIsDrawn) {
  const int tiles = for_each_tile([](const Tile& tile) {
    for (std::int64_t read = 0; read < std::ssize(tile.reads); read += 5) {
      const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
      const RegistersLayout layout = registers_layout(tile, read, std::nullopt, 0, QRectF(0, 0, 700, 1400), 1);
      ASSERT_EQ(layout.lines_shown(), layout.lines);
      for (std::int64_t fill = of.first_fill; fill < of.first_fill + of.fills; ++fill) {
        const auto rect = layout.cell(tile, fill);
        ASSERT_TRUE(rect) << fill;
        ASSERT_TRUE(layout.grid.contains(*rect)) << fill;
        ASSERT_EQ(layout.fill_at(tile, rect->center()), fill);
        // Both ends of it, too.
        ASSERT_EQ(layout.fill_at(tile, rect->topLeft() + QPointF(0.5, 0.5)), fill);
        ASSERT_EQ(layout.fill_at(tile, rect->bottomRight() - QPointF(0.5, 0.5)), fill);
      }
      // A fill of another read has no place.
      if (of.first_fill > 0) {
        EXPECT_FALSE(layout.cell(tile, of.first_fill - 1));
      }
    }
  });
  EXPECT_GE(tiles, 20);
}

TEST(RegistersLayout, CellsOfAReadDoNotOverlap) {
  for_each_tile([](const Tile& tile) {
    const TileRead& of = tile.reads.front();
    const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, kBody, 1);
    std::set<std::pair<int, int>> pixels;
    for (std::int64_t fill = of.first_fill; fill < of.first_fill + of.fills; ++fill) {
      const auto rect = layout.cell(tile, fill);
      if (!rect) continue;
      for (int y = static_cast<int>(rect->top()); y < static_cast<int>(rect->bottom()); y += 3) {
        for (int x = static_cast<int>(rect->left()); x < static_cast<int>(rect->right()); ++x) {
          ASSERT_TRUE(pixels.emplace(x, y).second) << fill << " at " << x << ' ' << y;
        }
      }
    }
  });
}

TEST(RegistersLayout, ElementsOfOneCellAreSideBySideInTheOrderOfTheRegister) {
  for_each_tile([](const Tile& tile) {
    const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, QRectF(0, 0, 900, 1400), 1);
    for (std::int64_t fill = 0; fill < tile.reads.front().fills; ++fill) {
      double left = 0;
      for (const TileElement& of : elements(tile.fills[static_cast<std::size_t>(fill)])) {
        const auto part = layout.element(tile, of);
        ASSERT_TRUE(part);
        ASSERT_GT(part->left(), left);
        ASSERT_TRUE(layout.cell(tile, fill)->contains(part->center()));
        left = part->left();
      }
    }
  });
}

TEST(RegistersLayout, LdmatrixOfKIsFourMatricesOfEightTokensByFourLanes) {
  const Tile tile = bf16_k();
  const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, kBody, 1);
  EXPECT_FALSE(layout.turned);
  EXPECT_EQ(layout.lines, 16);
  EXPECT_EQ(layout.units.size(), 8U);
  EXPECT_EQ(layout.per_cell, 2);
  // A wider gap between the matrices than between cells.
  const auto gap = [&](std::size_t n) { return layout.units[n].begin - layout.units[n - 1].end; };
  const auto below = [&](std::size_t n) { return layout.shown[n].begin - layout.shown[n - 1].end; };
  EXPECT_GT(gap(4), gap(3) + 2);
  EXPECT_GT(below(8), below(7) + 2);
  EXPECT_LT(below(9), below(8) - 2);
  // Lane 26 holds row 6, columns 4 and 5 in register 0.
  const auto fill = layout.fill_at(tile, layout.element(tile, {6, 4})->center());
  ASSERT_TRUE(fill);
  EXPECT_EQ(tile.fills[static_cast<std::size_t>(*fill)].reg, (TileRegister{0, 26, 0, 0}));
}

TEST(RegistersLayout, AReadThatTransposesHasItsColumnsDown) {
  const Tile tile = *staged_tile({.kv = KOrV::v});
  const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, kBody, 1);
  EXPECT_TRUE(layout.turned);
  EXPECT_EQ(layout.line(tile, 3), 3);    // column 3
  EXPECT_EQ(layout.across(tile, 1), 2);  // row 2
  // Rows of one column are neighbors in a line.
  EXPECT_EQ(layout.element(tile, {0, 3})->top(), layout.element(tile, {1, 3})->top());
  EXPECT_LT(layout.element(tile, {0, 3})->left(), layout.element(tile, {1, 3})->left());
}

TEST(RegistersLayout, PiecesCoverTheTileOnceAndAreFoundAgain) {
  for_each_tile([](const Tile& tile) {
    const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, QRectF(0, 0, 700, 1400), 1);
    ASSERT_FALSE(layout.pieces.empty());
    std::int64_t elements = 0;
    for (const RegisterPiece& piece : layout.pieces) {
      const TileRead& read = tile.reads[static_cast<std::size_t>(piece.read)];
      elements += read.rows * read.columns;
      ASSERT_EQ(layout.piece_at(piece.rect.center()), piece.read);
      for (const RegisterPiece& other : layout.pieces) {
        ASSERT_TRUE(other.read == piece.read || !other.rect.intersects(piece.rect));
      }
    }
    EXPECT_EQ(elements, tile.rows() * tile.columns());
  });
}

TEST(RegistersLayout, SeveralWavesHaveChipsAndTheirOwnPieces) {
  const Tile tile = *staged_tile({.path = StagingPath::lds, .page = 64});
  ASSERT_EQ(tile.waves(), 4);
  for (std::int64_t read = 0; read < std::ssize(tile.reads); ++read) {
    const RegistersLayout layout = registers_layout(tile, read, std::nullopt, 0, kBody, 1);
    EXPECT_EQ(layout.wave, tile.reads[static_cast<std::size_t>(read)].wave);
    ASSERT_EQ(layout.waves.size(), 4U);
    EXPECT_EQ(layout.wave_at(layout.waves[2].rect.center()), 2);
    for (const RegisterPiece& piece : layout.pieces) {
      EXPECT_EQ(tile.reads[static_cast<std::size_t>(piece.read)].wave, layout.wave);
    }
  }
  EXPECT_TRUE(registers_layout(bf16_k(), 0, std::nullopt, 0, kBody, 1).waves.empty());
}

TEST(RegistersLayout, EverythingIsInsideTheBodyAtEverySize) {
  for_each_tile([](const Tile& tile) {
    for (const QSizeF size :
         {QSizeF(100, 60), QSizeF(160, 120), QSizeF(294, 330), QSizeF(354, 472), QSizeF(900, 900)}) {
      for (const double scale : {0.75, 1.0, 1.6, 2.5}) {
        const QRectF body(QPointF(30, 40), size);
        const RegistersLayout layout = registers_layout(tile, 0, std::nullopt, 0, body, scale);
        ASSERT_GE(layout.lines_shown(), 1);
        const QRectF within = body.adjusted(-1, -1, 1, 1);
        for (const QRectF& part : {layout.axis, layout.words, layout.caption, layout.wave_name, layout.more}) {
          ASSERT_TRUE(part.isEmpty() || within.contains(part)) << size.width() << ' ' << scale;
        }
        for (const RegisterPiece& piece : layout.pieces) ASSERT_TRUE(within.contains(piece.rect));
        if (size.width() < 200) continue;  // a cell is at least a pixel wide
        ASSERT_LE(layout.grid.right(), within.right());
        // The grid alone may be one line too high.
        ASSERT_TRUE(layout.lines_shown() == 1 || layout.grid.bottom() <= within.bottom()) << scale;
      }
    }
  });
}

TEST(RegistersLayout, LinesThatDoNotFitAreScrolledToAndLeaveRoomForTheirNumber) {
  const Tile tile = *staged_tile({.path = StagingPath::lds, .page = 64});
  const QRectF low(0, 0, 294, 330);
  const RegistersLayout top = registers_layout(tile, 0, std::nullopt, 0, low, 1);
  ASSERT_LT(top.lines_shown(), top.lines);
  EXPECT_FALSE(top.more.isEmpty());
  EXPECT_EQ(top.first_line, 0);
  EXPECT_FALSE(top.element(tile, {31, 0}));
  for (std::int64_t row = 0; row < 32; ++row) {
    EXPECT_TRUE(registers_layout(tile, 0, TileElement{row, 0}, 0, low, 1).element(tile, {row, 0})) << row;
  }
  EXPECT_EQ(registers_layout(tile, 0, std::nullopt, 2, low, 1).first_line, 2);
  EXPECT_EQ(registers_layout(tile, 0, std::nullopt, 1000, low, 1).first_line, top.lines - top.lines_shown());
  EXPECT_EQ(registers_layout(tile, 0, std::nullopt, -5, low, 1).first_line, 0);
}

TEST(RegistersLayout, TheReadFollowsTheSelectionAndThenThePlayhead) {
  const Tile tile = bf16_k();
  const TileState start = tile_state(tile, 0), end = tile_state(tile, tile.events);
  EXPECT_EQ(read_of_grid(tile, start, {}), 0);
  EXPECT_EQ(read_of_grid(tile, end, {}), std::ssize(tile.reads) - 1);
  LitTile lit;
  lit.registers = {TileRegister{0, 26, 9, 0}, TileRegister{0, 26, 20, 0}};
  EXPECT_EQ(read_of_grid(tile, start, lit), 2);  // registers 8 to 11
  // The one that is being read is shown rather than the first.
  EXPECT_EQ(read_of_grid(tile, tile_state(tile, tile.reads[5].event + 10), lit), 5);
  const Tile f32 = *staged_tile({.dtype = DType::f32});
  EXPECT_FALSE(read_of_grid(f32, tile_state(f32, f32.events), {}));
}

TEST(RegistersLayout, RegistersOfAnEarlierStepAreOverwritten) {
  const Tile tile = *staged_tile({.head_size = 256});  // 16 k-steps of 16 registers, 4 reads each
  ASSERT_GT(tile.fragments->steps, 1);
  const TileState before = tile_state(tile, tile.reads[4].event), after = tile_state(tile, tile.reads[4].event + 1);
  EXPECT_FALSE(overwritten(tile, before, 0));
  EXPECT_TRUE(overwritten(tile, after, 0));
  EXPECT_FALSE(overwritten(tile, after, 1));
  const TileState end = tile_state(tile, tile.events);
  for (std::int64_t read = 0; read < std::ssize(tile.reads); ++read) {
    EXPECT_EQ(overwritten(tile, end, read), read < std::ssize(tile.reads) - 4) << read;
  }
  const Tile whole = bf16_k();
  EXPECT_FALSE(overwritten(whole, tile_state(whole, whole.events), 0));
}

}  // namespace
}  // namespace kvscope::viz::registers_layout_test
