// The options that describe a user's tensors, of `golden`, `layout detect` and `convert`: the layout by name, by file
// or by --axes, and the types and sizes that shapes do not tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kvscope::apps {

struct LayoutChoice {
  std::string layout;             // a name, or a file that ends in .json; empty: --axes
  std::vector<std::string> axes;  // "kv=[block, kv, head, slot, dim]"
  std::optional<std::string> cache_dtype, query_dtype, k_scales, v_scales;
  std::optional<std::int64_t> layer, granularity, value_size, head_size;
  std::vector<std::string> ignore;
};

// An option or positional that takes the name of a layout, or a file that describes one.
CLI::Option* add_layout_name(CLI::App& command, const std::string& option, std::string& layout,
                             const std::string& help);

// --axes, and the options for types and sizes; `group` is the heading of their section. The choice outlives the
// command.
void add_axes(CLI::App& command, LayoutChoice& choice, const std::string& group);
void add_layout_sizes(CLI::App& command, LayoutChoice& choice, const std::string& group);

// The layout of one word: a name or a .json file.
[[nodiscard]] golden::LayoutDescription layout_named(const std::string& name);

// InputError when neither a layout nor axes are given, or both; `option` is the name of the layout's option.
[[nodiscard]] golden::LayoutOptions chosen_layout(const LayoutChoice& choice, const char* option);

// chosen_layout if a layout or axes are given. Called before a file is read, which may be large.
[[nodiscard]] std::optional<golden::LayoutOptions> given_layout(const LayoutChoice& choice, const char* option);

// How to read the tensors of `file`: as its manifest states, with the layer and the types and sizes of the choice that
// it does not state. Without a manifest that states the layout: `given`, the result of given_layout. InputError when
// the choice contradicts the manifest, with both values.
[[nodiscard]] golden::LayoutOptions layout_of_input(const golden::Bundle& bundle, const LayoutChoice& choice,
                                                    const std::optional<golden::LayoutOptions>& given,
                                                    const std::string& file, const char* option);

// For a message about a missing layout: the named layouts that the tensors fit, "the tensors fit 'vllm': pass --layout
// vllm". Without one it names `kvscope layout detect`, which prints what each layout lacks.
[[nodiscard]] std::string fitting_layouts(const golden::Bundle& bundle, const LayoutChoice& choice,
                                          const std::string& file, std::string_view option);

// The same if the tensors fit named layouts and not the chosen one, else empty.
[[nodiscard]] std::string other_layouts(const golden::Bundle& bundle, const LayoutChoice& choice,
                                        const std::string& file, std::string_view option);

// Throws `error` again, which the tensors of `file` caused in the chosen layout. If they fit another named layout, a
// further fault names it.
[[noreturn]] void throw_with_fitting_layouts(const InputError& error, const golden::Bundle& bundle,
                                             const LayoutChoice& choice, const std::string& file,
                                             std::string_view option);

}  // namespace kvscope::apps
