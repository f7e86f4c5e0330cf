// Whether a golden and a candidate can be compared, and which of their tensors bit for bit.
#pragma once

#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::golden {

// The tensor of that name; nullptr when the bundle has none.
[[nodiscard]] const Tensor* find_tensor(const Bundle& bundle, const std::string& tensor_name);

// Names of tensors that must be equal bit for bit: the manifest's, the caller's, and all of a golden without an output.
[[nodiscard]] std::vector<std::string> exact_names(const Bundle& golden, const CompareOptions& options);

// InputError with all reasons why the two cannot be compared. Adds the golden's conventions to `result`, and a note for
// a candidate that states none.
void check_comparable(const Bundle& golden, const Bundle& candidate, const CompareOptions& options,
                      const std::vector<std::string>& exact, CompareResult& result);

}  // namespace kvscope::golden
