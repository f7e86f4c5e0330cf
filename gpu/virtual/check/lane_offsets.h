// The addresses of an access as offsets from one address, in a form that compilers turn into vectors: what watchers of
// shared memory begin with.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

using LaneOffsets = std::array<std::int32_t, kLanes>;

// `out`: low 32 bits of address - first; lanes outside `lanes` (not 0) get those of the first one inside. Returns the
// bits that any lane's whole difference has: they are below a power of two when all lanes are in [first, first + it).
inline std::uint64_t lane_offsets(std::uint64_t first, std::span<const std::uint64_t, kLanes> addresses, LaneMask lanes,
                                  LaneOffsets& out) {
  std::uint64_t bits = 0;
  const std::uint64_t* at = addresses.data();
  std::array<std::uint64_t, kLanes> filled;
  if (lanes != kAllLanes) {
    const std::uint64_t lead = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
    for (std::size_t i = 0; i < kLanes; ++i) filled[i] = (lanes >> i & 1) != 0 ? addresses[i] : lead;
    at = filled.data();
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t offset = at[i] - first;
    bits |= offset;
    out[i] = static_cast<std::int32_t>(offset);
  }
  return bits;
}

}  // namespace kvscope::ptx
