// The index types of staging K and V through the local data share (LDS) of an AMD compute unit. A wave is 64
// lanes; a block of `num_threads` threads has num_threads / 64 waves.
//
//   tile   BN keys x depth columns of one head      strip   BK columns of K, or BK keys of V
//   stage  the buffer of one tile in LDS            block   BN keys x bk_smem columns of a stage, row-major
#pragma once

#include <cstdint>

#include "core/base/index.h"

namespace kvscope {

inline constexpr std::int64_t kWaveLanes = 64;
inline constexpr std::int64_t kLdsVectorBytes = 16;  // moved by one lane at a time; the unit of every swizzle here

using WaveIdx = Index<struct WaveTag>;    // tid / 64
using StageIdx = Index<struct StageTag>;  // a tile buffer of LDS
using KeyIdx = Index<struct KeyTag>;      // row of the tile: 0 .. BN - 1
using StripIdx = Index<struct StripTag>;  // bk_tile_idx: 0 .. num_k_tiles - 1

}  // namespace kvscope
