// The number of columns of a lookup table as kernels read it, padding included.
#pragma once

#include <cstdint>

#include "core/base/checked.h"

namespace kvscope {

// Columns of a table for `pages` pages: a multiple of 8, pages + 16 to pages + 23, so that a kernel may read 8 or 16
// entries at once from any page on. Example: padded_lut_cols(1) == 24, padded_lut_cols(9) == 32.
[[nodiscard]] constexpr std::int64_t padded_lut_cols(std::int64_t pages) {
  return round_up(pages, 8) + 16;
}

}  // namespace kvscope
