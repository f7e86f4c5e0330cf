// Each engine's conditions at their limits, with the printed numbers. The figures are those of the sources named in the
// rows: another version may have others.
#include "core/staging/tma/eligibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/scenario/presets.h"

namespace kvscope::eligibility_test {
namespace {

Scenario scenario_of(std::string_view preset, std::int64_t page, DType dtype = DType::bf16) {
  Scenario scenario;
  scenario.model = find_preset(preset)->model;
  scenario.attention = find_preset(preset)->attention;
  scenario.cache.dtype = dtype;
  scenario.cache.page_size = page;
  scenario.cache.blocks = 1000;
  scenario.tile.BN = 128;
  scenario.tile.BK = 128;
  return scenario;
}

EngineVerdict verdict_of(const std::vector<EngineVerdict>& verdicts, std::string_view engine,
                         std::string_view kernel = {}) {
  for (const EngineVerdict& verdict : verdicts) {
    if (verdict.engine == engine && (kernel.empty() || verdict.kernel == kernel)) return verdict;
  }
  ADD_FAILURE() << "no " << engine;
  return verdicts.front();
}

bool takes(const Scenario& scenario, std::string_view engine, std::int64_t query_tokens = 1,
           std::string_view kernel = {}) {
  return verdict_of(tma_eligibility(scenario, query_tokens), engine, kernel).takes_tma();
}

TEST(Fa3Tiles, AreThePublishedTable) {
  // element bytes, head, value, causal, local, soft cap
  EXPECT_EQ(fa3_tile(2, 64, 64, true, false, false), (Fa3Tile{192, 128}));
  EXPECT_EQ(fa3_tile(2, 64, 64, false, true, false), (Fa3Tile{192, 160}));
  EXPECT_EQ(fa3_tile(2, 64, 64, false, false, false), (Fa3Tile{192, 192}));
  EXPECT_EQ(fa3_tile(2, 64, 256, false, false, false), (Fa3Tile{128, 112}));
  EXPECT_EQ(fa3_tile(2, 64, 512, true, false, false), (Fa3Tile{64, 64}));
  EXPECT_EQ(fa3_tile(2, 96, 96, false, false, false), (Fa3Tile{192, 144}));
  EXPECT_EQ(fa3_tile(2, 96, 96, false, true, false), (Fa3Tile{192, 128}));
  EXPECT_EQ(fa3_tile(2, 128, 128, true, false, false), (Fa3Tile{128, 128}));
  EXPECT_EQ(fa3_tile(2, 128, 128, false, false, false), (Fa3Tile{128, 176}));
  EXPECT_EQ(fa3_tile(2, 192, 128, true, false, false), (Fa3Tile{128, 128}));
  EXPECT_EQ(fa3_tile(2, 192, 192, true, false, false), (Fa3Tile{128, 112}));
  EXPECT_EQ(fa3_tile(2, 192, 192, false, true, false), (Fa3Tile{128, 96}));
  EXPECT_EQ(fa3_tile(2, 256, 256, true, false, true), (Fa3Tile{128, 80}));
  EXPECT_EQ(fa3_tile(2, 256, 256, false, true, true), (Fa3Tile{128, 64}));
  EXPECT_EQ(fa3_tile(1, 64, 64, true, false, false), (Fa3Tile{192, 160}));
  EXPECT_EQ(fa3_tile(1, 96, 96, true, false, false), (Fa3Tile{192, 128}));
  EXPECT_EQ(fa3_tile(1, 128, 128, true, false, false), (Fa3Tile{128, 224}));
  EXPECT_EQ(fa3_tile(1, 128, 128, false, true, true), (Fa3Tile{128, 192}));
  EXPECT_EQ(fa3_tile(1, 192, 192, true, false, false), (Fa3Tile{128, 160}));
  EXPECT_EQ(fa3_tile(1, 192, 192, false, true, true), (Fa3Tile{128, 128}));
  EXPECT_EQ(fa3_tile(1, 256, 256, false, true, false), (Fa3Tile{128, 64}));
  EXPECT_EQ(fa3_tile(1, 256, 256, true, false, false), (Fa3Tile{128, 128}));
}

// Pages must be whole key tiles, and there must be more query rows than a tile has: decode never satisfies this.
TEST(FlashAttention3, TakesTmaForLargePagesAndLongPromptsOnly) {
  constexpr std::string_view kEngine = "FlashAttention-3";
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 64), kEngine, 512));
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 128), kEngine, 512));
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 256), kEngine, 512));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 192), kEngine, 512));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 128), kEngine, 1));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 128), kEngine, 32));  // 32 x 4 rows are one tile
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 128), kEngine, 33));
  // A head of 256 has key tiles of 80: no page size that is a power of two works.
  EXPECT_FALSE(takes(scenario_of("gemma-2-9b", 256), kEngine, 512));
  EXPECT_TRUE(takes(scenario_of("gemma-2-9b", 160), kEngine, 512));
  // MLA: 128 heads over one of K and V, tiles of 64.
  EXPECT_TRUE(takes(scenario_of("deepseek-v3", 64), kEngine, 1));
  EXPECT_FALSE(takes(scenario_of("deepseek-v3", 32), kEngine, 1));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 128, DType::f32), kEngine, 512));
  // Without a mask tiles are 176 keys. A single query uses the sizes without a mask, except for heads of 65 to 128.
  Scenario open = scenario_of("llama-3.1-8b", 128);
  open.attention.mask = MaskKind::none;
  EXPECT_FALSE(takes(open, kEngine, 512));
  open.cache.page_size = 176;
  EXPECT_TRUE(takes(open, kEngine, 512));
  Scenario narrow = scenario_of("llama-3.1-8b", 128);
  narrow.model.head_size = narrow.model.value_size = 64;
  narrow.model.query_heads = 8 * 200;
  EXPECT_TRUE(takes(narrow, kEngine, 2));
  EXPECT_FALSE(takes(narrow, kEngine, 1));
  narrow.cache.page_size = 192;
  EXPECT_TRUE(takes(narrow, kEngine, 1));
  Scenario window = scenario_of("gemma-2-9b", 64);
  window.attention.mask = MaskKind::sliding_window;
  EXPECT_TRUE(takes(window, kEngine, 512));
  Scenario wide = scenario_of("llama-3.1-8b", 80);
  wide.model.head_size = wide.model.value_size = 320;
  EXPECT_FALSE(takes(wide, kEngine, 512));
}

TEST(FlashAttention3, SaysWhichNumberStandsAgainstIt) {
  EXPECT_EQ(to_text(verdict_of(tma_eligibility(scenario_of("llama-3.1-8b", 64)), "FlashAttention-3")),
            "FlashAttention-3, forward, sm_90: the kernel's threads copy K and V (cp.async)\n"
            "  f16, bf16 or e4m3: bf16 (holds; Dao-AILab/flash-attention, hopper/flash_api.cpp, 0e79d7117534)\n"
            "  head size <= 256: 128 (holds; Dao-AILab/flash-attention, hopper/flash_api.cpp, 0e79d7117534)\n"
            "  page size % kBlockN == 0: 64 % 128 = 64 (does not hold: use pages of 128 or a multiple of it; "
            "Dao-AILab/flash-attention, hopper/tile_size.h, 07602adc2baa)\n"
            "  query rows > kBlockM: 1 x 4 = 4 > 128 (does not hold: only pieces of 33 tokens or more pass; "
            "Dao-AILab/flash-attention, hopper/flash_api.cpp, 0e79d7117534)\n");
}

TEST(FlashInfer, CopiesPagesByItsThreadsUntilTheOpenChange) {
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 64), "FlashInfer"));
  constexpr std::string_view kOpen = "FlashInfer, with an open change";
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 16), kOpen));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 8), kOpen));
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 48), kOpen));
  EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", 16, DType::e4m3), kOpen));
  EXPECT_FALSE(takes(scenario_of("deepseek-v3", 64), kOpen));
  Scenario odd = scenario_of("llama-3.1-8b", 16);
  odd.model.head_size = odd.model.value_size = 80;
  EXPECT_FALSE(takes(odd, kOpen));
}

TEST(TensorRtLlm, TakesPagesThatFitTilesOf64) {
  constexpr std::string_view kEngine = "TensorRT-LLM";
  for (const std::int64_t page : {1, 16, 32, 64, 128, 192})
    EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", page), kEngine));
  for (const std::int64_t page : {48, 96, 100}) EXPECT_FALSE(takes(scenario_of("llama-3.1-8b", page), kEngine));
  EXPECT_FALSE(takes(scenario_of("deepseek-v3", 64), kEngine));
  Scenario head = scenario_of("llama-3.1-8b", 64, DType::e4m3);
  for (const auto& [size, fits] :
       std::map<std::int64_t, bool>{{32, false}, {64, true}, {96, false}, {128, true}, {192, false}, {256, true}}) {
    head.model.head_size = size;
    EXPECT_EQ(takes(head, kEngine), fits) << size;
  }
}

TEST(FlashMla, TakesPagesOf64AndGathersAnyPageOnBlackwell) {
  const auto dense = [](const Scenario& s) { return takes(s, "FlashMLA", 1, "dense decode, sm_90"); };
  const auto sparse = [](const Scenario& s) { return takes(s, "FlashMLA", 1, "sparse decode by gather4, sm_100"); };
  EXPECT_TRUE(dense(scenario_of("deepseek-v3", 64)));
  EXPECT_FALSE(dense(scenario_of("deepseek-v3", 128)));
  EXPECT_FALSE(dense(scenario_of("deepseek-v3", 64, DType::e4m3)));
  EXPECT_FALSE(dense(scenario_of("llama-3.1-8b", 64)));
  EXPECT_TRUE(sparse(scenario_of("deepseek-v3", 17, DType::e4m3)));
  EXPECT_FALSE(sparse(scenario_of("deepseek-v3", 64)));
  Scenario small = scenario_of("deepseek-v3", 64);
  small.model.head_size = 512;
  EXPECT_TRUE(dense(small));
  small.model.head_size = 320;
  EXPECT_FALSE(dense(small));
  Scenario heads = scenario_of("deepseek-v3", 64, DType::e4m3);
  heads.model.kv_heads = 2;
  EXPECT_FALSE(sparse(heads));
}

TEST(ModularMax, HoldsTileAndPageToOneAnother) {
  constexpr std::string_view kEngine = "Modular MAX";
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 128), kEngine));
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 16), kEngine));   // 8 sub-tiles
  EXPECT_TRUE(takes(scenario_of("llama-3.1-8b", 512), kEngine));  // a part of a page
  const auto message = [](Scenario scenario, const std::function<void(Scenario&)>& change) {
    change(scenario);
    std::string text;
    const EngineVerdict verdict = verdict_of(tma_eligibility(scenario), "Modular MAX");
    for (const EngineRule& rule : verdict.rules) {
      if (!rule.holds) text += std::string(rule.condition) + ": " + rule.numbers + ": " + rule.next_step + "\n";
    }
    return text;
  };
  const Scenario base = scenario_of("llama-3.1-8b", 64);
  EXPECT_EQ(message(base, [](Scenario& s) { s.tile.BN = 100; }),
            "BN within a page, or whole pages: BN 100, pages of 64: use BN 64\n");
  EXPECT_EQ(message(base, [](Scenario& s) { s.tile.BK = 96; }),
            "BK % swizzle granularity == 0: 96 % 64 = 32: use BK 128\n");
  EXPECT_EQ(message(base, [](Scenario& s) { s.cache.dtype = DType::e5m2; }),
            "an element type that TMA supports: e5m2: use bf16, f16, f32 or e4m3\n");
  EXPECT_EQ(message(base, [](Scenario& s) { s.tile.BN = s.cache.page_size = 512; }),
            "box of at most 256 rows: 512 rows: use BN 256 or less\n");
  EXPECT_EQ(message(base, [](Scenario& s) { s.model.head_size = 100; }),
            "row of a head % 16 B == 0: 100 x 2 B = 200 B: pad the head to 104\n");
  EXPECT_EQ(message(base, [](Scenario& s) { s.tile.swizzle = SwizzleMode::none, s.tile.BN = 4; }),
            "boxes % 128 B == 0 if several are adjacent: 4 x 8 x 2 B = 64 B, 16 of them: use more rows\n");
  // 524,287 blocks of 2 x 32 x 64 rows end just below 2^31; one more is too many.
  EXPECT_EQ(message(base, [](Scenario& s) { s.cache.blocks = 524287; }), "");
  EXPECT_EQ(
      message(base, [](Scenario& s) { s.cache.blocks = 524288; }),
      "fewer than 2^31 rows: 524288 blocks x 4096 + 64 = 2147483712: use fewer blocks, or the tile with the block as "
      "its own coordinate\n");
}

TEST(TmaEligibility, NamesASourceForEveryRule) {
  const auto verdicts = tma_eligibility(scenario_of("deepseek-v3", 64), 4);
  EXPECT_EQ(verdicts.size(), 7U);
  for (const EngineVerdict& verdict : verdicts) {
    EXPECT_FALSE(verdict.rules.empty());
    for (const EngineRule& rule : verdict.rules) {
      EXPECT_FALSE(rule.source.project.empty() || rule.source.file.empty() || rule.source.version.empty());
      EXPECT_EQ(rule.next_step.empty(), rule.holds) << rule.condition;
    }
  }
}

TEST(TmaEligibility, HasOnlyRowsToSpeakOfWithoutPages) {
  Scenario scenario = scenario_of("llama-3.1-8b", 64);
  scenario.cache.kind = CacheKind::continuous;
  const auto verdicts = tma_eligibility(scenario);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].engine, "Modular MAX");
  EXPECT_TRUE(verdicts[0].takes_tma());
  EXPECT_THROW((void)tma_eligibility(scenario, 0), GeometryError);
}

}  // namespace
}  // namespace kvscope::eligibility_test
