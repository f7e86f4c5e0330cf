// A lane has 255 registers, so no place of a tile may have register 255 or more, and a tile that needs more of them is
// loaded in k-steps and divided among warps. Registers and LDS bytes of such tiles, and of tiles staged with the `lds`
// options of a scenario, are compared with formulas written here.
#include "core/staging/lane_registers.h"

#include <gmock/gmock.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/convert.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/detail/explain_staging.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/locate_staged.h"
#include "core/staging/staged_image.h"
#include "core/staging/staging_events.h"
#include "core/staging/tma/tma_staging.h"
#include "tests/core/staging/staging_fixture.h"

namespace kvscope::lane_registers_test {
namespace {

namespace fs = std::filesystem;
using testing_support::exact_value;
using testing_support::StagingCase;
using testing_support::StagingStep;

// Every number that a text puts after the word "register".
std::vector<std::int64_t> registers_named(const std::string& text) {
  static const std::string kWord = "register ";
  std::vector<std::int64_t> numbers;
  for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at + 1)) {
    std::int64_t number = -1;
    const char* first = text.data() + at + kWord.size();
    if (std::from_chars(first, text.data() + text.size(), number).ec == std::errc{}) numbers.push_back(number);
  }
  return numbers;
}

// Keeps the registers that the events of reads fill.
class ReadEvents final : public trace::Recorder {
 public:
  ReadEvents() : Recorder(trace::Detail::full) {}
  std::int64_t reads = 0, last_register = -1;

 private:
  void write(const trace::Event& event) override {
    if (const auto* read = std::get_if<trace::FragmentRead>(&event)) {
      ++reads;
      last_register = std::max(last_register, read->first_register + read->registers - 1);
    }
  }
};

// Multi-head latent attention in the gallery would need 576 registers per lane to hold its whole tile of K.
TEST(LaneRegisters, NoScenarioOfTheGalleryNamesARegisterThatNoLaneHas) {
  std::int64_t named = 0, reads = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    Scenario scenario = load_scenario(entry.path());
    const std::vector<Request> requests = make_requests(scenario, entry.path().parent_path());
    trace::Recorder off;
    const EngineRun run = run_engine(scenario, requests, off);
    const StepIdx step = focus_step(scenario, run.report);
    const CacheState state = state_at(scenario, requests, step).cache;
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      if (kv == KOrV::v && scenario.model.is_mla) continue;
      for (std::int64_t dim = 0; dim < scenario.model.head_size; dim += 7) {
        trace::Question question;
        question.seq = state.batch.front();
        question.kv = kv;
        question.step = step;
        question.dim = DimIdx{dim};
        for (const trace::Link& link : explain(scenario, requests, question, state).links) {
          for (const std::int64_t number : registers_named(link.result)) {
            ++named;
            ASSERT_LT(number, kLaneRegisters) << link.result;
          }
        }
      }
    }
    scenario.focus.staging = StagingDetail::copies;
    ReadEvents events;
    record_staging(scenario, state, events);
    reads += events.reads;
    EXPECT_LT(events.last_register, kLaneRegisters);
  }
  EXPECT_GT(named, 200);
  EXPECT_GT(reads, 100);
}

StagingStep wide_step(const StagingCase& c, std::int64_t BN, std::int64_t BK) {
  StagingStep step(c);
  step.scenario.tile.BN = BN;
  step.scenario.tile.BK = BK;
  return step;
}

// Token 5 is key 5 of the piece 0 across; dim 421 is column 5 of piece 26 along the row. B of m16n8k16: n = 5, k = 5:
// lane 4 * 5 + 5 / 2 = 22, first register, high half.
TEST(LaneRegisters, ExplainNamesTheKStepOfARowThatRegistersDoNotHold) {
  const StagingStep step = wide_step({.page = 64, .head_size = 576}, 64, 576);
  const AddressedCache cache(step.scenario, step.state, KOrV::k, LayerIdx{0});
  const auto links = explain_tma(step.scenario, cache, step.tile(KOrV::k, 0), TokIdx{5}, DimIdx{421});
  ASSERT_EQ(links.size(), 7u);
  EXPECT_EQ(links[5].name, "register");
  EXPECT_EQ(links[5].formula, "ldmatrix.x4, K as B, 2 B elements, of every warp");
  EXPECT_EQ(links[5].result, "k-step 26, lane 22, register 0, bits 16-31");
  EXPECT_EQ(
      links[5].remark,
      "a lane has 255 registers, too few for the tile: 36 k-steps of 16 registers, 4 per piece, one after the other");
}

// 1024 keys are 64 pieces across a k-step, 256 registers: two warps take 32 pieces each. Key 517 is in piece 32.
TEST(LaneRegisters, KeysThatOneWarpDoesNotHoldAreSharedOutOverTwo) {
  const StagingStep step = wide_step({.page = 128, .tokens = 1100}, 1024, 128);
  const AddressedCache cache(step.scenario, step.state, KOrV::k, LayerIdx{0});
  const auto links = explain_tma(step.scenario, cache, step.tile(KOrV::k, 0), TokIdx{517}, DimIdx{37});
  EXPECT_EQ(links.at(5).formula, "ldmatrix.x4, K as B, 2 B elements");
  EXPECT_EQ(links.at(5).result, "k-step 2, warp 1, lane 22, register 0, bits 16-31");
  EXPECT_EQ(
      links.at(5).remark,
      "a lane has 255 registers, too few for the tile: 8 k-steps of 128 registers, 4 per piece, one after the other; "
      "2 warps share the keys");
}

// Each element of the tile, found in the dumped registers at its place, and back again from there.
void check_tma(StagingStep step, KOrV kv, std::int64_t steps, std::int64_t warps, std::int64_t registers) {
  const Scenario& scenario = step.scenario;
  const StepCache cache =
      step_cache(scenario, step.state, {step.data.blocks.bytes.data(), nullptr, 1}, kv, LayerIdx{0});
  const StagedTile tile = step.tile(kv, 0);
  const TmaStaging staging(scenario, cache, tile, DimIdx{0});
  const StagedImage staged = stage_by_tma(scenario, step.state, step.data.bytes(), tile, DimIdx{0});
  EXPECT_EQ(staging.steps(), steps);
  EXPECT_EQ(staging.warps(), warps);
  EXPECT_EQ(staging.registers(), registers);
  EXPECT_LE(registers, kLaneRegisters);
  ASSERT_EQ(std::ssize(staged.register_bytes), steps * warps * 32 * registers * 4);
  TileQuestion question{StagingPath::tma, StagingStep::kSeq, LayerIdx{0}, StagingStep::kHead, kv, 0, DimIdx{0}};
  const std::int64_t size = size_of(scenario.cache.dtype);
  for (std::int64_t row = 0; row < staging.rows(); row += 11) {
    for (std::int64_t column = 0; column < staging.columns(); column += 5) {
      const TmaStaging::Register at = staging.register_of(row, column);
      ASSERT_LT(at.index, registers);
      const std::int64_t word = ((at.step * warps + at.warp) * 32 + at.lane) * registers + at.index;
      ASSERT_EQ(load_as_double(scenario.cache.dtype, staged.register_bytes.data() + word * 4 + at.bit / 8),
                exact_value(row, StagingStep::kHead.value, column, kv))
          << row << ' ' << column;
      question.step = at.step;
      const auto held = locate_register(scenario, step.state, question, WaveIdx{at.warp}, at.lane, at.index);
      const trace::Question& found = held.at(static_cast<std::size_t>(at.bit / (8 * size)));
      ASSERT_EQ(found.token, TokIdx{row});
      ASSERT_EQ(found.dim, DimIdx{column});
    }
  }
}

// K is split along its columns, V along its keys; pieces that still do not fit are divided among warps.
TEST(LaneRegisters, TilesInKStepsAreWhatTheirPlacesSayAndBack) {
  check_tma(wide_step({.page = 64, .head_size = 576}, 64, 576), KOrV::k, 36, 1, 16);
  check_tma(wide_step({.page = 64, .head_size = 576, .kv = KOrV::v}, 64, 576), KOrV::v, 4, 1, 144);
  check_tma(wide_step({.page = 128, .tokens = 1100}, 1024, 128), KOrV::k, 8, 2, 128);
  check_tma(wide_step({.page = 128, .tokens = 1100, .kv = KOrV::v}, 1024, 128), KOrV::v, 64, 1, 32);
  check_tma(wide_step({.dtype = DType::e4m3, .page = 64, .head_size = 1536, .kv = KOrV::v}, 64, 1536), KOrV::v, 2, 2,
            192);
  check_tma(wide_step({.page = 64, .head_size = 192}, 64, 192), KOrV::k, 1, 1, 192);  // fits: not split
}

TEST(LaneRegisters, PlacesOutsideAKStepAreRejected) {
  const StagingStep step = wide_step({.page = 64, .head_size = 576}, 64, 576);
  TileQuestion q{StagingPath::tma, StagingStep::kSeq, LayerIdx{0}, StagingStep::kHead, KOrV::k, 0, DimIdx{0}};
  const auto reject = [&](std::int64_t index) {
    try {
      (void)locate_register(step.scenario, step.state, q, WaveIdx{0}, 0, index);
    } catch (const IndexError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(reject(16), "register 16 is outside [0, 16): 32-bit registers of a k-step");
  EXPECT_EQ(reject(15), "no error");
  q.step = 36;
  EXPECT_EQ(reject(15), "k-step 36 is outside [0, 36): k-steps of the tile");
}

// --- LDS -------------------------------------------------------------------------------------------------------------

struct LdsCase {
  LdsGeometry lds;
  KOrV kv = KOrV::k;
  std::int64_t head_size = 128;
  std::int64_t steps = 1;      // k-steps that follow from it
  std::int64_t registers = 0;  // of a lane
};

// LDS and registers of a tile of bf16 with 32x32x16, by the tables of the instruction, without the register map.
void check_lds(const LdsCase& of) {
  StagingStep step({.page = 128, .tokens = 300, .head_size = of.head_size, .kv = of.kv});
  step.scenario.lds = of.lds;
  const bool is_k = of.kv == KOrV::k;
  const std::int64_t BN = of.lds.BN > 0 ? of.lds.BN : 64, BK = 32, first = 128, offset = of.lds.head_dim_offset;
  const std::int64_t depth = of.head_size - offset, blocks = of.lds.full_kv ? 1 : depth / BK;
  const std::int64_t wide = of.lds.full_kv ? (of.lds.smem_depth > 0 ? of.lds.smem_depth : depth) : BK;
  const StagedImage staged = stage_through_lds(step.scenario, step.state, step.data.bytes(), step.tile(of.kv, first));
  const auto value = [&](std::int64_t key, std::int64_t d) {
    return exact_value(first + key, StagingStep::kHead.value, offset + d, of.kv);
  };
  TileQuestion question{StagingPath::lds, StagingStep::kSeq, LayerIdx{0}, StagingStep::kHead, of.kv,
                        first / BN,       DimIdx{0}};

  // Bytes: without full_kv the last block of each stage remains.
  for (std::int64_t key = 0; key < BN; key += 3) {
    for (std::int64_t d = 0; d < depth; d += 5) {
      const std::int64_t block = of.lds.full_kv ? 0 : d / BK, stage = block % 2;
      if (block + 2 < blocks) continue;
      const std::int64_t x = ((stage * (wide / BK) + (of.lds.full_kv ? d / BK : 0)) * BN + key) * BK + d % BK;
      std::int64_t v = x / 8;
      if (is_k) v ^= v / 16 % 8;
      const std::int64_t byte = (v * 8 + x % 8) * 2;
      ASSERT_EQ(load_as_double(DType::bf16, staged.shared.read(byte, 2).data()), value(key, d)) << key << ' ' << d;
      question.step = block;
      const trace::Question found = locate_shared(step.scenario, step.state, question, byte);
      ASSERT_EQ(found.token, TokIdx{first + key});
      ASSERT_EQ(found.dim, DimIdx{offset + d});
    }
  }

  // Registers, k-step by k-step: strips one after the other, each of two steps of the instruction.
  EXPECT_EQ(staged.steps, of.steps);
  ASSERT_EQ(staged.registers, of.registers);
  const std::int64_t strips = (is_k ? depth : BN) / BK, across = (is_k ? BN : depth) / 32;
  const std::int64_t held = (strips + of.steps - 1) / of.steps;
  ASSERT_EQ(of.registers, held * 2 * across * 4);
  ASSERT_LE(of.registers, kLaneRegisters);
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    for (std::int64_t k = 0; k < 2; ++k) {
      for (std::int64_t i = 0; i < across; ++i) {
        for (std::int64_t e = 0; e < 8; e += 3) {
          for (std::int64_t lane = 1; lane < 64; lane += 10) {
            const std::int64_t half = lane / 32, in = lane % 32, wave = (strip + i) % staged.waves;
            const std::int64_t key = is_k ? 32 * i + in : 32 * strip + 16 * k + 8 * (e / 4) + 4 * half + e % 4;
            const std::int64_t d = is_k ? 32 * strip + 16 * k + 8 * half + e : 32 * i + in;
            const std::int64_t element = ((strip % held * 2 + k) * across + i) * 8 + e;
            const std::int64_t word = ((strip / held * staged.waves + wave) * 64 + lane) * of.registers + element / 2;
            ASSERT_EQ(load_as_double(DType::bf16, staged.register_bytes.data() + word * 4 + element % 2 * 2),
                      value(key, d))
                << "strip " << strip << ", k " << k << ", i " << i << ", e " << e << ", lane " << lane;
            question.step = strip / held;
            const auto found = locate_register(step.scenario, step.state, question, WaveIdx{wave},
                                               static_cast<int>(lane), element / 2);
            ASSERT_EQ(found.at(static_cast<std::size_t>(element % 2)).token, TokIdx{first + key});
            ASSERT_EQ(found.at(static_cast<std::size_t>(element % 2)).dim, DimIdx{offset + d});
          }
        }
      }
    }
  }
}

TEST(LdsOptions, StageWhatTheOptionsOfAScenarioSay) {
  check_lds({.lds = {}, .registers = 64});
  check_lds({.lds = {.reg_chunk_depth = 64}, .steps = 2, .registers = 32});
  check_lds({.lds = {.reg_chunk_depth = 32}, .steps = 4, .registers = 16});
  check_lds({.lds = {.head_dim_offset = 64}, .registers = 32});
  check_lds({.lds = {.head_dim_offset = 64}, .kv = KOrV::v, .registers = 32});
  check_lds({.lds = {.smem_depth = 192}, .registers = 64});
  check_lds({.lds = {.cache_depth = 128}, .registers = 64});
  check_lds({.lds = {.BN = 128, .full_kv = false}, .registers = 128});
  check_lds({.lds = {.BN = 128, .full_kv = false, .reg_chunk_depth = 64}, .steps = 2, .registers = 64});
  check_lds({.lds = {.BN = 128, .full_kv = false, .head_dim_offset = 32}, .registers = 96});
  check_lds({.lds = {.BN = 128, .full_kv = false}, .kv = KOrV::v, .registers = 128});
}

// 128 keys x 512 columns need 512 registers a lane, twice what there are.
TEST(LdsOptions, StripsThatDoNotFitTogetherAreLoadedInEqualParts) {
  check_lds({.lds = {.BN = 128}, .head_size = 512, .steps = 4, .registers = 128});
  check_lds({.lds = {.BN = 128}, .kv = KOrV::v, .head_size = 256, .steps = 2, .registers = 128});
}

TEST(LdsOptions, ExplainNamesTheBlockAndTheKStep) {
  StagingStep step({.page = 128, .tokens = 300});
  step.scenario.lds = {.BN = 128, .full_kv = false, .head_dim_offset = 32, .reg_chunk_depth = 32};
  const AddressedCache cache(step.scenario, step.state, KOrV::k, LayerIdx{0});
  const auto links = explain_lds(step.scenario, cache, step.tile(KOrV::k, 0), TokIdx{133}, DimIdx{101});
  ASSERT_EQ(links.size(), 5u);  // staged column 69: block 2, stage 0
  EXPECT_EQ(links[2].remark, "of stage 0, which holds block 2 of 32 columns");
  EXPECT_EQ(links[4].result, "k-step 2, lane 5, register 2, bits 16-31");
  EXPECT_EQ(links[4].remark, "in waves 0, 1, 2, 3; a lane holds 32 registers, loaded 3 times: 1 strip a k-step");
  const auto before = explain_lds(step.scenario, cache, step.tile(KOrV::k, 0), TokIdx{133}, DimIdx{31});
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].remark, "column 31 is not staged: head_dim_offset 32 and depth 96 stage columns [32, 128)");
}

TEST(LdsOptions, RejectWhatRegistersCannotHold) {
  const auto why = [](const LdsGeometry& lds, KOrV kv, std::int64_t head_size) {
    StagingStep step({.page = 512, .tokens = 600, .head_size = head_size, .kv = kv});
    step.scenario.lds = lds;
    const AddressedCache cache(step.scenario, step.state, kv, LayerIdx{0});
    return explain_lds(step.scenario, cache, step.tile(kv, 0), TokIdx{3}, DimIdx{0}).at(0).remark;
  };
  EXPECT_EQ(why({.BN = 128, .reg_chunk_depth = 512}, KOrV::k, 512),
            "16 strips take 512 registers, and a lane has 255: use a smaller reg_chunk_depth");
  EXPECT_EQ(why({.BN = 512, .BK = 64}, KOrV::k, 128),
            "1 strip takes 256 registers, and a lane has 255: use a smaller WN");
  EXPECT_EQ(why({.BN = 512, .full_kv = false}, KOrV::v, 128),
            "V without full_kv is read block by block for all keys, which do not fit in registers together: use a "
            "smaller BN, or full_kv");
}

}  // namespace
}  // namespace kvscope::lane_registers_test
