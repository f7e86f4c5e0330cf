// Instructions that exchange values between lanes of a warp: shfl, vote, match, redux, elect, bar.warp.sync.
//
// Each lane names a mask of lanes and waits until all of them that have not exited have reached an instruction with the
// same opcode word and the same mask, at the same place or at different ones. The lanes then exchange values together.
//
//   mask ffff0000 in lanes 16-31, 0000ffff in lanes 0-15, one shfl: two groups, each complete by itself
//
// A lane of the mask that has exited is not waited for. The instruction then completes without it, and is reported as
// ABSENT_THREADS: a warning where a result lacks the lane (a shuffle that reads it, vote, match, redux), else a note.
//
// Sources of shfl, L = lane, B = b & 31, M = (c >> 8) & 31, C = c & 31, hi = (L & M) | (C & ~M & 31), lo = L & M:
//   up    L - B        when it is >= hi         bfly  L ^ B                 when it is <= hi
//   down  L + B        when it is <= hi         idx   lo | (B & ~M & 31)    when it is <= hi
//   otherwise the lane itself, and the predicate is false.
// Example: down, b = 3, c = 0x181f (segments of 8): lane 7 keeps its own value, lane 8 reads lane 11.
// Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync".
#pragma once

#include <array>
#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

enum class ShflMode : std::uint8_t { up, down, bfly, idx };

struct ShflSource {
  int lane = 0;
  bool in_segment = false;
};
[[nodiscard]] ShflSource shfl_source(ShflMode mode, int lane, std::uint32_t b, std::uint32_t c);

using LaneWords = std::array<std::uint64_t, kLanes>;

// Operands and results of a group's lanes. Registers of 32 and 64 bits are zero-extended; predicates are 0 and 1.
struct Exchange {
  LaneMask lanes = 0;    // of the group that are present
  LaneMask mask = 0;     // as named by the instruction
  LaneWords a{};         // value, predicate
  LaneWords b{};         // shfl's second operand
  LaneWords c{};         // shfl's third
  LaneWords d{};         // result
  LaneMask p = 0;        // second result: a predicate
  LaneMask strange = 0;  // shfl: lanes whose source is not in the group although it has not exited
  LaneMask absent = 0;   // shfl: lanes whose source has exited, or never existed
};
// Computes d and p. `live`: lanes of the warp that have not exited.
void exchange(const Instr& instr, LaneMask live, Exchange& x);

}  // namespace kvscope::ptx
