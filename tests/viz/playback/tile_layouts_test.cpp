// Layouts of shared memory that a tile does not have: each place and each count against the same tile staged with that
// swizzle, and against core/smem's banks.
#include "viz/playback/tile_layouts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/smem/banks.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/whole_grid.h"

namespace kvscope::viz::tile_layouts_test {
namespace {

using testing_support::staged_tile;
using testing_support::TileOrder;

std::string layout_name(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::none:
      return "none";
    case SwizzleMode::b32:
      return "32B";
    case SwizzleMode::b64:
      return "64B";
    default:
      return "128B";
  }
}

const TileLayout* find_layout(const std::vector<TileLayout>& layouts, const std::string& name) {
  const auto found = std::ranges::find(layouts, name, &TileLayout::name);
  return found != layouts.end() ? &*found : nullptr;
}

std::int64_t cycles(const Tile& tile) {
  std::int64_t all = 0;
  for (const TileRead& read : tile.reads) all += read.cycles;
  return all;
}

// A band of 32 bytes whose rows were taken for those of 128, or a swizzle of the wrong bits, would move the first chunk
// of the second row. The tile that is compared is staged by core/staging with the other swizzle. Under the sanitizers every
// seventh tile.
TEST(TileLayouts, PlacesAndWavefrontsAreThoseOfTheTileStagedWithTheOtherSwizzle) {
  constexpr std::array kModes{SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128};
  const std::int64_t thin = test::size_for_sanitizers(7, 1);
  std::int64_t point = 0, compared = 0;
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3}) {
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      for (const std::int64_t page : {16, 64}) {
        for (const std::int64_t head_size : {64, 128}) {
          for (const SwizzleMode own : kModes) {
            if (point++ % thin != 0) continue;
            TileOrder order{StagingPath::tma, dtype, kv, page, head_size, 64, own};
            const auto tile = staged_tile(order);
            if (!tile || tile->reads.empty()) continue;
            const std::vector<TileLayout> layouts = tile_layouts(*tile);
            for (const SwizzleMode mode : kModes) {
              order.swizzle = mode;
              const auto other = staged_tile(order);
              const TileLayout* const layout = find_layout(layouts, layout_name(mode));
              if (!other || layout == nullptr || other->columns() != tile->columns()) continue;
              if (other->shared->row_bytes != layout->row_bytes) continue;  // no swizzle: a box has any width
              SCOPED_TRACE(fmt::format("{} {} page {} heads of {}: {} under {}", name(dtype), kv == KOrV::k ? "K" : "V",
                                       page, head_size, layout_name(own), layout_name(mode)));
              ASSERT_EQ(layout->stored, mode == own);
              for (const TileChunk& chunk : tile->chunks) {
                ASSERT_EQ(placed(*tile, *layout, chunk.shared), other->shared_byte({chunk.row, chunk.column}));
              }
              const LayoutCost cost = layout_cost(*tile, *layout);
              ASSERT_EQ(cost.wavefronts, cycles(*other));
              ASSERT_EQ(cost.ideal, std::ssize(other->reads) * 4);
              for (std::int64_t read = 0; read < std::ssize(tile->reads); read += 7) {
                ASSERT_EQ(bank_use(*tile, read, *layout).wavefronts,
                          other->reads[static_cast<std::size_t>(read)].cycles);
              }
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, test::size_for_sanitizers(20, 150));
}

// Padding has no staged tile to compare with: the banks are those of core/smem, on both targets.
TEST(TileLayouts, EveryLayoutCostsWhatTheBanksOfItsAddressesCost) {
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      const auto tile = staged_tile({path, DType::bf16, kv, 128, 128, 64, SwizzleMode::b128});
      ASSERT_TRUE(tile);
      const int width = static_cast<int>(tile->fragments->width);
      const BankProfile profile = tile->tma() ? bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4)
                                              : bank_profile(SharedTarget::gfx950, SharedOp::read, width);
      bool padded = false;
      for (const TileLayout& layout : tile_layouts(*tile)) {
        SCOPED_TRACE(layout.name);
        std::int64_t wavefronts = 0;
        std::set<std::int64_t> places;
        for (const TileChunk& chunk : tile->chunks) places.insert(placed(*tile, layout, chunk.shared));
        ASSERT_EQ(places.size(), tile->chunks.size()) << "two chunks in one place";
        for (const TileRead& read : tile->reads) {
          SharedAccess access{width, {}};
          access.addresses.resize(static_cast<std::size_t>(profile.lanes));
          for (std::int64_t n = read.first_lane; n < read.first_lane + read.lanes; ++n) {
            const TileLaneRead& lane = tile->lane_reads[static_cast<std::size_t>(n)];
            access.addresses[static_cast<std::size_t>(lane.lane)] =
                placed(*tile, layout, lane.shared / 16 * 16) + lane.shared % 16;
          }
          wavefronts += bank_report(profile, access).cycles();
        }
        EXPECT_EQ(layout_cost(*tile, layout).wavefronts, wavefronts);
        padded = padded || layout.padding > 0;
      }
      EXPECT_TRUE(padded);
    }
  }
}

TEST(TileLayouts, TheExampleOfTheHeader) {
  const auto tile = staged_tile({StagingPath::tma, DType::bf16, KOrV::k, 16, 64, 64, SwizzleMode::b128});
  ASSERT_TRUE(tile);
  std::vector<std::string> text;
  std::vector<LayoutCost> costs;
  const auto layouts = tile_layouts(*tile);
  for (const TileLayout& layout : layouts) {
    costs.push_back(layout_cost(*tile, layout));
    text.push_back(fmt::format("{}{} {}", layout.name, layout.stored ? "*" : "", costs.back().wavefronts));
  }
  EXPECT_THAT(text, testing::ElementsAre("none 512", "32B 64", "64B 64", "128B* 64", "+16 B 64"));
  EXPECT_EQ(compared_layout(layouts, costs), 0u);
  EXPECT_EQ(layout_in_words(layouts[0]), "without the swizzle");
  EXPECT_EQ(layout_in_words(layouts[2]), "with the 64B swizzle");
  EXPECT_EQ(layout_in_words(layouts[4]), "with rows padded by 16 B");
}

// A tile without a swizzle is shown beside the first layout that removes its conflicts; without reads there is none.
TEST(TileLayouts, TheSuggestionIsTheFirstWithTheFewestWavefronts) {
  const std::vector<TileLayout> layouts{{"none", 128, 0, 0, 0, 0, true},
                                        {"32B", 32, 0, 1, 4, 3, false},
                                        {"64B", 64, 0, 2, 4, 3, false},
                                        {"+16 B", 128, 16, 0, 0, 0, false}};
  EXPECT_EQ(compared_layout(layouts, {{512, 64}, {128, 64}, {64, 64}, {64, 64}}), 2u);
  EXPECT_FALSE(compared_layout(layouts, {{64, 64}, {64, 64}, {64, 64}, {64, 64}})) << "nothing is better";
  EXPECT_FALSE(compared_layout({}, {}));
  const auto f32 = staged_tile({StagingPath::tma, DType::f32, KOrV::k, 16, 64, 64, SwizzleMode::b128});
  ASSERT_TRUE(f32);
  EXPECT_TRUE(tile_layouts(*f32).empty());
}

}  // namespace
}  // namespace kvscope::viz::tile_layouts_test
