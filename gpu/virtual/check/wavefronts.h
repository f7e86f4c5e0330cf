// The cost of one memory instruction of a warp: wavefronts of shared memory, sectors of global memory.
//
//   32 lanes, 4 bytes each, 128 bytes apart    shared: one group, 32 words in bank 0: 32 wavefronts, 1 is ideal
//                                              global: 32 sectors of 32 bytes, 4 are ideal; 32 lines
//
// Shared memory has 32 banks of 4 bytes. It serves lanes in groups of consecutive lanes: 32 lanes if each accesses at
// most 4 bytes, 16 lanes of 8 bytes, 8 lanes of 16 bytes (a matrix of ldmatrix is such a group). For each bank, count
// the distinct words that the group accesses in it: the maximum over the banks is the number of wavefronts. Lanes that
// access the same word share it. In an atomic they do not: there the number of lanes per bank counts (not documented:
// docs/FIDELITY.md).
// core/smem/banks.h has the same rule and names the lanes; this file only counts, for each instruction of a launch.
// Source: CUDA C++ Best Practices Guide, shared memory and coalesced access; group sizes as profilers count them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

using AccessAddresses = std::span<const std::uint64_t, kLanes>;  // WarpAccess::addresses

struct Wavefronts {
  int wavefronts = 0;
  int ideal = 0;  // groups with an active lane
  int worst = 0;  // of one group
  friend bool operator==(const Wavefronts&, const Wavefronts&) = default;
};
// `bytes` a lane: 1, 2, 4, 8 or 16; addresses are multiples of it.
[[nodiscard]] Wavefronts shared_wavefronts(AccessAddresses addresses, LaneMask lanes, int bytes, bool atomic = false);

// shared_wavefronts with a cache. The cost depends only on the distances between the lanes' addresses, and a kernel
// repeats few such shapes.
class WavefrontMemory {
 public:
  [[nodiscard]] Wavefronts cost(AccessAddresses addresses, LaneMask lanes, int bytes, bool atomic = false);

 private:
  struct Shape {
    LaneOffsets offsets{};
    LaneMask lanes = 0;
    int bytes = 0;
    bool atomic = false;
    Wavefronts cost;
  };
  static constexpr std::size_t kShapes = 128;
  std::vector<Shape> shapes_;  // by a hash of all but the cost; a new shape replaces the one at its place
};

struct Sectors {
  std::int64_t sectors = 0;  // of 32 bytes, distinct
  std::int64_t ideal = 0;    // sectors that the distinct bytes would fill
  std::int64_t lines = 0;    // of 128 bytes, distinct
  friend bool operator==(const Sectors&, const Sectors&) = default;
};
// `bytes` a lane: 1 to 32; addresses are multiples of it.
[[nodiscard]] Sectors global_sectors(AccessAddresses addresses, LaneMask lanes, int bytes);
// Local memory stores the 4-byte words of the 32 lanes side by side: equal offsets in all lanes are 4 sectors.
[[nodiscard]] Sectors local_sectors(AccessAddresses offsets, LaneMask lanes, int bytes);
// One row of a copy by an engine.
[[nodiscard]] Sectors range_sectors(std::uint64_t address, std::int64_t bytes);

}  // namespace kvscope::ptx
