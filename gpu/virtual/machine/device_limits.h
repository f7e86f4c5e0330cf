// Limits of the device, by target, for the runtime's properties, attributes and occupancy, and for the rules of a
// launch.
//
//                                sm_90  sm_100   sm_120
//   multiprocessors                132     132      132   as %nsmid
//   threads of each               2048    2048     1536
//   blocks of each                  32      32       24
//   shared memory of each       233472  233472   102400   [bytes]
//   of it the system's, a block   1024    1024     1024   [bytes]
//   a block's, after opting in  232448  232448   101376   [bytes]
//
// Every target has the multiprocessors of an H200: a launch then has the same shape on each.
// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#pragma once

#include <cstdint>

namespace kvscope::ptx {

inline constexpr std::int64_t kMultiprocessors = 132;
inline constexpr std::int64_t kReservedShared = 1024;  // [bytes] of each block

[[nodiscard]] constexpr std::int64_t threads_of_multiprocessor(int target) {
  return target >= 120 ? 1536 : 2048;
}
[[nodiscard]] constexpr std::int64_t blocks_of_multiprocessor(int target) {
  return target >= 120 ? 24 : 32;
}
[[nodiscard]] constexpr std::int64_t shared_of_multiprocessor(int target) {  // [bytes]
  return target >= 120 ? 102400 : 233472;
}
// [bytes] of shared memory that a block of a kernel for that target may opt in to, at most.
[[nodiscard]] constexpr std::int64_t most_shared(int target) {
  return shared_of_multiprocessor(target) - kReservedShared;
}

}  // namespace kvscope::ptx
