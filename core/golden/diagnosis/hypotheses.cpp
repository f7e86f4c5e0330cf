#include "core/golden/diagnosis/hypotheses.h"

#include <utility>

#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {

std::vector<Trial> hypotheses(const DiagnosisInput& input) {
  Trials trials(input);
  add_query_masks(trials);  // first: of trials that predict the same, the first is named
  add_scores(trials);
  add_loops(trials);
  add_cache(trials);
  add_table(trials);
  add_staging(trials);
  add_combination(trials);
  add_outputs(trials);
  return std::move(trials.all);
}

}  // namespace kvscope::golden
