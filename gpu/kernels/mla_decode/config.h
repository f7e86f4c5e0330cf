// Sizes of mla_decode that host and device share.
//
//   mla_decode_*     grid {splits, ceil(query heads / kHeads), batch}, block kThreads, kSharedBytes dynamic
//   mla_combine      grid {query heads, batch, 1}, block kCombineThreads: after it, on the same parameters
#pragma once

namespace kvscope::gpu::mla {

inline constexpr int kHeads = 64;     // of a CTA
inline constexpr int kKeys = 64;      // of a tile
inline constexpr int kStages = 2;     // of the ring
inline constexpr int kThreads = 384;  // two warpgroups multiply, one loads
// [registers] per thread: a warpgroup gets more only after others have released as many; the sum is fixed at launch.
inline constexpr int kLaunchRegisters = 168, kFetchRegisters = 136, kMultiplyRegisters = 184;
static_assert(kFetchRegisters + 2 * kMultiplyRegisters <= 3 * kLaunchRegisters);
inline constexpr int kRow = 576, kValue = 512;       // [elements] of a key, of a value
inline constexpr int kFp8Row = 656;                  // [bytes] of a token
inline constexpr int kPanel = 64;                    // elements of a swizzled row: 128 bytes
inline constexpr int kPanelBytes = 64 * kPanel * 2;  // 64 rows of them
inline constexpr int kPanels = kRow / kPanel;        // of the queries, of a tile
inline constexpr int kTileBytes = kPanels * kPanelBytes;
inline constexpr int kCombineThreads = 128;

// Queries, ring, weights, then maxima and sums of both warpgroups, scales of the ring's keys, valid bits of the keys,
// barriers: 230944.
inline constexpr int kSharedBytes =
    (1 + kStages) * kTileBytes + kPanelBytes + 2 * 2 * kHeads * 4 + kStages * kKeys * 4 + 2 * kStages * 4 + 4 * 8;

}  // namespace kvscope::gpu::mla
