// Finds the tokens whose values are in a given register or byte of shared memory: the inverse of the second half of
// explain(), from a place of a staged tile back to the token.
//
//   lane, register --fragment map--> (row, column) of the tile --first token, first column--> token, dim
//   shared byte    --swizzle, layout--> (row, column) ...
//
// Law: for each element, locate_register(its registers) and locate_shared(its shared byte) contain it again.
//                                                              // held by tests/core/staging/locate_staged_test.cpp
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index.h"
#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/staging/lds/lds_index.h"
#include "core/trace/explanation.h"

namespace kvscope {

enum class StagingPath : std::uint8_t { tma, lds };

// A tile of a step: the sequence and the number of its run of BN tokens (each path has its own BN).
struct TileQuestion {
  StagingPath path = StagingPath::tma;
  SeqIdx seq;
  LayerIdx layer;
  HeadIdx head;
  KOrV kv = KOrV::k;
  std::int64_t tile = 0;
  DimIdx dim;  // TMA: any column of the tile; its first is tma_depth_offset(dim). LDS tiles hold the whole head
  // k-step (lane_registers.h) whose registers are meant; 0 where registers hold the whole tile at once. For a
  // byte of LDS without full_kv: the block of columns that its stage holds at that time.
  std::int64_t step = 0;
};

// The element that a byte of the staged tile belongs to. GeometryError, UnsupportedError or OverflowError: the path
// does not support the tile. IndexError: the sequence is not in the batch, the tile is past its end, the byte is
// outside the tile or in a gap of it, or the element there belongs to no token.
[[nodiscard]] trace::Question locate_shared(const Scenario& scenario, const CacheState& state,
                                            const TileQuestion& question, std::int64_t shared_byte);

// The elements that a 32-bit register holds, lowest bits first: 1, 2 or 4 of them. `wave` is for the LDS path; with TMA
// every warp reads the same, unless a k-step is divided among warps. Throws the same errors.
[[nodiscard]] std::vector<trace::Question> locate_register(const Scenario& scenario, const CacheState& state,
                                                           const TileQuestion& question, WaveIdx wave, int lane,
                                                           std::int64_t index);

}  // namespace kvscope
