// continuous_decode: paged_decode for a cache with one block a sequence. k and v have table_stride 1 and page_size =
// the longest sequence there may be, of any length: no tile can lie across two pages.
#pragma once

#include "gpu/kernels/common/decode_params.h"

namespace kvscope::gpu {

using ContinuousDecodeParams = DecodeParams;

}  // namespace kvscope::gpu
