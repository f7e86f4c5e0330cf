#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "apps/common/cli.h"
#include "apps/kvscope/layout_choice.h"
#include "core/base/errors.h"

namespace kvscope::apps {

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
  if (choice.layout.empty() == choice.axes.empty()) {
    throw InputError("command line", option,
                     choice.layout.empty()
                         ? fmt::format("is required{}: it names the layout of the tensors; see --help",
                                       option == std::string("--layout") ? " with --input" : "")
                         : std::string("and --axes both describe the layout: pass one of them"));
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
  if (choice.cache_dtype) {
    options.cache_fnuz = *choice.cache_dtype == "e4m3fnuz";
    options.cache_dtype = dtype_from_name(options.cache_fnuz ? "e4m3" : *choice.cache_dtype);
  }
  options.granularity = choice.granularity;
  if (choice.k_scales) options.k_scale_order = *golden::scale_order_from_name(*choice.k_scales);
  if (choice.v_scales) options.v_scale_order = *golden::scale_order_from_name(*choice.v_scales);
  options.value_size = choice.value_size;
  options.head_size = choice.head_size;
  options.ignore = choice.ignore;
  return options;
}

}  // namespace kvscope::apps
