// Determines which registers of a function may share a place in its buffer: those that are never live at the same time.
//
//   0  mov %r1, 5         %r1 live [1, 3)
//   1  add %r2, %r1, 1    %r2 live [2, 4)
//   2  add %r3, %r1, 2    %r3 live [3, 4)      %r3 uses the place of %r1
//   3  st [..], %r2, %r3
//
// Liveness is per thread: a lane writes only its own part of a place. Registers of wgmma never share a place, because
// the engine reads and writes them asynchronously. Kernels declare thousands of registers and have 36 to 200 live at
// once, so sharing keeps a warp's registers in the L1 cache.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct Liveness {
  std::vector<std::int32_t> place;  // [registers] equal width and equal number share a place; unused: -1
  // [registers] statements before which the value is needed, or has just been written: [from, to).
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> alive;
};

[[nodiscard]] Liveness find_liveness(const Program& program, std::int32_t function);

}  // namespace kvscope::ptx
