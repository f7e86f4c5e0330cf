// continuous_decode: paged_decode for a cache with one block per sequence. k and v have table_stride 1, and page_size
// is the maximum length of a sequence, of any size: no tile can span two pages.
#pragma once

#include "gpu/kernels/common/decode_params.h"

namespace kvscope::gpu {

using ContinuousDecodeParams = DecodeParams;

}  // namespace kvscope::gpu
