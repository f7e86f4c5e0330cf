#include "core/golden/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/golden/detail/locator.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/golden_terms.h"
#include "core/golden/group_tests.h"
#include "core/golden/output_names.h"
#include "core/golden/tolerance.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kWorstHeads = 5;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 48;

const Tensor* find(const Bundle& bundle, const std::string& tensor_name) {
  const auto found = bundle.tensors.find(tensor_name);
  return found == bundle.tensors.end() ? nullptr : &found->second;
}

bool is_output_type(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// [batch, queries, head, dim] holds the elements of [batch * queries, head, dim] in the same order, and so does lse
// [batch, head, 1] those of [batch, head].
bool same_elements(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& golden) {
  if (shape.size() == 3 && golden.size() == 2 && shape[2] == 1 && shape[0] == golden[0]) {
    shape.pop_back();
  } else if (shape.size() == golden.size() + 1) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape == golden;
}

// Names of tensors that must be equal bit for bit: the manifest's, the caller's, and all of a golden without an output.
std::vector<std::string> exact_names(const Bundle& golden, const CompareOptions& options) {
  std::set<std::string> names(options.exact.begin(), options.exact.end());
  if (const json::Value* listed = golden.manifest.find("exact"); listed != nullptr && listed->is_array()) {
    for (const json::Value& entry : *listed->as_array()) {
      if (entry.is_string()) names.insert(*entry.as_string());
    }
  } else if (find(golden, "o") == nullptr && options.exact.empty()) {
    for (const auto& [tensor_name, unused] : golden.tensors) names.insert(tensor_name);
  }
  return {names.begin(), names.end()};
}

// --- whether the two can be compared ---------------------------------------------------------------------------------

void check_golden_output(const Bundle& golden, std::vector<Fault>& faults) {
  const Tensor& o = golden.tensors.at("o");
  if (o.dtype != DType::f64 || o.shape.size() != 3) {
    faults.push_back({"golden 'o'", fmt::format("is {}, but a golden output is f64 [query, head, dim]", describe(o))});
    return;
  }
  const std::vector<std::int64_t> rows(o.shape.begin(), o.shape.begin() + 2);
  for (const auto& [tensor_name, shape] : {std::pair<const char*, const std::vector<std::int64_t>&>{"a1", o.shape},
                                           {"a2", o.shape},
                                           {"smax", rows},
                                           {"lse", rows}}) {
    const Tensor* tensor = find(golden, tensor_name);
    if (tensor == nullptr) {
      if (std::string_view(tensor_name) != "lse") {
        faults.push_back({fmt::format("golden '{}'", tensor_name),
                          "is missing; the bound is made of it: make the golden with `kvscope golden`"});
      }
    } else if (tensor->dtype != DType::f64 || tensor->shape != shape) {
      faults.push_back({fmt::format("golden '{}'", tensor_name),
                        fmt::format("is {}, but must be f64 {}", describe(*tensor), shape_text(shape))});
    }
  }
  std::vector<TermShape> terms = optional_terms(o.shape);
  terms.push_back({"golden_error", {o.shape[0], o.shape[1], 2}});
  for (const TermShape& term : terms) {
    const Tensor* tensor = find(golden, term.name);
    if (tensor != nullptr && (tensor->dtype != DType::f64 || tensor->shape != term.shape)) {
      faults.push_back({fmt::format("golden '{}'", term.name),
                        fmt::format("is {}, but must be f64 {}", describe(*tensor), shape_text(term.shape))});
    }
  }
}

// Places are computed from these tensors: they are optional, but must be valid when present.
void check_golden_places(const Bundle& golden, std::vector<Fault>& faults) {
  const Tensor* offsets = find(golden, "query_offsets");
  if (offsets != nullptr) {
    bool good = offsets->dtype == DType::i64 && offsets->shape.size() == 1 && offsets->shape[0] > 0;
    if (good) {
      const auto o = values<std::int64_t>(*offsets);
      good = o.front() == 0 && o.back() == golden.tensors.at("o").shape[0] && std::is_sorted(o.begin(), o.end());
    }
    if (!good) {
      faults.push_back(
          {"golden 'query_offsets'",
           fmt::format("is {}, but must be i64 [batch + 1], rising from 0 to the rows of o", describe(*offsets))});
    }
  }
  const Tensor* lengths = find(golden, "key_lengths");
  if (lengths != nullptr) {
    bool good = lengths->dtype == DType::i64 && lengths->shape.size() == 1;
    for (const std::int64_t length : good ? values<std::int64_t>(*lengths) : std::span<const std::int64_t>()) {
      good = good && length >= 0 && length < kMaxTokens;
    }
    if (!good)
      faults.push_back(
          {"golden 'key_lengths'", fmt::format("is {}, but must be i64 [batch] of lengths", describe(*lengths))});
  }
}

// What a candidate without `o` holds, and how to name its output.
std::string advice(const Bundle& candidate, std::string_view path) {
  constexpr std::size_t kMostNames = 8;
  std::vector<std::string> names;
  for (const auto& [tensor_name, unused] : candidate.tensors) names.push_back(tensor_name);
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  if (more > 0) names.push_back(fmt::format("{} more", more));
  if (names.empty()) return "The candidate has no tensor";
  const std::string has = fmt::format("The candidate has {}: ", fmt::join(names, ", "));
  if (path.ends_with(".npy")) return has + "a .npy file has the name of its tensor, so rename the file to o.npy";
  return has + fmt::format("save the kernel's output as {}", output_names("o"));
}

// How to save an output of the right size in the golden's order: [query, head, dim] or, for lse, [query, head].
std::string shape_hint(std::vector<std::int64_t> have, std::vector<std::int64_t> want) {
  const bool is_lse = want.size() == 2;
  if (is_lse) have.push_back(1), want.push_back(1);
  const char* dim = is_lse ? "" : ", dim";
  if (have == std::vector{want[1], want[0], want[2]}) return fmt::format(": transpose it to [query, head{}]", dim);
  if (have.size() == 4 && have[0] * have[2] == want[0] && have[1] == want[1] && have[3] == want[2]) {
    return fmt::format(": transpose it to [batch, query, head{}]", dim);
  }
  const auto product = [](const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
  };
  return product(have) == product(want) ? fmt::format(": save it in the order and shape [query, head{}]", dim) : "";
}

void check_candidate(const Bundle& golden, const Bundle& candidate, const std::vector<std::string>& exact,
                     std::string_view path, std::vector<Fault>& faults) {
  const auto fault = [&](const std::string& tensor_name, std::string message) {
    faults.push_back({fmt::format("candidate '{}'", tensor_name), std::move(message)});
  };
  for (const char* tensor_name : {"o", "lse"}) {
    const Tensor* want = find(golden, tensor_name);
    const Tensor* have = find(candidate, tensor_name);
    if (want == nullptr) continue;
    if (have == nullptr) {
      if (std::string_view(tensor_name) == "o")
        fault(tensor_name, fmt::format("is missing; the golden has {}. {}", describe(*want), advice(candidate, path)));
      continue;
    }
    if (!same_elements(have->shape, want->shape)) {
      fault(tensor_name, fmt::format("has shape {}, the golden {}{}", shape_text(have->shape), shape_text(want->shape),
                                     shape_hint(have->shape, want->shape)));
    }
    if (!is_output_type(have->dtype)) {
      fault(tensor_name, fmt::format("is {}; an output is f64, f32, f16 or bf16", name(have->dtype)));
    }
  }
  for (const std::string& tensor_name : exact) {
    const Tensor* want = find(golden, tensor_name);
    const Tensor* have = find(candidate, tensor_name);
    if (want == nullptr) {
      fault(tensor_name, "is to be compared bit for bit, but the golden does not have it");
    } else if (have == nullptr) {
      fault(tensor_name, fmt::format("is missing; the golden has {}", describe(*want)));
    } else if (have->dtype != want->dtype || have->shape != want->shape) {
      fault(tensor_name, fmt::format("is {}, the golden {}", describe(*have), describe(*want)));
    }
  }
}

// Conventions stated in both manifests must agree: with different bases of lse the two outputs are not comparable.
void check_conventions(const Bundle& golden, const Bundle& candidate, CompareResult& result,
                       std::vector<Fault>& faults) {
  const json::Value* ours = golden.manifest.find("conventions");
  const json::Value* theirs = candidate.manifest.find("conventions");
  if (ours == nullptr || !ours->is_object()) return;
  for (const auto& [key, value] : *ours->as_object()) {
    const std::string text = value.is_string() ? *value.as_string() : json::dump(value, -1);
    result.conventions.push_back(fmt::format("{}: {}", key, text));
    const json::Value* other = theirs == nullptr ? nullptr : theirs->find(key);
    if (other != nullptr && *other != value) {
      faults.push_back({fmt::format("candidate convention '{}'", key),
                        fmt::format("is {}, the golden's is {}: make both the same way", json::dump(*other, -1),
                                    json::dump(value, -1))});
    }
  }
  if (theirs == nullptr) result.notes.emplace_back("the candidate states no conventions: the golden's are assumed");
}

// --- criteria --------------------------------------------------------------------------------------------------------

char mask_of(double x) {
  return std::isnan(x) ? 'n' : std::isinf(x) ? (x > 0 ? '+' : '-') : '.';
}

std::string mask_text(double x) {
  return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "+inf" : "-inf") : fmt::format("{:.9g}", x);
}

Criterion mask_criterion(const std::string& tensor_name, std::span<const double> candidate,
                         std::span<const double> golden, const auto& place_of) {
  Criterion criterion{tensor_name + ": masks", true, ""};
  std::int64_t differing = 0;
  std::size_t first = 0;
  std::int64_t special = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    if (mask_of(golden[i]) != '.') ++special;
    if (mask_of(golden[i]) != mask_of(candidate[i]) && differing++ == 0) first = i;
  }
  criterion.passed = differing == 0;
  criterion.detail = criterion.passed
                         ? fmt::format("NaN and infinities at the same elements ({} of {})", special, golden.size())
                         : fmt::format("{} of {} elements differ in kind; the first is {}: {} where the golden has {}",
                                       differing, golden.size(), describe(place_of(first)), mask_text(candidate[first]),
                                       mask_text(golden[first]));
  return criterion;
}

double ratio_of(double error, double allowed) {
  return error == 0 ? 0 : error / allowed;
}

// Compares the elements of one tensor with their allowed errors. Sets worst and, for o, the summaries of heads.
struct Judged {
  std::int64_t failing = 0;
  std::optional<Worst> worst;
  std::size_t worst_at = 0;  // its element
};

Judged judge(std::span<const double> candidate, std::span<const double> golden, const auto& allowed_of,
             const auto& place_of, const auto& each) {
  Judged judged;
  std::size_t at = 0;
  double worst_ratio = -1;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    if (!std::isfinite(golden[i]) || !std::isfinite(candidate[i])) continue;
    const double error = std::abs(candidate[i] - golden[i]);
    const double ratio = ratio_of(error, allowed_of(i));
    if (!(ratio <= 1)) ++judged.failing;
    each(i, error, ratio);
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      at = i;
    }
  }
  judged.worst_at = at;
  if (worst_ratio >= 0) judged.worst = Worst{place_of(at), candidate[at], golden[at], allowed_of(at), worst_ratio};
  return judged;
}

std::string judged_text(const Judged& judged, std::size_t elements) {
  if (!judged.worst) return "no finite element to compare";
  const Worst& w = *judged.worst;
  return fmt::format(
      "{} of {} elements exceed the bound; largest error {:.3g}x the allowed error, at {}: {:.9g}, golden {:.9g}",
      judged.failing, elements, w.ratio, describe(w.place), w.candidate, w.golden);
}

// The systematic part of a budget is allowed in full; the rest is measured in standard deviations.
void add_evidence(RowEvidence& row, const attention::Rounding& rounding, DType type, const attention::Budget& budget,
                  double candidate, double golden, double rounded_golden) {
  const double systematic = budget.before_output() - budget.independent;
  const double boundary = attention::half_step(type, golden) - std::abs(rounded_golden - golden);
  const double excess = std::abs(candidate - golden) - attention::half_step(type, candidate) - systematic;
  row.add(std::max(0.0, excess) / budget.deviation, std::max(0.0, boundary - systematic) / budget.deviation,
          rounding.deviations);
}

Criterion group_criterion(const std::string& tensor_name, const std::vector<RowEvidence>& rows,
                          const std::vector<RowLabel>& labels) {
  const GroupResult groups = test_groups(rows, labels);
  return {
      tensor_name + ": rows", groups.failing == 0,
      fmt::format("{} of {} groups of rows exceed the bound; largest sum of squares {:.3g}x the allowed sum, {} ({} "
                  "{})",
                  groups.failing, groups.groups, groups.ratio, groups.worst, groups.rows,
                  groups.rows == 1 ? "row" : "rows")};
}

std::vector<RowLabel> row_labels(const Bundle& golden, const Locator& locator) {
  const std::vector<std::int64_t>& shape = golden.tensors.at("o").shape;
  const Tensor* lse = find(golden, "lse");
  std::vector<RowLabel> labels;
  for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    const Place place = locator.place(row / shape[1], row % shape[1], -1);
    const double identity =
        lse == nullptr ? static_cast<double>(row) : values<double>(*lse)[static_cast<std::size_t>(row)];
    labels.push_back({std::max<std::int64_t>(place.sequence, 0), place.head, identity});
  }
  return labels;
}

void compare_output(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                    const FoundRounding& found, const Locator& locator, CompareResult& result) {
  const Tensor& o = candidate.tensors.at("o");
  const Tensor& golden_o = golden.tensors.at("o");
  const std::int64_t heads = golden_o.shape[1];
  const std::int64_t dims = golden_o.shape[2];
  const auto want = values<double>(golden_o);
  const DType type = found.rounding.output;
  const std::vector<double> have = as_doubles(o);
  std::vector<double> rounded(want.begin(), want.end());
  for (double& g : rounded) g = rounded_to(type, g);
  const auto place_of = [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return locator.place(at / (heads * dims), at / dims % heads, at % dims);
  };
  result.criteria.push_back(mask_criterion("o", have, rounded, place_of));

  std::vector<double> allowed(want.size());
  std::vector<RowEvidence> evidence;
  if (options.profile) {
    const Tolerance fixed = profile(*options.profile, type);
    for (std::size_t i = 0; i < want.size(); ++i) allowed[i] = fixed.allowed(want[i]);
  } else {
    const GoldenTerms terms(golden);
    evidence.resize(dims == 0 ? 0 : terms.rows());
    for (std::size_t row = 0; row < evidence.size(); ++row) {
      const attention::OutputBudgets budgets(found.rounding, terms.row(row));
      for (std::size_t i = row * static_cast<std::size_t>(dims); i < (row + 1) * static_cast<std::size_t>(dims); ++i) {
        const attention::Budget budget = budgets.of(terms.element(i));
        allowed[i] = budget.total();
        if (std::isfinite(rounded[i]) && std::isfinite(have[i])) {
          add_evidence(evidence[row], found.rounding, type, budget, have[i], want[i], rounded[i]);
        }
      }
    }
  }
  std::map<std::pair<std::int64_t, std::int64_t>, HeadSummary> summaries;
  const Judged judged = judge(
      have, want, [&](std::size_t i) { return allowed[i]; }, place_of,
      [&](std::size_t i, double error, double ratio) {
        if (ratio <= 1) return;  // a NaN ratio fails
        const Place p = place_of(i);
        HeadSummary& s = summaries[{p.sequence, p.head}];
        s.sequence = p.sequence;
        s.head = p.head;
        ++s.failing;
        s.max_abs = std::max(s.max_abs, error);
        s.worst_ratio = std::max(s.worst_ratio, ratio);
      });
  if (!options.profile && judged.worst) {
    const GoldenTerms terms(golden);
    const std::size_t row = judged.worst_at / static_cast<std::size_t>(dims);
    result.budgets.push_back(
        {"o", judged.worst->place, found.rounding,
         attention::output_budget(found.rounding, terms.row(row), terms.element(judged.worst_at))});
  }
  const Measures measures = measure(o, have, want);
  result.criteria.push_back({options.profile ? fmt::format("o: profile {}", *options.profile) : "o: bound",
                             judged.failing == 0, judged_text(judged, want.size())});
  if (options.profile) {
    if (const auto allowed_cosine = profile(*options.profile, type).cosine_difference) {
      result.criteria.push_back(
          {fmt::format("o: profile {}, cosine", *options.profile), measures.cosine_difference <= *allowed_cosine,
           fmt::format("cosine difference {:.3g}, allowed {:.3g}", measures.cosine_difference, *allowed_cosine)});
    }
  } else if (!evidence.empty()) {
    result.criteria.push_back(group_criterion("o", evidence, row_labels(golden, locator)));
  }
  result.tensors.push_back({"o", o.dtype, o.shape, measures, judged.worst});

  if (!summaries.empty()) {  // the number of elements of each head, failing or not
    for (std::int64_t row = 0; row < golden_o.shape[0]; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto at = summaries.find({locator.place(row, head, 0).sequence, head});
        if (at != summaries.end()) at->second.elements += dims;
      }
    }
  }
  for (const auto& [key, summary] : summaries) result.worst_heads.push_back(summary);
  std::stable_sort(result.worst_heads.begin(), result.worst_heads.end(),
                   [](const HeadSummary& a, const HeadSummary& b) { return a.worst_ratio > b.worst_ratio; });
  if (result.worst_heads.size() > kWorstHeads) {
    result.notes.push_back(
        fmt::format("{} heads of sequences have elements that exceed the bound; the worst {} are listed",
                    result.worst_heads.size(), kWorstHeads));
    result.worst_heads.resize(kWorstHeads);
  }
}

void compare_lse(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                 const FoundRounding& found, const Locator& locator, CompareResult& result) {
  const Tensor* golden_lse = find(golden, "lse");
  const Tensor* lse = find(candidate, "lse");
  if (golden_lse == nullptr || lse == nullptr) {
    result.notes.push_back(
        fmt::format("lse was not checked: the {} has none", lse == nullptr ? "candidate" : "golden"));
    return;
  }
  const std::int64_t heads = golden_lse->shape[1];
  const auto want = values<double>(*golden_lse);
  const std::vector<double> have = as_doubles(*lse);
  const auto place_of = [&](std::size_t i) {
    return locator.place(static_cast<std::int64_t>(i) / heads, static_cast<std::int64_t>(i) % heads, -1);
  };
  result.criteria.push_back(mask_criterion("lse", have, want, place_of));

  std::vector<double> allowed(want.size());
  std::vector<RowEvidence> evidence;
  attention::Rounding rounding = found.rounding;
  if (options.profile) {
    const Tolerance fixed = profile(*options.profile, found.rounding.output);
    for (std::size_t i = 0; i < want.size(); ++i) allowed[i] = fixed.allowed(want[i]);
  } else {
    const GoldenTerms terms(golden);
    if (rounding.row_sum == attention::RowSum::either && sums_are_exact(rounding, terms, have, want)) {
      rounding.row_sum = attention::RowSum::exact;
    }
    evidence.resize(want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!std::isfinite(want[i])) continue;
      const attention::Budget budget = attention::lse_budget(rounding, terms.row(i));
      allowed[i] = budget.total();
      if (std::isfinite(have[i])) {
        add_evidence(evidence[i], rounding, rounding.lse, budget, have[i], want[i], rounded_to(rounding.lse, want[i]));
      }
    }
  }
  const Judged judged = judge(
      have, want, [&](std::size_t i) { return allowed[i]; }, place_of, [](std::size_t, double, double) {});
  if (!options.profile && judged.worst) {
    result.budgets.push_back({"lse", judged.worst->place, rounding,
                              attention::lse_budget(rounding, GoldenTerms(golden).row(judged.worst_at))});
  }
  result.criteria.push_back({options.profile ? fmt::format("lse: profile {}", *options.profile) : "lse: bound",
                             judged.failing == 0, judged_text(judged, want.size())});
  if (!evidence.empty()) result.criteria.push_back(group_criterion("lse", evidence, row_labels(golden, locator)));
  result.tensors.push_back({"lse", lse->dtype, lse->shape, measure(*lse, have, want), judged.worst});
}

void compare_exact(const std::string& tensor_name, const Tensor& want, const Tensor& have, CompareResult& result) {
  const auto size = static_cast<std::size_t>(size_of(want.dtype));
  const std::size_t elements = want.bytes.size() / size;
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * size);
    const auto end = at + static_cast<std::ptrdiff_t>(size);
    if (!std::equal(want.bytes.begin() + at, want.bytes.begin() + end, have.bytes.begin() + at) && differing++ == 0)
      first = i;
  }
  Criterion criterion{"exact: " + tensor_name, differing == 0, ""};
  if (criterion.passed) {
    criterion.detail = fmt::format("{} elements, every bit equal", elements);
  } else {
    std::vector<std::int64_t> index(want.shape.size());
    auto rest = static_cast<std::int64_t>(first);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      index[axis] = rest % want.shape[axis];
      rest /= want.shape[axis];
    }
    const auto bits_at = [&](const Tensor& tensor) {
      std::string text;
      for (std::size_t b = size; b-- > 0;)
        text += fmt::format("{:02x}", static_cast<unsigned>(tensor.bytes[first * size + b]));
      return text;
    };
    criterion.detail = fmt::format("{} of {} elements differ; the first is {}: bits {}, golden {}", differing, elements,
                                   shape_text(index), bits_at(have), bits_at(want));
  }
  result.criteria.push_back(std::move(criterion));
  const std::vector<double> have_values = as_doubles(have);
  result.tensors.push_back(
      {tensor_name, have.dtype, have.shape, measure(have, have_values, as_doubles(want)), std::nullopt});
}

// Throws all reasons why the two cannot be compared.
void check_comparable(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                      const std::vector<std::string>& exact, CompareResult& result) {
  const bool has_output = find(golden, "o") != nullptr;
  std::vector<Fault> faults;
  if (has_output) {
    check_golden_output(golden, faults);
    if (faults.empty()) check_golden_places(golden, faults);
  }
  check_candidate(golden, candidate, exact, options.candidate_name, faults);
  check_conventions(golden, candidate, result, faults);
  if (!has_output && exact.empty()) faults.push_back({"golden", "holds no tensor: nothing to compare"});
  if (options.profile) static_cast<void>(profile(*options.profile, DType::f32));  // throws for an unknown name
  if (!faults.empty()) throw InputError(options.candidate_name, std::move(faults));
}

}  // namespace

std::string describe(const Place& p) {
  std::string text = p.sequence < 0 ? fmt::format("query row {}, head {}", p.query, p.head)
                                    : fmt::format("sequence {}, query {}, head {}", p.sequence, p.query, p.head);
  if (p.dim >= 0) text += fmt::format(", dim {}", p.dim);
  // The query's position tells how many keys it sees. Where it is stored says nothing about the fault.
  return p.position >= 0 ? text + fmt::format(" (query at token {})", p.position) : text;
}

CompareResult compare(const Bundle& golden, const Bundle& candidate, const CompareOptions& options) {
  check_has_answer(golden, options.golden_name, options.candidate_name);
  CompareResult result;
  result.golden_name = options.golden_name;
  result.candidate_name = options.candidate_name;
  const std::vector<std::string> exact = exact_names(golden, options);
  const bool has_output = find(golden, "o") != nullptr;
  check_comparable(golden, candidate, options, exact, result);

  if (has_output) {
    const Locator locator(golden);
    const FoundRounding found = find_rounding(golden, candidate, options.rounding, options.candidate_name);
    result.policy = options.profile ? fmt::format("profile {}, {}", *options.profile, found.output_text)
                                    : fmt::format("derived bound, {}", found.output_text);
    compare_output(golden, candidate, options, found, locator, result);
    compare_lse(golden, candidate, options, found, locator, result);
    if (!options.profile && GoldenTerms(golden).fast()) {
      result.notes.emplace_back(
          "the golden was computed with --accuracy fast: the bound includes its own error, which --explain prints");
    }
    if (!options.profile && !GoldenTerms(golden).complete()) {
      result.notes.emplace_back(
          "the golden was written by an older kvscope without the terms running, key_counts, p2, repeats, clump and "
          "faint: its "
          "bound "
          "is "
          "looser. Make it again with `kvscope golden`");
    }
    if (const Tensor* unquantized = find(golden, "o_unquantized");
        unquantized != nullptr && unquantized->shape == golden.tensors.at("o").shape) {
      const Tensor& o = golden.tensors.at("o");
      result.quantization = measure(o, values<double>(o), as_doubles(*unquantized));
    }
  } else {
    result.policy = "bit for bit";
  }
  for (const std::string& tensor_name : exact) {
    compare_exact(tensor_name, golden.tensors.at(tensor_name), candidate.tensors.at(tensor_name), result);
  }
  for (const auto& entry : candidate.tensors) {
    if (holds_only_inputs(candidate)) break;  // its other tensors are the inputs that the kernel read
    const bool compared = std::any_of(result.tensors.begin(), result.tensors.end(),
                                      [&](const TensorReport& report) { return report.name == entry.first; });
    if (!compared) result.notes.push_back(fmt::format("candidate '{}' was not compared", entry.first));
  }
  result.passed =
      std::all_of(result.criteria.begin(), result.criteria.end(), [](const Criterion& c) { return c.passed; });
  return result;
}

ElementErrors element_errors(const Bundle& golden, const Bundle& candidate, const CompareOptions& options) {
  check_has_answer(golden, options.golden_name, options.candidate_name);
  if (find(golden, "o") == nullptr) {
    throw InputError(options.golden_name, "golden 'o'",
                     "is missing: only the errors of an attention output are shown. Make the golden with `kvscope "
                     "golden`");
  }
  CompareResult unused;
  check_comparable(golden, candidate, options, exact_names(golden, options), unused);
  const Tensor& o = golden.tensors.at("o");
  ElementErrors errors;
  errors.rows = o.shape[0];
  errors.heads = o.shape[1];
  errors.dims = o.shape[2];
  const FoundRounding found = find_rounding(golden, candidate, options.rounding, options.candidate_name);
  errors.dtype = found.rounding.output;
  const Locator locator(golden);
  for (std::int64_t row = 0; row < errors.rows; ++row) errors.places.push_back(locator.place(row, -1, -1));
  const auto want = values<double>(o);
  const GoldenTerms terms(golden);
  const std::vector<double> have = as_doubles(candidate.tensors.at("o"));
  errors.ratio.reserve(have.size());
  for (std::size_t i = 0; i < have.size(); ++i) {
    const double rounded = rounded_to(errors.dtype, want[i]);
    double ratio = 0;
    if (mask_of(rounded) != mask_of(have[i])) {
      ratio = std::numeric_limits<double>::infinity();
    } else if (std::isfinite(want[i]) && std::isfinite(have[i])) {
      const std::size_t row = i / static_cast<std::size_t>(errors.dims);
      const attention::ElementTerms element = terms.element(i);
      const double allowed = attention::output_budget(found.rounding, terms.row(row), element).total();
      ratio = ratio_of(std::abs(have[i] - want[i]), allowed);
    }
    errors.ratio.push_back(static_cast<float>(ratio));
  }
  return errors;
}

}  // namespace kvscope::golden
