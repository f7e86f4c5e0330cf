// The schedule: which lane group of a warp, warp of a CTA and CTA of a grid runs next and how long, and when engines
// run.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kTurn = 4096;  // warp instructions of a warp's turn; also backward branches of a
                                             // lane group before the others run
inline constexpr std::int64_t kPollingSteps = 100'000;  // of a CTA without an event: it polls, and is suspended

// Runs at most `instructions` more and returns how many it ran. Changes the launch's status when the launch ends.
std::uint64_t run(Launch& launch, std::uint64_t instructions);

// --- used by the handlers of barriers, copies and control -----------------------------------------------------------

// Makes the lane group ready again, at its instruction or after it.
void wake(Launch& launch, Cta& cta, Warp& warp, LaneGroup& lane_group);
// Wakes all lane groups of the CTA that wait for this kind and object.
void wake_all(Launch& launch, Cta& cta, WaitKind kind, std::uint64_t object);
// Records a change that other threads can observe (a store or atomic that changed a value, a barrier's state, an exit):
// polling loops may then make progress. Called for instructions and for engines.
inline void event(Launch& launch, Cta& cta) {
  ++cta.events;
  ++launch.events;
}
inline void event(Exec& exec) {
  event(exec.launch, exec.cta);
  exec.lane_group.backward = 0;
}
// A branch: the lanes `taken` continue at `pc`, the rest of the lane group at the next op.
void branch(Exec& exec, LaneMask taken, std::int32_t pc);
// Lanes exit the kernel.
Flow exit_lanes(Exec& exec, LaneMask lanes);
// Adds a report about the running op. Returns Flow::stopped if it ends the launch, otherwise Flow::next. A report
// without parties gets the lane group as its party. A trap, a failed assertion, an unsupported instruction and a stack
// overflow always end the launch.
Flow report(Exec& exec, Report report);
// The same without a lane group. Returns false if the launch ends.
bool add_report(Launch& launch, const Cta& cta, Report report);
// "warp 1 lanes 0000ffff", or "thread 40 (warp 1 lane 8)", at an op.
[[nodiscard]] ReportParty lanes_party(const Launch& launch, const Warp& warp, LaneMask lanes, std::int32_t pc,
                                      std::string_view action);

}  // namespace kvscope::ptx
