// Compile-time constants shared by host and device of tma_tile_load.
#pragma once

namespace kvscope::gpu {

inline constexpr int kTileLoadThreads = 128;
inline constexpr int kTileLoadPoison = 0xCD;     // initial bytes of shared memory, where no copy writes
inline constexpr int kTileLoadBarrierBytes = 8;  // after the window, in dynamic shared memory

}  // namespace kvscope::gpu
