#include "core/golden/verdict/compare_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <tuple>

#include "core/base/report.h"

namespace kvscope::golden {
namespace {

// Between numbers of different size or sign there are millions of others: their count says less than max abs does.
std::string ulp_text(std::uint64_t ulp) {
  return ulp > 1'000'000 ? "> 1e6 (see max abs)" : fmt::format("{}", ulp);
}

std::string measures_text(const Measures& m) {
  return fmt::format("max abs {:.3g}, max ulp {}, rms relative {:.3g}, cosine difference {:.3g}", m.max_abs,
                     ulp_text(m.max_ulp), m.rms_relative, m.cosine_difference);
}

std::string heads_text(const CompareResult& result) {
  if (result.worst_heads.empty()) return "";
  std::string text = "elements that exceed the bound, by sequence and head, worst first:\n";
  for (const HeadSummary& s : result.worst_heads) {
    const std::string sequence = s.sequence < 0 ? "unknown" : fmt::format("{}", s.sequence);
    text += fmt::format("  sequence {}, head {}: {} of {} exceed the bound, max abs {:.3g}, largest error {}\n",
                        sequence, s.head, s.failing, s.elements, s.max_abs, ratio_text(s.worst_ratio));
  }
  const std::int64_t more = result.failing_heads - std::ssize(result.worst_heads);
  return more > 0 ? text + fmt::format("  and {} more\n", more) : text;
}

json::Value measures_json(const Measures& m) {
  json::Value value;
  value.set("elements", m.elements);
  value.set("finite", m.finite);
  value.set("max_abs", m.max_abs);
  value.set("max_ulp", m.max_ulp);
  value.set("rms_relative", m.rms_relative);
  value.set("cosine_difference", m.cosine_difference);
  return value;
}

json::Value worst_json(const Worst& w) {
  json::Value value;
  for (const auto& [key, number] : {std::pair<const char*, std::int64_t>{"sequence", w.place.sequence},
                                    {"query", w.place.query},
                                    {"head", w.place.head},
                                    {"dim", w.place.dim},
                                    {"token", w.place.position},
                                    {"page", w.place.page},
                                    {"slot", w.place.slot},
                                    {"block", w.place.block}}) {
    if (number >= 0) value.set(key, number);
  }
  value.set("candidate", w.candidate);
  value.set("golden", w.golden);
  value.set("allowed", w.allowed);
  value.set("error_over_allowed", w.ratio);
  return value;
}

}  // namespace

std::string text_report(const CompareResult& result, std::string_view diagnosis) {
  std::string text = fmt::format("{}  {} against {} ({})\n", result.passed ? "pass" : "FAIL", result.candidate_name,
                                 result.golden_name, result.policy);
  if (!diagnosis.empty()) text += fmt::format("{}criteria\n", diagnosis);
  const std::size_t width = widest(result.criteria, &Criterion::name);
  for (const Criterion& c : result.criteria) {
    text += fmt::format("  {}  {:<{}}  {}\n", c.passed ? "pass" : "FAIL", c.name, width, c.detail);
  }
  for (const TensorReport& tensor : result.tensors) {
    text += fmt::format("{} {} {}: {}\n", tensor.name, name(tensor.dtype), shape_text(tensor.shape),
                        measures_text(tensor.measures));
  }
  if (diagnosis.empty()) text += heads_text(result);
  if (result.quantization) {
    text += fmt::format("quantization error, reported separately from the criteria: {}\n",
                        measures_text(*result.quantization));
  }
  if (!result.conventions.empty()) text += fmt::format("conventions: {}\n", fmt::join(result.conventions, ", "));
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string budget_report(const CompareResult& result) {
  std::string text;
  for (const BudgetReport& report : result.budgets) {
    const attention::Rounding& r = report.rounding;
    text += fmt::format("error budget of {} at {}:\n", report.tensor, describe(report.place));
    const bool o = report.tensor == "o";
    const std::string operands =
        r.inputs ? fmt::format("q, K and V rounded to {}", name(*r.inputs)) : std::string("q, K and V used as stored");
    const std::string p =
        o ? fmt::format("P rounded to {}", name(r.probabilities))
          : fmt::format("row sum of {}", r.row_sum == attention::RowSum::exact
                                             ? std::string("unrounded P")
                                             : fmt::format("P, possibly rounded to {}", name(r.probabilities)));
    const std::string order = r.tile_keys <= 1 ? "keys added one by one" : fmt::format("tiles of {} keys", r.tile_keys);
    const std::string cut = report.budget.cut == 0 ? std::string("no sum is truncated")
                            : r.accumulator_bits == 0
                                ? std::string("matrix instructions truncate their f32 sums")
                                : fmt::format("matrix instructions cut addends to {} bits", r.accumulator_bits);
    const std::string merge =
        fmt::format("splits merged by lse, partial outputs in {}", name(r.partials.value_or(DType::f32)));
    for (const auto& [source, value, why] :
         {std::tuple<const char*, double, std::string>{"inputs", report.budget.inputs, operands},
          {"scores", report.budget.scores, "q . k, scale and exponent in single precision"},
          {"ex2", report.budget.ex2, fmt::format("exponential, relative error {:.2g}", r.ex2_error)},
          {"p", report.budget.p, p},
          {"sum", report.budget.sum, order},
          {"cut", report.budget.cut, cut},
          {"merge", report.budget.merge, merge},
          {"output", report.budget.output, fmt::format("{} rounded to {}", report.tensor, name(o ? r.output : r.lse))},
          {"total", report.budget.total(),
           fmt::format("independent errors count {:.2f} standard deviations", r.deviations)}}) {
      if (std::string_view(source) == "output" && report.budget.golden > 0) {
        text += fmt::format("  {:<8}{:<12.3g}{}\n", "golden", report.budget.golden,
                            "the golden's own error: it was computed with --accuracy fast");
      }
      text += fmt::format("  {:<8}{:<12.3g}{}\n", source, value, why);
    }
  }
  return text;
}

json::Value json_report(const CompareResult& result) {
  json::Value report;
  report.set("kvscope_comparison", 1);
  report.set("passed", result.passed);
  report.set("golden", result.golden_name);
  report.set("candidate", result.candidate_name);
  report.set("policy", result.policy);
  json::Array criteria;
  for (const Criterion& c : result.criteria) {
    criteria.emplace_back(json::Object{{"name", c.name}, {"passed", c.passed}, {"detail", c.detail}});
  }
  report.set("criteria", std::move(criteria));
  json::Array tensors;
  for (const TensorReport& t : result.tensors) {
    json::Array shape;
    for (const std::int64_t extent : t.shape) shape.emplace_back(extent);
    json::Value tensor(
        json::Object{{"name", t.name}, {"dtype", std::string(name(t.dtype))}, {"shape", std::move(shape)}});
    tensor.set("measures", measures_json(t.measures));
    if (t.worst) tensor.set("worst", worst_json(*t.worst));
    tensors.push_back(std::move(tensor));
  }
  report.set("tensors", std::move(tensors));
  json::Array budgets;
  for (const BudgetReport& b : result.budgets) {
    budgets.emplace_back(json::Object{{"tensor", b.tensor},
                                      {"inputs", b.budget.inputs},
                                      {"scores", b.budget.scores},
                                      {"ex2", b.budget.ex2},
                                      {"p", b.budget.p},
                                      {"sum", b.budget.sum},
                                      {"cut", b.budget.cut},
                                      {"merge", b.budget.merge},
                                      {"golden", b.budget.golden},
                                      {"output", b.budget.output},
                                      {"total", b.budget.total()},
                                      {"deviations", b.rounding.deviations}});
  }
  report.set("budgets", std::move(budgets));
  json::Array heads;
  for (const HeadSummary& s : result.worst_heads) {
    heads.emplace_back(json::Object{{"sequence", s.sequence},
                                    {"head", s.head},
                                    {"outside", s.failing},
                                    {"elements", s.elements},
                                    {"max_abs", s.max_abs},
                                    {"error_over_allowed", s.worst_ratio}});
  }
  report.set("failing_heads", result.failing_heads);
  report.set("worst_heads", std::move(heads));
  if (result.quantization) report.set("quantization", measures_json(*result.quantization));
  report.set("conventions", json::strings(result.conventions));
  report.set("notes", json::strings(result.notes));
  return report;
}

std::string junit_report(const CompareResult& result) {
  JUnitSuite suite{.name = fmt::format("{} against {}", result.candidate_name, result.golden_name),
                   .cases = {},
                   .output = text_report(result)};
  for (const Criterion& c : result.criteria)
    suite.cases.push_back({.class_name = "kvscope.verify",
                           .name = c.name,
                           .seconds = {},
                           .failure = c.passed ? std::nullopt : std::optional(c.detail)});
  return to_junit(suite);
}

}  // namespace kvscope::golden
