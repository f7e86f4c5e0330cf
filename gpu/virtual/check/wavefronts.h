// What one memory instruction of a warp costs the memory: wavefronts of shared memory, sectors of global memory.
//
//   32 lanes, 4 bytes each, 128 bytes apart    shared: one group, 32 words in bank 0: 32 wavefronts, 1 would do
//                                              global: 32 sectors of 32 bytes, 4 would hold the bytes; 32 lines
//
// Shared memory: 32 banks of 4 bytes. Lanes are served in groups of consecutive ones: 32 when each has 4 bytes or
// fewer, 16 of 8 bytes, 8 of 16 (a matrix of ldmatrix is such a group). A group takes as many wavefronts as the most
// wanted bank has different words wanted of it; lanes at one word share it. Of an atomic they do not: it takes as many
// as the bank has lanes (not documented: docs/FIDELITY.md).
// core/smem/banks.h says the same with the lanes by name, to explain; this counts, for every instruction of a launch.
// Source: CUDA C++ Best Practices, shared memory and coalesced access; group sizes: as profilers count them.
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

// The same, remembered: the cost depends on where lanes stand to one another, and kernels come back to few such shapes.
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
  std::vector<Shape> shapes_;  // by a hash of all but the cost; a newcomer takes
                               // its place from whoever has it
};

struct Sectors {
  std::int64_t sectors = 0;  // of 32 bytes, distinct
  std::int64_t ideal = 0;    // that the distinct bytes would fill
  std::int64_t lines = 0;    // of 128 bytes, distinct
  friend bool operator==(const Sectors&, const Sectors&) = default;
};
// `bytes` a lane: 1 to 32; addresses are multiples of it.
[[nodiscard]] Sectors global_sectors(AccessAddresses addresses, LaneMask lanes, int bytes);
// Local memory: 4-byte words of the 32 lanes stand side by side, so equal offsets of all lanes are 4 sectors.
[[nodiscard]] Sectors local_sectors(AccessAddresses offsets, LaneMask lanes, int bytes);
// A row of a copy engine.
[[nodiscard]] Sectors range_sectors(std::uint64_t address, std::int64_t bytes);

}  // namespace kvscope::ptx
