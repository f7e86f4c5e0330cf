#include "core/golden/verdict/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/attention/bounds.h"
#include "core/base/convert.h"
#include "core/base/report.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/detail/comparable.h"
#include "core/golden/verdict/detail/judged.h"
#include "core/golden/verdict/detail/locator.h"
#include "core/golden/verdict/detail/output_pass.h"
#include "core/golden/verdict/golden_terms.h"
#include "core/golden/verdict/group_tests.h"
#include "core/golden/verdict/page_tests.h"
#include "core/golden/verdict/tolerance.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kWorstHeads = 5;

// --- criteria --------------------------------------------------------------------------------------------------------

std::string mask_text(double x) {
  return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "+inf" : "-inf") : fmt::format("{:.9g}", x);
}

Criterion mask_criterion(const std::string& tensor_name, const MaskCount& masks, const Place& first) {
  Criterion criterion{tensor_name + ": masks", masks.differing == 0, ""};
  criterion.detail =
      criterion.passed
          ? fmt::format("NaN and infinities at the same elements ({} of {})", masks.special, masks.elements)
          : fmt::format("{} of {} elements differ in kind; the first is {}: {} where the golden has {}",
                        masks.differing, masks.elements, describe(first), mask_text(masks.candidate),
                        mask_text(masks.golden));
  return criterion;
}

std::string judged_text(const Judged& judged, const std::optional<Worst>& worst, std::size_t elements) {
  if (!worst) return "no finite element to compare";
  return fmt::format("{} of {} elements exceed the bound; largest error {}, at {}: {:.9g}, golden {:.9g}",
                     judged.failing, elements, ratio_text(worst->ratio), describe(worst->place), worst->candidate,
                     worst->golden);
}

Criterion group_criterion(const std::string& tensor_name, const GroupResult& groups, CompareResult& result) {
  if (groups.failing > 0) result.failing_groups.push_back(groups.place);
  return {
      tensor_name + ": rows", groups.failing == 0,
      fmt::format("{} of {} groups of rows exceed the bound; largest sum of squares {:.3g}x the allowed sum, {} ({} "
                  "{})",
                  groups.failing, groups.groups, groups.ratio, groups.worst, groups.rows,
                  groups.rows == 1 ? "row" : "rows")};
}

std::vector<RowLabel> row_labels(const Bundle& golden, const Locator& locator) {
  const std::vector<std::int64_t>& shape = golden.tensors.at("o").shape;
  const Tensor* lse = find_tensor(golden, "lse");
  std::vector<RowLabel> labels;
  labels.reserve(static_cast<std::size_t>(shape[0] * shape[1]));
  for (std::int64_t query = 0; query < shape[0]; ++query) {
    const std::int64_t sequence = std::max<std::int64_t>(locator.place(query, -1, -1).sequence, 0);
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      const std::size_t row = labels.size();
      labels.push_back({sequence, head, lse == nullptr ? static_cast<double>(row) : values<double>(*lse)[row]});
    }
  }
  return labels;
}

// Returns how many elements of the golden are NaN or infinite once they are rounded to the output's type.
std::int64_t compare_output(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                            const FoundRounding& found, const Locator& locator, const std::optional<RowGroups>& groups,
                            CompareResult& result) {
  const Tensor& o = candidate.tensors.at("o");
  const Tensor& golden_o = golden.tensors.at("o");
  const std::int64_t heads = golden_o.shape[1];
  const std::int64_t dims = golden_o.shape[2];
  const auto want = values<double>(golden_o);
  std::optional<Tolerance> fixed;
  if (options.profile) fixed = profile(*options.profile, found.rounding.output);
  OutputPass pass = pass_over_output(golden, o, found.rounding, fixed, locator);
  const auto place_of = [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return want.empty() ? Place{} : locator.place(at / (heads * dims), at / dims % heads, at % dims);
  };
  result.criteria.push_back(mask_criterion("o", pass.masks, place_of(pass.masks.first)));

  std::optional<Worst> worst;
  if (pass.judged.worst_ratio >= 0) {
    const std::size_t at = pass.judged.worst_at;
    const auto size = static_cast<std::size_t>(size_of(o.dtype));
    worst =
        Worst{place_of(at), load_as_double(o.dtype, o.bytes.data() + at * size), want[at], 0, pass.judged.worst_ratio};
    if (fixed) {
      worst->allowed = fixed->allowed(want[at]);
    } else {
      const GoldenTerms terms(golden);
      const attention::Budget budget =
          attention::output_budget(found.rounding, terms.row(at / static_cast<std::size_t>(dims)), terms.element(at));
      worst->allowed = budget.total();
      result.budgets.push_back({"o", worst->place, found.rounding, budget});
    }
  }
  result.criteria.push_back({options.profile ? fmt::format("o: profile {}", *options.profile) : "o: bound",
                             pass.judged.failing == 0, judged_text(pass.judged, worst, want.size())});
  if (fixed) {
    if (fixed->cosine_difference) {
      result.criteria.push_back({fmt::format("o: profile {}, cosine", *options.profile),
                                 pass.measures.cosine_difference <= *fixed->cosine_difference,
                                 fmt::format("cosine difference {:.3g}, allowed {:.3g}",
                                             pass.measures.cosine_difference, *fixed->cosine_difference)});
    }
  } else if (!pass.evidence.empty()) {
    result.criteria.push_back(group_criterion("o", groups->test(pass.evidence), result));
  }
  result.tensors.push_back({"o", o.dtype, o.shape, pass.measures, worst});

  if (!pass.summaries.empty()) {  // the number of elements of each head, failing or not
    for (std::int64_t row = 0; row < golden_o.shape[0]; ++row) {
      const std::int64_t sequence = locator.place(row, 0, 0).sequence;
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto at = pass.summaries.find({sequence, head});
        if (at != pass.summaries.end()) at->second.elements += dims;
      }
    }
  }
  for (const auto& [key, summary] : pass.summaries) result.worst_heads.push_back(summary);
  std::stable_sort(result.worst_heads.begin(), result.worst_heads.end(),
                   [](const HeadSummary& a, const HeadSummary& b) { return a.worst_ratio > b.worst_ratio; });
  result.failing_heads = std::ssize(result.worst_heads);
  if (result.worst_heads.size() > kWorstHeads) result.worst_heads.resize(kWorstHeads);
  return pass.masks.special;
}

// Returns the rounding that lse was held to.
attention::Rounding compare_lse(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                                const FoundRounding& found, const Locator& locator,
                                const std::optional<RowGroups>& groups, CompareResult& result) {
  const Tensor* golden_lse = find_tensor(golden, "lse");
  const Tensor* lse = find_tensor(candidate, "lse");
  if (golden_lse == nullptr || lse == nullptr) {
    result.notes.push_back(
        fmt::format("lse was not checked: the {} has none", lse == nullptr ? "candidate" : "golden"));
    return found.rounding;
  }
  const std::int64_t heads = golden_lse->shape[1];
  const auto want = values<double>(*golden_lse);
  const std::vector<double> have = as_doubles(*lse);
  const auto place_of = [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return want.empty() ? Place{} : locator.place(at / heads, at % heads, -1);
  };
  std::optional<Tolerance> fixed;
  if (options.profile) fixed = profile(*options.profile, found.rounding.output);
  attention::Rounding rounding = found.rounding;
  const GoldenTerms terms(golden);
  if (!fixed && rounding.row_sum == attention::RowSum::either && sums_are_exact(rounding, terms, have, want)) {
    rounding.row_sum = attention::RowSum::exact;
  }
  MaskCount masks;
  Judged judged;
  std::vector<RowEvidence> evidence(fixed ? 0 : want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    masks.add(i, have[i], want[i]);
    if (!std::isfinite(want[i]) || !std::isfinite(have[i])) continue;
    const double error = std::abs(have[i] - want[i]);
    if (fixed) {
      judged.add(i, ratio_of(error, fixed->allowed(want[i])));
      continue;
    }
    const attention::Budget budget = attention::lse_budget(rounding, terms.row(i));
    judged.add(i, ratio_of(error, budget.toward(have[i] - want[i]).total()));
    add_evidence(evidence[i], rounding, rounding.lse, budget, have[i], want[i], rounded_to(rounding.lse, want[i]));
  }
  result.criteria.push_back(mask_criterion("lse", masks, place_of(masks.first)));
  std::optional<Worst> worst;
  if (judged.worst_ratio >= 0) {
    const std::size_t at = judged.worst_at;
    worst = Worst{place_of(at), have[at], want[at], 0, judged.worst_ratio};
    if (fixed) {
      worst->allowed = fixed->allowed(want[at]);
    } else {
      const attention::Budget budget = attention::lse_budget(rounding, terms.row(at)).toward(have[at] - want[at]);
      worst->allowed = budget.total();
      result.budgets.push_back({"lse", worst->place, rounding, budget});
    }
  }
  result.criteria.push_back({options.profile ? fmt::format("lse: profile {}", *options.profile) : "lse: bound",
                             judged.failing == 0, judged_text(judged, worst, want.size())});
  if (!evidence.empty()) result.criteria.push_back(group_criterion("lse", groups->test(evidence), result));
  result.tensors.push_back({"lse", lse->dtype, lse->shape, measure(*lse, have, want), worst});
  return rounding;
}

Criterion page_criterion(const std::string& tensor_name, const PageTestResult& pages, CompareResult& result) {
  if (pages.failing > 0) result.failing_groups.push_back(pages.place);
  std::string detail = fmt::format("{} of {} directions of pages exceed the bound", pages.failing, pages.tests);
  if (!pages.worst.empty()) {
    detail += fmt::format("; largest {:.3g}x the allowed sum, {} ({} {})", pages.ratio, pages.worst, pages.rows,
                          pages.rows == 1 ? "row" : "rows");
  }
  return {tensor_name + ": pages", pages.failing == 0, std::move(detail)};
}

void compare_pages(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                   const FoundRounding& found, const attention::Rounding& lse_rounding, CompareResult& result) {
  const GoldenTerms terms(golden);
  if (find_tensor(golden, "lse") == nullptr || !terms.complete()) {
    result.notes.emplace_back("pages were not tested: the golden has not all terms of the bound");
    return;
  }
  const attention::Problem& problem = *options.inputs;
  const std::vector<std::int64_t>& shape = golden.tensors.at("o").shape;
  if (problem.total_queries() != shape[0] || problem.query_heads != shape[1] || problem.v.head_size != shape[2]) {
    result.notes.emplace_back("pages were not tested: the inputs are not those of the golden");
    return;
  }
  const std::vector<double> o = as_doubles(candidate.tensors.at("o"));
  const Tensor* lse = find_tensor(candidate, "lse");
  const std::vector<double> lse_values = lse == nullptr ? std::vector<double>() : as_doubles(*lse);
  const PageTests tests = test_pages({problem, terms, o, lse_values, found.rounding, lse_rounding});
  if (!tests.same_problem) {
    result.notes.emplace_back("pages were not tested: the inputs do not reproduce the golden");
    return;
  }
  if (tests.untested > 0) {
    result.notes.push_back(fmt::format("pages of {} were not tested: the tests read at most 2^26 elements of K and V",
                                       counted(tests.untested, "sequence")));
  }
  if (tests.o.tests == 0) return;  // no other sequence has two pages
  result.criteria.push_back(page_criterion("o", tests.o, result));
  if (tests.lse) result.criteria.push_back(page_criterion("lse", *tests.lse, result));
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
  const bool has_output = find_tensor(golden, "o") != nullptr;
  check_comparable(golden, candidate, options, exact, result);

  if (has_output) {
    const Locator locator(golden);
    const FoundRounding found = find_rounding(golden, candidate, options.rounding, options.candidate_name);
    result.policy = options.profile ? fmt::format("profile {}, {}", *options.profile, found.output_text)
                                    : fmt::format("derived bound, {}", found.output_text);
    std::optional<RowGroups> groups;
    if (!options.profile) groups.emplace(row_labels(golden, locator));
    const std::int64_t special = compare_output(golden, candidate, options, found, locator, groups, result);
    const attention::Rounding lse_rounding = compare_lse(golden, candidate, options, found, locator, groups, result);
    if (const std::string rows = special == 0 ? "" : non_finite_rows(golden); !rows.empty()) {
      result.notes.push_back(
          fmt::format("the golden: {}. A candidate needs NaN or infinities at the same elements", rows));
    }
    if (!options.profile && GoldenTerms(golden).fast()) {
      result.notes.emplace_back(
          "the golden was computed with --accuracy fast: the bound includes its own error, which --explain prints");
    }
    if (!options.profile && options.inputs != nullptr) {
      compare_pages(golden, candidate, options, found, lse_rounding, result);
    }
    if (!options.profile && !GoldenTerms(golden).complete()) {
      result.notes.emplace_back(
          "the golden was written by an older kvscope without the terms running, key_counts, p2, repeats, clump and "
          "faint: its "
          "bound "
          "is "
          "looser. Make it again with `kvscope golden`");
    }
    if (const Tensor* unquantized = find_tensor(golden, "o_unquantized");
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
    // Other tensors are the inputs that the kernel read, or the places and errors of an output alone.
    if (holds_only_inputs(candidate) || holds_only_output(candidate)) break;
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
  if (find_tensor(golden, "o") == nullptr) {
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
  std::optional<attention::OutputBudgets> budgets;  // of the row of element i
  for (std::size_t i = 0; i < have.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(errors.dims);
    if (i % static_cast<std::size_t>(errors.dims) == 0) budgets.emplace(found.rounding, terms.row(row));
    const double rounded = rounded_to(errors.dtype, want[i]);
    double ratio = 0;
    if (mask_of(rounded) != mask_of(have[i])) {
      ratio = std::numeric_limits<double>::infinity();
    } else if (std::isfinite(want[i]) && std::isfinite(have[i])) {
      ratio = ratio_of(std::abs(have[i] - want[i]), budgets->of(terms.element(i)).total());
    }
    errors.ratio.push_back(static_cast<float>(ratio));
  }
  return errors;
}

}  // namespace kvscope::golden
