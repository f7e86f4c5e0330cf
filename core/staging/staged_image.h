// A tile staged for real: the bytes that stand in shared memory and in registers afterwards, as a kernel that did it
// right would dump them. Moved by core/tma and core/staging/lds over the values of one layer; the places are those of
// tma_staging.h and lds_staging.h.
//
//   shared      what no copy wrote is poison (0xCD); the slots past a sequence's tokens hold the pool's NaN
//   registers   [steps, waves, lanes, registers, 4 bytes], little endian; a warp is one wave of 32 lanes
//
// `steps` is 1 where a lane's registers hold the whole tile. Otherwise the registers are kept after each k-step
// (lane_registers.h); a register that a shorter last step does not load keeps what the step before left (LDS), or is 0.
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
  std::vector<std::byte> register_bytes;  // empty: no_fragments says why
  std::string no_fragments;
  std::int64_t steps = 1;  // k-steps
};

// One layer of a pool as bytes: [blocks + 1, kv, 1, page_size, heads, head_size], and its scales; empty without.
struct LayerBytes {
  std::span<std::byte> blocks, scales;
};

// The values are those of `layer`, whatever tile.layer names. GeometryError, UnsupportedError, OverflowError: the path
// cannot take the tile.
[[nodiscard]] StagedImage stage_by_tma(const Scenario& scenario, const CacheState& state, LayerBytes layer,
                                       const StagedTile& tile, DimIdx depth_offset);
// Stage 0 of the LDS region; the other stages stay poison. Without full_kv, blocks alternate between the stages, and
// the image is that after the last block.
[[nodiscard]] StagedImage stage_through_lds(const Scenario& scenario, const CacheState& state, LayerBytes layer,
                                            const StagedTile& tile);

}  // namespace kvscope
