// kvscope lint FILE: are the index and mask tensors of a paged cache legal?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
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
#include "core/golden/golden_inputs.h"
#include "core/golden/lint/lint.h"

namespace kvscope::apps {
namespace {

struct LintCommand {
  std::string file;
  LayoutChoice layout;
  std::vector<std::int64_t> cache_shape, box;
  std::string cache_dtype;
  golden::LintOptions options;
  bool strict = false, all = false, json = false;
};

int run(const LintCommand& command) {
  golden::LintOptions options = command.options;
  LayoutChoice choice = command.layout;
  if (!command.cache_dtype.empty()) {
    // Bytes of AMD's e4m3fnuz are checked as those of e4m3: only their values differ.
    options.cache_type = golden::cache_type_from_name(command.cache_dtype)->dtype;
    if (command.cache_shape.empty()) choice.cache_dtype = command.cache_dtype;
  }
  const auto given = given_layout(choice, "--layout");
  golden::Bundle bundle = open_bundle(command.file);
  options.layout = layout_of_input(bundle, choice, given, command.file, "--layout");
  options.cache_shape = command.cache_shape;
  if (!command.box.empty()) {
    if (command.box.size() != 2) throw InputError("command line", "--box", "give two numbers: rows,elements");
    options.box = {command.box[0], command.box[1]};
    options.tma = true;
  }
  const golden::LintReport report = golden::lint(std::move(bundle), options);
  if (command.json) {
    std::cout << json::dump(golden::json_report(report, command.file)) << "\n";
  } else {
    std::cout << golden::text_report(report, command.file, command.all ? 0 : 8);
    // Faults everywhere are those of a wrong --layout.
    if (report.faults() > 0 && !command.layout.layout.empty()) {
      const std::string others = other_layouts(open_bundle(command.file), command.layout, command.file, "--layout");
      if (!others.empty()) std::cout << "note: " << others << "\n";
    }
  }
  const bool failed = report.faults() > 0 || (command.strict && report.warnings() > 0);
  return failed ? kExitCheckFailed : kExitFine;
}

}  // namespace

void add_lint(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<LintCommand>();
  CLI::App* lint =
      app.add_subcommand("lint", "Check the index and mask tensors of a paged cache before a kernel reads them");
  lint->add_option("FILE", command->file, "Tensors of a cache (.safetensors, .npz), as for kvscope golden --input")
      ->required();
  add_layout_name(*lint, "--layout", command->layout.layout,
                  "Layout of the tensors, or a .json file [default: as the file's manifest states]");
  add_axes(*lint, command->layout, "");
  lint->add_option("--layer", command->layout.layer,
                   "Layer, from 0, of a cache of several [default: the manifest's, or 0]")
      ->check(at_least(0));
  add_numbers<std::int64_t>(
      *lint, "--cache-shape", command->cache_shape,
      "For a file without cache tensors: the shape that they have, such as 4096,16,8,128, in the order of the "
      "layout's axes",
      {.least = 0})
      ->type_name("N,N,...");
  lint->add_option("--cache-dtype", command->cache_dtype,
                   "Element type of the cache, if the tensors hold bit patterns or are missing [default: the tensor's "
                   "own; bf16 with --cache-shape]")
      ->check(CLI::IsMember(std::vector<std::string>{"f32", "f16", "bf16", "e4m3", "e5m2", "e4m3fnuz", "e2m1", "i8"}));
  lint->add_option("--vector-read", command->options.vector_read,
                   "Also check that a kernel can read the table in vectors of that many entries [default: 1]");
  lint->add_flag("--causal", command->options.causal,
                 "The kernel also applies a causal mask: report keys of a mask tensor that it hides");
  lint->add_flag("--tma", command->options.tma, "Also check the rules of a TMA tensor map of K and V");
  add_numbers<std::int64_t>(
      *lint, "--box", command->box,
      "Rows and elements of the box that one TMA copy moves, such as 16,64; implies --tma [default: a page of 128 "
      "bytes]")
      ->type_name("ROWS,ELEMENTS");
  lint->add_option("--ignore", command->layout.ignore, "Tensor of the file to leave out; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  lint->add_flag("--strict", command->strict, "Exit with 1 for warnings too");
  lint->add_flag("--all", command->all, "Print all findings of a rule, not only the first 8");
  lint->add_flag("--json", command->json, "Print the report as JSON, with all findings");
  add_examples(*lint, {"kvscope golden apps/scenarios/first_light.json --inputs-only --out inputs.safetensors",
                       "kvscope lint inputs.safetensors --vector-read 8 --tma"});
  lint->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
