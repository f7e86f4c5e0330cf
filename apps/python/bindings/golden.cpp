// Golden outputs, verdicts and diagnoses.
#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>

#include "apps/python/bindings/problem.h"
#include "core/attention/bounds.h"
#include "core/attention/fast.h"
#include "core/attention/reference.h"
#include "core/base/errors.h"
#include "core/golden/diagnosis/diagnose_inputs.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/compare_report.h"
#include "core/golden/verdict/golden_terms.h"
#include "core/golden/verdict/output_names.h"
#include "core/golden/verdict/tolerance.h"

namespace kvscope::python {
namespace {

using golden::Bundle;

std::shared_ptr<Bundle> compute(const Problem& problem, bool fast) {
  return without_lock([&] {
    const attention::Problem& p = problem.prepared.problem;
    const attention::Result result = fast ? attention::fast_reference(p) : attention::reference(p);
    auto bundle = std::make_shared<Bundle>(
        golden::golden_bundle(p, result, {"kvscope " KVSCOPE_VERSION, problem.options.layout, {}}));
    bundle->manifest.set("inputs", golden::inputs_manifest(problem.options, ""));
    return bundle;
  });
}

// The output alone. Both accuracies have errors, those of the reference are 0.
std::shared_ptr<Bundle> compute_output(const Problem& problem, bool fast) {
  return without_lock([&] {
    const attention::Problem& p = problem.prepared.problem;
    const attention::Output output = fast ? attention::fast_output(p) : attention::reference_output(p);
    auto bundle = std::make_shared<Bundle>(
        golden::output_bundle(p, output, {"kvscope " KVSCOPE_VERSION, problem.options.layout, {}}));
    for (const auto& [name, error] : {std::pair{"o_error", &output.o_error}, {"lse_error", &output.lse_error}}) {
      bundle->tensors.insert_or_assign(
          name, golden::tensor_of<double>({p.total_queries(), p.query_heads},
                                          std::span<const double>(error->data(), error->size())));
    }
    return bundle;
  });
}

DType type_of(const char* key, const std::string& text) {
  const std::optional<DType> type = dtype_from_name(text);
  if (!type) throw InputError("arguments", key, "'" + text + "' is not an element type of kvscope");
  return *type;
}

template <class T>
std::optional<T> in_range(const py::dict& options, const char* key, T least, T most) {
  const std::optional<T> value = option<T>(options, key);
  if (value && !(*value >= least && *value <= most)) {
    throw InputError("arguments", key, fmt::format("is {}: pass a number from {} to {}", *value, least, most));
  }
  return value;
}

golden::StatedRounding rounding_of(const py::dict& options) {
  golden::StatedRounding rounding;
  if (const auto type = option<std::string>(options, "output")) rounding.output = type_of("output", *type);
  if (const auto type = option<std::string>(options, "probabilities")) {
    rounding.probabilities = type_of("probabilities", *type);
  }
  if (const auto type = option<std::string>(options, "partials")) rounding.partials = type_of("partials", *type);
  if (const auto type = option<std::string>(options, "inputs")) rounding.inputs = type_of("inputs", *type);
  rounding.ex2_error = in_range(options, "ex2_error", 0.0, 1.0);
  rounding.tile_keys =
      in_range(options, "tile_keys", std::int64_t{1}, std::int64_t{1} << 30).value_or(rounding.tile_keys);
  rounding.accumulator_bits = in_range(options, "accumulator_bits", 4, 24).value_or(rounding.accumulator_bits);
  if (const auto from = option<std::string>(options, "row_sum")) {
    if (*from != "exact" && *from != "rounded") {
      throw InputError("arguments", "row_sum", "is '" + *from + "': pass exact or rounded");
    }
    rounding.row_sum = *from == "exact" ? attention::RowSum::exact : attention::RowSum::rounded;
  }
  return rounding;
}

struct Judged {
  golden::CompareResult compared;
  std::optional<golden::Diagnosis> diagnosis;
};

// Rearranges the candidate's tensors as `kvscope verify` does. errors() of the same candidate finds them in order.
Judged judge(const Problem& problem, const Bundle& golden_bundle, Bundle& candidate,
             const golden::StatedRounding& rounding, const std::optional<std::string>& profile,
             const std::string& diagnosis) {
  const attention::Problem given = problem.prepared.with_given_table();
  golden::CompareOptions options;
  options.inputs = &given;
  options.rounding = rounding;
  options.profile = profile;
  const std::vector<std::string> notes = golden::use_output_names(golden_bundle, candidate, "the candidate");
  Judged judged;
  judged.compared = golden::compare(golden_bundle, candidate, options);
  judged.compared.notes.insert(judged.compared.notes.end(), notes.begin(), notes.end());
  if (diagnosis == "always" || (diagnosis == "on failure" && !judged.compared.passed)) {
    judged.diagnosis = golden::diagnose_inputs({problem.options, problem.prepared}, golden_bundle,
                                               candidate, rounding, judged.compared.failing_groups);
  }
  return judged;
}

py::dict judge_and_report(const std::shared_ptr<Problem>& problem, const std::shared_ptr<Bundle>& golden_bundle,
                          const std::shared_ptr<Bundle>& candidate, const py::dict& options,
                          const std::string& diagnosis) {
  const golden::StatedRounding rounding = rounding_of(options);
  const auto profile = option<std::string>(options, "profile");
  const Judged judged =
      without_lock([&] { return judge(*problem, *golden_bundle, *candidate, rounding, profile, diagnosis); });
  py::dict out;
  out["passed"] = judged.compared.passed;
  out["verdict"] = to_python(golden::json_report(judged.compared));
  const std::string diagnosis_text = judged.diagnosis ? golden::text_report(*judged.diagnosis) : std::string();
  out["verdict_text"] = golden::text_report(judged.compared, diagnosis_text);
  out["budget_text"] = golden::budget_report(judged.compared);
  out["diagnosis"] = judged.diagnosis ? to_python(golden::json_report(*judged.diagnosis)) : py::none();
  out["diagnosis_text"] = diagnosis_text;
  return out;
}

// The error of each element over its allowed error, f32 [rows, heads, dims], and the place of each row.
py::dict errors(const std::shared_ptr<Problem>& problem, const std::shared_ptr<Bundle>& golden_bundle,
                const std::shared_ptr<Bundle>& candidate, const py::dict& options) {
  const golden::StatedRounding rounding = rounding_of(options);
  golden::ElementErrors found;
  {
    const py::gil_scoped_release release;
    const attention::Problem given = problem->prepared.with_given_table();
    golden::CompareOptions compare_options;
    compare_options.inputs = &given;
    compare_options.rounding = rounding;
    found = golden::element_errors(*golden_bundle, *candidate, compare_options);
  }
  py::array_t<float> ratio({found.rows, found.heads, found.dims});
  std::copy(found.ratio.begin(), found.ratio.end(), ratio.mutable_data());
  py::list sequences, positions, pages;
  for (const golden::Place& place : found.places) {
    sequences.append(place.sequence);
    positions.append(place.position);
    pages.append(place.page);
  }
  py::dict out;
  out["ratio"] = ratio;
  out["sequences"] = sequences;
  out["positions"] = positions;
  out["pages"] = pages;
  return out;
}

// [query, head, dim] the allowed error of each element of an output of that type.
py::array_t<double> bounds(const std::shared_ptr<Bundle>& golden_bundle, const std::string& dtype) {
  attention::Rounding rounding = attention::rounding_of(type_of("dtype", dtype));
  const std::vector<std::int64_t>& shape = golden_bundle->tensors.at("o").shape;
  py::array_t<double> out(std::vector<py::ssize_t>(shape.begin(), shape.end()));
  double* to = out.mutable_data();
  without_lock([&] {
    const golden::GoldenTerms terms(*golden_bundle);
    const auto dims = static_cast<std::size_t>(terms.dims());
    rounding.deviations = attention::deviations_for(static_cast<double>(terms.rows() * dims));
    for (std::size_t row = 0; row < terms.rows(); ++row) {
      interruption_point();
      const attention::RowTerms row_terms = terms.row(row);
      for (std::size_t dim = 0; dim < dims; ++dim) {
        to[row * dims + dim] = attention::output_budget(rounding, row_terms, terms.element(row * dims + dim)).total();
      }
    }
  });
  return out;
}

}  // namespace

void bind_golden(py::module_& module) {
  module.def("golden", [](const std::shared_ptr<Problem>& problem, bool fast) { return compute(*problem, fast); });
  module.def("attention",
             [](const std::shared_ptr<Problem>& problem, bool fast) { return compute_output(*problem, fast); });
  module.def("judge", &judge_and_report);
  module.def("errors", &errors);
  module.def("bounds", &bounds);
  module.def("profile_names", &golden::profile_names);
  module.def("non_finite_rows", [](const std::shared_ptr<Bundle>& bundle) { return golden::non_finite_rows(*bundle); });
}

}  // namespace kvscope::python
