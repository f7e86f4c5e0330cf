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
// Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync".
#pragma once

#include <array>
#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

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
