// Attention over the focus layer: the pool of layer_data.h and the tables of focus.h as one attention::Problem.
#pragma once

#include <vector>

#include "core/attention/problem.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/scenario.h"
#include "core/staging/focus.h"

namespace kvscope {

// `problem` points into this struct and into the FocusState and LayerData it was made from: all three must stay alive.
struct LayerAttention {
  attention::Problem problem;
  std::vector<double> alibi_slopes;  // [query_heads] or empty
  std::vector<double> sinks;         // [query_heads] or empty
};

// The options of a scenario's attention block. Its `window` counts the keys seen including the query's own, so
// left = window - 1.
[[nodiscard]] attention::Options attention_options(const Scenario& scenario);

[[nodiscard]] LayerAttention layer_attention(const Scenario& scenario, const FocusState& focus, const LayerData& data);

// The same problem over the values before quantization, to measure the error of quantization itself.
// Precondition (caller): the scenario is quantized.
[[nodiscard]] LayerAttention exact_attention(const Scenario& scenario, const FocusState& focus, const LayerData& data);

// Multiply-adds of the reference over the step's batch, masked pairs included: decides whether the computation is
// started.
[[nodiscard]] double multiply_adds(const Scenario& scenario, const FocusState& focus);

}  // namespace kvscope
