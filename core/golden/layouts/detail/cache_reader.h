// Reads the cache of an input by a layout's description: chooses the form that the input has, checks every tensor, and
// sets K and V of the problem. Tensors are used where they are, if the elements of a head are contiguous; other caches
// are copied: in their own type, or, if a row has several types or one that attention does not read (i8, e2m1, packed
// rows), as f32, which holds all their values exactly.
#pragma once

#include <vector>

#include "core/golden/layouts/detail/cache_view.h"
#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct CacheReading {
  CacheForm form;
  std::vector<const Tensor*> tensors;  // of the form; null: missing
  std::vector<DType> stored;           // the type of the elements
  CacheSizes sizes;
  std::int64_t layer = 0;  // options.layer
  CacheView view;          // of this layer; only without faults
};

// Reports faults to the reader, and sets its sizes.
[[nodiscard]] CacheReading read_cache(LayoutReader& reader, const LayoutDescription& layout);

// Whether the shapes of the tensors do not decide which form of the layout they have: [2, 2, P, H, D] of vllm.
[[nodiscard]] bool fits_several_forms(LayoutReader& reader, const LayoutDescription& layout);

// Sets problem.k and problem.v without their tables. `by_token`: the table has an entry for each token, whatever the
// pages of the cache.
void set_cache_rows(const CacheReading& cache, bool fnuz, bool by_token, PreparedProblem& prepared);

}  // namespace kvscope::golden
