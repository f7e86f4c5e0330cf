// Staging a tile from the pool into registers, on both paths: places are compared with the bytes that the stages move,
// and with one another, for each element of whole grids of configurations.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/fragment/mfma.h"
#include "core/fragment/mma_sync.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/locate_staged.h"
#include "core/staging/staged_image.h"
#include "core/staging/tma/tma_staging.h"
#include "tests/core/staging/staging_fixture.h"
#include "tests/core/staging/staging_grid.h"
#include "tests/whole_grid.h"

namespace kvscope::staging_test {
namespace {

using testing_support::exact_value;
using testing_support::lds_cases;
using testing_support::StagingCase;
using testing_support::StagingStep;
using testing_support::tma_can;
using testing_support::tma_cases;

constexpr std::int64_t kQueries = 16;

double query_value(std::int64_t query, std::int64_t dim) {
  return static_cast<double>((query * 5 + dim * 2 + 3) % 13 - 6);
}
double weight_value(std::int64_t query, std::int64_t token) {
  return static_cast<double>((query * 3 + token * 4 + 1) % 11 - 5);
}

StepCache cache_of(StagingStep& step, KOrV kv) {
  return step_cache(step.scenario, step.state, {step.data.blocks.bytes.data(), nullptr, 1}, kv, LayerIdx{0});
}

// Tile [row, column] to registers [lane, element], and back.
std::vector<double> scatter(const FragmentMap& map, const std::vector<double>& tile) {
  std::vector<double> registers;
  for (int lane = 0; lane < map.info().lanes; ++lane) {
    for (int element = 0; element < map.info().elements; ++element) {
      const TilePlace at = map.tile_of({lane, element});
      registers.push_back(tile.at(static_cast<std::size_t>(at.row * map.info().columns + at.column)));
    }
  }
  return registers;
}

std::vector<double> gather(const FragmentMap& map, const std::vector<double>& registers) {
  std::vector<double> tile(registers.size());
  for (int lane = 0; lane < map.info().lanes; ++lane) {
    for (int element = 0; element < map.info().elements; ++element) {
      const TilePlace at = map.tile_of({lane, element});
      tile.at(static_cast<std::size_t>(at.row * map.info().columns + at.column)) =
          registers.at(static_cast<std::size_t>(lane * map.info().elements + element));
    }
  }
  return tile;
}

// --- bytes -----------------------------------------------------------------------------------------------------------

// Element e of a lane's registers as a number.
double element_of(const StagedImage& staged, DType dtype, std::int64_t wave, std::int64_t lane, std::int64_t element) {
  const std::int64_t size = size_of(dtype);
  const std::int64_t first = ((wave * staged.lanes + lane) * staged.registers) * 4;
  return load_as_double(dtype, staged.register_bytes.data() + first + element * size);
}

// --- TMA -------------------------------------------------------------------------------------------------------------

// BK is rounded up to whole rows of the swizzle, and to at most the head in whole rows.
TEST(TmaColumns, AreBkInWholeSwizzleRowsAndNoMoreThanTheHeadHas) {
  const auto columns = [](DType dtype, SwizzleMode swizzle, std::int64_t BK, std::int64_t head_size) {
    Scenario scenario;
    scenario.cache.dtype = dtype;
    scenario.tile.swizzle = swizzle;
    scenario.tile.BK = BK;
    scenario.model.head_size = head_size;
    return tma_columns(scenario);
  };
  EXPECT_EQ(columns(DType::e4m3, SwizzleMode::b128, 64, 128), 128);
  EXPECT_EQ(columns(DType::bf16, SwizzleMode::b128, 64, 128), 64);
  EXPECT_EQ(columns(DType::bf16, SwizzleMode::b128, 65, 256), 128);
  EXPECT_EQ(columns(DType::bf16, SwizzleMode::b128, 256, 128), 128);
  EXPECT_EQ(columns(DType::bf16, SwizzleMode::b128, 512, 72), 128);
  EXPECT_EQ(columns(DType::f32, SwizzleMode::b128, 64, 8), 32);
  EXPECT_EQ(columns(DType::bf16, SwizzleMode::none, 9, 128), 16);
  EXPECT_EQ(columns(DType::f16, SwizzleMode::b32, 17, 24), 32);
}

TEST(TmaColumns, ATileBeginsAtAMultipleOfThem) {
  Scenario scenario;
  scenario.cache.dtype = DType::bf16;
  scenario.model.head_size = 576;
  scenario.tile.BK = 192;
  EXPECT_EQ(tma_depth_offset(scenario, DimIdx{0}), DimIdx{0});
  EXPECT_EQ(tma_depth_offset(scenario, DimIdx{191}), DimIdx{0});
  EXPECT_EQ(tma_depth_offset(scenario, DimIdx{192}), DimIdx{192});
  EXPECT_EQ(tma_depth_offset(scenario, DimIdx{575}), DimIdx{384});
}

// For every element, the address of explain, the byte that the copies write there and the register that ldmatrix fills
// hold the element; and each place leads back to it.
TEST(TmaStagingGrid, EveryElementIsWhereItsPlacesSay) {
  int taken = 0;
  for (const StagingCase& c : test::cases_for_sanitizers("places by TMA", tma_cases(), 5)) {
    SCOPED_TRACE(testing::PrintToString(c));
    StagingStep step(c);
    const StepCache cache = cache_of(step, c.kv);
    const std::int64_t BN = step.scenario.tile.BN, size = size_of(c.dtype);
    for (const std::int64_t first : {std::int64_t{0}, c.tokens / BN * BN}) {
      const StagedTile tile = step.tile(c.kv, first);
      if (!tma_can(c)) {
        EXPECT_THROW(TmaStaging(step.scenario, cache, tile, DimIdx{64}), GeometryError);
        continue;
      }
      ++taken;
      const DimIdx offset = tma_depth_offset(step.scenario, DimIdx{64});
      const TmaStaging staging(step.scenario, cache, tile, offset);
      const StagedImage staged = stage_by_tma(step.scenario, step.state, step.data.bytes(), tile, offset);
      const bool has_fragments = size == 2 || (size == 1 && (c.kv == KOrV::k || BN % 32 == 0));
      ASSERT_EQ(staged.no_fragments.empty(), has_fragments) << staged.no_fragments;
      std::set<std::int64_t> addresses;
      std::set<std::tuple<int, std::int64_t, int>> registers;
      for (std::int64_t row = 0; row < std::min(BN, c.tokens - first); ++row) {
        for (std::int64_t column = 0; column < staging.columns(); ++column) {
          const std::int64_t at = staging.shared_address(row, column);
          ASSERT_TRUE(addresses.insert(at).second);
          const std::byte* pool = step.data.blocks.bytes.data() +
                                  step.pool_byte(first + row, StagingStep::kHead, offset.value + column, c.kv);
          ASSERT_EQ(std::memcmp(staged.shared.read(at, size).data(), pool, static_cast<std::size_t>(size)), 0)
              << row << ' ' << column;
          const auto element = staging.element_at(at);
          ASSERT_TRUE(element && element->row == row && element->depth == column);
          ASSERT_EQ(staged.shared.writer(at), CopyIdx{element->issue});
          if (!has_fragments) continue;
          const TmaStaging::Register reg = staging.register_of(row, column);
          ASSERT_TRUE(registers.emplace(reg.lane, reg.index, reg.bit).second);
          const std::int64_t byte = (reg.lane * staged.registers + reg.index) * 4 + reg.bit / 8;
          ASSERT_EQ(std::memcmp(staged.register_bytes.data() + byte, pool, static_cast<std::size_t>(size)), 0)
              << row << ' ' << column;
          const auto held = staging.elements_at(reg.lane, reg.index);
          ASSERT_EQ(held.at(static_cast<std::size_t>(reg.bit / (8 * size))),
                    (TilePlace{static_cast<int>(row), static_cast<int>(column)}));
        }
      }
    }
  }
  EXPECT_GT(taken, test::size_for_sanitizers(20, 100));
}

// S[query][key] through mma.sync, with the registers as B operands.
std::map<std::pair<std::int64_t, std::int64_t>, double> scores_by_mma(const StagedImage& staged, const StagingCase& c,
                                                                      std::int64_t rows, std::int64_t columns,
                                                                      std::int64_t offset) {
  const MmaSync mma = size_of(c.dtype) == 2 ? MmaSync::m16n8k16 : MmaSync::m16n8k32;
  const FragmentMap a_map = mma_sync_map(mma, MmaOperand::a), c_map = mma_sync_map(mma, MmaOperand::c);
  const std::int64_t k = depth_of(mma), b_elements = mma_sync_map(mma, MmaOperand::b).info().elements;
  std::map<std::pair<std::int64_t, std::int64_t>, double> scores;
  for (std::int64_t key = 0; key < rows; key += 8) {
    std::vector<double> sum(32 * 4, 0.0);
    for (std::int64_t depth = 0; depth < columns; depth += k) {
      std::vector<double> q(static_cast<std::size_t>(16 * k)), b;
      for (std::int64_t query = 0; query < kQueries; ++query) {
        for (std::int64_t d = 0; d < k; ++d)
          q[static_cast<std::size_t>(query * k + d)] = query_value(query, offset + depth + d);
      }
      const std::int64_t piece = key / 16 * (columns / k) + depth / k, half = key / 8 % 2;
      for (std::int64_t lane = 0; lane < 32; ++lane) {
        for (std::int64_t e = 0; e < b_elements; ++e) {
          b.push_back(element_of(staged, c.dtype, 0, lane, (piece * 2 + half) * b_elements + e));
        }
      }
      sum = mma_sync(mma, scatter(a_map, q), b, sum);
    }
    const std::vector<double> tile = gather(c_map, sum);
    for (std::int64_t query = 0; query < 16; ++query) {
      for (std::int64_t n = 0; n < 8; ++n) scores[{query, key + n}] = tile[static_cast<std::size_t>(query * 8 + n)];
    }
  }
  return scores;
}

// K in registers times Q is the product of the values, bit for bit: integers, so that rounding hides no exchange.
TEST(TmaStagingGrid, QueriesTimesKThroughMmaSyncIsTheDirectProduct) {
  for (const StagingCase& c : test::cases_for_sanitizers("Q K^T by mma.sync", tma_cases(), 5)) {
    if (c.kv != KOrV::k || size_of(c.dtype) > 2 || !tma_can(c)) continue;
    SCOPED_TRACE(testing::PrintToString(c));
    StagingStep step(c);
    const std::int64_t BN = step.scenario.tile.BN, first = c.tokens / BN * BN, columns = tma_columns(step.scenario);
    const StagedImage staged =
        stage_by_tma(step.scenario, step.state, step.data.bytes(), step.tile(c.kv, first), DimIdx{0});
    const auto scores = scores_by_mma(staged, c, BN, columns, 0);
    for (std::int64_t query = 0; query < kQueries; ++query) {
      for (std::int64_t row = 0; row < std::min(BN, c.tokens - first); ++row) {
        double direct = 0;
        for (std::int64_t d = 0; d < columns; ++d) {
          direct += query_value(query, d) * exact_value(first + row, StagingStep::kHead.value, d, KOrV::k);
        }
        ASSERT_EQ(scores.at({query, row}), direct) << query << ' ' << row;
      }
    }
  }
}

// The same for V, with weights of 0 past the last token: the values there must be finite, and missing pages are
// filled with zeros.
TEST(TmaStagingGrid, WeightsTimesVThroughMmaSyncIsTheDirectProduct) {
  for (const StagingCase& c : test::cases_for_sanitizers("P V by mma.sync", tma_cases(), 5)) {
    const std::int64_t BN = c.page == 1 ? 16 : 64;
    if (c.kv != KOrV::v || size_of(c.dtype) > 2 || !tma_can(c)) continue;
    const bool fp8 = size_of(c.dtype) == 1;
    if (fp8 && BN % 32 != 0) continue;  // a piece of fp8 V is 32 keys
    SCOPED_TRACE(testing::PrintToString(c));
    StagingStep step(c);
    const std::int64_t first = c.tokens / BN * BN, columns = tma_columns(step.scenario);
    const StagedTile tile = step.tile(c.kv, first);
    const StagedImage staged = stage_by_tma(step.scenario, step.state, step.data.bytes(), tile, DimIdx{0});
    const TmaStaging staging(step.scenario, cache_of(step, c.kv), tile, DimIdx{0});
    const MmaSync mma = fp8 ? MmaSync::m16n8k32 : MmaSync::m16n8k16;
    const FragmentMap a_map = mma_sync_map(mma, MmaOperand::a), b_map = mma_sync_map(mma, MmaOperand::b),
                      c_map = mma_sync_map(mma, MmaOperand::c);
    const std::int64_t k = depth_of(mma), b_elements = b_map.info().elements;
    const FragmentMap& piece_map = staging.piece();
    const std::int64_t across = columns / piece_map.info().columns;
    for (std::int64_t depth = 0; depth < columns; depth += 16) {
      for (std::int64_t half = 0; half < 2; ++half) {  // fp8: even and odd depths; else: depths 0..7 and 8..15
        std::vector<double> sum(32 * 4, 0.0);
        for (std::int64_t key = 0; key < BN; key += k) {
          const std::int64_t piece = key / piece_map.info().rows * across + depth / piece_map.info().columns;
          // The order of keys is that of the fragment: the weights have it too, as P's registers would.
          std::vector<double> p(static_cast<std::size_t>(16 * k)), b;
          for (std::int64_t slot = 0; slot < k; ++slot) {
            const FragmentPlace b_place = b_map.fragment_of({static_cast<int>(slot), 0});
            const int element = static_cast<int>(half * b_elements) + b_place.element;
            const std::int64_t row = key + piece_map.tile_of({b_place.lane, element}).row;
            for (std::int64_t query = 0; query < 16; ++query) {
              p[static_cast<std::size_t>(query * k + slot)] =
                  first + row < c.tokens ? weight_value(query, first + row) : 0.0;
            }
          }
          for (std::int64_t lane = 0; lane < 32; ++lane) {
            for (std::int64_t e = 0; e < b_elements; ++e) {
              b.push_back(element_of(staged, c.dtype, 0, lane, (piece * 2 + half) * b_elements + e));
            }
          }
          sum = mma_sync(mma, scatter(a_map, p), b, sum);
        }
        const std::vector<double> out = gather(c_map, sum);
        for (std::int64_t query = 0; query < 16; ++query) {
          for (std::int64_t n = 0; n < 8; ++n) {
            const std::int64_t dim = depth + (fp8 ? 2 * n + half : 8 * half + n);
            double direct = 0;
            for (std::int64_t token = first; token < std::min(first + BN, c.tokens); ++token) {
              direct += weight_value(query, token) * exact_value(token, StagingStep::kHead.value, dim, KOrV::v);
            }
            ASSERT_EQ(out[static_cast<std::size_t>(query * 8 + n)], direct) << query << ' ' << dim;
          }
        }
      }
    }
  }
}

// --- LDS -------------------------------------------------------------------------------------------------------------

bool lds_can(const StagingStep& step, KOrV kv) {
  return check(lds_params(step.scenario, kv)).refusals.empty();
}

TEST(LdsStagingGrid, EveryElementIsWhereItsPlacesSay) {
  int taken = 0, refused = 0;
  for (const StagingCase& c : test::cases_for_sanitizers("places through LDS", lds_cases(), 5)) {
    SCOPED_TRACE(testing::PrintToString(c));
    StagingStep step(c);
    const StepCache cache = cache_of(step, c.kv);
    const KVBufferParams params = lds_params(step.scenario, c.kv);
    const std::int64_t BN = params.BN, size = size_of(c.dtype), first = c.tokens / BN * BN;
    const StagedTile tile = step.tile(c.kv, first);
    if (!lds_can(step, c.kv)) {
      EXPECT_THROW(LdsStaging(params, cache, tile), GeometryError);
      ++refused;
      continue;
    }
    ++taken;
    const LdsStaging staging(params, cache, tile);
    EXPECT_EQ(staging.valid_rows(), c.tokens - first);
    const StagedImage staged = stage_through_lds(step.scenario, step.state, step.data.bytes(), tile);
    for (std::int64_t row = 0; row < BN; row += 5) {
      // Every seventh element of a row; with sanitizers every 56th, starting at a different one in each row.
      for (std::int64_t dim = row % 7; dim < c.head_size; dim += 7 * static_cast<std::int64_t>(test::grid_step(8))) {
        const KeyIdx key{row};
        const DimIdx depth{dim};
        const double value =
            first + row < c.tokens ? exact_value(first + row, StagingStep::kHead.value, dim, c.kv) : 0.0;
        const std::int64_t at = staging.lds_byte(key, depth);
        ASSERT_EQ(load_as_double(c.dtype, staged.shared.read(at, size).data()), value) << row << ' ' << dim;
        ASSERT_EQ(staging.element_at_byte(at), (TileElement{key, depth}));
        const LdsCopyPlace copy = staging.copy_of(key, depth);
        EXPECT_EQ(copy.zero, first + row >= c.tokens);
        if (!copy.zero) {
          const std::int64_t pool = staging.origin() - step.data.blocks.bytes.data() + copy.dram_byte;
          const std::int64_t of_element = step.pool_byte(first + row, StagingStep::kHead, dim, c.kv);
          ASSERT_EQ(of_element / 16, pool / 16) << row << ' ' << dim;
        }
        const std::vector<RegisterPlace> places = staging.registers_of(key, depth);
        ASSERT_FALSE(places.empty());
        for (const RegisterPlace& place : places) {
          const std::int64_t byte =
              ((place.wave.value * 64 + place.lane) * staged.registers + place.index) * 4 + place.bit / 8;
          ASSERT_EQ(load_as_double(c.dtype, staged.register_bytes.data() + byte), value) << row << ' ' << dim;
          const auto held = staging.elements_at(place.wave, place.lane, place.index);
          ASSERT_EQ(held.at(static_cast<std::size_t>(place.bit / (8 * size))), (TileElement{key, depth}));
        }
      }
    }
  }
  EXPECT_GT(taken, test::size_for_sanitizers(20, 100));
  EXPECT_GT(refused, test::size_for_sanitizers(1, 5));
}

Mfma mfma_of(const KVBufferParams& params) {
  for (const MfmaShape& shape : all_mfma_shapes()) {
    if (shape.M == params.mma_shape.M && shape.K / shape.instructions == params.mma_shape.K) return shape.id;
  }
  ADD_FAILURE() << "no such instruction";
  return {};
}

// Fragment (strip, k, i) of a wave as the instruction's first operand. One fragment of 32x32x8 is two steps of k.
std::vector<double> operand(const StagedImage& staged, const LdsStaging& staging, DType dtype, StripIdx strip,
                            std::int64_t k, std::int64_t i, int instructions) {
  const KVBufferConstants& c = staging.config().constants();
  std::vector<double> values;
  for (std::int64_t lane = 0; lane < 64; ++lane) {
    for (int half = 0; half < instructions; ++half) {
      for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
        values.push_back(
            element_of(staged, dtype, 0, lane, register_row(c, strip, k + half, i) * c.input_frag_size + e));
      }
    }
  }
  return values;
}

// Both products of attention through MFMA, K or V as the first operand, as in the kernels; rows past the tokens are
// zeros in LDS.
TEST(LdsStagingGrid, BothProductsThroughMfmaAreTheDirectProducts) {
  for (const StagingCase& c : test::cases_for_sanitizers("products by MFMA", lds_cases(), 5)) {
    SCOPED_TRACE(testing::PrintToString(c));
    StagingStep step(c);
    if (!lds_can(step, c.kv)) continue;
    const KVBufferParams params = lds_params(step.scenario, c.kv);
    const std::int64_t BN = params.BN, first = c.tokens / BN * BN;
    const StagedTile tile = step.tile(c.kv, first);
    const LdsStaging staging(params, cache_of(step, c.kv), tile);
    const StagedImage staged = stage_through_lds(step.scenario, step.state, step.data.bytes(), tile);
    const KVBufferConstants& constants = staging.config().constants();
    const Mfma mfma = mfma_of(params);
    const MfmaShape& shape = mfma_shape(mfma);
    const bool is_k = c.kv == KOrV::k;
    const FragmentMap other_map = is_k ? mfma_k_map(mfma) : mfma_v_map(mfma), sum_map = mfma_sum_map(mfma);
    const std::int64_t M = shape.M;
    for (std::int64_t i = 0; i < constants.num_mmas; ++i) {
      std::vector<double> sum(static_cast<std::size_t>(M * M), 0.0);
      for (StripIdx strip{0}; strip.value < constants.num_k_tiles; ++strip) {
        for (std::int64_t k = 0; k < constants.num_k_mmas2; k += shape.instructions) {
          const std::int64_t along = strip.value * constants.BK + k * constants.MMA_K;  // first depth (K) or key (V)
          std::vector<double> other(static_cast<std::size_t>(M * shape.K));
          for (std::int64_t q = 0; q < M; ++q) {
            for (std::int64_t n = 0; n < shape.K; ++n) {
              const bool exists = is_k || first + along + n < c.tokens;
              const double value = !exists ? 0.0
                                   : is_k  ? query_value(q, along + n)
                                           : weight_value(q, first + along + n);
              other[static_cast<std::size_t>(is_k ? q * shape.K + n : n * M + q)] = value;
            }
          }
          sum = mfma_multiply_add(mfma, operand(staged, staging, c.dtype, strip, k, i, shape.instructions),
                                  scatter(other_map, other), sum);
        }
      }
      const std::vector<double> out = gather(sum_map, sum);  // [key or depth, query]
      for (std::int64_t row = 0; row < M; ++row) {
        for (std::int64_t q = 0; q < M; ++q) {
          double direct = 0;
          if (is_k) {
            const std::int64_t token = first + i * M + row;
            for (std::int64_t d = 0; token < c.tokens && d < c.head_size; ++d) {
              direct += query_value(q, d) * exact_value(token, StagingStep::kHead.value, d, KOrV::k);
            }
          } else {
            for (std::int64_t token = first; token < std::min(first + BN, c.tokens); ++token) {
              direct += weight_value(q, token) * exact_value(token, StagingStep::kHead.value, i * M + row, KOrV::v);
            }
          }
          ASSERT_EQ(out[static_cast<std::size_t>(row * M + q)], direct) << i << ' ' << row << ' ' << q;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::staging_test
