// The whole chain for one scenario, stage by stage: requests -> paging engine -> cache at the focus step -> values ->
// golden attention -> the independent second computation that must agree with it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/attention/result.h"
#include "core/base/interruption.h"
#include "core/paging/run_limits.h"
#include "core/paging/run_report.h"
#include "core/pipeline/layer_attention.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/scenario.h"
#include "core/staging/focus.h"
#include "core/trace/recorder.h"

namespace kvscope {

// The difference of two evaluations, as the worst ratio of difference to bound over all outputs: at most 1 passes.
struct Agreement {
  double worst_ratio = 0;
  std::int64_t query = 0, head = 0, dim = 0;  // where: row of the ragged batch, query head, output element
  [[nodiscard]] bool passed() const { return worst_ratio <= 1; }
};

// The golden output over the focus layer, and everything it was made from. Movable but not copyable: `attention` points
// into the other members.
struct GoldenRun {
  FocusState focus;
  LayerData data;
  LayerAttention attention;
  attention::Result result;
  Agreement second_path;                 // against the tiled flow in double: |do| <= 64 * 2^-53 * (1 + smax) * max|v|
  Agreement kernel_flow;                 // against the tiled flow in f32, within the f32 bound
  xt::xtensor<double, 3> o_unquantized;  // o of the values before quantization; empty when not quantized
  double quantization_error = 0;         // max |o - o_unquantized|

  GoldenRun() = default;
  GoldenRun(GoldenRun&&) = default;
  GoldenRun& operator=(GoldenRun&&) = default;
};

// Finished requests, and the number of all. Return false to stop the run, which then throws Cancelled (interruption.h).
using ProgressFunction = std::function<bool(std::int64_t done, std::int64_t all)>;

struct EngineOptions {
  std::int64_t check_every = 0;  // recount every invariant of the pool after so many steps; 0: only after the last
  ProgressFunction progress;
  RunLimits limits{};
};

struct GoldenOptions {
  std::int64_t max_layer_bytes = std::int64_t{1} << 30;  // [bytes]
  double max_multiply_adds = 2e10;                       // about ten seconds of the reference
  attention::LseBase lse_base = attention::LseBase::natural;
  attention::EmptyRow empty_row = attention::EmptyRow::minus_infinity;
};

struct EngineRun {
  RunReport report;
  std::vector<std::string> broken_invariants;  // empty when all held at every check
};

struct RunOutcome {
  EngineRun engine;
  std::optional<GoldenRun> golden;
  std::string golden_skipped;  // the reason why there is no golden; empty when there is one
};

[[nodiscard]] EngineRun run_engine(const Scenario& scenario, std::span<const Request> requests,
                                   trace::Recorder& recorder, const EngineOptions& options = {});

// Why a golden at `step` would be too large, with the next step; empty when it is not too large.
[[nodiscard]] std::string golden_too_large(const Scenario& scenario, const FocusState& focus,
                                           const GoldenOptions& options);

// Values, golden output and second computation for a focus state. GeometryError when golden_too_large().
[[nodiscard]] GoldenRun run_golden(const Scenario& scenario, FocusState focus, const GoldenOptions& options = {});

// Omits a golden that would be too large and records the reason; faults of the scenario throw InputError
// or GeometryError.
[[nodiscard]] RunOutcome run_scenario(const Scenario& scenario, std::span<const Request> requests,
                                      trace::Recorder& recorder, const EngineOptions& engine = {},
                                      const GoldenOptions& golden = {});

}  // namespace kvscope
