// Values of special registers: the position of a thread in its grid, lane masks, clocks that count instructions.
//
//   %nwarpid 64, sm_120: 48   %nsmid 132   %smid = CTA % 132   %gridid = number of the launch
//   %envreg1:%envreg2 = the grid's workspace of a cooperative launch   other %envreg 0
//   %clock = warp instructions of this CTA so far   %globaltimer = 1000 + warp instructions of the launch
//
// Clocks count instructions instead of time, so two runs are identical: docs/FIDELITY.md.
// Source: PTX ISA, "Special Registers".
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Address of the grid's workspace: its size and the barrier of the grid, 4 bytes each. Source: CUDA 13,
// cooperative_groups/details/driver_abi.h.
inline constexpr auto kGridWorkspaceHigh = static_cast<SpecialRegister>(static_cast<int>(SpecialRegister::envreg0) + 1);
inline constexpr auto kGridWorkspaceLow = static_cast<SpecialRegister>(static_cast<int>(SpecialRegister::envreg0) + 2);

[[nodiscard]] std::uint64_t special_value(const Launch& launch, const Cta& cta, const Warp& warp,
                                          SpecialRegister special, int lane);
// Fills a register of `bytes` bytes per lane; 0: a predicate.
void fill_special(const Launch& launch, const Cta& cta, const Warp& warp, const SpecialPlace& reg,
                  std::byte* registers);

// The coordinates of thread `linear` of a block, x fastest.
[[nodiscard]] std::array<std::int64_t, 3> thread_at(const std::array<std::int64_t, 3>& block, std::int64_t linear);
// Extents of a cluster; {1, 1, 1} without clusters.
[[nodiscard]] std::array<std::int64_t, 3> cluster_extents(const Launch& launch);
[[nodiscard]] std::array<std::int64_t, 3> cluster_extents(const std::array<std::int64_t, 3>& cluster);  // 0 is 1

}  // namespace kvscope::ptx
