// What host and device of tma_tile_load agree on when they are compiled.
#pragma once

namespace kvscope::gpu {

inline constexpr int kTileLoadThreads = 128;
inline constexpr int kTileLoadPoison = 0xCD;     // of shared memory that no copy has touched
inline constexpr int kTileLoadBarrierBytes = 8;  // behind the window, in dynamic shared memory

}  // namespace kvscope::gpu
