// A staged tile with its bytes: the contents of shared memory and registers that a correct kernel would dump.
// core/tma and core/staging/lds move the values of one layer, to the places computed by tma_staging.h and
// lds_staging.h.
//
//   shared      bytes that no copy wrote are poison (0xCD); the slots past a sequence's tokens hold the pool's NaN
//   registers   [steps, waves, lanes, registers, 4 bytes], little endian; a warp is one wave of 32 lanes
//
// `steps` is 1 where a lane's registers hold the whole tile. Otherwise the registers are kept after each k-step
// (lane_registers.h). A register that a shorter last step does not load keeps its value of the step before (LDS), or is
// 0 (TMA).
//
// Example: 64 x 128 bf16 by TMA: 16384 bytes of shared memory; 1 x 32 x 128 registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/smem/shared_image.h"
#include "core/staging/staged_tile.h"

namespace kvscope {

struct StagedImage {
  SharedImage shared;
  std::int64_t waves = 0, lanes = 0, registers = 0;
  std::vector<std::byte> register_bytes;  // empty: no_fragments has the reason
  std::string no_fragments;
  std::int64_t steps = 1;  // k-steps
};

// One layer of a pool as bytes: [blocks + 1, kv, 1, page_size, heads, head_size], and its scales; empty without.
struct LayerBytes {
  std::span<std::byte> blocks, scales;
};

// The values are those of `layer`, whatever tile.layer is. GeometryError, UnsupportedError, OverflowError: the path
// does not support the tile.
[[nodiscard]] StagedImage stage_by_tma(const Scenario& scenario, const CacheState& state, LayerBytes layer,
                                       const StagedTile& tile, DimIdx depth_offset);
// Stage 0 of the LDS region; the other stages stay poison. Without full_kv, blocks alternate between the stages, and
// the image is the one after the last block.
[[nodiscard]] StagedImage stage_through_lds(const Scenario& scenario, const CacheState& state, LayerBytes layer,
                                            const StagedTile& tile);

}  // namespace kvscope
