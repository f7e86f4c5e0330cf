// The boxes that a tensor copy is made of: one, or four of a row each, and every one of them row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tma/box_plan.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr int kGatherRows = 4;

// What the launch's target leaves no choice of.
[[nodiscard]] BoxSwitches switches_of(const Launch& launch);

struct BoxPiece {
  TmaCoord at;
  std::int64_t shared = 0;  // offset in the window
};
[[nodiscard]] std::vector<BoxPiece> pieces_of(const PendingOp& p, const BoxSwitches& switches);

// The copy as copies of one row each: a row of a box is a box, further on in the tensor and in shared memory. Whole
// when a row of it would have a coordinate past 2^31.
[[nodiscard]] std::vector<PendingOp> rows_of(const PendingOp& whole, const BoxSwitches& switches);

}  // namespace kvscope::ptx
