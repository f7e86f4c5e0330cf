#include "core/staging/lds/transposing_read.h"

#include <cstddef>

namespace kvscope {

LanePieces tr16_read(const LanePieces& supplied) {
  LanePieces result;
  for (std::size_t lane = 0; lane < 64; ++lane) {
    const std::size_t group = lane / 16 * 16, j = lane % 16;
    for (std::size_t n = 0; n < 4; ++n) {
      const auto& source = supplied[group + 4 * n + j / 4];
      result[lane][2 * n] = source[2 * (j % 4)];
      result[lane][2 * n + 1] = source[2 * (j % 4) + 1];
    }
  }
  return result;
}

LanePieces tr8_read(const LanePieces& supplied, Tr8Order order) {
  LanePieces result;
  for (std::size_t lane = 0; lane < 64; ++lane) {
    const std::size_t group = lane / 16 * 16;
    const auto column = static_cast<std::size_t>(tr8_column(static_cast<int>(lane % 16), order));
    for (std::size_t n = 0; n < 8; ++n) result[lane][n] = supplied[group + 2 * n + column / 8][column % 8];
  }
  return result;
}

}  // namespace kvscope
