#include "core/scenario/presets.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/scenario/checks.h"

namespace kvscope::presets_test {
namespace {

// Figures of the published config.json files, written here a second time to detect typing errors in
// the table.
TEST(Presets, HaveTheFiguresOfThePublishedConfigurations) {
  const auto geometry = [](const char* name) { return find_preset(name)->model; };
  EXPECT_EQ(geometry("llama-3.1-8b"), (ModelGeometry{"llama-3.1-8b", 32, 32, 8, 128, false, 128}));
  EXPECT_EQ(geometry("llama-3.1-70b"), (ModelGeometry{"llama-3.1-70b", 80, 64, 8, 128, false, 128}));
  EXPECT_EQ(geometry("qwen2.5-7b"), (ModelGeometry{"qwen2.5-7b", 28, 28, 4, 128, false, 128}));
  EXPECT_EQ(geometry("gemma-2-9b"), (ModelGeometry{"gemma-2-9b", 42, 16, 8, 256, false, 256}));
  EXPECT_EQ(geometry("mistral-7b"), (ModelGeometry{"mistral-7b", 32, 32, 8, 128, false, 128}));
  EXPECT_EQ(geometry("deepseek-v3"), (ModelGeometry{"deepseek-v3", 61, 128, 1, 576, true, 512}));
  EXPECT_EQ(geometry("tiny"), ModelGeometry{});
}

// Only Gemma-2 caps its scores; a cap in another preset would change every output a little.
TEST(Presets, OnlyGemmaChangesTheAttentionItStartsFrom) {
  for (const ModelPreset& preset : model_presets()) {
    if (preset.model.name == "gemma-2-9b") {
      EXPECT_EQ(preset.attention.soft_cap, 50.0);
      EXPECT_EQ(preset.attention.scale, 1.0 / 16.0);
      EXPECT_EQ(preset.attention.mask, MaskKind::causal);
    } else {
      EXPECT_EQ(preset.attention, AttentionConfig{}) << preset.model.name;
    }
  }
}

TEST(Presets, EveryOneRunsOnceItsScaleIsKnown) {
  std::set<std::string> names;
  for (const ModelPreset& preset : model_presets()) {
    EXPECT_TRUE(names.insert(preset.model.name).second) << preset.model.name;
    EXPECT_FALSE(preset.title.empty());
    Scenario s;
    s.model = preset.model;
    s.attention = preset.attention;
    if (s.model.is_mla) s.attention.scale = 0.07;
    s.requests.list = {{0, 1, 0, {}}};
    EXPECT_EQ(check_scenario(s), std::vector<Fault>{}) << preset.model.name;
  }
}

TEST(Presets, NamesAreExact) {
  EXPECT_EQ(find_preset(""), nullptr);
  EXPECT_EQ(find_preset("Tiny"), nullptr);
  EXPECT_EQ(find_preset("llama-3.1-8"), nullptr);
  EXPECT_EQ(find_preset("qwen2.5-7b")->model.query_heads, 28);
}

}  // namespace
}  // namespace kvscope::presets_test
