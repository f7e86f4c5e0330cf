// The addresses of an access as 32-bit offsets from one address. Monitors of shared memory start from them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/virtual/machine/memory/lane_loops.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

using LaneOffsets = std::array<std::int32_t, kLanes>;

// Sets out[lane] to the low 32 bits of addresses[lane] - first. Lanes outside `lanes` (which is not 0) get the offset of
// the first lane inside. Returns the bitwise OR of all 64-bit differences: it is below a power of two p exactly if every
// address is in [first, first + p).
inline std::uint64_t lane_offsets(std::uint64_t first, std::span<const std::uint64_t, kLanes> addresses, LaneMask lanes,
                                  LaneOffsets& out) {
  const LaneLoops& loops = lane_loops();
  if (lanes == kAllLanes) return loops.offsets(addresses.data(), first, out.data());
  std::array<std::uint64_t, kLanes> filled;
  loops.fill(addresses.data(), lanes, filled.data());
  return loops.offsets(filled.data(), first, out.data());
}

// The bits in which any two offsets differ: all are in one block of 2^n bytes, aligned, exactly if the result is below 2^n.
inline std::uint32_t differing_bits(const LaneOffsets& offsets) {
  return lane_loops().differing(offsets.data());
}

}  // namespace kvscope::ptx
