// Sizes of paged_prefill that host and device share.
//
//   grid     {ceil(most queries of a sequence / kQueries), query heads, sequences}
//   block    kThreads: two warpgroups that multiply, 64 queries each, and one of which a warp loads
//   pages    page_size divides kKeys, or kKeys divides page_size
#pragma once

#include <cstdint>

namespace kvscope::gpu::prefill {

inline constexpr int kQueries = 128;  // of a CTA
inline constexpr int kKeys = 128;     // of a tile
inline constexpr int kStages = 2;     // of the ring, each with a tile of K and one of V
inline constexpr int kThreads = 384;
// [registers] per thread: a warpgroup gets more only after others have released as many; the sum is fixed at launch.
inline constexpr int kLaunchRegisters = 168, kFetchRegisters = 40, kMultiplyRegisters = 232;
static_assert(kFetchRegisters + 2 * kMultiplyRegisters <= 3 * kLaunchRegisters);
inline constexpr int kPanel = 64;                     // elements of a swizzled row: 128 bytes
inline constexpr int kPanelBytes = 128 * kPanel * 2;  // 128 rows of them

// Dynamic shared memory: queries, ring, barriers. Example: head_size 128: 163968 bytes.
constexpr int shared_bytes(int head_size) {
  return (1 + 2 * kStages) * (head_size / kPanel) * kPanelBytes + 128;
}

}  // namespace kvscope::gpu::prefill
