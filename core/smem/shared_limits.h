// How much shared memory a block may use on each architecture, and when the launch must opt in to it.
//
//   [bytes]                 sm_80   sm_86 sm_89 sm_120   sm_90 sm_100   gfx942   gfx950
//   a block, by default     49152        49152              49152        65536   163840
//   a block, opt-in        166912       101376             232448        65536   163840
//   an SM                  167936       102400             233472        65536   163840
//   the system, per block    1024         1024               1024            0        0
//
// A kernel that uses more than the default must be configured before the launch (cudaFuncSetAttribute, maximum dynamic
// shared memory size). AMD's two limits are equal: a workgroup may use the whole LDS of a compute unit. Source: CUDA
// C++ Programming Guide, technical specifications per compute capability; CDNA 3 and CDNA 4 ISA.
// Example: K and V of 64 x 256 bf16 in two stages are 131072 B: sm_90 takes them after opting in, sm_89 does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/errors.h"
#include "core/smem/banks.h"

namespace kvscope {

enum class GpuArch : std::uint8_t { sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, gfx942, gfx950 };

struct SharedLimits {
  GpuArch arch = GpuArch::sm_90;
  std::string_view name;                       // "sm_90"
  std::int64_t by_default = 0;                 // [bytes] of a block
  std::int64_t opt_in = 0;                     // [bytes] of a block
  std::int64_t per_sm = 0;                     // [bytes] of an SM or compute unit
  std::int64_t reserved = 0;                   // [bytes] of a block
  SharedTarget target = SharedTarget::nvidia;  // selects the bank model
};

[[nodiscard]] std::span<const SharedLimits> all_shared_limits();  // in the order of GpuArch
[[nodiscard]] const SharedLimits& shared_limits(GpuArch arch);

// The fault of a block with that many bytes; empty when it fits. `where` of the fault is `object`.
[[nodiscard]] std::optional<Fault> shared_fault(GpuArch arch, std::string_view object, std::int64_t bytes);
// Number of blocks of that size that shared memory allows on an SM at once; 0: not even one fits. A block of 0 bytes
// counts as 1 byte where the system reserves none. Example: sm_90, 65536 -> 3, because each block takes 1024 B more.
[[nodiscard]] std::int64_t blocks_per_sm(GpuArch arch, std::int64_t bytes);

}  // namespace kvscope
