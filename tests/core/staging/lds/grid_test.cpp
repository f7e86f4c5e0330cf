// Laws of every configuration that the rules accept: their number, copies that bring each vector once, addresses that
// are a bijection with an inverse. The laws of reads are in grid_reads_test.cpp.
//
// Parameters that a law does not depend on are not varied: a copy does not depend on WN, BK, the MMA shape or K and V
// (core/staging/lds/dram_to_lds.cpp uses none of them), and a layout does not depend on the waves either. So each law
// runs once for each distinct copy, layout, ... of the accepted configurations.
#include "tests/core/staging/lds/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/lds_layout.h"
#include "tests/whole_grid.h"

namespace kvscope::grid_test {
namespace {

using test::for_whole_grid;
using test::one_of_each;
using test::require;

std::string swizzle_of(const KVBufferParams& p) {
  return p.swizzle ? p.swizzle->text() : "none";
}
std::int64_t stage_columns(const KVBufferParams& p) {
  return p.full_kv ? *p.smem_depth : *p.bk_smem;
}
auto layout_of(const KVBufferParams& p) {
  return std::tuple(p.dtype, *p.bk_smem, swizzle_of(p), p.BN, stage_columns(p));
}
auto copy_of(const KVBufferParams& p) {
  return std::tuple(layout_of(p), *p.smem_depth, p.depth, p.full_kv, p.num_threads);
}
auto text_of = [](const KVBufferParams& p) { return test::to_text(p); };

// The number of configurations of each shape, counted from the rules' table by a separate program in another language:
// K whole, K in blocks, V whole, V in blocks.
TEST(WholeGrid, HasAsManyConfigurationsAsTheRulesLeave) {
  using Family = std::tuple<std::string, bool, bool>;
  const std::map<Family, int> expected{
      {{"32x32x16", true, true}, 7190},   {{"32x32x16", true, false}, 1300},  {{"32x32x16", false, true}, 8240},
      {{"32x32x16", false, false}, 1615}, {{"16x16x32", true, true}, 9372},   {{"16x16x32", true, false}, 1582},
      {{"16x16x32", false, true}, 13788}, {{"16x16x32", false, false}, 2706}, {{"32x32x8", true, true}, 7190},
      {{"32x32x8", true, false}, 1300},   {{"32x32x8", false, true}, 8240},   {{"32x32x8", false, false}, 1615},
      {{"32x32x64", true, true}, 5880},   {{"32x32x64", true, false}, 1050},  {{"32x32x64", false, true}, 2380},
      {{"32x32x64", false, false}, 510},  {{"16x16x128", true, true}, 8484},  {{"16x16x128", true, false}, 630},
      {{"16x16x128", false, true}, 2555}, {{"16x16x128", false, false}, 330}};
  std::map<Family, int> counted;
  for (const KVBufferParams& p : test::whole_grid()) ++counted[{to_text(p.mma_shape), p.transpose, p.full_kv}];
  EXPECT_EQ(counted, expected);
  EXPECT_EQ(test::whole_grid().size(), 85957U);
}

// Every point, accepted or not: a rule that rejects too much would otherwise only make the grid smaller.
TEST(WholeGrid, IsAcceptedPointByPointAndNothingElseIs) {
  std::size_t points = 0, wrong = 0;
  const std::size_t step = test::grid_step(101);
  test::for_each_point([&](const KVBufferParams& p) {
    if (points++ % step != 0) return;
    if (check(p).refusals.empty() == test::the_rules_take(p)) return;
    if (++wrong <= 5) ADD_FAILURE() << test::to_text(p) << ": " << check(p).refusals.size() << " refusals";
  });
  EXPECT_EQ(wrong, 0U);
  std::cout << "points: " << points << '\n';
}

// The writes and reads of one load into a stage, for whole tiles and for single blocks.
struct Load {
  std::vector<CopyInstruction> copies;
  std::int64_t first_column = 0;
};

std::vector<Load> loads_of(const KVBufferConfig& config, WaveIdx wave, StageIdx stage, const DramTile& tile) {
  if (config.params().full_kv) return {{copy_instructions(config, wave, stage, tile), 0}};
  std::vector<Load> loads;
  for (std::int64_t b = 0; b < config.constants().depth_blocks; ++b) {
    loads.push_back({copy_block_instructions(config, wave, stage, b, tile), b * config.constants().BK});
  }
  return loads;
}

// Each vector of the stage is written once, each vector of the tile is copied once, to the place of its element; no
// byte outside the stage is written. Stage 0 with a complete tile, stage 1 with a partial one.
TEST(EveryConfiguration, CopiesATileOnceAndZeroesItsTail) {
  const auto copies = one_of_each(copy_of);
  EXPECT_EQ(copies.size(), 15732U);
  std::int64_t turn = 0;
  for_whole_grid(
      "copies", copies, 41,
      [&](const KVBufferParams& p) {
        const KVBufferConfig config(p);
        const KVBufferConstants& c = config.constants();
        const LdsLayout layout(config);
        const std::int64_t SW = c.simd_width, columns = p.full_kv ? c.smem_cols : c.depth_blocks * c.BK;
        for (const StageIdx stage : {StageIdx{0}, StageIdx{1}}) {
          const std::int64_t valid = stage.value == 0 ? c.BN : turn++ % c.BN;
          const std::int64_t stride = p.kv_num_heads * c.cache_depth;
          const DramTile tile{.valid_rows = valid, .row_stride = stride, .depth = c.depth};
          std::vector<char> brought(static_cast<std::size_t>(c.BN * columns / SW));
          std::vector<int> written(static_cast<std::size_t>(c.region_bytes / 16));  // times
          for (std::int64_t w = 0; w < c.waves; ++w) {
            for (const Load& load : loads_of(config, WaveIdx{w}, stage, tile)) {
              require(std::ssize(load.copies) == copies_per_load(config, WaveIdx{w}), "another number of copies");
              for (const CopyInstruction& copy : load.copies) {
                for (std::size_t lane = 0; lane < 64; ++lane) {
                  const CopyVector& v = copy.lanes[lane];
                  const std::int64_t key = v.key.value, depth = v.depth.value;
                  require(v.lds_byte == copy.lanes[0].lds_byte + 16 * static_cast<std::int64_t>(lane),
                          "LDS takes a wave's bytes one behind the other");
                  ++written.at(static_cast<std::size_t>(v.lds_byte / 16));
                  require(depth % SW == 0 && key < c.BN && depth < columns, "outside the tile");
                  char& once = brought[static_cast<std::size_t>((key * columns + depth) / SW)];
                  require(once == 0, "a vector is brought twice");
                  once = 1;
                  require(v.lds_byte == layout.byte(stage, v.key, DimIdx{depth - load.first_column}),
                          "a vector lands where another belongs");
                  require(v.dram_byte == (key * stride + depth) * c.element_bytes, "another byte of memory");
                  // Past the last row, or in it past the head: out of range.
                  require(v.zero == (key >= valid || (key == valid - 1 && depth >= c.depth)), "zero, or not");
                }
              }
            }
          }
          for (const char once : brought) require(once == 1, "a vector is not brought");
          const std::int64_t loads = p.full_kv ? 1 : c.depth_blocks;
          for (std::size_t vector = 0; vector < written.size(); ++vector) {
            const bool inside = static_cast<std::int64_t>(vector) / (c.stage_bytes / 16) == stage.value;
            require(written[vector] == (inside ? loads : 0), "a vector of LDS is not written once");
          }
        }
      },
      text_of);
}

// Every number of valid rows. Which vectors are zero does not depend on the swizzle or on the number of waves.
TEST(EveryConfiguration, ZeroesAsManyVectorsAsRowsAreMissing) {
  const auto tiles = one_of_each(
      [](const KVBufferParams& p) { return std::tuple(p.dtype, *p.bk_smem, p.BN, p.depth, *p.smem_depth, p.full_kv); });
  EXPECT_EQ(tiles.size(), 716U);
  for_whole_grid(
      "tails", tiles, 41,
      [](const KVBufferParams& p) {
        const KVBufferConfig config(p);
        const KVBufferConstants& c = config.constants();
        for (std::int64_t valid = 0; valid <= c.BN; ++valid) {
          const DramTile tile{.valid_rows = valid, .row_stride = p.kv_num_heads * c.cache_depth, .depth = c.depth};
          std::int64_t zeros = 0;
          for (std::int64_t w = 0; w < c.waves; ++w) {
            for (const CopyInstruction& copy : copy_instructions(config, WaveIdx{w}, StageIdx{0}, tile)) {
              for (const CopyVector& v : copy.lanes) zeros += v.zero ? 1 : 0;
            }
          }
          const std::int64_t past_the_head = valid > 0 ? std::max<std::int64_t>(0, c.smem_cols - c.depth) : 0;
          require(zeros == ((c.BN - valid) * c.smem_cols + past_the_head) / c.simd_width, "another number of zeros");
        }
      },
      text_of);
}

// A bijection of the region onto itself, element by element, and its inverse; the swizzle is its own inverse.
TEST(EveryConfiguration, PutsEveryElementOfTheRegionInAPlaceOfItsOwn) {
  const auto layouts = one_of_each(layout_of);
  EXPECT_EQ(layouts.size(), 831U);
  for_whole_grid(
      "layouts", layouts, 17,
      [](const KVBufferParams& p) {
        const KVBufferConfig config(p);
        const KVBufferConstants& c = config.constants();
        const LdsLayout layout(config);
        std::vector<char> taken(static_cast<std::size_t>(c.region_bytes / c.element_bytes));
        for (std::int64_t s = 0; s < c.num_smem_stages; ++s) {
          for (std::int64_t key = 0; key < c.BN; ++key) {
            for (std::int64_t d = 0; d < c.smem_cols; ++d) {
              const LdsPlace place{StageIdx{s}, KeyIdx{key}, DimIdx{d}};
              const std::int64_t at = layout.physical(place.stage, place.key, place.depth);
              char& mine = taken.at(static_cast<std::size_t>(at));
              require(mine == 0, "two elements have one place");
              mine = 1;
              require(layout.place_of(at * c.element_bytes) == place, "the way back leads elsewhere");
            }
          }
        }
        // As many elements as places, and no place twice: every place is used.
        for (std::int64_t v = 0; p.swizzle && v < p.swizzle->size(); ++v) {
          require((*p.swizzle)((*p.swizzle)(v)) == v, "the swizzle is not its own inverse");
        }
      },
      text_of);
}

// The kernels apply the XOR inside a sub-tile: 32 rows in the writer, M rows in the reader. Both equal the layout's.
TEST(EveryConfiguration, SwizzlesInsideASubTileAsInsideTheRegion) {
  const auto layouts = one_of_each([](const KVBufferParams& p) { return std::tuple(layout_of(p), p.mma_shape.M); });
  EXPECT_EQ(layouts.size(), 1519U);
  for_whole_grid(
      "sub-tiles", layouts, 17,
      [](const KVBufferParams& p) {
        const KVBufferConfig config(p);
        const KVBufferConstants& c = config.constants();
        const LdsLayout layout(config);
        const std::int64_t vectors = c.row_bytes() / 16;
        for (std::int64_t key = 0; key < c.BN; ++key) {
          for (std::int64_t d = 0; d < c.smem_cols; d += c.simd_width) {
            for (const std::int64_t rows : {std::int64_t{32}, c.MMA_M}) {
              const std::int64_t base = (c.BN * (d / c.bk_smem) + key / rows * rows) * vectors;
              const std::int64_t inside = key % rows * vectors + d % c.bk_smem / c.simd_width;
              const std::int64_t swizzled = p.swizzle ? (*p.swizzle)(inside) : inside;
              require(layout.byte(StageIdx{0}, KeyIdx{key}, DimIdx{d}) == (base + swizzled) * 16, "another XOR");
            }
          }
        }
      },
      text_of);
}

}  // namespace
}  // namespace kvscope::grid_test
