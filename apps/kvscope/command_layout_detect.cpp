// kvscope layout list|show|detect|diff: the cache layouts of engines, where a token is in them, and which a file has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/bundle_input.h"
#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/layout_choice.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/layouts/layout_detect.h"
#include "core/golden/layouts/layout_places.h"

namespace kvscope::apps {
namespace {

int list_layouts() {
  for (const golden::LayoutDescription& layout : golden::named_layouts()) {
    std::cout << fmt::format("{:<18} {}\n", layout.name, layout.about);
  }
  return kExitFine;
}

int show_layout_file(const std::string& name) {
  const std::string_view text = golden::layout_file_text(name);
  if (!text.empty()) {
    std::cout << text;
  } else {
    std::cout << json::dump(golden::to_json(golden::read_layout_file(name))) << '\n';
  }
  return kExitFine;
}

struct DetectCommand {
  std::string file;
  std::optional<std::string> candidate;
  LayoutChoice choice;
  std::optional<double> scale;
  std::string mask = "causal";
  bool json = false, all = false;
};

json::Value json_of(const golden::LayoutFit& fit) {
  json::Value made;
  made.set("layout", fit.layout);
  made.set("fits", fit.faults.empty());
  if (!fit.options.empty()) made.set("needs", json::strings(fit.options));
  if (!fit.sizes.empty()) made.set("sizes", fit.sizes);
  if (fit.passed) {
    made.set("candidate_passes", *fit.passed);
    made.set("largest_error", fit.worst_ratio);
  }
  json::Array faults;
  for (const Fault& fault : fit.faults) {
    json::Value item;
    item.set("where", fault.where);
    item.set("message", fault.message);
    faults.push_back(std::move(item));
  }
  if (!faults.empty()) made.set("faults", std::move(faults));
  return made;
}

std::string verdict(const golden::LayoutFit& fit) {
  if (!fit.passed) return "";
  if (*fit.passed) return fmt::format("; the candidate passes, {:.2g}x the allowed error", fit.worst_ratio);
  if (!fit.note.empty()) return fmt::format("; the candidate cannot be compared: {}", fit.note);
  return fmt::format("; the candidate fails, {:.3g}x the allowed error", fit.worst_ratio);
}

// Whether each layout reports each tensor of the file as unknown.
bool has_no_known_tensor(const golden::Bundle& bundle, const std::vector<golden::LayoutFit>& fits) {
  return std::ranges::all_of(fits, [&](const golden::LayoutFit& fit) {
    const auto unknown = std::ranges::count_if(
        fit.faults, [](const Fault& fault) { return fault.message.starts_with("is not a tensor of layout"); });
    return static_cast<std::size_t>(unknown) == bundle.tensors.size();
  });
}

// 0: a layout fits (with a candidate: and its values fit). 1: none does.
int detect(const DetectCommand& command) {
  golden::LayoutOptions options;
  LayoutChoice choice = command.choice;
  choice.layout = "nhd";  // replaced by each layout in turn
  options = chosen_layout(choice, "--layout");
  options.scale = command.scale;
  options.attention.mask = command.mask == "none" ? MaskKind::none : MaskKind::causal;
  const golden::Bundle bundle = open_bundle(command.file);
  std::optional<golden::Bundle> candidate;
  if (command.candidate) candidate = open_bundle(*command.candidate);
  const std::vector<golden::LayoutFit> fits = golden::detect_layouts(bundle, options, candidate ? &*candidate : nullptr,
                                                                     command.file, command.candidate.value_or(""));
  bool found = false;
  for (const golden::LayoutFit& fit : fits) found = found || (fit.faults.empty() && fit.passed.value_or(true));
  if (command.json) {
    json::Array all;
    for (const golden::LayoutFit& fit : fits) all.push_back(json_of(fit));
    std::cout << json::dump(json::Value(std::move(all))) << '\n';
    return found ? kExitFine : kExitCheckFailed;
  }
  if (!command.all && has_no_known_tensor(bundle, fits)) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : bundle.tensors) names.push_back(name);
    throw InputError(
        command.file, "",
        fmt::format("has no tensor of any layout, but {}: name the tensors as 'kvscope layout show LAYOUT' "
                    "prints, or pass the file that the kernel reads",
                    names.empty() ? "none at all" : fmt::format("{}", fmt::join(names, ", "))));
  }
  constexpr std::size_t kNearest = 3;  // of those that do not fit
  std::size_t others = 0;
  for (const golden::LayoutFit& fit : fits) {
    if (fit.faults.empty() && fit.options.empty()) {
      std::cout << fmt::format("fits  {:<18} {}{}\n", fit.layout, fit.sizes, verdict(fit));
    } else if (fit.faults.empty()) {
      std::cout << fmt::format("fits  {:<18} with {}\n", fit.layout, fmt::join(fit.options, " and "));
    } else if (command.all || (!found && others++ < kNearest)) {
      std::cout << fmt::format("no    {:<18} {}: {}{}\n", fit.layout, fit.faults.front().where,
                               fit.faults.front().message,
                               fit.faults.size() > 1 ? fmt::format(" (and {} more)", fit.faults.size() - 1) : "");
    }
  }
  return found ? kExitFine : kExitCheckFailed;
}

// Where a token of a cache of given sizes is: layout show --token, layout diff.
struct PlaceCommand {
  std::string a, b;
  golden::PlaceRequest request;
  std::string dtype = "bf16", k_order = "linear", v_order = "linear";
  std::optional<std::int64_t> value_size;
  std::optional<std::string> scale_dtype;
};

// The address of a run, and its elements when a head has more than one run.
std::string text_of(const golden::PlaceRun& run, std::int64_t head_size) {
  const std::int64_t end = run.first + run.count * run.each;  // of the elements, or of those that the scales are for
  const std::string range =
      end == run.first + 1 ? fmt::format(" {}", run.first) : fmt::format("s {} to {}", run.first, end - 1);
  const std::string part = run.scales
                               ? fmt::format(", {} scale{} of element{}", run.count, run.count == 1 ? "" : "s", range)
                           : run.count < head_size ? fmt::format(", element{}", range)
                                                   : "";
  return fmt::format("{} {}{}", run.tensor,
                     run.bytes == 1 ? fmt::format("byte {}", run.byte)
                                    : fmt::format("bytes {} to {}", run.byte, run.byte + run.bytes - 1),
                     part);
}

std::string text_of(const golden::PlaceStrides& s) {
  const char* side = s.k_or_v == 'k' ? "K" : "V";
  if (!s.scales) {
    return fmt::format("strides of {} in {}, {}: block {} B, slot {} B, head {} B, element {} B", side, s.tensor,
                       s.shape, s.block, s.slot, s.head, s.half_bytes ? "1/2" : std::to_string(s.next));
  }
  if (!s.unit.empty()) {
    return fmt::format("scales of {} in {}, {}, per {}: block {} B, slot {} B, head {} B", side, s.tensor, s.shape,
                       s.unit, s.block, s.slot, s.head);
  }
  const std::string of =
      fmt::format("scales of {} in {}, {}, groups of {}, {}", side, s.tensor, s.shape, s.each, golden::name(s.order));
  if (s.order == golden::ScaleOrder::linear) {
    return fmt::format("{}: block {} B, slot {} B, head {} B, group {} B", of, s.block, s.slot, s.head, s.next);
  }
  const std::string place =
      s.order == golden::ScaleOrder::interleaved
          ? fmt::format("(s / 4 * {} + g) * 4 + s % 4", s.groups)
          : fmt::format("(s / 128 * {} + g / 4) * 512 + s % 32 * 16 + s % 128 / 32 * 4 + g % 4", s.groups / 4);
  return fmt::format("{}: block {} B, head {} B\n    scale g of slot s: place p = {}, byte p / {} * {} + p % {} * {}",
                     of, s.block, s.head, place, s.groups, s.slot, s.groups, s.next);
}

void print_side(const std::string& name, const golden::LayoutDescription& layout, const golden::TokenPlace& place) {
  constexpr std::size_t kMostRuns = 3;  // of one head and tensor; the others follow the strides
  std::cout << fmt::format("\n{}: {}\n", name, layout.about);
  std::cout << fmt::format("  the token is {}\n", place.at);
  for (const char side : {'k', 'v'}) {
    std::int64_t head = -1;
    bool scales = false;
    std::size_t printed = 0, runs = 0;
    const auto flush = [&] {
      if (runs > printed) std::cout << fmt::format("  {:<12}... {} more runs\n", "", runs - printed);
      printed = runs = 0;
    };
    for (const golden::PlaceRun& run : place.runs) {
      if (run.k_or_v != side) continue;
      if (run.head != head || run.scales != scales) flush();
      scales = run.scales;
      ++runs;
      if (printed < kMostRuns) {
        std::int64_t elements = 0;
        for (const golden::PlaceRun& other : place.runs) {
          if (other.k_or_v == side && other.head == run.head && !other.scales) elements += other.count;
        }
        const std::string label = run.head != head ? fmt::format("{} head {}", side == 'k' ? "K" : "V", run.head) : "";
        std::cout << fmt::format("  {:<12}{}\n", label, text_of(run, elements));
        ++printed;
      }
      head = run.head;
    }
    flush();
  }
  for (const golden::PlaceStrides& s : place.strides) std::cout << fmt::format("  {}\n", text_of(s));
}

// Whether a token's place depends on the blocks of its sequence.
bool has_blocks(const golden::LayoutDescription& layout) {
  using golden::TableForm;
  const TableForm form = layout.table.form;
  return form != TableForm::dense && form != TableForm::ragged && form != TableForm::chunk;
}

// The request of the options, after a check of their ranges.
golden::PlaceRequest checked_request(const PlaceCommand& command,
                                     const std::vector<golden::LayoutDescription>& layouts) {
  golden::PlaceRequest request = command.request;
  request.dtype = *dtype_from_name(command.dtype);
  const auto at_least_one = [](const char* option, std::int64_t value) {
    if (value < 1 || value > 1'000'000) {
      throw InputError("command line", option, fmt::format("{} is outside [1, 1000000]", value));
    }
  };
  at_least_one("--blocks", request.blocks);
  at_least_one("--page-size", request.page_size);
  if (request.heads) at_least_one("--heads", *request.heads);
  at_least_one("--head-size", request.head_size);
  at_least_one("--layers", request.layers);
  check_index("--layer", request.layer, request.layers);
  if (request.token < 0) throw InputError("command line", "--token", fmt::format("{} is below 0", request.token));
  if (std::ranges::any_of(layouts, has_blocks)) {
    for (const std::int64_t block : request.table) check_index("--table", block, request.blocks, "pass --blocks");
  } else if (request.table != golden::PlaceRequest().table) {
    throw InputError(
        "command line", "--table",
        fmt::format("has no effect with layout '{}', which has no table: remove it", layouts.front().name));
  }
  if (request.group != 0) at_least_one("--group", request.group);
  if (request.dtype == DType::e2m1) {
    for (const auto& [option, size] : {std::pair{"--head-size", request.head_size},
                                       {"--value-size", command.value_size.value_or(request.head_size)}}) {
      if (size % 2 == 0) continue;
      throw InputError("command line", option, fmt::format("{} is odd: two elements of e2m1 fill a byte", size));
    }
  }
  request.k_order = *golden::scale_order_from_name(command.k_order);
  request.v_order = *golden::scale_order_from_name(command.v_order);
  const bool is_ordered =
      request.k_order != golden::ScaleOrder::linear || request.v_order != golden::ScaleOrder::linear;
  if (is_ordered && request.group == 0) {
    throw InputError("command line", request.k_order != golden::ScaleOrder::linear ? "--k-scales" : "--v-scales",
                     "is the order of block scales: pass --group, the elements that share one");
  }
  if (command.scale_dtype && request.group == 0 && request.scales.empty()) {
    throw InputError("command line", "--scale-dtype", "is the type of scales: pass --group or --scales to show them");
  }
  // NVFP4 and MXFP8, by their groups.
  request.scale_dtype = command.scale_dtype   ? *dtype_from_name(*command.scale_dtype)
                        : request.group == 16 ? DType::e4m3
                        : request.group == 32 ? DType::e8m0
                                              : DType::f32;
  return request;
}

golden::TokenPlace place_in(const golden::LayoutDescription& layout, golden::PlaceRequest request,
                            const std::optional<std::int64_t>& value_size) {
  const bool mla = layout.forms.front().values_in_keys;
  request.value_size =
      value_size.value_or(mla ? std::max<std::int64_t>(request.head_size * 8 / 9, 1) : request.head_size);
  return golden::place_of_token(layout, request);
}

// Where V is in K's rows, it has no scales of its own.
void refuse_idle_order(const golden::PlaceRequest& request, std::initializer_list<golden::LayoutDescription> layouts) {
  if (request.v_order == golden::ScaleOrder::linear) return;
  for (const golden::LayoutDescription& layout : layouts) {
    if (!layout.forms.front().values_in_keys) return;
  }
  throw InputError(
      "command line", "--v-scales",
      fmt::format("has no effect with layout '{}', whose K rows hold V: pass --k-scales", layouts.begin()->name));
}

void print_token(const golden::PlaceRequest& request) {
  std::cout << fmt::format("token {} of sequence {}, whose pages are blocks {}; pages of {} tokens\n", request.token,
                           request.sequence, fmt::join(request.table, ", "), request.page_size);
}

int show_places(const PlaceCommand& command) {
  const golden::LayoutDescription layout = layout_named(command.a);
  const golden::PlaceRequest request = checked_request(command, {layout});
  refuse_idle_order(request, {layout});
  const golden::TokenPlace place = place_in(layout, request, command.value_size);
  print_token(request);
  print_side(command.a, layout, place);
  return kExitFine;
}

int diff_layouts(const PlaceCommand& command) {
  const golden::LayoutDescription a = layout_named(command.a), b = layout_named(command.b);
  const golden::PlaceRequest request = checked_request(command, {a, b});
  refuse_idle_order(request, {a, b});
  const golden::TokenPlace in_a = place_in(a, request, command.value_size);
  const golden::TokenPlace in_b = place_in(b, request, command.value_size);
  print_token(request);
  print_side(command.a, a, in_a);
  print_side(command.b, b, in_b);
  return kExitFine;
}

void add_detect(CLI::App& layout, Action& chosen) {
  const auto command = std::make_shared<DetectCommand>();
  CLI::App* detect_app = layout.add_subcommand(
      "detect", "Print which layouts fit the tensors of a file, and with a candidate which layout gives its values");
  detect_app->add_option("FILE", command->file, "Your tensors (.safetensors, .npz)")->required();
  detect_app->add_option("CANDIDATE", command->candidate,
                         "Output of a kernel over these tensors, for layouts that only the values tell apart");
  detect_app->add_option("--scale", command->scale,
                         "Factor of the scores [default: the tensor sm_scale, or 1/sqrt(D)]");
  detect_app->add_option("--mask", command->mask, "Which keys a query sees")
      ->check(CLI::IsMember(std::vector<std::string>{"none", "causal"}))
      ->type_name("MASK")
      ->capture_default_str();
  detect_app->add_option("--layer", command->choice.layer, "Layer, from 0 [default: 0]")->check(at_least(0));
  add_layout_sizes(*detect_app, command->choice, "");
  detect_app->add_flag("--all", command->all, "Also print the layouts that do not fit, each with its first fault");
  detect_app->add_flag("--json", command->json, "Print JSON, with all faults");
  add_examples(*detect_app, {"kvscope golden apps/scenarios/first_light.json --out golden.safetensors",
                             "kvscope layout detect golden.safetensors"});
  detect_app->callback([command, &chosen] { chosen = [command] { return detect(*command); }; });
}

// The options of a place. Returns all but --token.
std::vector<CLI::Option*> add_place_options(CLI::App& app, PlaceCommand& command) {
  golden::PlaceRequest& request = command.request;
  std::vector<CLI::Option*> options;
  const auto number = [&](const char* option, std::int64_t& target, const char* help) {
    options.push_back(app.add_option(option, target, help)->capture_default_str());
  };
  const auto choice = [&](const char* option, auto& target, const char* help, const std::vector<std::string>& of) {
    options.push_back(app.add_option(option, target, help)->check(CLI::IsMember(of)));
    return options.back();
  };
  number("--sequence", request.sequence, "Sequence of the token");
  options.back()->check(at_least(0));
  number("--blocks", request.blocks, "Blocks of the cache, or its sequences");
  number("--page-size", request.page_size, "Tokens of a page, or positions of a sequence");
  options.push_back(app.add_option("--heads", request.heads, "KV heads [default: 2, or 1 if rows are of one head]"));
  number("--head-size", request.head_size, "Elements of a head");
  number("--layers", request.layers, "Layers of the cache");
  number("--layer", request.layer, "Layer, from 0");
  options.push_back(
      add_numbers<std::int64_t>(app, "--table", request.table, "Blocks of the sequence's pages")->default_str("5,0,2"));
  options.push_back(
      app.add_option("--value-size", command.value_size, "Elements of V [default: those of K; MLA: 8/9 of them]"));
  choice("--dtype", command.dtype, "Element type of the cache", {"f32", "f16", "bf16", "e4m3", "e5m2", "e2m1", "i8"})
      ->type_name("TYPE")
      ->capture_default_str();
  options.push_back(
      app.add_option("--group", request.group,
                     "Show block scales, one for that many elements of a head: 16 for NVFP4, 32 for MXFP8")
          ->type_name("N")
          ->check(at_least(1)));
  const std::vector<std::string> orders(golden::kScaleOrderNames.begin(), golden::kScaleOrderNames.end());
  choice("--k-scales", command.k_order, "Order of K's block scales within a page and head", orders)
      ->type_name("ORDER")
      ->capture_default_str();
  choice("--v-scales", command.v_order, "The same for V", orders)->type_name("ORDER")->capture_default_str();
  choice("--scales", request.scales,
         "Show k_scale and v_scale with one scale per: tensor, head, token, token-head, block, block-head",
         golden::scale_units())
      ->type_name("KIND");
  choice("--scale-dtype", command.scale_dtype,
         "Element type of the scales [default: e4m3 for groups of 16, e8m0 for groups of 32, otherwise f32]",
         {"f32", "f16", "bf16", "e4m3", "e8m0"})
      ->type_name("TYPE");
  return options;
}

void add_diff(CLI::App& layout, Action& chosen) {
  const auto command = std::make_shared<PlaceCommand>();
  CLI::App* diff_app = layout.add_subcommand("diff", "Print where the bytes of a token are in two layouts");
  add_layout_name(*diff_app, "A", command->a, "First layout, or a file that describes it")->required();
  add_layout_name(*diff_app, "B", command->b, "Second layout, or a file that describes it")->required();
  diff_app->add_option("--token", command->request.token, "Token, from 0")->capture_default_str();
  static_cast<void>(add_place_options(*diff_app, *command));
  add_examples(*diff_app, {"kvscope layout diff nhd hnd", "kvscope layout diff flashinfer vllm_legacy --token 9",
                           "kvscope layout diff nhd hnd --dtype e4m3 --scales token-head"});
  diff_app->callback([command, &chosen] { chosen = [command] { return diff_layouts(*command); }; });
}

void add_show(CLI::App& layout, Action& chosen) {
  const auto command = std::make_shared<PlaceCommand>();
  CLI::App* show_app =
      layout.add_subcommand("show", "Print the description of a cache layout as JSON, or where a token is in it");
  add_layout_name(*show_app, "LAYOUT", command->a, "Name of a layout, or a file to check")->required();
  CLI::Option* token =
      show_app->add_option("--token", command->request.token,
                           "Print where that token is, with the strides, instead of the description; the other "
                           "options need it");
  for (CLI::Option* option : add_place_options(*show_app, *command)) option->needs(token);
  add_examples(*show_app, {"kvscope layout show nhd", "kvscope layout show nhd --token 5 --dtype e4m3 --scales head",
                           "kvscope layout show flashinfer_hnd --token 5 --dtype e2m1 --head-size 32 --group 16 "
                           "--v-scales interleaved"});
  show_app->callback([command, token, &chosen] {
    if (token->count() > 0) {
      chosen = [command] { return show_places(*command); };
    } else {
      chosen = [command] { return show_layout_file(command->a); };
    }
  });
}

}  // namespace

void add_layout_files(CLI::App& layout, Action& chosen) {
  CLI::App* list_app = layout.add_subcommand("list", "List the cache layouts of engines");
  add_examples(*list_app, {"kvscope layout list"});
  list_app->callback([&chosen] { chosen = list_layouts; });
  add_show(layout, chosen);
  add_detect(layout, chosen);
  add_diff(layout, chosen);
}

}  // namespace kvscope::apps
