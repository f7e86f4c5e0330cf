// Sizes of bf16_product that host and device share.
//
//   grid    as many CTAs as the GPU has multiprocessors, or as there are tiles: each takes tile after tile
//   block   kThreads: two warpgroups that multiply, 64 rows each, and one of which a warp fetches
#pragma once

namespace kvscope::gpu::product {

inline constexpr int kRows = 128, kColumns = 256, kDepth = 64;  // of C, of C, of A and B: a step of a tile
inline constexpr int kStages = 4;
inline constexpr int kThreads = 384;
inline constexpr int kBand = 16;  // tiles of C, one below the other, that are taken before the next column
// [registers] of a thread. Nobody gets more until others have given up as many: the sum is what a launch has at most.
inline constexpr int kLaunchRegisters = 168, kFetchRegisters = 40, kMultiplyRegisters = 232;
static_assert(kFetchRegisters + 2 * kMultiplyRegisters <= 3 * kLaunchRegisters);
inline constexpr int kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2;
inline constexpr int kStageBytes = kABytes + kBBytes;
inline constexpr int kSharedBytes = kStages * kStageBytes + 2 * kStages * 8;  // 196672: ring, barriers

}  // namespace kvscope::gpu::product
