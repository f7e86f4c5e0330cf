// Diagnosis for `verify` and `diagnose`: finds the inputs of a golden bundle and runs the hypotheses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::apps {

struct GoldenAndCandidate {
  golden::Bundle golden, candidate;
  std::vector<std::string> notes;  // "candidate 'out' is compared as 'o'"
};

// Both files are read before faults are reported: one InputError names the faults of both. The candidate's output has
// its names of core/golden/verdict/output_names.h.
[[nodiscard]] GoldenAndCandidate load_both(const std::string& golden, const std::string& candidate);

// The file with the golden's inputs: `given`, else the one that its manifest names, as it is written there or in the
// golden's folder; an empty text when the golden holds its inputs. Nothing when there is no such file.
[[nodiscard]] std::optional<std::string> find_inputs(const golden::Bundle& golden, const std::string& golden_path,
                                                     const std::optional<std::string>& given);
// The same. InputError with the name of a file that is missing.
[[nodiscard]] std::string required_inputs(const golden::Bundle& golden, const std::string& golden_path,
                                          const std::optional<std::string>& given);

// The inputs of a golden and the problem that they are. `golden` must outlive it.
class GoldenInputs {
 public:
  // `inputs` is find_inputs' answer. Throws what golden::load_bundle and golden::prepare_problem throw.
  GoldenInputs(const golden::Bundle& golden, const std::string& golden_path, const std::string& inputs);
  GoldenInputs(const GoldenInputs&) = delete;
  GoldenInputs& operator=(const GoldenInputs&) = delete;

  [[nodiscard]] const attention::Problem& problem() const { return problem_; }
  // `failing_groups`: of the comparison. Throws what golden::diagnose throws.
  [[nodiscard]] golden::Diagnosis diagnose(const golden::Bundle& candidate, const golden::StatedRounding& rounding,
                                           const std::vector<golden::FailingGroup>& failing_groups) const;

 private:
  const golden::Bundle& golden_;
  std::string inputs_;
  golden::Bundle loaded_;  // empty when the golden holds its inputs
  golden::LayoutOptions options_;
  golden::PreparedProblem prepared_;
  attention::Problem problem_;
};

}  // namespace kvscope::apps
