// The largest |x| among elements that are read where they are. Without the sign, the bits of floating-point numbers
// have the order of the numbers, and those of infinities and NaNs come last.
//
// Example: bf16 1.0 and -2.0 are 3f80 and c000, without the sign 3f80 and 4000: the largest is 4000, 2.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"

namespace kvscope::attention {

// The larger of `largest` and of the bits without sign in these rows of `count` elements of a floating-point type.
// Start with 0. If an element is not finite, the result is the bits of a number that is not, too.
[[nodiscard]] std::int64_t larger_of_rows(std::int64_t largest, DType dtype, std::span<const std::byte* const> rows,
                                          std::int64_t count);

}  // namespace kvscope::attention
