// A diagnosis from the tensors that a golden was computed from: what `kvscope diagnose` and the Python module run.
//
// The problem alone does not contain what a wrong kernel may read: table entries past a sequence's pages, other layers
// of the pool, entries of the next sequence in one list. They are taken from the prepared problem.
#pragma once

#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// Nothing is owned. `prepared` is prepare_problem's result for the tensors and `options`.
struct InputsOfGolden {
  const LayoutOptions& options;
  const PreparedProblem& prepared;
  std::string name = "inputs";  // of the tensors, in errors
};

// `rounding` and `failing_groups`: as in DiagnosisInput. Throws what diagnose() throws.
[[nodiscard]] Diagnosis diagnose_inputs(const InputsOfGolden& inputs, const Bundle& golden, const Bundle& candidate,
                                        const StatedRounding& rounding,
                                        const std::vector<FailingGroup>& failing_groups);

}  // namespace kvscope::golden
