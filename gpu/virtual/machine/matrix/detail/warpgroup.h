// Four warps that do one thing: wgmma and setmaxnreg are a warpgroup's. Warps w .. w + 3, w a multiple of four, come to
// the same instruction with all their lanes, and go on when all four are there.
//
//   warp 0   wgmma.mma_async  waits          warp 3   bar.sync   never comes: DIVERGED_WARPGROUP, at the deadlock
//   warp 1   wgmma.fence      waits for its own: DIVERGED_WARPGROUP at once, with both places
//   warp 2   has exited:                     DIVERGED_WARPGROUP at once
//
// A group of which that has been said goes on, each of its warps by itself: it is said once.
// Source: PTX ISA, ".aligned" of wgmma.mma_async and setmaxnreg: all threads of the warpgroup execute the same one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

inline constexpr int kGroupWarps = 4;

// An operand that is one value for all 128 threads.
struct GroupValue {
  std::string_view what;  // "descriptor of A"
  std::uint32_t reg = 0;
  int bytes = 8;  // of a lane; 0: a predicate
};

// Nothing: the warp goes on with its part of the instruction. Values that differ are reported, and each warp has its
// own.
[[nodiscard]] std::optional<Flow> meet_warpgroup(Exec& exec, const Op& op, LaneMask lanes,
                                                 std::span<const GroupValue> values = {});

[[nodiscard]] inline Warpgroup& warpgroup_of(Exec& exec) {
  auto& all = exec.cta.warpgroups;
  if (all.empty()) all.resize(exec.cta.warps.size() / kGroupWarps + 1);
  return all[static_cast<std::size_t>(exec.warp.index / kGroupWarps)];
}

// setmaxnreg: how many registers a thread may have changes nothing here, but must be asked for rightly.
Flow run_setmaxnreg(Exec& exec, const Op& op, LaneMask lanes);

}  // namespace kvscope::ptx
