#include "core/golden/golden_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/layouts/detail/known_tensors.h"

namespace kvscope::golden {
namespace {

// "inputs" or "output"; empty: a golden, or another text, which the readers of its other members reject.
std::string_view held(const Bundle& bundle) {
  const json::Value* value = bundle.manifest.find("holds");
  return value == nullptr || value->as_string() == nullptr ? std::string_view() : *value->as_string();
}

template <class Value>
using Named = std::pair<std::string_view, Value>;
constexpr Named<MaskKind> kMasks[] = {{"none", MaskKind::none},
                                      {"causal", MaskKind::causal},
                                      {"sliding_window", MaskKind::sliding_window},
                                      {"chunked", MaskKind::chunked}};
constexpr Named<CausalAlignment> kAlignments[] = {{"bottom_right", CausalAlignment::bottom_right},
                                                  {"top_left", CausalAlignment::top_left}};
constexpr Named<attention::LseBase> kLseBases[] = {{"natural", attention::LseBase::natural},
                                                   {"two", attention::LseBase::two}};
constexpr Named<attention::EmptyRow> kEmptyRows[] = {{"-inf", attention::EmptyRow::minus_infinity},
                                                     {"+inf", attention::EmptyRow::plus_infinity}};

// The members of the manifest, or of one of its objects. A member that is missing or null is not stated. A member of
// another type or value is a fault: with a default in its place, the attention would be another than the one stated.
class Members {
 public:
  // `key`: of the object; empty for the manifest itself.
  Members(const json::Value& manifest, std::string key, std::vector<Fault>& faults)
      : key_(std::move(key)), object_(key_.empty() ? &manifest : manifest.find(key_)), faults_(faults) {
    if (object_ == nullptr || object_->is_null() || object_->is_object()) return;
    fault({}, *object_, "not an object");
    object_ = nullptr;
  }

  const json::Value* find(std::string_view key) {
    known_.emplace(key);
    const json::Value* value = object_ == nullptr ? nullptr : object_->find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  // After all members have been read: each other one is a fault, because it would change nothing.
  void reject_others() {
    if (object_ == nullptr || !object_->is_object()) return;
    for (const auto& [key, value] : *object_->as_object()) {
      if (!known_.contains(key))
        fault(key, value, fmt::format("which is not read: one of {}", fmt::join(known_, ", ")));
    }
  }
  std::optional<std::string> text(std::string_view key) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->as_string() != nullptr) return *value->as_string();
    fault(key, *value, "not a text");
    return std::nullopt;
  }
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least = INT64_MIN) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->as_i64() != nullptr && *value->as_i64() >= least) return *value->as_i64();
    fault(key, *value, least == INT64_MIN ? "not an integer" : fmt::format("not an integer of at least {}", least));
    return std::nullopt;
  }
  std::optional<double> number(std::string_view key) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->number();
    fault(key, *value, "not a number");
    return std::nullopt;
  }
  bool flag(std::string_view key) {
    const json::Value* value = find(key);
    if (value == nullptr) return false;
    if (value->as_bool() != nullptr) return *value->as_bool();
    fault(key, *value, "not true or false");
    return false;
  }
  template <class Value>
  std::optional<Value> one_of(std::string_view key, std::span<const Named<Value>> known) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string_view> names;
    for (const auto& [name, named] : known) {
      if (value->as_string() != nullptr && *value->as_string() == name) return named;
      names.push_back(name);
    }
    fault(key, *value, fmt::format("not one of {}", fmt::join(names, ", ")));
    return std::nullopt;
  }
  std::optional<DType> dtype(std::string_view key) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::optional<DType> named =
        value->as_string() == nullptr ? std::nullopt : dtype_from_name(*value->as_string());
    if (!named) fault(key, *value, "not an element type such as bf16 or e4m3");
    return named;
  }
  std::vector<std::string> texts(std::string_view key) {
    const json::Value* value = find(key);
    if (value == nullptr) return {};
    std::vector<std::string> out;
    const json::Array* list = value->as_array();
    for (std::size_t i = 0; list != nullptr && i < list->size() && (*list)[i].is_string(); ++i) {
      out.push_back(*(*list)[i].as_string());
    }
    if (list == nullptr || out.size() != list->size()) fault(key, *value, "not a list of names");
    return out;
  }

 private:
  void fault(std::string_view key, const json::Value& value, std::string_view problem) {
    faults_.push_back({fmt::format("manifest '{}{}{}'", key_, key_.empty() || key.empty() ? "" : ".", key),
                       fmt::format("is {}, {}", json::dump(value, -1), problem)});
  }

  std::string key_;
  const json::Value* object_;
  std::vector<Fault>& faults_;
  std::set<std::string, std::less<>> known_;  // the members that were asked for
};

std::optional<std::string> one_text(const Bundle& bundle, std::string object, std::string_view key,
                                    std::string_view source) {
  std::vector<Fault> faults;
  std::optional<std::string> out = Members(bundle.manifest, std::move(object), faults).text(key);
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  return out;
}

StatedAttention read_conventions(Members& stated) {
  StatedAttention out;
  attention::Options& attention = out.options;
  attention.mask = stated.one_of<MaskKind>("mask", kMasks).value_or(MaskKind::causal);
  attention.alignment =
      stated.one_of<CausalAlignment>("alignment", kAlignments).value_or(CausalAlignment::bottom_right);
  attention.window_left = stated.integer("window_left").value_or(-1);
  attention.window_right = stated.integer("window_right").value_or(0);
  attention.chunk = stated.integer("chunk").value_or(0);
  out.scale = stated.number("scale");
  attention.soft_cap = stated.number("soft_cap");
  out.lse_base = stated.one_of<attention::LseBase>("lse_base", kLseBases);
  attention.lse_base = out.lse_base.value_or(attention::LseBase::natural);
  attention.empty_row =
      stated.one_of<attention::EmptyRow>("empty_row", kEmptyRows).value_or(attention::EmptyRow::minus_infinity);
  out.sinks = stated.flag("sinks");
  // The tensors show whether there are any.
  static_cast<void>(stated.flag("alibi"));
  static_cast<void>(stated.flag("bias"));
  return out;
}

constexpr Named<std::string_view> kHeld[] = {{"inputs", "inputs"}, {"output", "output"}};

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

std::optional<ScaleOrder> scale_order(Members& inputs, std::string_view key) {
  std::vector<Named<ScaleOrder>> known;
  for (const std::string_view order : kScaleOrderNames) known.emplace_back(order, *scale_order_from_name(order));
  return inputs.one_of<ScaleOrder>(key, known);
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

std::optional<std::string> inputs_file(const Bundle& golden, std::string_view source) {
  return one_text(golden, "inputs", "file", source);
}

bool states_layout(const Bundle& bundle) {
  const json::Value* layout = bundle.manifest.find("layout");
  return layout != nullptr && !layout->is_null();
}

std::string stated_layout(const Bundle& bundle, std::string_view source) {
  const std::optional<std::string> layout = one_text(bundle, "", "layout", source);
  KVSCOPE_ASSERT(layout.has_value());  // the caller: states_layout
  return *layout;
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
  KVSCOPE_ASSERT(states_layout(bundle));  // the caller
  std::vector<Fault> faults;
  Members sizes(manifest, "", faults), inputs(manifest, "inputs", faults), stated(manifest, "conventions", faults);
  LayoutOptions options;
  const std::optional<std::string> layout = sizes.text("layout");
  options.layout = layout.value_or("");
  static_cast<void>(sizes.one_of<std::string_view>("holds", kHeld));
  static_cast<void>(inputs.text("file"));
  options.layer = inputs.integer("layer").value_or(0);
  const std::optional<DType> cache_dtype = inputs.dtype("cache_dtype");
  if (cache_dtype) options.cache_type = CacheType{*cache_dtype};
  options.query_dtype = inputs.dtype("query_dtype");
  if (inputs.flag("cache_fnuz")) options.cache_type = CacheType{cache_dtype.value_or(DType::e4m3), true};
  options.k_scale_order = scale_order(inputs, "k_scales").value_or(ScaleOrder::linear);
  options.v_scale_order = scale_order(inputs, "v_scales").value_or(ScaleOrder::linear);
  // Of a golden that was written before there were other orders.
  if (inputs.flag("v_scales_interleaved")) options.v_scale_order = ScaleOrder::interleaved;
  options.head_size = inputs.integer("head_size", 1);
  options.granularity = inputs.integer("granularity", 1);
  options.value_size = inputs.integer("value_size", 1);
  if (manifest.find("inputs") == nullptr && holds_inputs(bundle)) {  // a scenario's: one layer, sizes in the manifest
    if (manifest.find("scale_dtype") != nullptr) options.granularity = sizes.integer("granularity", 1);
    options.value_size = sizes.integer("value_size", 1);
  }
  options.ignore = inputs.texts("ignore");
  const StatedAttention conventions = read_conventions(stated);
  options.attention = conventions.options;
  options.scale = conventions.scale;
  const json::Value* described = inputs.find("layout");
  inputs.reject_others();
  stated.reject_others();
  if (layout && described == nullptr && find_layout(options.layout) == nullptr) {
    faults.push_back({"manifest 'layout'",
                      fmt::format("is '{}', which is no named layout and which the manifest does not describe: pass "
                                  "the file that describes it as the layout",
                                  options.layout)});
  }
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  if (described != nullptr) {
    options.description = std::make_shared<LayoutDescription>(parse_layout(*described, options.layout, source));
  }
  return options;
}

StatedAttention stated_attention(const Bundle& bundle, std::string_view source) {
  std::vector<Fault> faults;
  Members stated(bundle.manifest, "conventions", faults), sizes(bundle.manifest, "", faults);
  StatedAttention out = read_conventions(stated);
  out.head_size = sizes.integer("head_size", 1);
  static_cast<void>(sizes.one_of<std::string_view>("holds", kHeld));
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  return out;
}

bool holds_only_inputs(const Bundle& bundle) {
  return held(bundle) == "inputs";
}

bool holds_only_output(const Bundle& bundle) {
  return held(bundle) == "output";
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
