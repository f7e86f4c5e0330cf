// Bundles of a scenario's golden run: everything a kernel's author needs to check a kernel, in one file.
//
//   blocks lookup_table cache_lengths q [scales sinks alibi_slopes o_unquantized]   inputs, in MAX layout
//   o lse a1 a2 smax query_offsets key_lengths block_table                          as in core/golden/golden_bundle.h
//
// `blocks` holds one layer, [blocks + 1, kv, 1, page_size, kv_heads, head_size]; the manifest says which. A continuous
// cache is the same layout with a page of S tokens. cache_lengths leaves out the step's own tokens, as the cache types
// do: sequence b has cache_lengths[b] + query_offsets[b + 1] - query_offsets[b] keys.
#pragma once

#include <string>

#include "core/attention/merge.h"
#include "core/golden/tensor.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/scenario.h"

namespace kvscope {

[[nodiscard]] golden::Bundle scenario_bundle(const Scenario& scenario, const GoldenRun& run, std::string producer);

// o as `output` (f32, f16 or bf16, which its values are exactly), lse as f32: what a kernel would hand over.
[[nodiscard]] golden::Bundle candidate_bundle(const attention::PartialState& state, DType output,
                                              const attention::Options& conventions);

}  // namespace kvscope
