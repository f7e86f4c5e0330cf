// Lane groups, the lanes of a warp that execute together: which one runs, how one splits, where two merge.
//
//   @%p bra ELSE;    lanes 0-7 taken      lane groups: {pc 1, lanes 8-31} {pc 3, lanes 0-7}     the lower pc runs
//   ... bra JOIN;                         {pc 5, 8-31} has passed pc 3: {pc 3, 0-7} runs
//   ELSE: ...                             it reaches pc 5: they merge to {pc 5, lanes 0-31}
//   JOIN:
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::size_t kMaxLaneGroups = kLanes + 1;

[[nodiscard]] inline LaneMask live_lanes(const Warp& warp) {
  return ~warp.exited;
}
[[nodiscard]] inline std::byte* registers_of(Warp& warp, const LaneGroup& lane_group) {
  return warp.activations[static_cast<std::size_t>(lane_group.activation)].registers.data();
}
[[nodiscard]] inline Exec exec_of(Launch& launch, Cta& cta, Warp& warp, LaneGroup& lane_group) {
  return {launch, cta, warp, lane_group, registers_of(warp, lane_group)};
}

// Moves `lanes` from the lane group to a new, ready one at `pc`. The original must keep at least one lane.
LaneGroup& split_off(Exec& exec, LaneMask lanes, std::int32_t pc);

// Sets Warp::current to the lane group that runs next, after merging all others at the same place into it. Returns its
// limit: the pc at which another lane group must be considered. -1: none is ready.
std::int32_t choose_lane_group(Launch& launch, Cta& cta, Warp& warp);
// The limit of a lane group that has jumped.
[[nodiscard]] std::int32_t limit_of(const Warp& warp, const LaneGroup& lane_group);

[[nodiscard]] bool has_ready(const Warp& warp);
[[nodiscard]] bool has_ready(const Cta& cta);
// True if no lane is left.
[[nodiscard]] inline bool has_ended(const Warp& warp) {
  return warp.exited == kAllLanes;
}

}  // namespace kvscope::ptx
