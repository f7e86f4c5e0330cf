#include "core/pipeline/run_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "core/paging/paging_engine.h"
#include "core/staging/staging_events.h"

namespace kvscope {
namespace {

// Worst |a - b| / bound(query, head, dim) over all outputs; a NaN on one side alone counts as infinitely far.
template <class Array, class Bound>
Agreement agreement(const xt::xtensor<double, 3>& golden, const Array& other, const Bound& bound) {
  Agreement worst;
  for (std::size_t n = 0; n < golden.size(); ++n) {
    const std::size_t d = n % golden.shape(2), h = n / golden.shape(2) % golden.shape(1);
    const std::size_t i = n / golden.shape(2) / golden.shape(1);
    const double difference = std::abs(golden(i, h, d) - static_cast<double>(other(i, h, d)));
    double ratio = difference == 0 ? 0 : difference / bound(i, h, d);
    if (std::isnan(ratio)) ratio = std::isnan(golden(i, h, d)) && std::isnan(other(i, h, d)) ? 0 : INFINITY;
    if (ratio > worst.worst_ratio) {
      worst = {ratio, static_cast<std::int64_t>(i), static_cast<std::int64_t>(h), static_cast<std::int64_t>(d)};
    }
  }
  return worst;
}

double largest_difference(const xt::xtensor<double, 3>& a, const xt::xtensor<double, 3>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.data()[i] - b.data()[i]));
  return largest;
}

}  // namespace

EngineRun run_engine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder,
                     const EngineOptions& options) {
  EngineRun run;
  PagingEngine engine(scenario, requests, recorder, options.limits);
  const auto note_broken = [&] {
    for (std::string& broken : engine.broken_invariants()) {
      run.broken_invariants.push_back(fmt::format("after step {}: {}", engine.report().steps - 1, broken));
    }
  };
  while (engine.step()) {
    const RunReport& report = engine.report();
    if (options.check_every > 0 && report.steps % options.check_every == 0) note_broken();
    if (options.progress && !options.progress(report.finished + report.refused, report.requests)) throw Cancelled{};
  }
  note_broken();
  run.report = engine.report();
  return run;
}

std::string golden_too_large(const Scenario& scenario, const FocusState& focus, const GoldenOptions& options) {
  constexpr double kGiB = 1 << 30;
  const std::int64_t bytes = layer_bytes(scenario);
  if (bytes > options.max_layer_bytes) {
    return fmt::format(
        "one layer of the pool takes {:.1f} GiB, and values are generated for at most {:.1f} GiB: "
        "lower $.cache.blocks",
        static_cast<double>(bytes) / kGiB, static_cast<double>(options.max_layer_bytes) / kGiB);
  }
  const double work = multiply_adds(scenario, focus);
  if (work > options.max_multiply_adds) {
    return fmt::format(
        "attention at step {} takes {:.2g} multiply-adds, more than {:.2g}: choose an earlier $.focus.step",
        focus.cache.step.value, work, options.max_multiply_adds);
  }
  return {};
}

GoldenRun run_golden(const Scenario& scenario, FocusState focus, const GoldenOptions& options) {
  if (const std::string why = golden_too_large(scenario, focus, options); !why.empty()) throw GeometryError(why);
  GoldenRun run;
  run.focus = std::move(focus);
  run.data = layer_data(scenario, run.focus);
  run.attention = layer_attention(scenario, run.focus, run.data);
  run.attention.problem.options.lse_base = options.lse_base;
  run.attention.problem.options.empty_row = options.empty_row;
  run.result = attention::reference(run.attention.problem);

  const attention::Result& golden = run.result;
  const auto allowed = [&](DType type) {
    attention::Rounding rounding = attention::rounding_of(type);
    rounding.deviations = attention::deviations_for(static_cast<double>(golden.o.size()));
    return [&golden, &run, rounding](std::size_t i, std::size_t h, std::size_t d) {
      const auto head_size = static_cast<double>(run.attention.problem.k.head_size);
      return attention::output_budget(rounding, attention::row_terms(golden, i, h, head_size),
                                      attention::element_terms(golden, i, h, d))
          .total();
    };
  };
  const attention::PartialState in_double = attention::tiled_double(run.attention.problem);
  run.second_path = agreement(golden.o, in_double.o, allowed(DType::f64));
  const attention::PartialState in_float = attention::tiled(run.attention.problem, {});
  run.kernel_flow = agreement(golden.o, in_float.o, allowed(DType::f32));
  if (scenario.cache.quantization) {
    const LayerAttention exact = exact_attention(scenario, run.focus, run.data);
    run.o_unquantized = attention::reference_output(exact.problem).o;
    run.quantization_error = largest_difference(golden.o, run.o_unquantized);
  }
  return run;
}

RunOutcome run_scenario(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder,
                        const EngineOptions& engine, const GoldenOptions& golden) {
  RunOutcome outcome;
  outcome.engine = run_engine(scenario, requests, recorder, engine);
  if (outcome.engine.report.steps == 0) {
    outcome.golden_skipped = "no step was run: there is no cache to compute attention over";
    return outcome;
  }
  FocusState focus = state_at(scenario, requests, focus_step(scenario, outcome.engine.report), engine.limits);
  record_staging(scenario, focus.cache, recorder);
  outcome.golden_skipped = golden_too_large(scenario, focus, golden);
  if (outcome.golden_skipped.empty()) outcome.golden = run_golden(scenario, std::move(focus), golden);
  return outcome;
}

}  // namespace kvscope
