// Limits of the memory, output and time that a kernel takes from the host: each has a default, an option of `kvscope
// ptx run` and `ptx debug` that raises it, and one report of kind LIMIT when a kernel exceeds it. A launch without
// limits could fill the host's memory or run forever, whatever the file contains.
//
//   limit               default              counts                                                      option
//   instructions        1,000,000,000        warp instructions of a launch                               --max-instructions
//   memory of a Device  16 GiB (4 GiB)       arrays, variables and malloc blocks                         --max-memory
//   local_bytes         1 GiB                local memory of all threads that have started; .param       --max-local
//                                            variables and parameters of calls: 32 lanes of each warp
//   printed_bytes       16 MiB               output of printf                                            --max-printed
//   heap_bytes          8 MiB                malloc blocks that are not freed; past it malloc returns 0  --max-heap
//   heap_blocks         1,000,000            malloc blocks of a launch, freed ones included              --max-mallocs
//   cooperative_ctas    4224                 CTAs of a cooperative grid, which start together            --max-ctas
//   copies              1,000,000            asynchronous copies and groups of a CTA in flight           --max-copies
//
// The commands give a device 4 GiB, because the host's memory backs all of it. 4224 is 132 SMs of 32 CTAs, an H100 that is full.
#pragma once

#include <cstdint>

namespace kvscope::ptx {

struct LaunchLimits {
  std::int64_t instructions = 1'000'000'000;
  std::int64_t local_bytes = std::int64_t{1} << 30;
  std::int64_t printed_bytes = std::int64_t{16} << 20;
  std::int64_t heap_bytes = std::int64_t{8} << 20;
  std::int64_t heap_blocks = 1'000'000;
  std::int64_t cooperative_ctas = 4224;
  std::int64_t copies = 1'000'000;

  friend bool operator==(const LaunchLimits&, const LaunchLimits&) = default;
};

inline constexpr std::int64_t kDeviceBytes = std::int64_t{16} << 30;  // of a Device, which launches share
inline constexpr std::int64_t kMostLocal = std::int64_t{1} << 19;     // [bytes] per thread, as on hardware
inline constexpr std::int64_t kMostPrintfWidth = 4096;                // width and precision of a conversion

}  // namespace kvscope::ptx
