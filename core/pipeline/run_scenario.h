// The whole chain for one scenario, stage by stage: requests -> paging engine -> cache at the focus step -> values ->
// golden attention -> the independent second path that must agree with it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/attention/result.h"
#include "core/cache/run_report.h"
#include "core/pipeline/focus.h"
#include "core/pipeline/layer_attention.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope {

// How far two evaluations are apart, as the worst ratio of difference to bound over all outputs: up to 1 passes.
struct Agreement {
  double worst_ratio = 0;
  std::int64_t query = 0, head = 0, dim = 0;  // where; row of the ragged batch, query head, output element
  [[nodiscard]] bool passed() const { return worst_ratio <= 1; }
};

// The golden output over the focus layer, and everything it was made from.
struct GoldenRun {
  FocusState focus;
  LayerData data;
  LayerAttention attention;
  attention::Result result;
  Agreement second_path;      // reference against the tiled flow in double: |do| <= 64 * 2^-53 * (1 + smax) * max|v|
  Agreement kernel_flow;      // reference against the tiled flow in f32, within the f32 bound
  double quantization_error;  // max |o - o of the values before quantization|; 0 when not quantized
};

struct RunOptions {
  std::int64_t max_layer_bytes = std::int64_t{1} << 30;  // [bytes]
  double max_multiply_adds = 2e10;                       // about ten seconds of the reference
};

struct RunOutcome {
  RunReport report;
  std::optional<GoldenRun> golden;
  std::string golden_skipped;  // why there is no golden; empty when there is
};

// The step, its cache, its values and its golden output. GeometryError when that is more than `options` allow.
[[nodiscard]] GoldenRun run_golden(const Scenario& scenario, std::span<const Request> requests, StepIdx step,
                                   const RunOptions& options);

[[nodiscard]] RunReport run_engine(const Scenario& scenario, std::span<const Request> requests,
                                   trace::Recorder& recorder);

// A golden that would be too large is left out with its reason; a fault in the scenario throws InputError or GeometryError.
[[nodiscard]] RunOutcome run_scenario(const Scenario& scenario, std::span<const Request> requests,
                                      trace::Recorder& recorder, const RunOptions& options = {});

}  // namespace kvscope
