// Bundles of a scenario's golden run: all data needed to check a kernel, in one file.
//
//   blocks lookup_table cache_lengths q [scales sinks alibi_slopes o_unquantized]   inputs, in MAX layout
//   o lse a1 a2 smax query_offsets key_lengths block_table                          as in core/golden/golden_bundle.h
//
// `blocks` holds one layer, [blocks + 1, kv, 1, page_size, kv_heads, head_size]; the manifest has its number. A
// continuous cache is the same layout with a page of S tokens. cache_lengths excludes the step's new tokens, as in the
// cache types: sequence b has cache_lengths[b] + query_offsets[b + 1] - query_offsets[b] keys.
#pragma once

#include <string>

#include "core/attention/merge.h"
#include "core/golden/bundle/tensor.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/scenario.h"

namespace kvscope {

[[nodiscard]] golden::Bundle scenario_bundle(const Scenario& scenario, const GoldenRun& run, std::string producer);

// o converted to `output` (f32, f16 or bf16, which represents its values exactly), lse as f32, as a kernel writes them.
[[nodiscard]] golden::Bundle candidate_bundle(const attention::PartialState& state, DType output,
                                              const attention::Options& conventions);

}  // namespace kvscope
