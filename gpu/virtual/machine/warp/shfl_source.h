// The lane that a lane reads in shfl. L = lane, B = b & 31, M = (c >> 8) & 31, C = c & 31, hi = (L & M) | (C & ~M & 31),
// lo = L & M:
//   up    L - B        when it is >= hi         bfly  L ^ B                 when it is <= hi
//   down  L + B        when it is <= hi         idx   lo | (B & ~M & 31)    when it is <= hi
//   otherwise the lane itself, and the predicate is false.
// Example: down, b = 3, c = 0x181f (segments of 8): lane 7 keeps its own value, lane 8 reads lane 11.
// Source: PTX ISA, "shfl.sync".
#pragma once

#include <cstdint>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {

enum class ShflMode : std::uint8_t { up, down, bfly, idx };
[[nodiscard]] ShflMode shfl_mode(const Instr& instr);

struct ShflSource {
  int lane = 0;
  bool in_segment = false;
};
[[nodiscard]] ShflSource shfl_source(ShflMode mode, int lane, std::uint32_t b, std::uint32_t c);

}  // namespace kvscope::ptx
