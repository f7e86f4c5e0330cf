// The blocks of queries whose scores are held together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attention/mask.h"
#include "core/attention/problem.h"
#include "core/attention/problem_checks.h"

namespace kvscope::attention {

inline constexpr std::int64_t kScoresKept = 1 << 20;  // doubles of scores held for one block of queries
inline constexpr std::int64_t kMostQueries = 64;      // of one block

// Calls per_block(sequence, first_query, last_query, origin) for the blocks of queries whose scores are held together;
// `origin` is the first key that any of them sees.
template <class F>
void each_query_block(const Problem& problem, const F& per_block) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t queries = query_count(problem, b);
    const std::int64_t scores_a_query = std::max<std::int64_t>(1, problem.query_heads * needed_keys(problem, b).size());
    const std::int64_t step = std::clamp<std::int64_t>(kScoresKept / scores_a_query, 1, kMostQueries);
    for (std::int64_t first = 0; first < queries; first += step) {
      const std::int64_t last = std::min(first + step, queries);
      per_block(b, first, last, visible_keys_of(problem.options, first, last, queries, problem.keys(b)).first);
    }
  }
}

}  // namespace kvscope::attention
