// Golden bundles: what a kernel's author needs to check a kernel, in one file. Inputs, outputs, and every convention by name.
//
//   blocks lookup_table cache_lengths query_offsets q [scales sinks alibi_slopes]   inputs in MAX layout
//   o lse a1 a2 smax                                                                 outputs and what bounds are made of, f64
//
// `blocks` holds one layer, [blocks + 1, kv, 1, page_size, kv_heads, head_size]; the manifest says which. A continuous cache is
// the same layout with a page of S tokens. cache_lengths leaves out the step's own tokens, as the cache types do:
// sequence b has cache_lengths[b] + query_offsets[b + 1] - query_offsets[b] keys.
#pragma once

#include "core/attention/merge.h"
#include "core/attention/problem.h"
#include "core/attention/result.h"
#include "core/golden/tensor.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// The options by name, as the manifest's "conventions" and every report have them.
[[nodiscard]] json::Value conventions(const attention::Options& options);

// o, lse, a1, a2 and smax as f64 tensors.
void add_result(golden::Bundle& bundle, const attention::Result& result);

[[nodiscard]] golden::Bundle golden_bundle(const Scenario& scenario, const GoldenRun& run);

// o as `output` (f32, f16 or bf16, which its values must be exactly), lse as f32: what a kernel would hand over.
[[nodiscard]] golden::Bundle candidate_bundle(const attention::PartialState& state, DType output);

}  // namespace kvscope
