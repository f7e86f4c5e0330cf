// What host and device of gather4_tile_load agree on when they are compiled.
#pragma once

namespace kvscope::gpu {

inline constexpr int kGatherThreads = 128;
inline constexpr int kGatherPoison = 0xCD;     // of shared memory that no copy has touched
inline constexpr int kGatherBarrierBytes = 8;  // behind the window, in dynamic shared memory

}  // namespace kvscope::gpu
