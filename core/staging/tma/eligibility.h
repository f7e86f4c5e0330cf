// Which engines' kernels would fetch a scenario's K and V by TMA, and which would not, and why: each engine's
// conditions as a table, with this scenario's numbers in it.
//
//   FlashAttention-3, forward on sm_90, pages of 64, bf16, head size 128, causal:
//     page size % kBlockN == 0      64 % 128 = 64        does not hold: use pages of 128 or a multiple of it
//     query rows > kBlockM          1 x 4 = 4 > 128      does not hold: only long prompts pass
//   otherwise: the kernel's threads copy K and V (cp.async)
//
// The conditions are facts read from the engines' published sources, one source a row; engines change, so a row is true
// of the version it names. cuDNN is left out: its kernels are not published, and whether one of them takes TMA for a
// page size is documented nowhere. Rules of the copy itself (tensor_map_rules.h) come on top for every engine.
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
  std::string_view version;  // commit, or what else pins it
  friend bool operator==(const RuleSource&, const RuleSource&) = default;
};

// One condition, held against one scenario.
struct EngineRule {
  std::string_view condition;  // "page size % kBlockN == 0"
  std::string numbers;         // "64 % 128 = 64"
  bool holds = false;
  std::string next_step;  // what would make it hold; empty when it does
  RuleSource source;
};

struct EngineVerdict {
  std::string_view engine;     // "FlashAttention-3"
  std::string_view kernel;     // "forward, sm_90"
  std::string_view otherwise;  // what happens when a condition does not hold
  std::vector<EngineRule> rules;
  [[nodiscard]] bool takes_tma() const;  // every rule holds
};

// All engines, in a fixed order. `query_tokens`: of one sequence in one step; 1 is decoding, more a piece of a prompt.
// A continuous cache has no pages: only MAX, whose tiles are rows of either cache, has something to say of it then.
// GeometryError: query_tokens < 1. The scenario is the caller's to check (checks.h).
[[nodiscard]] std::vector<EngineVerdict> tma_eligibility(const Scenario& scenario, std::int64_t query_tokens = 1);

// Lines a person reads: the verdict, then one line a rule.
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
