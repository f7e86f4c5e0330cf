// The lanes of a warp that go on together: which lane group runs, how one splits, where two become one again.
//
//   @%p bra ELSE;    lanes 0-7 taken      lane groups: {pc 1, lanes 8-31} {pc 3, lanes 0-7}     the lower pc runs
//   ... bra JOIN;                         {pc 5, 8-31} passes pc 3: {pc 3, 0-7} runs
//   ELSE: ...                             it reaches pc 5: both are {pc 5, lanes 0-31}
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

// Takes `lanes` off the lane group and makes a ready one of them at `pc`. The lane group must keep at least one.
LaneGroup& split_off(Exec& exec, LaneMask lanes, std::int32_t pc);

// Sets Warp::current to the lane group that runs next, with all that wait at its place merged into it, and returns its
// limit: the pc from which on another has to be asked for. -1: none is ready.
std::int32_t choose_lane_group(Launch& launch, Cta& cta, Warp& warp);
// The same limit for a lane group that has jumped.
[[nodiscard]] std::int32_t limit_of(const Warp& warp, const LaneGroup& lane_group);

[[nodiscard]] bool has_ready(const Warp& warp);
[[nodiscard]] bool has_ready(const Cta& cta);
// No lane is left.
[[nodiscard]] inline bool has_ended(const Warp& warp) {
  return warp.exited == kAllLanes;
}

}  // namespace kvscope::ptx
