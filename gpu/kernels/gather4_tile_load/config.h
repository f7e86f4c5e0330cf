// Compile-time constants shared by host and device of gather4_tile_load.
#pragma once

namespace kvscope::gpu {

inline constexpr int kGatherThreads = 128;
inline constexpr int kGatherPoison = 0xCD;     // initial bytes of shared memory, where no copy writes
inline constexpr int kGatherBarrierBytes = 8;  // after the window, in dynamic shared memory

}  // namespace kvscope::gpu
