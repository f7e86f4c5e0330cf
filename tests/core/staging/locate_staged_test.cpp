#include "core/staging/locate_staged.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/tma/tma_staging.h"
#include "tests/core/staging/question.h"
#include "tests/core/staging/staging_fixture.h"

namespace kvscope::locate_staged_test {
namespace {

using testing_support::StagingCase;
using testing_support::StagingStep;
using trace::Question;

constexpr LayerIdx kLayer{2};

StagingStep three_layers(const StagingCase& c) {
  StagingStep step(c);
  step.scenario.model.layers = 3;
  return step;
}

// DeepSeek's row: 576 elements, of which the first 512 are V.
StagingStep mla_step(std::int64_t page, std::int64_t tokens) {
  StagingStep step({.page = page, .tokens = tokens});
  step.scenario.model = {"mla", 3, 16, 1, 576, true, 512};
  return step;
}

TileQuestion question_of(StagingPath path, const StagingStep& step, KOrV kv, std::int64_t tile, std::int64_t dim = 0) {
  return {path, StagingStep::kSeq, kLayer, HeadIdx{step.scenario.model.kv_heads - 1}, kv, tile, DimIdx{dim}};
}

Question answer_of(const TileQuestion& q, std::int64_t token, std::int64_t dim) {
  return {q.seq, TokIdx{token}, q.layer, q.head, DimIdx{dim}, q.kv, StepIdx{3}};
}

StagedTile tile_of(const StagingStep& step, const TileQuestion& q, std::int64_t BN) {
  return {StagingStep::kRow, q.layer, q.head, q.kv, TokIdx{q.tile * BN}, tokens_of(step.state, StagingStep::kRow)};
}

// A few rows and columns of a tile, both ends among them, that step through every residue of 16.
std::vector<std::int64_t> sampled(std::int64_t count, std::int64_t stride) {
  std::vector<std::int64_t> places;
  for (std::int64_t at = 0; at < count; at += stride) places.push_back(at);
  if (places.back() != count - 1) places.push_back(count - 1);
  return places;
}

// Every place that the staging gives for an element must lead back to it. Returns the number of tested elements.
std::int64_t check_tma(const StagingStep& step, KOrV kv, std::int64_t dim) {
  const Scenario& scenario = step.scenario;
  const std::int64_t tokens = tokens_of(step.state, StagingStep::kRow), BN = scenario.tile.BN;
  const std::int64_t size = size_of(scenario.cache.dtype);
  const AddressedCache cache(scenario, step.state, kv, kLayer);
  const DimIdx offset = tma_depth_offset(scenario, DimIdx{dim});
  std::int64_t asked = 0;
  for (const std::int64_t tile : {std::int64_t{0}, (tokens - 1) / BN}) {
    const TileQuestion q = question_of(StagingPath::tma, step, kv, tile, dim);
    const TmaStaging staging(scenario, cache.cache(), tile_of(step, q, BN), offset);
    for (const std::int64_t row : sampled(std::min(BN, tokens - tile * BN), 13)) {
      for (const std::int64_t column :
           sampled(std::min(staging.columns(), scenario.model.head_size - offset.value), 23)) {
        ++asked;
        const Question expected = answer_of(q, tile * BN + row, offset.value + column);
        const std::int64_t byte = staging.shared_address(row, column);
        EXPECT_EQ(locate_shared(scenario, step.state, q, byte), expected) << "shared byte " << byte;
        EXPECT_EQ(locate_shared(scenario, step.state, q, byte + size - 1), expected) << "its last byte";
        if (!staging.no_fragments().empty()) continue;
        const TmaStaging::Register reg = staging.register_of(row, column);
        // The others in the register are elements too, but may be of rows past the end.
        if (tokens - tile * BN < BN) continue;
        TileQuestion then = q;
        then.step = reg.step;
        const auto held = locate_register(scenario, step.state, then, WaveIdx{reg.warp}, reg.lane, reg.index);
        EXPECT_EQ(held.size(), static_cast<std::size_t>(4 / size));
        EXPECT_EQ(held.at(static_cast<std::size_t>(reg.bit / (8 * size))), expected)
            << "lane " << reg.lane << ", register " << reg.index;
      }
    }
  }
  return asked;
}

std::int64_t check_lds(const StagingStep& step, KOrV kv) {
  const Scenario& scenario = step.scenario;
  const KVBufferParams params = lds_params(scenario, kv);
  const std::int64_t tokens = tokens_of(step.state, StagingStep::kRow), BN = params.BN;
  const std::int64_t size = size_of(scenario.cache.dtype);
  const AddressedCache cache(scenario, step.state, kv, kLayer);
  std::int64_t asked = 0;
  for (const std::int64_t tile : {std::int64_t{1}, (tokens - 1) / BN}) {
    const TileQuestion q = question_of(StagingPath::lds, step, kv, tile);
    const LdsStaging staging(params, cache.cache(), tile_of(step, q, BN));
    for (const std::int64_t key : sampled(std::min(BN, tokens - tile * BN), 21)) {
      for (const std::int64_t depth : sampled(params.depth, 53)) {
        ++asked;
        const Question expected = answer_of(q, tile * BN + key, depth);
        const std::int64_t byte = staging.lds_byte(KeyIdx{key}, DimIdx{depth});
        EXPECT_EQ(locate_shared(scenario, step.state, q, byte), expected) << "LDS byte " << byte;
        if (tokens - tile * BN < BN) continue;
        for (const RegisterPlace& place : staging.registers_of(KeyIdx{key}, DimIdx{depth})) {
          TileQuestion then = q;
          then.step = place.step;
          const auto held = locate_register(scenario, step.state, then, place.wave, place.lane, place.index);
          EXPECT_EQ(held.at(static_cast<std::size_t>(place.bit / (8 * size))), expected)
              << "wave " << place.wave.value << ", lane " << place.lane << ", register " << place.index;
        }
      }
    }
  }
  return asked;
}

// Heads of 128 in tiles of 64 columns: tests the second tile, so that an ignored first column is detected.
TEST(LocateStaged, EveryPlaceOfATileByTmaLeadsBackToItsElement) {
  std::int64_t asked = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
    for (const std::int64_t page : {0, 16, 64}) {
      for (const SwizzleMode mode : {SwizzleMode::none, SwizzleMode::b64, SwizzleMode::b128}) {
        for (const KOrV kv : {KOrV::k, KOrV::v}) {
          const StagingCase c{.dtype = dtype, .page = page, .swizzle = mode, .kv = kv};
          SCOPED_TRACE(testing::PrintToString(c));
          asked += check_tma(three_layers(c), kv, 100);
        }
      }
    }
  }
  EXPECT_GT(asked, 800);
}

TEST(LocateStaged, EveryPlaceOfATileThroughLdsLeadsBackToItsElement) {
  std::int64_t asked = 0;
  for (const DType dtype : {DType::bf16, DType::e4m3}) {
    for (const std::int64_t page : {0, 64, 128}) {
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        const StagingCase c{.dtype = dtype, .page = page, .kv = kv};
        SCOPED_TRACE(testing::PrintToString(c));
        asked += check_lds(three_layers(c), kv);
      }
    }
  }
  // Waves with different keys, and an instruction that takes two steps from one read.
  StagingStep parts = three_layers({.page = 64});
  parts.scenario.lds.WN = 32;
  asked += check_lds(parts, KOrV::k);
  asked += check_lds(three_layers({.page = 64, .mma = LdsMma::m32x32x8}), KOrV::k);
  asked += check_lds(three_layers({.page = 64, .mma = LdsMma::m16x16x32, .lds_swizzle = LdsSwizzle::s202}), KOrV::k);
  EXPECT_GT(asked, 200);
}

TEST(LocateStaged, RowsOfAnMlaCacheGoThereAndBack) {
  StagingStep step = mla_step(64, 150);
  step.scenario.tile.BK = 576;
  EXPECT_GT(check_tma(step, KOrV::k, 500), 80);
  step.scenario.tile.BK = 64;
  EXPECT_GT(check_tma(step, KOrV::k, 575), 20);  // the last 64 are rope
  EXPECT_GT(check_lds(step, KOrV::k), 50);
}

// Every byte and every register of one tile: each element occurs once per byte of it, and once in registers.
TEST(LocateStaged, EveryByteAndEveryRegisterOfAWholeTileIsSomeElementOnce) {
  const StagingStep step = three_layers({.page = 16, .tokens = 64});
  const TileQuestion q = question_of(StagingPath::tma, step, KOrV::k, 0);
  std::map<std::pair<std::int64_t, std::int64_t>, int> in_bytes, in_registers;
  for (std::int64_t byte = 0; byte < 64 * 64 * 2; byte += 1) {
    const Question found = locate_shared(step.scenario, step.state, q, byte);
    ++in_bytes[{found.token.value, found.dim.value}];
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (std::int64_t index = 0; index < 64; ++index) {
      for (const Question& found : locate_register(step.scenario, step.state, q, WaveIdx{0}, lane, index)) {
        ++in_registers[{found.token.value, found.dim.value}];
      }
    }
  }
  EXPECT_EQ(in_bytes.size(), 64u * 64u);
  EXPECT_EQ(in_registers.size(), 64u * 64u);
  for (const auto& [element, count] : in_bytes) ASSERT_EQ(count, 2) << element.first << ' ' << element.second;
  for (const auto& [element, count] : in_registers) ASSERT_EQ(count, 1) << element.first << ' ' << element.second;
}

// --- rejected questions ----------------------------------------------------------------------------------------------

template <class Error>
std::string rejection(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "no error";
}

class LocateStagedRejections : public testing::Test {
 protected:
  template <class Error = IndexError>
  std::string shared(const TileQuestion& q, std::int64_t byte) const {
    return rejection<Error>([&] { static_cast<void>(locate_shared(step_.scenario, step_.state, q, byte)); });
  }
  template <class Error = IndexError>
  std::string reg(const TileQuestion& q, std::int64_t wave, int lane, std::int64_t index) const {
    return rejection<Error>(
        [&] { static_cast<void>(locate_register(step_.scenario, step_.state, q, WaveIdx{wave}, lane, index)); });
  }
  TileQuestion tma(std::int64_t tile, KOrV kv = KOrV::k) const {
    return question_of(StagingPath::tma, step_, kv, tile);
  }
  TileQuestion lds(std::int64_t tile, KOrV kv = KOrV::k) const {
    return question_of(StagingPath::lds, step_, kv, tile);
  }

  StagingStep step_ = three_layers({.page = 64});  // 150 tokens: tiles of 64, 64 and 22
};

TEST_F(LocateStagedRejections, ASequenceThatIsNotInTheBatch) {
  TileQuestion q = tma(0);
  q.seq = SeqIdx{5};
  EXPECT_EQ(shared(q, 0),
            "sequence 5 is not in the batch of step 3, which holds 4, 9: choose one of these, or another step");
}

TEST_F(LocateStagedRejections, ATilePastTheSequencesEndCountedByThePathsOwnTiles) {
  step_.scenario.lds.BN = 32;
  EXPECT_EQ(shared(tma(3), 0), "sequence 9: tile 3 is outside [0, 3): it has 150 tokens at step 3, 64 a tile");
  EXPECT_EQ(shared(tma(-1), 0), "sequence 9: tile -1 is outside [0, 3): it has 150 tokens at step 3, 64 a tile");
  EXPECT_EQ(shared(lds(5), 0), "sequence 9: tile 5 is outside [0, 5): it has 150 tokens at step 3, 32 a tile");
  EXPECT_EQ(shared(lds(4), 0), "no error");
}

TEST_F(LocateStagedRejections, BytesOutsideTheTile) {
  EXPECT_EQ(shared(tma(0), 8192), "shared address 8192 is outside [0, 8192): bytes of the staged tile");
  EXPECT_EQ(shared(tma(0), -1), "shared address -1 is outside [0, 8192): bytes of the staged tile");
  EXPECT_EQ(shared(tma(0), 8191), "no error");
  EXPECT_EQ(shared(lds(0), 16384), "LDS byte 16384 is outside [0, 16384): bytes of a stage");
  EXPECT_EQ(shared(lds(0), -1), "LDS byte -1 is outside [0, 16384): bytes of a stage");
  EXPECT_EQ(shared(lds(0), 16383), "no error");
}

// Token 150 is the first one that does not exist: row 22 of the last tile. Row 22 is byte 2816 before the swizzle,
// chunk 6.
TEST_F(LocateStagedRejections, RowsPastTheLastTokenHoldNoToken) {
  EXPECT_EQ(
      shared(tma(2), 22 * 128),
      "row 22 of the tile would be token 150, and sequence 9 has 150 at step 3: the row holds no token and is masked");
  EXPECT_EQ(shared(tma(2), 21 * 128), "no error");
  EXPECT_EQ(
      reg(tma(2), 0, 0, 2 * 16 + 0),
      "row 32 of the tile would be token 160, and sequence 9 has 150 at step 3: the row holds no token and is masked");
  EXPECT_THAT(shared(lds(2), (22 * 4 ^ 22 / 4) * 16), testing::StartsWith("row 22 of the tile would be token 150, "));
}

// Heads of 72: two chunks of 64 columns, and the second is filled from column 8 on.
TEST_F(LocateStagedRejections, ColumnsPastTheHeadAreFill) {
  step_ = three_layers({.page = 64, .head_size = 72});
  step_.scenario.tile.BK = 128;
  EXPECT_EQ(shared(tma(0), 64 * 128 + 16), "column 72 is past the head's 72 elements: TMA filled it with zeros");
  EXPECT_EQ(shared(tma(0), 64 * 128 + 15), "no error");
  EXPECT_EQ(reg(tma(0), 0, 0, 4 * 4 + 1), "column 72 is past the head's 72 elements: TMA filled it with zeros");
}

TEST_F(LocateStagedRejections, LanesRegistersAndWavesThatAreNone) {
  EXPECT_EQ(reg(tma(0), 0, 32, 0), "lane 32 is outside [0, 32): lanes of a warp");
  EXPECT_EQ(reg(tma(0), 0, -1, 0), "lane -1 is outside [0, 32): lanes of a warp");
  EXPECT_EQ(reg(tma(0), 0, 31, 64), "register 64 is outside [0, 64): 32-bit registers of the whole tile");
  EXPECT_EQ(reg(tma(0), 9, 31, 63), "no error");  // every warp reads the same
  EXPECT_EQ(reg(lds(0), 4, 0, 0), "wave 4 is outside [0, 4): waves of the block");
  EXPECT_EQ(reg(lds(0), -1, 0, 0), "wave -1 is outside [0, 4): waves of the block");
  EXPECT_EQ(reg(lds(0), 3, 64, 0), "lane 64 is outside [0, 64): lanes of a wave");
  EXPECT_EQ(reg(lds(0), 3, 63, 64), "register 64 is outside [0, 64): 32-bit registers of the operand's register tile");
  EXPECT_EQ(reg(lds(0), 3, 63, 63), "no error");
}

TEST_F(LocateStagedRejections, ValuesOf32BitsHaveNoFragments) {
  step_ = three_layers({.dtype = DType::f32, .page = 64});
  EXPECT_EQ(shared(tma(0), 0), "no error");
  EXPECT_EQ(reg<UnsupportedError>(tma(0), 0, 0, 0),
            "mma.sync reads elements of 8 and 16 bits, and these have 32: a kernel converts them");
  EXPECT_THAT(shared<GeometryError>(lds(0), 0),
              testing::HasSubstr("dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2"));
}

TEST_F(LocateStagedRejections, APathThatCannotTakeTheTileSaysWhy) {
  step_ = three_layers({.page = 16});
  EXPECT_EQ(shared<GeometryError>(lds(0), 0),
            "KVCacheIterator rejected: tile_size: 64 tokens do not divide a page of 16: a tile must be in one page, "
            "use a divisor");
  step_ = mla_step(64, 150);
  EXPECT_THAT(shared<UnsupportedError>(tma(0, KOrV::v), 0), testing::Not(testing::StartsWith("another kind")));
}

}  // namespace
}  // namespace kvscope::locate_staged_test
