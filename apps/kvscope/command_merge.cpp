// kvscope merge A B ... --out C: merges partial attention states over disjoint keys, as split-K kernels do at the end.
#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "core/attention/merge.h"
#include "core/base/errors.h"
#include "core/base/report.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::apps {
namespace {

struct MergeCommand {
  std::vector<std::string> parts;
  std::string out;
  std::optional<std::string> base;  // default: the base in the parts' manifests, else natural
  std::string empty = "-inf";
};

// The base of all parts. A part that states another base is rejected: its merged result would be wrong but plausible.
std::string common_base(const MergeCommand& command, const std::vector<golden::Bundle>& bundles) {
  std::string base = command.base.value_or("");
  std::string said_by = "--lse-base";
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    const std::optional<attention::LseBase> read = golden::stated_attention(bundles[i], command.parts[i]).lse_base;
    if (!read) continue;
    const std::string stated = *read == attention::LseBase::two ? "two" : "natural";
    if (base.empty()) {
      base = stated;
      said_by = command.parts[i];
    } else if (stated != base) {
      faults.push_back({command.parts[i], fmt::format("states lse base {}, but {} states {}", stated, said_by, base)});
    }
  }
  if (!faults.empty()) throw InputError("merge", faults);
  return base.empty() ? "natural" : base;
}

// Tensors `o` [query, query_head, value_dim] and `lse` [query, query_head] of any float type.
attention::PartialState read_state(const std::string& path, const golden::Bundle& bundle) {
  std::vector<Fault> faults;
  const auto tensor_of_rank = [&](const char* name, std::size_t rank) -> const golden::Tensor* {
    const auto found = bundle.tensors.find(name);
    if (found == bundle.tensors.end()) {
      faults.push_back({name, "is missing: a partial state has o [query, head, dim] and lse [query, head]"});
    } else if (found->second.shape.size() != rank || !is_float(found->second.dtype)) {
      faults.push_back({name, fmt::format("is {}, not a float tensor of {} axes", describe(found->second), rank)});
    } else {
      return &found->second;
    }
    return nullptr;
  };
  const golden::Tensor* o = tensor_of_rank("o", 3);
  const golden::Tensor* lse = tensor_of_rank("lse", 2);
  if (o != nullptr && lse != nullptr && (o->shape[0] != lse->shape[0] || o->shape[1] != lse->shape[1])) {
    faults.push_back(
        {"lse", fmt::format("is {}, but o is {}: the first two axes must be equal", describe(*lse), describe(*o))});
  }
  if (!faults.empty()) throw InputError(path, faults);
  attention::PartialState state;
  state.o =
      xt::xtensor<double, 3>::from_shape({static_cast<std::size_t>(o->shape[0]), static_cast<std::size_t>(o->shape[1]),
                                          static_cast<std::size_t>(o->shape[2])});
  state.lse = xt::xtensor<double, 2>::from_shape(
      {static_cast<std::size_t>(o->shape[0]), static_cast<std::size_t>(o->shape[1])});
  std::ranges::copy(golden::as_doubles(*o), state.o.data());
  std::ranges::copy(golden::as_doubles(*lse), state.lse.data());
  return state;
}

// The errors that each part states (kvscope golden --outputs-only --accuracy fast), 0 of a part that states none.
// Empty: no part states any.
std::vector<attention::PartialErrors> read_errors(const std::vector<std::string>& paths,
                                                  const std::vector<golden::Bundle>& bundles,
                                                  const std::vector<attention::PartialState>& states) {
  bool any = false;
  std::vector<attention::PartialErrors> errors;
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    const auto& tensors = bundles[i].tensors;
    std::vector<Fault> faults;
    if (tensors.contains("golden_error")) {
      faults.push_back({"golden_error",
                        "states the errors of a golden by their sources, which merge does not read: make "
                        "the part with --outputs-only, or with --accuracy strict"});
    }
    attention::PartialErrors own{xt::zeros<double>(states[i].lse.shape()), xt::zeros<double>(states[i].lse.shape())};
    for (const auto& [name, values] : {std::pair{"o_error", &own.o}, std::pair{"lse_error", &own.lse}}) {
      const auto found = tensors.find(name);
      if (found == tensors.end()) continue;
      any = true;
      const std::vector<std::int64_t> shape(states[i].lse.shape().begin(), states[i].lse.shape().end());
      if (found->second.shape != shape || !is_float(found->second.dtype)) {
        faults.push_back({name, fmt::format("is {}, but lse is [{}]: an error of each row", describe(found->second),
                                            fmt::join(shape, ", "))});
      } else {
        std::ranges::copy(golden::as_doubles(found->second), values->data());
      }
    }
    if (tensors.contains("o_error") != tensors.contains("lse_error")) {
      faults.push_back({tensors.contains("o_error") ? "lse_error" : "o_error", "is missing: o and lse have errors"});
    }
    if (!faults.empty()) throw InputError(paths[i], faults);
    errors.push_back(std::move(own));
  }
  if (!any) errors.clear();
  return errors;
}

int run(const MergeCommand& command) {
  golden::check_bundle_name(command.out);
  std::vector<golden::Bundle> bundles;
  for (const std::string& part : command.parts) bundles.push_back(open_bundle(part));
  const std::string base = common_base(command, bundles);
  std::vector<attention::PartialState> states;
  for (std::size_t i = 0; i < bundles.size(); ++i) states.push_back(read_state(command.parts[i], bundles[i]));
  for (std::size_t i = 1; i < states.size(); ++i) {
    if (states[i].o.shape() == states[0].o.shape()) continue;
    const auto text = [](const auto& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); };
    throw InputError(
        command.parts[i], "o",
        fmt::format("has shape {}, but {} has {}: parts of one attention have the same queries, heads and dims",
                    text(states[i].o.shape()), command.parts[0], text(states[0].o.shape())));
  }
  const std::vector<attention::PartialErrors> errors = read_errors(command.parts, bundles, states);
  const auto lse_base = base == "two" ? attention::LseBase::two : attention::LseBase::natural;
  const attention::PartialState merged = attention::merge(
      states, lse_base,
      command.empty == "+inf" ? attention::EmptyRow::plus_infinity : attention::EmptyRow::minus_infinity);
  golden::Bundle bundle;
  const auto extent = [&](std::size_t axis) { return static_cast<std::int64_t>(merged.o.shape(axis)); };
  bundle.tensors["o"] =
      golden::tensor_of<double>({extent(0), extent(1), extent(2)}, std::span(merged.o.data(), merged.o.size()));
  bundle.tensors["lse"] =
      golden::tensor_of<double>({extent(0), extent(1)}, std::span(merged.lse.data(), merged.lse.size()));
  std::string accuracy;
  if (!errors.empty()) {
    const attention::PartialErrors of_merged = attention::merge_errors(states, errors, merged, lse_base);
    for (const auto& [name, values] : {std::pair{"o_error", &of_merged.o}, std::pair{"lse_error", &of_merged.lse}}) {
      bundle.tensors[name] =
          golden::tensor_of<double>({extent(0), extent(1)}, std::span(values->data(), values->size()));
    }
    const auto largest = [](const auto& values) {
      return values.size() == 0 ? 0.0 : *std::ranges::max_element(values);
    };
    accuracy = fmt::format(
        "accuracy   o within {:.2g}, lse within {:.2g}: o_error and lse_error have the errors of each "
        "row\n",
        largest(std::span(of_merged.o.data(), of_merged.o.size())),
        largest(std::span(of_merged.lse.data(), of_merged.lse.size())));
    bundle.manifest.set("accuracy", "fast");
  }
  bundle.manifest.set("producer", "kvscope " KVSCOPE_VERSION);
  json::Value conventions;
  conventions.set("lse_base", base);
  conventions.set("empty_row", command.empty);
  bundle.manifest.set("conventions", std::move(conventions));
  golden::save_bundle(command.out, bundle);
  std::cout << fmt::format("merged {} of {}, {}, {} (lse base {}) into {}\n",
                           counted(std::ssize(states), "partial state"), counted(extent(0), "query", "queries"),
                           counted(extent(1), "head"), counted(extent(2), "dim"), base, command.out)
            << accuracy;
  return kExitFine;
}

}  // namespace

void add_merge(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<MergeCommand>();
  CLI::App* merge_app = app.add_subcommand(
      "merge", "Merge partial attention outputs over disjoint keys, as the last step of a split-K kernel does");
  merge_app
      ->add_option("PART", command->parts,
                   "Two or more bundles (.safetensors, .npz), each with o [query, head, dim] and lse [query, head]")
      ->required()
      ->expected(2, 1024);
  merge_app->add_option("--out", command->out, "Bundle to write (.safetensors, .npz)")
      ->required()
      ->type_name("FILE")
      ->check(writes_file());
  merge_app
      ->add_option("--lse-base", command->base,
                   "Base of the log-sum-exps [default: the base that the parts state, else natural]")
      ->check(CLI::IsMember(std::vector<std::string>{"natural", "two"}));
  merge_app->add_option("--empty-lse", command->empty, "Log-sum-exp of a query that sees no key")
      ->check(CLI::IsMember(std::vector<std::string>{"-inf", "+inf"}))
      ->capture_default_str();
  add_examples(*merge_app, {"kvscope golden apps/scenarios/first_light.json --out part.safetensors",
                            "kvscope merge part.safetensors part.safetensors --out merged.safetensors"});
  merge_app->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
