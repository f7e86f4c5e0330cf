// Which registers of a function may share a place in its buffer: those whose values are never needed at the same time.
//
//   0  mov %r1, 5         %r1 alive [1, 3)
//   1  add %r2, %r1, 1    %r2 alive [2, 4)
//   2  add %r3, %r1, 2    %r3 alive [3, 4)      %r3 takes the place of %r1
//   3  st [..], %r2, %r3
//
// Of each thread by itself: lanes write their own part of a place only. Registers of wgmma share with nobody, since
// they are read and written behind its back. Kernels have 36 to 200 registers alive at once, of thousands declared, so
// that a warp's registers stay in the first cache.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct Liveness {
  std::vector<std::int32_t> place;  // [registers] those of one number and one width share; unused ones: -1
  // [registers] statements before which the value is needed, or has just been written: [from, to).
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> alive;
};

[[nodiscard]] Liveness find_liveness(const Program& program, std::int32_t function);

}  // namespace kvscope::ptx
