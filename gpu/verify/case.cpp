#include "gpu/verify/case.h"

#include <iterator>
#include <utility>

namespace kvscope::gpu {

bool Verdict::take(const Outcome& outcome) {
  faults.insert(faults.end(), outcome.faults.begin(), outcome.faults.end());
  if (outcome.costs) costs += *outcome.costs;
  return outcome.faults.empty();
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (auto* of :
         {append_tokens_cases, gather_rows_cases, populate_rows_cases, tma_tile_load_cases, gather4_tile_load_cases,
          lds_stage_cases, paged_decode_cases, paged_prefill_cases, mla_decode_cases, continuous_decode_cases}) {
      std::vector<Case> some = of();
      all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return all;
  }();
  return cases;
}

}  // namespace kvscope::gpu
