// The inputs that a golden bundle was computed from, found again for a diagnosis.
//
// `kvscope golden --input` writes into the manifest which file it read and every option that decides what its tensors
// mean; a scenario's golden holds its inputs itself. Example of the manifest's member:
//   "inputs": {"file": "inputs.npz", "layer": 0, "cache_dtype": "bf16", "value_size": 512, "ignore": ["workspace"]}
// Options that were not given are left out. Masks, scale and bases are in "conventions" (golden_bundle.h).
//
// A bundle can also hold inputs without expected values: "holds": "inputs" in its manifest, with the layout and every
// convention, so that `kvscope golden --input FILE` needs no other option. Such a bundle may hold a kernel's output as
// `o` and `lse`; it is read as a candidate, never as a golden.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// Without the member "file" when `file` is empty.
[[nodiscard]] json::Value inputs_manifest(const LayoutOptions& options, std::string_view file);

// Whether the golden holds its inputs (a scenario's), and else the file that its manifest names. InputError naming
// `source` if the name is no text.
[[nodiscard]] bool holds_inputs(const Bundle& golden);
[[nodiscard]] std::optional<std::string> inputs_file(const Bundle& golden, std::string_view source);

// Whether the manifest states the layout, as that of a golden, of a bundle of inputs and of a converted cache does.
[[nodiscard]] bool states_layout(const Bundle& bundle);
// Its name. The caller owes states_layout(bundle). InputError naming `source` if it is no text.
[[nodiscard]] std::string stated_layout(const Bundle& bundle, std::string_view source);
// Whether it states mask, scale and the other conventions too. A cache that was converted from tensors without a
// manifest has none.
[[nodiscard]] bool states_conventions(const Bundle& bundle);

// The options that the manifest states: layout, types and sizes, and the conventions if it has them. The caller owes
// states_layout(bundle). InputError naming `source` with all faults: a layout that the manifest does not describe and
// that is no named one, each member of another type or value than kvscope writes, and each member of "inputs" and
// "conventions" that kvscope does not read.
[[nodiscard]] LayoutOptions stated_options(const Bundle& bundle, std::string_view source);

// What the manifest of an output states about the attention that it is a result of. Unlike a problem's, it may have
// conventions that only the comparison of two bundles reads.
struct StatedAttention {
  attention::Options options;  // the defaults where nothing is stated; no scale
  std::optional<double> scale;
  std::optional<attention::LseBase> lse_base;
  std::optional<std::int64_t> head_size;
  bool sinks = false;
};
// InputError naming `source` with each member of another type or value.
[[nodiscard]] StatedAttention stated_attention(const Bundle& bundle, std::string_view source);

// The options with which prepare_problem gives the golden's problem again: layout, types and every convention.
// InputError naming `source` when the manifest does not state them: the golden was made by another program.
[[nodiscard]] LayoutOptions layout_options_of(const Bundle& golden, std::string_view source);

// Whether the bundle holds inputs without expected values, or the output alone (golden_bundle.h).
[[nodiscard]] bool holds_only_inputs(const Bundle& bundle);
[[nodiscard]] bool holds_only_output(const Bundle& bundle);

// `tensors` with a manifest that states how to read them; tensors of `options.ignore` and expected values are left out.
// `prepared` is prepare_problem's result for the same tensors and options.
[[nodiscard]] Bundle inputs_bundle(const Bundle& tensors, const PreparedProblem& prepared, const LayoutOptions& options,
                                   std::string_view producer);
// A golden bundle that holds its inputs (a scenario's), without its expected values.
[[nodiscard]] Bundle without_answer(Bundle golden);

// A name for the golden of a file of inputs, beside it: "report.npz" -> "report_golden.npz".
[[nodiscard]] std::string golden_name_of(std::string_view inputs_name);

// InputError naming `golden_name` and the commands to run when the bundle holds inputs alone, or the output alone.
void check_has_answer(const Bundle& golden, std::string_view golden_name, std::string_view candidate_name);

}  // namespace kvscope::golden
