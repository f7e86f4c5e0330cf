// Run-time parameters of the probes: their inputs, and where their results are stored.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/tensor_map_slot.h"
#include "gpu/kernels/probes/config.h"

namespace kvscope::gpu {

// Coordinates of one copy of rank 2, and its place in the window [bytes].
struct ProbeBox {
  std::int32_t column, row;
  std::uint32_t at;
};

// Loads, a wait, the window written out, and a store from it.
struct ProbeCopyParams {
  TensorMapSlot load_map, store_map;
  ProbeBox loads[kProbeMostLoads];
  ProbeBox store;
  std::int32_t load_count, store_count;  // 0 .. kProbeMostLoads; 0 or 1
  std::uint32_t expected_bytes;          // of all loads together
  std::int32_t window_bytes;             // a multiple of 16
  const unsigned char* image;            // [window_bytes] initial contents of the window; null: kProbePoison
  unsigned char* window;                 // [window_bytes] its contents after the loads
  std::uint32_t* seen;                   // [0] the window's shared address
};

// A load for which fewer bytes are expected than it copies.
struct ProbeUnderExpectedParams {
  TensorMapSlot map;
  std::uint32_t first_bytes, second_bytes;  // expected by the barrier's first and second phase
  std::int32_t window_bytes;
  std::uint32_t* seen;  // [0] the first wait ended, [1] bytes landed then, [2] the second ended, [3] bytes landed then
};

struct ProbeSharedBaseParams {
  std::uint32_t* seen;  // [0] address of dynamic shared memory, [1] of the static array or 0, [2] sum of its words
};

// One product a block: D = A B + C.
struct ProbeProductParams {
  const unsigned char* a;  // [tile][m][kProbeRowBytes]; m is 16 of a warp, 64 of a warpgroup
  const unsigned char* b;  // [tile][kProbeColumns][kProbeRowBytes]: a row is a column of B
  const float* c;          // [tile][m][kProbeColumns]
  float* d;                // [tile][m][kProbeColumns]
};

struct ProbeBitsParams {
  std::uint64_t* results;
};

struct ProbeElectParams {
  std::uint32_t masks[kProbeElectMasks];
  std::uint32_t*
      leaders;  // [mask][lane]: the leader's number, bit 31 set in the leader itself; untouched: not in the mask
};

}  // namespace kvscope::gpu
