// paged_decode: the grid of paged_decode_* is {kv_heads * row_tiles, splits, batch}, that of paged_decode_combine_*
// {ceil(batch * query_heads / 4), 1, 1}. Both have the same parameters.
#pragma once

#include "gpu/kernels/common/decode_params.h"

namespace kvscope::gpu {

using PagedDecodeParams = DecodeParams;

}  // namespace kvscope::gpu
