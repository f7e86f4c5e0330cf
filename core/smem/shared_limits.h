// How much shared memory a block may have, per architecture, and what it has to ask for.
//
//   [bytes]                 sm_80   sm_86 sm_89 sm_120   sm_90 sm_100   gfx942   gfx950
//   a block, by default     49152        49152              49152        65536   163840
//   a block, opt-in        166912       101376             232448        65536   163840
//   an SM                  167936       102400             233472        65536   163840
//   the system, per block    1024         1024               1024            0        0
//
// Above the default a kernel must be told so before it is launched (maximum dynamic shared memory size). AMD's two
// limits are one here: a workgroup may have the whole of a compute unit's LDS. Source: CUDA C++ Programming Guide,
// technical specifications per compute capability; CDNA 3 and CDNA 4 ISA.
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
  SharedTarget target = SharedTarget::nvidia;  // whose banks
};

[[nodiscard]] std::span<const SharedLimits> all_shared_limits();  // in the order of GpuArch
[[nodiscard]] const SharedLimits& shared_limits(GpuArch arch);

// What is wrong with a block of so many bytes, or nothing. `where` of the fault is `object`.
[[nodiscard]] std::optional<Fault> shared_fault(GpuArch arch, std::string_view object, std::int64_t bytes);

// Blocks of so many bytes that an SM holds at once, as far as shared memory decides. 0: not even one. A block of 0
// bytes where nothing is reserved counts as one of 1 byte.
// Example: sm_90, 65536 -> 3, since each takes 1024 more.
[[nodiscard]] std::int64_t blocks_per_sm(GpuArch arch, std::int64_t bytes);

}  // namespace kvscope
