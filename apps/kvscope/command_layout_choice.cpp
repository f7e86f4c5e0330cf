#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "apps/common/cli.h"
#include "apps/kvscope/layout_choice.h"
#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layout_description.h"
#include "core/golden/layouts/layout_detect.h"

namespace kvscope::apps {
namespace {

// The named layouts that the tensors fit without a further option. A missing q does not depend on the layout: neither
// lint nor convert needs it.
std::vector<std::string> layouts_that_fit(const golden::Bundle& bundle, LayoutChoice choice, const std::string& file) {
  choice.layout = golden::layout_names().front();  // detect_layouts puts each layout in its place
  choice.axes.clear();
  std::vector<std::string> names;
  for (const golden::LayoutFit& fit :
       golden::detect_layouts(bundle, chosen_layout(choice, "--layout"), nullptr, file)) {
    const bool fits = std::ranges::all_of(
        fit.faults, [](const Fault& fault) { return fault.where == "q" && fault.message.starts_with("is missing"); });
    if (fits && fit.options.empty()) names.push_back(fit.layout);
  }
  return names;
}

// The golden output of a file of tensors states how to read them, but does not hold them.
void reject_golden_output(const golden::Bundle& bundle, const std::string& file) {
  if (golden::holds_inputs(bundle) || !bundle.tensors.contains("o")) return;
  const std::optional<std::string> inputs = golden::inputs_file(bundle, file);
  if (!inputs) return;
  throw InputError(file, "",
                   fmt::format("is a golden bundle, which does not hold the tensors that it was computed from: pass "
                               "their file, '{}'",
                               *inputs));
}

// "the tensors fit 'nhd' and 'hnd': pass --layout nhd or --layout hnd".
std::string fit_text(const std::vector<std::string>& names, std::string_view option) {
  std::string layouts, options;
  for (const std::string& each : names) {
    layouts += fmt::format("{}'{}'", layouts.empty() ? "" : " and ", each);
    options += fmt::format("{}{} {}", options.empty() ? "" : " or ", option, each);
  }
  return fmt::format("the tensors fit {}: pass {}", layouts, options);
}

// A cache whose K alone is described is one of MLA. If the file has V, its axes are missing.
std::string only_keys(const LayoutChoice& choice, const golden::Bundle& bundle) {
  const auto is_k = [](const std::string& text) { return text.starts_with("k=") || text.find(":k=") != text.npos; };
  if (choice.axes.empty() || !std::ranges::all_of(choice.axes, is_k)) return "";
  for (const char* name : {"v_cache", "value_cache", "v_buffer", "values", "v"}) {
    if (!bundle.tensors.contains(name) || std::ranges::count(choice.ignore, name) > 0) continue;
    return fmt::format("describes K only, and the file has {0}: pass the axes of V too, such as --axes 'v={1}'", name,
                       choice.axes.front().substr(choice.axes.front().find('=') + 1));
  }
  return "";
}

// Whether neither the manifest nor a named layout describes the layout that the manifest states.
bool is_undescribed(const golden::Bundle& bundle, const std::string& layout) {
  const json::Value* inputs = bundle.manifest.find("inputs");
  return golden::find_layout(layout) == nullptr && (inputs == nullptr || inputs->find("layout") == nullptr);
}

// Whether the layouts are the same, or the manifest states one of the forms of the given one: convert writes the form
// of a result whose shapes fit several.
bool is_layout_or_form(const golden::LayoutOptions& stated, const golden::LayoutOptions& given) {
  const golden::LayoutDescription& one = golden::layout_of(stated);
  golden::LayoutDescription all = golden::layout_of(given);
  const json::Value text = golden::to_json(one);
  if (text == golden::to_json(all)) return true;
  const std::vector<golden::CacheForm> forms = std::exchange(all.forms, {});
  return one.forms.size() == 1 && std::ranges::any_of(forms, [&](const golden::CacheForm& form) {
           all.forms = {form};
           return text == golden::to_json(all);
         });
}

bool share_a_name(const golden::CacheTensor& a, const golden::CacheTensor& b) {
  const auto has = [&](const std::string& name) { return name == b.name || std::ranges::count(b.also, name) > 0; };
  return has(a.name) || std::ranges::any_of(a.also, has);
}

// The form of the stated layout whose tensors have the axes of --axes: no contradiction, and an answer to which of
// several forms a file of an earlier convert has.
const golden::CacheForm* form_with_axes(const golden::LayoutDescription& stated, const golden::CacheForm& given) {
  const auto is_given = [&](const golden::CacheTensor& tensor) {
    return tensor.holds_scales() || std::ranges::any_of(given.tensors, [&](const golden::CacheTensor& other) {
             return other.holds == tensor.holds && other.axes == tensor.axes && tensor.strides.empty() &&
                    share_a_name(tensor, other);
           });
  };
  const auto found = std::ranges::find_if(stated.forms, [&](const golden::CacheForm& form) {
    const auto scales = std::ranges::count_if(form.tensors, &golden::CacheTensor::holds_scales);
    return form.values_in_keys == given.values_in_keys &&
           form.tensors.size() - static_cast<std::size_t>(scales) == given.tensors.size() &&
           std::ranges::all_of(form.tensors, is_given);
  });
  return found == stated.forms.end() ? nullptr : &*found;
}

// The type of a cache tensor that has one of its own, which is not `given`. Empty: all hold bit patterns, or are of
// that type. Elements of u8 and u16 are always patterns; i8 is a type of a cache too.
std::optional<DType> other_type(const golden::Bundle& bundle, const golden::LayoutOptions& options,
                                const std::string& given) {
  for (const golden::CacheForm& form : golden::layout_of(options).forms) {
    for (const golden::CacheTensor& tensor : form.tensors) {
      if (tensor.holds_scales() || !tensor.row.empty()) continue;
      std::vector<std::string> names = tensor.also;
      names.push_back(tensor.name);
      for (const std::string& each : names) {
        const auto found = bundle.tensors.find(each);
        if (found == bundle.tensors.end()) continue;
        const DType own = found->second.dtype;
        if (own != DType::u8 && own != DType::u16 && name(own) != given) return own;
      }
    }
  }
  return std::nullopt;
}

// Adds the layer, types and sizes of the command line to those of a manifest.
void add_sizes(const LayoutChoice& given, const golden::Bundle& bundle, const std::string& file,
               golden::LayoutOptions& stated) {
  // Whether the manifest states types and the orders of block scales: those that it leaves out are the tensors' own
  // types and linear orders. A manifest of an earlier convert states only the layout.
  const bool is_complete = bundle.manifest.find("inputs") != nullptr || golden::holds_inputs(bundle);
  std::vector<Fault> faults;
  const auto contradiction = [&](const char* option, const auto& here, const auto& there) {
    faults.push_back(
        {option, fmt::format("is {}, but the manifest of '{}' states {}: leave the option out", here, file, there)});
  };
  if (given.layer) stated.layer = *given.layer;
  if (given.cache_dtype) {
    if (stated.cache_type) {
      if (name(*stated.cache_type) != *given.cache_dtype) {
        contradiction("--cache-dtype", *given.cache_dtype, name(*stated.cache_type));
      }
    } else if (is_complete) {
      if (const auto own = other_type(bundle, stated, *given.cache_dtype)) {
        contradiction("--cache-dtype", *given.cache_dtype, name(*own));
      }
    }
    stated.cache_type = golden::cache_type_from_name(*given.cache_dtype);
  }
  if (given.query_dtype) {
    if (stated.query_dtype && name(*stated.query_dtype) != *given.query_dtype) {
      contradiction("--query-dtype", *given.query_dtype, name(*stated.query_dtype));
    }
    stated.query_dtype = dtype_from_name(*given.query_dtype);
  }
  for (const auto& [option, here, there] : {std::tuple{"--granularity", &given.granularity, &stated.granularity},
                                            {"--value-size", &given.value_size, &stated.value_size},
                                            {"--head-size", &given.head_size, &stated.head_size}}) {
    if (!*here) continue;
    if (*there && **there != **here) contradiction(option, **here, **there);
    *there = *here;
  }
  for (const auto& [option, of_v, here, there] :
       {std::tuple{"--k-scales", false, &given.k_scales, &stated.k_scale_order},
        {"--v-scales", true, &given.v_scales, &stated.v_scale_order}}) {
    if (!*here) continue;
    const golden::ScaleOrder order = *golden::scale_order_from_name(**here);
    if (!golden::has_block_scales(bundle, stated, of_v)) {
      if (order != golden::ScaleOrder::linear) {
        faults.push_back({option, fmt::format("is {}, but '{}' has no block scales of {}: leave the option out", **here,
                                              file, of_v ? "V" : "K")});
      }
      continue;
    }
    if (is_complete && order != *there) contradiction(option, **here, golden::name(*there));
    *there = order;
  }
  stated.ignore.insert(stated.ignore.end(), given.ignore.begin(), given.ignore.end());
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

}  // namespace

CLI::Option* add_layout_name(CLI::App& command, const std::string& option, std::string& layout,
                             const std::string& help) {
  const CLI::Validator names = CLI::IsMember(golden::layout_names());
  CLI::Validator name_or_file = names;
  name_or_file.operation([names](std::string& word) { return word.ends_with(".json") ? std::string() : names(word); });
  return command.add_option(option, layout, help)->type_name("LAYOUT")->check(name_or_file);
}

void add_axes(CLI::App& command, LayoutChoice& choice, const std::string& group) {
  CLI::Option* axes = command
                          .add_option("--axes", choice.axes,
                                      "Instead of a layout: the axes of a tensor of the cache, such as 'kv=[block, kv, "
                                      "head, slot, dim]'; may be repeated, for k= and v=")
                          ->type_name("AXES")
                          ->allow_extra_args(false);
  if (!group.empty()) axes->group(group);
}

void add_layout_sizes(CLI::App& command, LayoutChoice& choice, const std::string& group) {
  std::vector<CLI::Option*> all;
  all.push_back(
      command
          .add_option(
              "--cache-dtype", choice.cache_dtype,
              "Element type of a cache whose bit patterns are stored as u8, i8 or u16 [default: the tensor's own]")
          ->check(CLI::IsMember(std::vector<std::string>{"f16", "bf16", "e4m3", "e5m2", "e4m3fnuz", "e2m1", "i8"})));
  all.push_back(
      command.add_option("--granularity", choice.granularity, "Elements that share a block scale [default: D / G]")
          ->check(at_least(1)));
  const std::vector<std::string> orders(golden::kScaleOrderNames.begin(), golden::kScaleOrderNames.end());
  for (const auto& [option, to, of] :
       {std::tuple{"--k-scales", &choice.k_scales, "K"}, {"--v-scales", &choice.v_scales, "V"}}) {
    all.push_back(
        command
            .add_option(option, *to,
                        std::string("Order of ") + of +
                            "'s block scales: linear, interleaved by 4 tokens as FlashInfer's NVFP4 cache has V's, "
                            "or in cuBLAS's tiles of 128 tokens and 4 scales [default: linear]")
            ->check(CLI::IsMember(orders)));
  }
  all.push_back(
      command
          .add_option("--value-size", choice.value_size,
                      "Elements of V, where they are in one axis with K's; MLA: leading elements of a row that are V "
                      "[default: 512 if a row has 576]")
          ->check(at_least(1)));
  all.push_back(command
                    .add_option("--head-size", choice.head_size,
                                "Elements of a head, for a layout with one axis for heads and elements [default: "
                                "that of q]")
                    ->check(at_least(1)));
  all.push_back(command.add_option("--ignore", choice.ignore, "Tensor of the file to leave out; may be repeated")
                    ->type_name("NAME")
                    ->allow_extra_args(false));
  for (CLI::Option* option : all) {
    if (!group.empty()) option->group(group);
  }
}

golden::LayoutDescription layout_named(const std::string& name) {
  if (const golden::LayoutDescription* layout = golden::find_layout(name)) return *layout;
  return golden::read_layout_file(name);
}

golden::LayoutOptions chosen_layout(const LayoutChoice& choice, const char* option) {
  if (!choice.layout.empty() && !choice.axes.empty()) {
    throw InputError("command line", option, "and --axes both describe the layout: pass one of them");
  }
  golden::LayoutOptions options;
  options.layout = choice.layout;
  if (!choice.axes.empty()) {
    options.description = std::make_shared<golden::LayoutDescription>(golden::layout_of_axes(choice.axes));
  } else if (golden::find_layout(choice.layout) == nullptr) {
    options.description = std::make_shared<golden::LayoutDescription>(golden::read_layout_file(choice.layout));
  }
  if (options.description) options.layout = options.description->name;
  options.layer = choice.layer.value_or(0);
  if (choice.cache_dtype) options.cache_type = golden::cache_type_from_name(*choice.cache_dtype);
  if (choice.query_dtype) options.query_dtype = dtype_from_name(*choice.query_dtype);
  options.granularity = choice.granularity;
  if (choice.k_scales) options.k_scale_order = *golden::scale_order_from_name(*choice.k_scales);
  if (choice.v_scales) options.v_scale_order = *golden::scale_order_from_name(*choice.v_scales);
  options.value_size = choice.value_size;
  options.head_size = choice.head_size;
  options.ignore = choice.ignore;
  return options;
}

std::optional<golden::LayoutOptions> given_layout(const LayoutChoice& choice, const char* option) {
  if (choice.layout.empty() && choice.axes.empty()) return std::nullopt;
  return chosen_layout(choice, option);
}

golden::LayoutOptions layout_of_input(const golden::Bundle& bundle, const LayoutChoice& choice,
                                      const std::optional<golden::LayoutOptions>& given, const std::string& file,
                                      const char* option) {
  reject_golden_output(bundle, file);
  if (!golden::states_layout(bundle)) {
    if (given) return *given;
    throw InputError("command line", option,
                     fmt::format("is required, because the manifest of '{}' does not state the layout: {}", file,
                                 fitting_layouts(bundle, choice, file, option)));
  }
  if (given) {
    const std::string layout = golden::stated_layout(bundle, file);
    // Earlier versions of convert did not write the description of a layout that is not a named one.
    if (given->layout == layout && is_undescribed(bundle, layout)) return *given;
    const bool axes = choice.layout.empty();
    if (axes && !is_undescribed(bundle, layout)) {
      golden::LayoutOptions stated = golden::stated_options(bundle, file);
      golden::LayoutDescription one = golden::layout_of(stated);
      if (const golden::CacheForm* form = form_with_axes(one, given->description->forms.front())) {
        one.forms = {golden::CacheForm(*form)};
        stated.description = std::make_shared<golden::LayoutDescription>(std::move(one));
        add_sizes(choice, bundle, file, stated);
        return stated;
      }
    }
    if (is_undescribed(bundle, layout) || !is_layout_or_form(golden::stated_options(bundle, file), *given)) {
      throw InputError(
          "command line", axes ? "--axes" : option,
          fmt::format("{}, but the manifest of '{}' states layout '{}': leave the option out. If the manifest is "
                      "wrong, save the tensors again without it",
                      axes ? std::string("describes another layout") : fmt::format("is '{}'", choice.layout), file,
                      layout));
    }
  }
  golden::LayoutOptions stated = golden::stated_options(bundle, file);
  add_sizes(choice, bundle, file, stated);
  return stated;
}

std::string fitting_layouts(const golden::Bundle& bundle, const LayoutChoice& choice, const std::string& file,
                            std::string_view option) {
  const std::vector<std::string> names = layouts_that_fit(bundle, choice, file);
  if (names.empty()) {
    return fmt::format("the tensors fit no named layout: 'kvscope layout detect {} --all' prints what each one lacks",
                       file);
  }
  return fit_text(names, option);
}

std::string other_layouts(const golden::Bundle& bundle, const LayoutChoice& choice, const std::string& file,
                          std::string_view option) {
  const std::vector<std::string> names = layouts_that_fit(bundle, choice, file);
  return names.empty() || std::ranges::count(names, choice.layout) > 0 ? "" : fit_text(names, option);
}

void throw_with_fitting_layouts(const InputError& error, const golden::Bundle& bundle, const LayoutChoice& choice,
                                const std::string& file, std::string_view option) {
  const std::vector<std::string> names = layouts_that_fit(bundle, choice, file);
  if (names.empty() || std::ranges::count(names, choice.layout) > 0 || error.source() != file) {
    const std::string text = only_keys(choice, bundle);
    if (text.empty()) throw error;
    throw InputError(file, "--axes", text);
  }
  std::vector<Fault> faults = error.faults();
  if (const std::string text = only_keys(choice, bundle); !text.empty()) faults = {{"--axes", text}};
  faults.push_back({std::string(option), fit_text(names, option)});
  throw InputError(file, std::move(faults));
}

}  // namespace kvscope::apps
