// kvscope convert FILE --from A --to B --out FILE: moves a cache from one layout to another.
#include <fmt/format.h>

#include <algorithm>
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
#include "core/base/report.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/layouts/layout_convert.h"

namespace kvscope::apps {
namespace {

struct ConvertCommand {
  std::string file, to, out;
  LayoutChoice from;
  std::optional<std::int64_t> page_size;
};

// Rejects sizes that neither layout uses.
void refuse_idle_sizes(const LayoutChoice& choice, const golden::LayoutDescription& from,
                       const golden::LayoutDescription& to) {
  std::vector<Fault> faults;
  const std::string idle = fmt::format("has no effect with layouts '{}' and '{}': remove it", from.name, to.name);
  if (choice.value_size && !from.needs_value_size() && !to.needs_value_size()) faults.push_back({"--value-size", idle});
  if (choice.head_size && !from.has_axis("head*dim") && !to.has_axis("head*dim"))
    faults.push_back({"--head-size", idle});
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

int run_convert(const ConvertCommand& command) {
  golden::check_bundle_name(command.out);
  const auto given = given_layout(command.from, "--from");
  const golden::LayoutDescription to = layout_named(command.to);
  const golden::Bundle bundle = open_bundle(command.file);
  golden::ConvertOptions options;
  options.from = layout_of_input(bundle, command.from, given, command.file, "--from");
  refuse_idle_sizes(command.from, golden::layout_of(options.from), to);
  options.to = &to;
  options.page_size = command.page_size;
  options.layer = command.from.layer;
  golden::Conversion made;
  try {
    made = golden::convert_cache(bundle, options, command.file);
  } catch (const InputError& error) {
    const bool of_target = std::ranges::any_of(
        error.faults(), [](const Fault& fault) { return fault.where == "--to" || fault.where == "--page-size"; });
    if (golden::states_layout(bundle) || of_target) throw;
    throw_with_fitting_layouts(error, bundle, command.from, command.file, "--from");
  }
  made.bundle.manifest.set("producer", "kvscope " KVSCOPE_VERSION);
  golden::save_bundle(command.out, made.bundle);
  std::cout << fmt::format("converted  {}: {}, {}, {}{} of {} elements, {}\n", command.out,
                           counted(made.sequences, "sequence"), counted(made.tokens, "token"),
                           made.layers > 1 ? fmt::format("{}, ", counted(made.layers, "layer")) : "",
                           counted(made.heads, "KV head"), made.head_size, to.name);
  std::cout << (made.kept_pool
                    ? "pool       kept: each token has the block and slot, or the slot number, of the input\n"
                    : "pool       new: the tokens of each sequence are packed, other slots are 0\n");
  if (made.made_scales_linear) {
    std::cout << fmt::format("scales     linear: pages of {} hold no whole runs of the order of the input\n",
                             counted(made.page_size, "token"));
  }
  return kExitFine;
}

}  // namespace

void add_convert(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert =
      app.add_subcommand("convert", "Move a cache from the layout of one engine to that of another, byte for byte");
  convert->add_option("FILE", command->file, "Tensors in the first layout (.safetensors, .npz)")->required();
  add_layout_name(*convert, "--from", command->from.layout,
                  "Layout of the file, or a file that describes it [default: as the file's manifest states]");
  add_axes(*convert, command->from, "");
  add_layout_name(*convert, "--to", command->to, "Layout to write, or a file that describes it")->required();
  convert->add_option("--out", command->out, "File to write (.safetensors, .npz)")
      ->required()
      ->type_name("FILE")
      ->check(writes_file());
  convert->add_option("--page-size", command->page_size,
                      "Tokens of a page of the result, or positions of a cache without a table [default: the file's]");
  convert
      ->add_option("--layer", command->from.layer,
                   "Layer to convert [default: all; the manifest's, or 0, if the result has no layers]")
      ->check(at_least(0));
  add_layout_sizes(*convert, command->from, "");
  add_examples(*convert, {"kvscope golden apps/scenarios/first_light.json --out golden.safetensors",
                          "kvscope convert golden.safetensors --to flashinfer --out flashinfer.safetensors"});
  convert->callback([command, &chosen] { chosen = [command] { return run_convert(*command); }; });
}

}  // namespace kvscope::apps
