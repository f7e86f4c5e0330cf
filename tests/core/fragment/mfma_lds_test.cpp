// Two descriptions of the same registers: the elements of a lane's fragment (mfma.h: tables of one fragment) and the
// registers after the reads from LDS (core/staging/lds/register_map.h: formulas over whole tiles). Every shape, K and
// V, every tile, strip and depth of the configurations of LDS staging, every tile of a wave, lane and element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/fragment/mfma.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/lds/transposing_read.h"
#include "tests/core/staging/lds/grid.h"
#include "tests/whole_grid.h"

namespace kvscope::mfma_lds_test {
namespace {

using test::require;

Mfma mfma_of(const KVBufferParams& p) {
  if (p.dtype == DType::e4m3) return p.mma_shape.M == 32 ? Mfma::fp8_32x32x64 : Mfma::fp8_16x16x128;
  if (p.mma_shape.K == 8) return Mfma::bf16_32x32x8;
  return p.mma_shape.M == 32 ? Mfma::bf16_32x32x16 : Mfma::bf16_16x16x32;
}

// Swizzles, blocks and padding move bytes in LDS but do not change the contents of registers.
std::vector<KVBufferParams> register_tiles() {
  return test::one_of_each([](const KVBufferParams& p) {
    return std::tuple(p.dtype, p.mma_shape.M, p.mma_shape.K, p.transpose, p.BN, p.WN, p.BK, p.depth);
  });
}

TEST(MfmaMaps, HoldWhatTheReadsFromLdsLeave) {
  const auto tiles = register_tiles();
  EXPECT_EQ(tiles.size(), 2043U);
  test::for_whole_grid(
      "register tiles", tiles, 11,
      [](const KVBufferParams& p) {
        const MfmaShape& shape = mfma_shape(mfma_of(p));
        const FragmentMap map = p.transpose ? mfma_k_map(shape.id) : mfma_v_map(shape.id);
        const KVBufferConfig config(p);
        const KVBufferConstants& c = config.constants();
        const int of_one = shape.elements / shape.instructions;
        require(of_one == c.input_frag_size, "fragments of another size");
        // Waves that share a tile share its registers (tests/core/staging/lds/grid_reads_test.cpp): one of each tile.
        const std::int64_t tiles_of_waves = p.transpose ? std::min(c.waves, p.BN / p.WN) : 1;
        for (std::int64_t wave = 0; wave < tiles_of_waves; ++wave) {
          const std::int64_t first_key = p.transpose ? wave * p.WN : 0;
          for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
            for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
              // 32x32x8: one fragment feeds two steps.
              const std::int64_t along = b * p.BK + k / shape.instructions * shape.K;
              const int part = static_cast<int>(k % shape.instructions) * of_one;
              for (std::int64_t i = 0; i < c.num_mmas; ++i) {
                for (int lane = 0; lane < 64; ++lane) {
                  for (int e = 0; e < of_one; ++e) {
                    const TilePlace at = map.tile_of({lane, part + e});
                    const auto said = register_element(config, WaveIdx{wave}, {StripIdx{b}, k, i, lane, e});
                    if (p.transpose) {
                      const std::int64_t depth = along + at.column;
                      require(said.has_value() == (depth < p.depth), "a zero register, or not");
                      require(!said || *said == TileElement{KeyIdx{first_key + i * shape.M + at.row}, DimIdx{depth}},
                              "K: another element");
                    } else {
                      require(said == TileElement{KeyIdx{along + at.row}, DimIdx{i * shape.M + at.column}},
                              "V: another element");
                    }
                  }
                }
              }
            }
          }
        }
      },
      [](const KVBufferParams& p) { return test::to_text(p); });
}

// The other order of the 8-bit transposing read only permutes lanes: of each 16 lanes, lane j has column
// tr8_column(j).
TEST(MfmaMaps, HoldTheOtherOrderOfTheTransposingReadInOtherLanes) {
  for (KVBufferParams p : register_tiles()) {
    if (p.transpose || p.dtype != DType::e4m3) continue;
    p.tr8_order = Tr8Order::interleaved;
    const KVBufferConfig config(p);
    const FragmentMap map = mfma_v_map(mfma_of(p));
    for (int lane = 0; lane < 64; ++lane) {
      const int natural = lane / 16 * 16 + tr8_column(lane % 16, Tr8Order::interleaved);
      for (int e = 0; e < 32; ++e) {
        // Lanes of one group of 16 have the same keys, whichever column is theirs.
        const TilePlace at = map.tile_of({natural, e});
        ASSERT_EQ(register_element(config, WaveIdx{0}, {StripIdx{0}, 0, 0, lane, e}),
                  (TileElement{KeyIdx{at.row}, DimIdx{at.column}}))
            << test::to_text(p) << ", lane " << lane << ", element " << e;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::mfma_lds_test
