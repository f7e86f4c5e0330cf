#include "core/golden/golden_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/layouts/detail/known_tensors.h"

namespace kvscope::golden {
namespace {

std::optional<std::int64_t> integer(const json::Value* object, std::string_view key) {
  const json::Value* value = object == nullptr ? nullptr : object->find(key);
  return value == nullptr || value->as_i64() == nullptr ? std::nullopt : std::optional(*value->as_i64());
}

std::optional<std::string> text(const json::Value* object, std::string_view key) {
  const json::Value* value = object == nullptr ? nullptr : object->find(key);
  return value == nullptr || value->as_string() == nullptr ? std::nullopt : std::optional(*value->as_string());
}

std::optional<DType> dtype(const json::Value* object, std::string_view key) {
  const std::optional<std::string> name = text(object, key);
  return name ? dtype_from_name(*name) : std::nullopt;
}

// Removes the output tensors of a golden, except those that the layout reads: query_offsets, a block_table.
void remove_answer(Bundle& bundle, const LayoutDescription& layout) {
  const std::vector<KnownTensor> tensors = known_tensors_of(layout);
  std::vector<std::string_view> read;
  for (const KnownTensor& known : tensors) {
    read.push_back(known.name);
    for (const std::string_view synonym : words(known.synonyms)) read.push_back(synonym);
  }
  for (const std::string_view answer : golden_answer_names()) {
    if (std::ranges::count(read, answer) == 0) bundle.tensors.erase(std::string(answer));
  }
}

// Linear unless the manifest names another order.
ScaleOrder scale_order(const json::Value* inputs, const char* key) {
  return scale_order_from_name(text(inputs, key).value_or("")).value_or(ScaleOrder::linear);
}

}  // namespace

json::Value inputs_manifest(const LayoutOptions& options, std::string_view file) {
  json::Value inputs;
  if (!file.empty()) inputs.set("file", file);
  inputs.set("layer", options.layer);
  if (options.cache_type) {
    inputs.set("cache_dtype", kvscope::name(options.cache_type->dtype));
    if (options.cache_type->fnuz) inputs.set("cache_fnuz", true);
  }
  if (options.description) inputs.set("layout", to_json(*options.description));
  if (options.head_size) inputs.set("head_size", *options.head_size);
  if (options.query_dtype) inputs.set("query_dtype", name(*options.query_dtype));
  if (options.granularity) inputs.set("granularity", *options.granularity);
  if (options.value_size) inputs.set("value_size", *options.value_size);
  if (options.k_scale_order != ScaleOrder::linear) inputs.set("k_scales", name(options.k_scale_order));
  if (options.v_scale_order != ScaleOrder::linear) inputs.set("v_scales", name(options.v_scale_order));
  if (!options.ignore.empty()) inputs.set("ignore", json::strings(options.ignore));
  return inputs;
}

bool holds_inputs(const Bundle& golden) {
  return golden.tensors.contains("blocks") && golden.tensors.contains("q");
}

std::optional<std::string> inputs_file(const Bundle& golden) {
  return text(golden.manifest.find("inputs"), "file");
}

bool states_layout(const Bundle& bundle) {
  return text(&bundle.manifest, "layout").has_value();
}

bool states_conventions(const Bundle& bundle) {
  const json::Value* conventions = bundle.manifest.find("conventions");
  return conventions != nullptr && conventions->is_object();
}

LayoutOptions layout_options_of(const Bundle& golden, std::string_view source) {
  std::vector<Fault> faults;
  if (!states_layout(golden)) faults.push_back({"manifest 'layout'", "is missing"});
  if (!states_conventions(golden)) faults.push_back({"manifest 'conventions'", "is missing"});
  if (!faults.empty()) {
    faults.back().message += ": make the golden with `kvscope golden`";
    throw InputError(std::string(source), std::move(faults));
  }
  return stated_options(golden, source);
}

LayoutOptions stated_options(const Bundle& bundle, std::string_view source) {
  const json::Value& manifest = bundle.manifest;
  const json::Value* inputs = manifest.find("inputs");
  const std::optional<std::string> layout = text(&manifest, "layout");
  if (!layout) throw InputError(source, "manifest 'layout'", "is missing: state the layout of the tensors");
  LayoutOptions options;
  options.layout = *layout;
  options.layer = integer(inputs, "layer").value_or(0);
  const std::optional<DType> cache_dtype = dtype(inputs, "cache_dtype");
  if (cache_dtype) options.cache_type = CacheType{*cache_dtype};
  options.query_dtype = dtype(inputs, "query_dtype");
  const json::Value* fnuz = inputs == nullptr ? nullptr : inputs->find("cache_fnuz");
  if (fnuz != nullptr && fnuz->as_bool() != nullptr && *fnuz->as_bool()) {
    options.cache_type = CacheType{cache_dtype.value_or(DType::e4m3), true};
  }
  if (const json::Value* described = inputs == nullptr ? nullptr : inputs->find("layout"); described != nullptr) {
    options.description = std::make_shared<LayoutDescription>(parse_layout(*described, options.layout, source));
  } else if (find_layout(options.layout) == nullptr) {
    throw InputError(source, "manifest 'layout'",
                     fmt::format("is '{}', which is no named layout and which the manifest does not describe: pass the "
                                 "file that describes it as the layout",
                                 options.layout));
  }
  options.k_scale_order = scale_order(inputs, "k_scales");
  options.v_scale_order = scale_order(inputs, "v_scales");
  // Of a golden that was written before there were other orders.
  if (const json::Value* order = inputs == nullptr ? nullptr : inputs->find("v_scales_interleaved"); order != nullptr) {
    if (order->as_bool() != nullptr && *order->as_bool()) options.v_scale_order = ScaleOrder::interleaved;
  }
  options.head_size = integer(inputs, "head_size");
  options.granularity = integer(inputs, "granularity");
  options.value_size = integer(inputs, "value_size");
  if (inputs == nullptr && holds_inputs(bundle)) {  // a scenario's: one layer, sizes in the manifest
    if (manifest.find("scale_dtype") != nullptr) options.granularity = integer(&manifest, "granularity");
    options.value_size = integer(&manifest, "value_size");
  }
  if (const json::Value* ignore = inputs == nullptr ? nullptr : inputs->find("ignore");
      ignore != nullptr && ignore->is_array()) {
    for (const json::Value& entry : *ignore->as_array()) {
      if (entry.is_string()) options.ignore.push_back(*entry.as_string());
    }
  }
  if (!states_conventions(bundle)) return options;
  const json::Value* conventions = manifest.find("conventions");
  if (const json::Value* scale = conventions->find("scale"); scale != nullptr && scale->is_number()) {
    options.scale = scale->number();
  }
  attention::Options& attention = options.attention;
  const std::string mask = text(conventions, "mask").value_or("causal");
  attention.mask = mask == "none"             ? MaskKind::none
                   : mask == "sliding_window" ? MaskKind::sliding_window
                   : mask == "chunked"        ? MaskKind::chunked
                                              : MaskKind::causal;
  if (text(conventions, "alignment") == "top_left") attention.alignment = CausalAlignment::top_left;
  attention.window_left = integer(conventions, "window_left").value_or(-1);
  attention.window_right = integer(conventions, "window_right").value_or(0);
  attention.chunk = integer(conventions, "chunk").value_or(0);
  if (const json::Value* cap = conventions->find("soft_cap"); cap != nullptr && cap->is_number()) {
    attention.soft_cap = cap->number();
  }
  if (text(conventions, "lse_base") == "two") attention.lse_base = attention::LseBase::two;
  if (text(conventions, "empty_row") == "+inf") attention.empty_row = attention::EmptyRow::plus_infinity;
  return options;
}

bool holds_only_inputs(const Bundle& bundle) {
  return text(&bundle.manifest, "holds") == "inputs";
}

bool holds_only_output(const Bundle& bundle) {
  return text(&bundle.manifest, "holds") == "output";
}

Bundle inputs_bundle(const Bundle& tensors, const PreparedProblem& prepared, const LayoutOptions& options,
                     std::string_view producer) {
  Bundle bundle{tensors.tensors, {}};
  for (const std::string& ignored : options.ignore) bundle.tensors.erase(ignored);
  if (tensors.manifest.find("conventions") != nullptr) remove_answer(bundle, layout_of(options));
  LayoutOptions kept = options;
  kept.ignore.clear();
  bundle.manifest.set("holds", "inputs");
  describe_problem(prepared.problem, {std::string(producer), options.layout, {}}, bundle.manifest);
  bundle.manifest.set("conventions", conventions(prepared.problem.options));
  bundle.manifest.set("inputs", inputs_manifest(kept, ""));
  return bundle;
}

Bundle without_answer(Bundle golden) {
  remove_answer(golden, *find_layout("max"));  // the layout of a scenario's inputs
  golden.manifest.set("holds", "inputs");
  return golden;
}

std::string golden_name_of(std::string_view inputs_name) {
  const std::filesystem::path path(inputs_name);
  return (path.parent_path() / (path.stem().string() + "_golden" + path.extension().string())).string();
}

void check_has_answer(const Bundle& golden, std::string_view golden_name, std::string_view candidate_name) {
  if (holds_only_output(golden)) {
    throw InputError(
        golden_name, "",
        "holds the output alone, without the terms that the error bound is made of: make the golden without "
        "--outputs-only");
  }
  if (!holds_only_inputs(golden)) return;
  const std::string made = golden_name_of(golden_name);
  throw InputError(golden_name, "",
                   fmt::format("holds inputs without expected values: compute them with `kvscope golden --input {} "
                               "--out {}`, then run `kvscope verify {} {}`",
                               golden_name, made, made, candidate_name));
}

}  // namespace kvscope::golden
