#include "core/scenario/presets.h"

#include <algorithm>
#include <array>

namespace kvscope {
namespace {

// K and V have separate slots, so a head's value is as long as its key.
ModelGeometry dense(const char* name, std::int64_t layers, std::int64_t query_heads, std::int64_t kv_heads,
                    std::int64_t head_size) {
  return {name, layers, query_heads, kv_heads, head_size, false, head_size};
}

AttentionConfig gemma() {
  AttentionConfig attention;
  attention.scale = 0.0625;  // query_pre_attn_scalar 256
  attention.soft_cap = 50.0;
  return attention;
}

std::array<ModelPreset, 7> make_presets() {
  return {{{"Tiny, for looking at every element", dense("tiny", 2, 4, 2, 8), {}},
           {"Llama 3.1 8B", dense("llama-3.1-8b", 32, 32, 8, 128), {}},
           {"Llama 3.1 70B", dense("llama-3.1-70b", 80, 64, 8, 128), {}},
           {"Qwen2.5 7B", dense("qwen2.5-7b", 28, 28, 4, 128), {}},
           {"Gemma 2 9B", dense("gemma-2-9b", 42, 16, 8, 256), gemma()},
           {"Mistral 7B", dense("mistral-7b", 32, 32, 8, 128), {}},
           {"DeepSeek-V3, multi-head latent attention", {"deepseek-v3", 61, 128, 1, 576, true, 512}, {}}}};
}

}  // namespace

std::span<const ModelPreset> model_presets() {
  static const std::array<ModelPreset, 7> presets = make_presets();
  return presets;
}

const ModelPreset* find_preset(std::string_view name) {
  const auto presets = model_presets();
  const auto found = std::ranges::find_if(presets, [&](const ModelPreset& p) { return p.model.name == name; });
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace kvscope
