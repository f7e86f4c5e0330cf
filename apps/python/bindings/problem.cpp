// Problems in the layouts of engines: preparation, lint, conversion, detection.
#include "apps/python/bindings/problem.h"

#include <pybind11/numpy.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layout_convert.h"
#include "core/golden/layouts/layout_detect.h"
#include "core/golden/lint/lint.h"

namespace kvscope::python {
namespace {

using golden::Bundle;

template <class T>
T known_type(const char* key, const std::string& text, const std::optional<T>& type) {
  if (!type) throw InputError("arguments", key, "'" + text + "' is not an element type of kvscope");
  return *type;
}

DType dtype_option(const char* key, const std::string& text) {
  return known_type(key, text, dtype_from_name(text));
}

golden::CacheType cache_type_option(const std::string& text) {
  return known_type("cache_dtype", text, golden::cache_type_from_name(text));
}

template <class T>
T choice(const py::dict& options, const char* key, T otherwise,
         std::initializer_list<std::pair<const char*, T>> words) {
  const auto given = option<std::string>(options, key);
  if (!given) return otherwise;
  std::string known;
  for (const auto& word : words) {
    if (*given == word.first) return word.second;
    known += (known.empty() ? "" : ", ") + std::string(word.first);
  }
  throw InputError("arguments", key, "is '" + *given + "': pass one of " + known);
}

std::shared_ptr<Problem> make_problem(const std::shared_ptr<Bundle>& tensors, golden::LayoutOptions options) {
  return without_lock([&] {
    auto problem = std::make_shared<Problem>();
    problem->tensors = tensors;
    problem->options = std::move(options);
    problem->prepared = golden::prepare_problem(*tensors, problem->options, "arguments");
    return problem;
  });
}

py::dict describe(const Problem& problem) {
  const attention::Problem& p = problem.prepared.problem;
  py::dict out;
  out["layout"] = problem.prepared.layout;
  out["sequences"] = p.batch;
  out["queries"] = p.total_queries();
  out["query_heads"] = p.query_heads;
  out["kv_heads"] = p.k.heads;
  out["head_size"] = p.k.head_size;
  out["value_size"] = p.v.head_size;
  out["page_size"] = p.k.page_size;
  out["blocks"] = p.k.blocks;
  out["key_lengths"] = problem.prepared.key_lengths;
  out["query_offsets"] = problem.prepared.query_offsets;
  out["cache_dtype"] = std::string(name(p.k.dtype));
  out["query_dtype"] = std::string(name(p.q_dtype));
  out["conventions"] = to_python(golden::conventions(p.options));
  out["warnings"] = problem.prepared.warnings;
  out["notes"] = problem.prepared.notes;
  out["scales"] = problem.prepared.scales;
  return out;
}

// i64 [batch, columns]: the block of each page; -1 where no token is read.
py::array_t<std::int64_t> lookup_table(const Problem& problem) {
  const auto& table = problem.prepared.table;
  py::array_t<std::int64_t> out({table.shape(0), table.shape(1)});
  std::transform(table.begin(), table.end(), out.mutable_data(), [](std::uint32_t block) {
    return block == golden::kUnknownBlock ? std::int64_t{-1} : std::int64_t{block};
  });
  return out;
}

py::dict lint(const std::shared_ptr<Bundle>& tensors, const py::dict& options) {
  golden::LintOptions lint_options;
  lint_options.layout = layout_options(options);
  lint_options.vector_read = option<std::int64_t>(options, "vector_read").value_or(1);
  lint_options.tma = option<bool>(options, "tma").value_or(false);
  lint_options.causal = option<bool>(options, "causal").value_or(false);
  if (const auto box = option<std::vector<std::int64_t>>(options, "box")) {
    if (box->size() != 2) throw InputError("arguments", "box", "give two numbers: (rows, elements)");
    lint_options.box = {(*box)[0], (*box)[1]};
    lint_options.tma = true;
  }
  if (const auto shape = option<std::vector<std::int64_t>>(options, "cache_shape")) {
    lint_options.cache_shape = *shape;
    if (const auto type = option<std::string>(options, "cache_dtype")) {
      lint_options.cache_type = cache_type_option(*type).dtype;
      lint_options.layout.cache_type.reset();
    }
  }
  golden::LintReport report;
  {
    const py::gil_scoped_release release;
    report = golden::lint(*tensors, lint_options);
  }
  py::dict out = to_python(golden::json_report(report, "arguments")).cast<py::dict>();
  out["text"] = golden::text_report(report, "arguments");
  return out;
}

std::shared_ptr<Bundle> convert(const std::shared_ptr<Bundle>& tensors, const py::dict& options, const std::string& to,
                                std::optional<std::int64_t> page_size, std::optional<std::int64_t> layer) {
  golden::ConvertOptions convert_options;
  convert_options.from = layout_options(options);
  convert_options.layer = layer;
  convert_options.page_size = page_size;
  convert_options.to = golden::find_layout(to);
  if (convert_options.to == nullptr) {
    throw InputError("arguments", "to", "'" + to + "' is not a layout: kvscope.layouts() lists them");
  }
  const py::gil_scoped_release release;
  return std::make_shared<Bundle>(golden::convert_cache(*tensors, convert_options, "arguments").bundle);
}

py::list detect(const std::shared_ptr<Bundle>& tensors, const py::dict& options,
                const std::shared_ptr<Bundle>& candidate) {
  const golden::LayoutOptions layout = layout_options(options);
  std::vector<golden::LayoutFit> fits;
  {
    const py::gil_scoped_release release;
    fits = golden::detect_layouts(*tensors, layout, candidate.get(), "arguments");
  }
  py::list out;
  for (const golden::LayoutFit& fit : fits) {
    py::dict one;
    py::list faults;
    for (const Fault& fault : fit.faults) faults.append(py::make_tuple(fault.where, fault.message));
    one["layout"] = fit.layout;
    one["faults"] = faults;
    one["needs"] = fit.options;
    one["sizes"] = fit.sizes;
    one["passed"] = fit.passed;
    one["note"] = fit.note;
    out.append(one);
  }
  return out;
}

}  // namespace

golden::LayoutOptions layout_options(const py::dict& given) {
  golden::LayoutOptions options;
  options.layout = option<std::string>(given, "layout").value_or("");
  options.layer = option<std::int64_t>(given, "layer").value_or(0);
  if (const auto type = option<std::string>(given, "cache_dtype")) options.cache_type = cache_type_option(*type);
  if (const auto type = option<std::string>(given, "query_dtype")) {
    options.query_dtype = dtype_option("query_dtype", *type);
  }
  options.granularity = option<std::int64_t>(given, "granularity");
  for (const auto& [key, order] :
       {std::pair{"k_scales_order", &options.k_scale_order}, {"v_scales_order", &options.v_scale_order}}) {
    *order = choice(given, key, golden::ScaleOrder::linear,
                    {{"linear", golden::ScaleOrder::linear},
                     {"interleaved", golden::ScaleOrder::interleaved},
                     {"tiled", golden::ScaleOrder::tiled}});
  }
  options.head_size = option<std::int64_t>(given, "head_size");
  options.value_size = option<std::int64_t>(given, "value_size");
  options.scale = option<double>(given, "scale");
  options.ignore = option<std::vector<std::string>>(given, "ignore").value_or(std::vector<std::string>{});
  attention::Options& attention = options.attention;
  attention.mask = choice(given, "mask", MaskKind::causal,
                          {{"none", MaskKind::none},
                           {"causal", MaskKind::causal},
                           {"sliding_window", MaskKind::sliding_window},
                           {"chunked", MaskKind::chunked}});
  attention.alignment =
      choice(given, "alignment", CausalAlignment::bottom_right,
             {{"bottom_right", CausalAlignment::bottom_right}, {"top_left", CausalAlignment::top_left}});
  attention.window_left = option<std::int64_t>(given, "window_left").value_or(-1);
  attention.window_right = option<std::int64_t>(given, "window_right").value_or(0);
  attention.chunk = option<std::int64_t>(given, "chunk").value_or(0);
  attention.soft_cap = option<double>(given, "soft_cap");
  attention.lse_base = choice(given, "lse_base", attention::LseBase::natural,
                              {{"natural", attention::LseBase::natural}, {"two", attention::LseBase::two}});
  attention.empty_row =
      choice(given, "empty_lse", attention::EmptyRow::minus_infinity,
             {{"-inf", attention::EmptyRow::minus_infinity}, {"+inf", attention::EmptyRow::plus_infinity}});
  return options;
}

void bind_problem(py::module_& module) {
  py::class_<Problem, std::shared_ptr<Problem>>(module, "Problem")
      .def_static("make", [](const std::shared_ptr<Bundle>& tensors,
                             const py::dict& options) { return make_problem(tensors, layout_options(options)); })
      .def_static("of_bundle",
                  [](const std::shared_ptr<Bundle>& tensors, const std::string& source) {
                    return make_problem(tensors, golden::layout_options_of(*tensors, source));
                  })
      .def("describe", &describe)
      .def("lookup_table", &lookup_table)
      .def_readonly("tensors", &Problem::tensors)
      .def("save", [](const Problem& problem, const std::string& path) {
        const py::gil_scoped_release release;
        golden::save_bundle(path, golden::inputs_bundle(*problem.tensors, problem.prepared, problem.options,
                                                        "kvscope " KVSCOPE_VERSION));
      });
  module.def("lint", &lint);
  module.def("convert", &convert);
  module.def("detect", &detect);
  module.def("layout_names", &golden::layout_names);
  module.def("sizes_used", [](const std::string& layout) {
    const golden::LayoutDescription* found = golden::find_layout(layout);
    py::dict used;
    used["head_size"] = found != nullptr && found->has_axis("head*dim");
    used["value_size"] = found != nullptr && found->needs_value_size();
    return used;
  });
}

}  // namespace kvscope::python
