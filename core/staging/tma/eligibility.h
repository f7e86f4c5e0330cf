// Which engines' kernels would load a scenario's K and V by TMA, and the reasons when they would not: each engine's
// conditions as a table, with this scenario's numbers filled in.
//
//   FlashAttention-3, forward on sm_90, pages of 64, bf16, head size 128, causal:
//     page size % kBlockN == 0      64 % 128 = 64        does not hold: use pages of 128 or a multiple of it
//     query rows > kBlockM          1 x 4 = 4 > 128      does not hold: only long prompts pass
//   otherwise: the kernel's threads copy K and V (cp.async)
//
// The conditions come from the engines' published sources, one source per row. Engines change, so a row is true of the
// version it names. cuDNN is not listed: its kernels are not published, and no document states for which page sizes
// they use TMA. The rules of the copy itself (tensor_map_rules.h) apply to every engine in addition.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

struct RuleSource {
  std::string_view project;  // "Dao-AILab/flash-attention"
  std::string_view file;     // "hopper/flash_api.cpp"
  std::string_view version;  // commit, or another identification of the version
  friend bool operator==(const RuleSource&, const RuleSource&) = default;
};

// One condition, evaluated for one scenario.
struct EngineRule {
  std::string_view condition;  // "page size % kBlockN == 0"
  std::string numbers;         // "64 % 128 = 64"
  bool holds = false;
  std::string next_step;  // a change that makes it hold; empty when it does
  RuleSource source;
};

struct EngineVerdict {
  std::string_view engine;     // "FlashAttention-3"
  std::string_view kernel;     // "forward, sm_90"
  std::string_view otherwise;  // what the engine does when a condition does not hold
  std::vector<EngineRule> rules;
  [[nodiscard]] bool takes_tma() const;  // every rule holds
};

// All engines, in a fixed order. `query_tokens`: of one sequence in one step; 1 is decode, more is part of a prompt.
// A continuous cache has no pages: only MAX supports it, because its tiles are rows of either cache.
// GeometryError: query_tokens < 1. Precondition: the scenario passed check_scenario() (checks.h).
[[nodiscard]] std::vector<EngineVerdict> tma_eligibility(const Scenario& scenario, std::int64_t query_tokens = 1);

// The verdict as text: one line for the result, then one line per rule.
[[nodiscard]] std::string to_text(const EngineVerdict& verdict);

// FlashAttention-3's forward tile on sm_90: rows of queries and of keys.
struct Fa3Tile {
  std::int64_t kBlockM = 0, kBlockN = 0;
  friend bool operator==(const Fa3Tile&, const Fa3Tile&) = default;
};
// Example: 16-bit, head size 128, causal: {128, 128}; not causal: {128, 176}.
[[nodiscard]] Fa3Tile fa3_tile(std::int64_t element_bytes, std::int64_t head_size, std::int64_t value_size, bool causal,
                               bool local, bool soft_cap);

}  // namespace kvscope
