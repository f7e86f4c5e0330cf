// paged_decode: grid of paged_decode_* {kv_heads * row_tiles, splits, batch}, of paged_decode_combine_* {ceil(batch *
// query_heads / 4), 1, 1}. Both take the same struct.
#pragma once

#include "gpu/kernels/common/decode_params.h"

namespace kvscope::gpu {

using PagedDecodeParams = DecodeParams;

}  // namespace kvscope::gpu
