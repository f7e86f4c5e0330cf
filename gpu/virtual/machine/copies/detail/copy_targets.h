// The CTAs of a cluster whose shared memory a copy writes: one, or those of a multicast mask.
//
//   cp.async.bulk ... .multicast::cluster [d], [s], 16, [m], 0b101     ranks 0 and 2: at offset d, with the barrier at m
//
// A mask that names no CTA, or a rank that the cluster does not have, is an error of the instruction. The memory of a CTA
// that has ended is gone: this is reported when the copy is performed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// The 16 bits of register `reg`. std::nullopt: the mask is wrong, and the fault is reported.
[[nodiscard]] std::optional<std::uint32_t> multicast_mask(Exec& exec, const Op& op, int lane, std::uint32_t reg);

// Adds the bytes of the copy in each of its targets to PendingOp::writes, for monitors.
void add_target_writes(PendingOp& p);

// The targets of a copy. Those that have ended are left out, and reported.
[[nodiscard]] std::vector<Cta*> live_targets(Launch& launch, Cta& cta, const PendingOp& p);

}  // namespace kvscope::ptx
