// Sizes of bf16_product that host and device share.
//
//   grid    as many CTAs as multiprocessors, or as tiles if there are fewer: each processes several tiles in turn
//   block   kThreads: two warpgroups that multiply, 64 rows each, and one of which a warp loads
#pragma once

namespace kvscope::gpu::product {

inline constexpr int kRows = 128, kColumns = 256, kDepth = 64;  // of C, of C, of A and B: a step of a tile
inline constexpr int kStages = 4;
inline constexpr int kThreads = 384;
inline constexpr int kBand = 16;  // tiles of C in one column that are processed before the next column
// [registers] per thread. A warpgroup gets more only after others have released as many: the sum is fixed at launch.
inline constexpr int kLaunchRegisters = 168, kFetchRegisters = 40, kMultiplyRegisters = 232;
static_assert(kFetchRegisters + 2 * kMultiplyRegisters <= 3 * kLaunchRegisters);
inline constexpr int kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2;
inline constexpr int kStageBytes = kABytes + kBBytes;
inline constexpr int kSharedBytes = kStages * kStageBytes + 2 * kStages * 8;  // 196672: ring, barriers

}  // namespace kvscope::gpu::product
