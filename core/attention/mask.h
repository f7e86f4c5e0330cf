// The keys that a query sees, as one interval [first, last). Every mask here is an interval: masked keys are not
// visited.
//
//   position of query i of Q, T keys:   bottom_right  T - Q + i      top_left  i
//
//   none             [0, T)
//   causal           [0, position]
//   sliding_window   [position - left, position + right]      left or right -1: no limit on that side
//   chunked          [position / chunk * chunk, position]
//
// each clipped to [0, T). Example, causal, bottom_right: 2 queries x 5 keys see [0, 4) and [0, 5); 5 queries x 2 keys
// see nothing, nothing, nothing, [0, 1) and [0, 2). Some engines specify a window by its number of tokens w: left =
// w - 1, right = 0. Precondition: the options have passed check_problem (problem_checks.h).
#pragma once

#include <cstdint>

#include "core/attention/problem.h"

namespace kvscope::attention {

// Keys [first, last) of one sequence; empty is always {0, 0}.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t size() const { return last - first; }
  [[nodiscard]] bool empty() const { return first == last; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// The position of query `query` of `queries` among the keys; negative before the first key. ALiBi measures distances
// from here.
[[nodiscard]] std::int64_t query_position(const Options& options, std::int64_t query, std::int64_t queries,
                                          std::int64_t keys);

[[nodiscard]] KeyRange visible_keys(const Options& options, std::int64_t query, std::int64_t queries,
                                    std::int64_t keys);

// From the first key that any of the queries [first_query, last_query) sees to the last one:
// the keys that must be loaded for them.
[[nodiscard]] KeyRange visible_keys_of(const Options& options, std::int64_t first_query, std::int64_t last_query,
                                       std::int64_t queries, std::int64_t keys);

}  // namespace kvscope::attention
