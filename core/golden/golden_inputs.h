// The inputs that a golden bundle was computed from, found again for a diagnosis.
//
// `kvscope golden --input` writes into the manifest which file it read and every option that decides what its tensors
// mean; a scenario's golden holds its inputs itself. Example of the manifest's member:
//   "inputs": {"file": "inputs.npz", "layer": 0, "cache_dtype": "bf16", "value_size": 512, "ignore": ["workspace"]}
// Options that were not given are left out. Masks, scale and bases are in "conventions" (golden_bundle.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/golden/layouts.h"
#include "core/golden/tensor.h"

namespace kvscope::golden {

[[nodiscard]] json::Value inputs_manifest(const LayoutOptions& options, std::string_view file);

// Whether the golden holds its inputs (a scenario's), and else the file that its manifest names.
[[nodiscard]] bool holds_inputs(const Bundle& golden);
[[nodiscard]] std::optional<std::string> inputs_file(const Bundle& golden);

// The options with which prepare_problem gives the golden's problem again: layout, types and every convention.
// InputError naming `source` when the manifest does not state them: the golden was made by another program.
[[nodiscard]] LayoutOptions layout_options_of(const Bundle& golden, std::string_view source);

}  // namespace kvscope::golden
