// The boxes of a tensor copy: one, or four of one row each (gather4); and each box as copies of one row.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::size_t kGatherRows = 4;

struct BoxPiece {
  Coordinates at;
  std::int64_t shared = 0;  // offset in the window
};
struct BoxPieces {
  std::array<BoxPiece, kGatherRows> all{};
  std::size_t count = 0;
  [[nodiscard]] const BoxPiece* begin() const { return all.data(); }
  [[nodiscard]] const BoxPiece* end() const { return all.data() + count; }
};
// Row i of a gather is i pitches after the first in shared memory, as in a box of four rows.
[[nodiscard]] BoxPieces pieces_of(const PendingOp& p);

// The copy as copies of one row each, with the tensor coordinates and the shared address of that row. The copy is
// returned whole if a row would have a coordinate past 2^31.
[[nodiscard]] std::vector<PendingOp> rows_of(const PendingOp& whole);

}  // namespace kvscope::ptx
