#include "core/pipeline/run_report_text.h"

#include <fmt/format.h>

#include "core/golden/golden_bundle.h"

namespace kvscope {
namespace {

std::string line(std::string_view what, const Agreement& agreement) {
  return fmt::format("  {:<24} {}   largest error {:.3g}x the rounding bound (query {}, head {}, dim {})\n", what,
                     agreement.passed() ? "agrees" : "DIFFERS", agreement.worst_ratio, agreement.query, agreement.head,
                     agreement.dim);
}

json::Value to_json(const Agreement& agreement) {
  json::Value value;
  value.set("passed", agreement.passed());
  value.set("worst_ratio", agreement.worst_ratio);
  value.set("query", agreement.query);
  value.set("head", agreement.head);
  value.set("dim", agreement.dim);
  return value;
}

}  // namespace

bool passed(const RunOutcome& outcome) {
  return outcome.engine.broken_invariants.empty() &&
         (!outcome.golden || (outcome.golden->second_path.passed() && outcome.golden->kernel_flow.passed()));
}

std::string to_text(const Scenario& scenario, const RunOutcome& outcome) {
  std::string text = fmt::format("scenario '{}'\n", scenario.name);
  text += to_text(outcome.engine.report);
  text += "\ninvariants of the pool: ";
  text += outcome.engine.broken_invariants.empty() ? "all hold\n" : "BROKEN\n";
  for (const std::string& broken : outcome.engine.broken_invariants) text += "  " + broken + "\n";
  if (!outcome.golden) {
    return text + fmt::format("\ngolden attention: skipped: {}\n", outcome.golden_skipped);
  }
  const GoldenRun& golden = *outcome.golden;
  text += fmt::format("\ngolden attention over layer {} at step {}: {} sequences, {} queries, {} query heads\n",
                      scenario.focus.layer, golden.focus.cache.step.value, golden.focus.cache.batch.size(),
                      golden.result.o.shape(0), golden.result.o.shape(1));
  text += "  conventions:" + golden::conventions_text(golden.attention.problem.options) + "\n";
  text += line("tiled flow in double", golden.second_path);
  text += line("tiled flow in f32", golden.kernel_flow);
  if (scenario.cache.quantization) {
    text += fmt::format("  {:<24} at most {:.3g}, relative to o over unquantized K and V\n", "quantization changes o",
                        golden.quantization_error);
  }
  return text;
}

json::Value to_json(const Scenario& scenario, const RunOutcome& outcome) {
  json::Value value;
  value.set("scenario", scenario.name);
  value.set("passed", passed(outcome));
  value.set("run", to_json(outcome.engine.report, true));
  value.set("broken_invariants", json::strings(outcome.engine.broken_invariants));
  if (!outcome.golden) {
    value.set("golden", nullptr);
    value.set("golden_skipped", outcome.golden_skipped);
    return value;
  }
  json::Value golden;
  golden.set("step", outcome.golden->focus.cache.step.value);
  golden.set("layer", scenario.focus.layer);
  golden.set("conventions", golden::conventions(outcome.golden->attention.problem.options));
  golden.set("tiled_double", to_json(outcome.golden->second_path));
  golden.set("tiled_f32", to_json(outcome.golden->kernel_flow));
  if (scenario.cache.quantization) golden.set("quantization_error", outcome.golden->quantization_error);
  value.set("golden", std::move(golden));
  return value;
}

}  // namespace kvscope
