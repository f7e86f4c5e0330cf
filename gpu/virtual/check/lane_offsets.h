// The addresses of an access as 32-bit offsets from one address, in a form that compilers vectorize. Monitors of shared
// memory start from them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

using LaneOffsets = std::array<std::int32_t, kLanes>;

// Sets out[lane] to the low 32 bits of addresses[lane] - first. Lanes outside `lanes` (which is not 0) get the offset of
// the first lane inside. Returns the bitwise OR of all 64-bit differences: it is below a power of two p exactly if every
// address is in [first, first + p).
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

// The bits in which any two offsets differ: all are in one block of 2^n bytes, aligned, exactly if the result is below 2^n.
inline std::uint32_t differing_bits(const LaneOffsets& offsets) {
  std::uint32_t bits = 0;
  for (const std::int32_t offset : offsets) bits |= static_cast<std::uint32_t>(offset ^ offsets[0]);
  return bits;
}

}  // namespace kvscope::ptx
