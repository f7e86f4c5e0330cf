// Models by name, with the figures of their published configurations.
//
//   name              layers  query heads  kv heads  head size  value size
//   tiny                   2            4         2          8           8   invented: every number fits on a screen
//   llama-3.1-8b          32           32         8        128         128
//   llama-3.1-70b         80           64         8        128         128
//   qwen2.5-7b            28           28         4        128         128
//   gemma-2-9b            42           16         8        256         256   soft cap 50; scale 1/sqrt(256)
//   mistral-7b            32           32         8        128         128
//   deepseek-v3           61          128         1        576         512   MLA: a row is 512 latent, 64 rope
//
// In Gemma-2 every other layer attends to a window of 4096 tokens only. A scenario models one kind of layer at a time.
// The preset's mask is causal; for the other kind write `"attention": {"mask": "sliding_window", "window": 4096}`.
//
// The preset of DeepSeek-V3 has no scale, because two are in use and a wrong one shows only when outputs are compared:
// 1/sqrt(192) = 0.07216878364870322 before rope scaling (192 = 128 + 64 is a query's width before absorption), and that
// times (0.1 * ln 40 + 1)^2, which is 0.1352337788608801, as deployed. A scenario with this preset must set the scale.
#pragma once

#include <span>
#include <string_view>

#include "core/scenario/scenario.h"

namespace kvscope {

struct ModelPreset {
  std::string_view title;  // "Llama 3.1 8B"
  ModelGeometry model;     // model.name is the preset's name
  // The model's attention settings: the defaults of a scenario that names the preset, instead of those of the struct.
  AttentionConfig attention;
};

[[nodiscard]] std::span<const ModelPreset> model_presets();

// Null when there is no preset of that name. Example: find_preset("qwen2.5-7b")->model.query_heads == 28.
[[nodiscard]] const ModelPreset* find_preset(std::string_view name);

}  // namespace kvscope
