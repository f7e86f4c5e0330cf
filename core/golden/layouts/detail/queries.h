// The queries of an input in the orders that engines give them, their offsets, and the values per query head.
#pragma once

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// q [B, Hq, queries, D] as [B, queries, Hq, D], and back. Precondition: four axes, a type of whole bytes.
[[nodiscard]] Tensor exchange_middle_axes(const Tensor& q);

// Sets the queries, slopes and sinks of the problem. The pages of the reader must be set. Reports faults to the reader.
void read_queries(LayoutReader& reader, const LayoutDescription& layout, PreparedProblem& prepared);

}  // namespace kvscope::golden
