// Who runs next, and for how long: lane groups of a warp, warps of a CTA, CTAs of a grid, engines when nobody else can.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kTurn = 4096;             // warp instructions of a warp's turn; backward branches of a
                                                        // lane group before others have theirs
inline constexpr std::int64_t kPollingSteps = 100'000;  // of a CTA without an event: it polls, and is suspended

// Runs at most `instructions` more; returns how many it ran. The launch's status is not running any more when it ended.
std::uint64_t run(Launch& launch, std::uint64_t instructions);

// --- for the handlers of barriers, copies and control ---------------------------------------------------------------

// Ready again, at its instruction or behind it.
void wake(Launch& launch, Cta& cta, Warp& warp, LaneGroup& lane_group);
// Wakes every lane group of the CTA that waits for this kind and object.
void wake_all(Launch& launch, Cta& cta, WaitKind kind, std::uint64_t object);
// Something happened that others can see (a store or atomic that changed a value, a barrier's state, an exit): nobody
// is polling in vain. Of an instruction, or of an engine.
inline void event(Launch& launch, Cta& cta) {
  ++cta.events;
  ++launch.events;
}
inline void event(Exec& exec) {
  event(exec.launch, exec.cta);
  exec.lane_group.backward = 0;
}
// Lanes go on at `pc`, the rest of the lane group at the next op (an op that has jumped). A branch.
void branch(Exec& exec, LaneMask taken, std::int32_t pc);
// Lanes leave the kernel.
Flow exit_lanes(Exec& exec, LaneMask lanes);
// Adds a report about the running op; returns Flow::stopped when the launch ends by it, else Flow::next. Without
// parties the lane group becomes one. A trap, a failed assertion, an unsupported instruction and an overflow of the
// stack end every launch.
Flow report(Exec& exec, Report report);
// The same of nobody in particular. False: the launch ends.
bool add_report(Launch& launch, const Cta& cta, Report report);
// "warp 1 lanes 0000ffff", or "thread 40 (warp 1 lane 8)", at an op.
[[nodiscard]] ReportParty lanes_party(const Launch& launch, const Warp& warp, LaneMask lanes, std::int32_t pc,
                                      std::string_view action);

}  // namespace kvscope::ptx
