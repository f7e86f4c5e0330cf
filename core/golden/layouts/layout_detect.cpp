#include "core/golden/layouts/layout_detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/attention/reference.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/output_names.h"

namespace kvscope::golden {
namespace {

std::string sizes_of(const attention::Problem& problem) {
  const attention::PagedRows& k = problem.k;
  const std::string heads =
      fmt::format("{} KV head{} of {} {}", k.heads, k.heads == 1 ? "" : "s", k.head_size, name(k.dtype));
  if (k.page_size == 1) return fmt::format("{} tokens, {}", k.blocks, heads);
  return fmt::format("{} blocks of {} tokens, {}", k.blocks, k.page_size, heads);
}

void compare_with(const attention::Problem& problem, Bundle candidate, std::string_view candidate_name,
                  LayoutFit& fit) {
  try {
    const Bundle golden = golden_bundle(problem, attention::reference(problem), {"kvscope", fit.layout, {}});
    static_cast<void>(use_output_names(golden, candidate, candidate_name));
    const CompareResult result = compare(golden, candidate);
    fit.passed = result.passed;
    for (const TensorReport& tensor : result.tensors) {
      if (tensor.worst) fit.worst_ratio = std::max(fit.worst_ratio, tensor.worst->ratio);
    }
  } catch (const InputError& error) {
    fit.passed = false;
    fit.worst_ratio = std::numeric_limits<double>::infinity();
    fit.note = error.faults().front().where + ": " + error.faults().front().message;
  }
}

}  // namespace

std::vector<LayoutFit> detect_layouts(const Bundle& bundle, const LayoutOptions& options, const Bundle* candidate,
                                      std::string_view source, std::string_view candidate_name) {
  std::vector<LayoutFit> fits;
  for (const LayoutDescription& layout : named_layouts()) {
    LayoutFit fit;
    fit.layout = layout.name;
    LayoutOptions own = options;
    own.layout = layout.name;
    own.description = nullptr;
    if (!layout.has_axis("layer")) own.layer = 0;
    try {
      const PreparedProblem prepared = prepare_problem(bundle, own, source);
      fit.sizes = sizes_of(prepared.problem);
      if (candidate != nullptr) compare_with(prepared.problem, *candidate, candidate_name, fit);
    } catch (const InputError& error) {
      for (const Fault& fault : error.faults()) {
        const bool is_missing = fault.where.starts_with("--") && fault.message.starts_with("is missing");
        if (is_missing) {
          fit.options.push_back(fault.where);
        } else {
          fit.faults.push_back(fault);
        }
      }
    } catch (const GeometryError& error) {
      fit.faults = error.faults();
    }
    fits.push_back(std::move(fit));
  }
  std::ranges::stable_sort(fits, {}, [](const LayoutFit& fit) {
    const double rank = fit.passed.has_value() && !*fit.passed ? 0.5 : 0;
    return static_cast<double>(fit.faults.size()) + (fit.options.empty() ? 0 : 0.25) + rank;
  });
  return fits;
}

}  // namespace kvscope::golden
