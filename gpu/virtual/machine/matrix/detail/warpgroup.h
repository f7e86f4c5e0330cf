// Execution of warpgroup instructions (wgmma, setmaxnreg). Warps w .. w + 3, w a multiple of four, must reach the same
// instruction with all their lanes, and continue when all four have reached it.
//
//   warp 0   wgmma.mma_async  waits          warp 3   bar.sync   never arrives: DIVERGED_WARPGROUP, at the deadlock
//   warp 1   wgmma.fence      a different instruction: DIVERGED_WARPGROUP immediately, with both places
//   warp 2   has exited:                     DIVERGED_WARPGROUP immediately
//
// After the report, each warp of the warpgroup continues by itself, so divergence is reported once.
// Source: PTX ISA, ".aligned" of wgmma.mma_async and setmaxnreg: all threads of the warpgroup execute the same one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

inline constexpr int kGroupWarps = 4;

// An operand that must be equal in all 128 threads.
struct GroupValue {
  std::string_view what;  // "descriptor of A"
  std::uint32_t reg = 0;
  int bytes = 8;  // per lane; 0: a predicate
};

// std::nullopt: the warp continues with its part of the instruction. Values that differ are reported, and each warp
// then uses its own.
[[nodiscard]] std::optional<Flow> meet_warpgroup(Exec& exec, const Op& op, LaneMask lanes,
                                                 std::span<const GroupValue> values = {});

// For the first warp that continues: all four warps at the instruction, ascending, each with its own registers. Of a
// warpgroup that has diverged, this warp alone.
[[nodiscard]] std::vector<Exec> met_warps(Exec& exec);

[[nodiscard]] inline Warpgroup& warpgroup_of(Exec& exec) {
  auto& all = exec.cta.warpgroups;
  if (all.empty()) all.resize(exec.cta.warps.size() / kGroupWarps + 1);
  return all[static_cast<std::size_t>(exec.warp.index / kGroupWarps)];
}

// setmaxnreg: the register count has no effect here, but the arguments are checked.
Flow run_setmaxnreg(Exec& exec, const Op& op, LaneMask lanes);

}  // namespace kvscope::ptx
