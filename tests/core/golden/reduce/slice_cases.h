// What the properties of slices share: parts to draw, and the comparison with the whole problem.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/result.h"
#include "core/golden/reduce/slice.h"
#include "tests/property.h"

namespace kvscope::golden {

// Some of the items in their order, at least one.
template <class T>
std::vector<T> any_part(const std::vector<T>& items) {
  std::vector<T> part;
  while (part.empty()) {
    for (const T& item : items) {
      if (prop::in_range(0, 2) == 0) part.push_back(item);
    }
  }
  return part;
}

// Asserts that `part`, of the slice, has the bits of the same rows and heads of `whole`. Returns the number of rows.
inline std::int64_t compare_bits(const Slicer& slicer, const ProblemSlice& slice, const attention::Result& whole,
                                 const attention::Result& part) {
  const auto group = static_cast<std::int64_t>(slicer.whole().group_heads.size());
  std::int64_t row = 0;
  for (const SequenceSlice& sequence : slice.sequences) {
    for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query, ++row) {
      std::int64_t head = 0;
      for (const std::int64_t kv_head : slice.kv_heads) {
        for (const std::int64_t in_group : slice.group_heads) {
          const std::int64_t from_row = slicer.problem().problem.first_query(sequence.index) + query;
          const std::int64_t from_head = kv_head * group + in_group;
          RC_ASSERT(part.lse(row, head) == whole.lse(from_row, from_head));
          for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(whole.o.shape(2)); ++dim) {
            RC_ASSERT(part.o(row, head, dim) == whole.o(from_row, from_head, dim));
          }
          ++head;
        }
      }
    }
  }
  return row;
}

}  // namespace kvscope::golden
