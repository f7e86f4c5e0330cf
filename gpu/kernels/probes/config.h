// What host and device of the probes agree on when they are compiled.
#pragma once

#include <cstdint>

namespace kvscope::gpu {

inline constexpr int kProbeThreads = 128;         // of probe_copy, probe_under_expected and probe_wgmma
inline constexpr int kProbePoison = 0xCD;         // of shared memory that no copy has touched
inline constexpr int kProbeBarrierBytes = 8;      // behind the window, in dynamic shared memory
inline constexpr int kProbeMostLoads = 4;         // of probe_copy
inline constexpr int kProbePolls = 4096;          // of a barrier, before a wait is given up
inline constexpr int kProbeRowBytes = 32;         // of A and B along k: 16 numbers of 16 bits, 32 of 8
inline constexpr int kProbeColumns = 8;           // n of the products
inline constexpr int kProbeStaticBytes = 1000;    // beside dynamic memory, in probe_shared_base_static
inline constexpr int kProbeLargeStatic = 102400;  // of probe_static_shared: more than the 48 KiB nobody asks for
inline constexpr int kProbeNanResults = 16;
inline constexpr int kProbeDivisions = 12;
inline constexpr int kProbeElectMasks = 8;

}  // namespace kvscope::gpu
