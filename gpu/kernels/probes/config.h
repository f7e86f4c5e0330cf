// Compile-time constants shared by host and device of the probes.
#pragma once

#include <cstdint>

namespace kvscope::gpu {

inline constexpr int kProbeThreads = 128;         // of probe_copy, probe_under_expected and probe_wgmma
inline constexpr int kProbePoison = 0xCD;         // initial bytes of shared memory, where no copy writes
inline constexpr int kProbeBarrierBytes = 8;      // after the window, in dynamic shared memory
inline constexpr int kProbeMostLoads = 4;         // of probe_copy
inline constexpr int kProbePolls = 4096;          // of a barrier, before a wait gives up
inline constexpr int kProbeRowBytes = 32;         // of A and B along k: 16 numbers of 16 bits, 32 of 8
inline constexpr int kProbeColumns = 8;           // n of the products
inline constexpr int kProbeStaticBytes = 1000;    // in addition to dynamic memory, in probe_shared_base_static
inline constexpr int kProbeLargeStatic = 102400;  // of probe_static_shared: more than the default limit of 48 KiB
inline constexpr int kProbeNanResults = 16;
inline constexpr int kProbeDivisions = 12;
inline constexpr int kProbeElectMasks = 8;

}  // namespace kvscope::gpu
