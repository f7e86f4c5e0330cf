// Rows of a paged pool in a picture: the page that holds an expected row, and the one that holds a student's row.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/labs/picture.h"

namespace kvscope::labs {

// A block holds k_or_v * layers pages of page_size rows each.
struct PoolShape {
  std::int64_t page_size = 0, layers = 0, k_or_v = 2, blocks = 0;
  // Without one, the pages of a block are counted from this layer's K.
  std::optional<std::int64_t> layer = std::nullopt;
};

// Rows are counted from the first row of this layer's K. Each line of the grid is one page, at most 12 of its rows; a
// row outside the pool is a line of one cell. `wrong` is omitted where there is none.
//
//   block 3, K of this layer   [ 72 ][ 73 ][ 74 ][ 75 ]    74 is expected
//   block 0, page 1            [ 12 ][ 13 ][ 14 ][ 15 ]    14 is the student's
[[nodiscard]] PictureGrid pool_grid(const PoolShape& shape, std::int64_t expected, std::optional<std::int64_t> wrong);

}  // namespace kvscope::labs
