// The undefined bits of an instruction's results, from those of its operands. A bit is undefined if its value depends, or
// may depend, on a bit that nothing has written.
//
//   and.b32 %r3, %r1, %r2      %r1 undefined, %r2 = 0x0000ff00: bits 8 to 15 of %r3 are undefined
//   selp.f32 %f3, %f1, 0, %p1  %f1 undefined, %p1 false: %f3 is defined
//   add.f32 %f3, %f1, %f2      a bit of %f1 undefined: all bits of %f3 are
//
// Exact for operations that act on each bit alone, and for moves of bits by a defined amount; otherwise a superset
// (docs/FIDELITY.md lists the rules). tests/gpu/virtual/check/undefined_results_test.cpp compares with all values that the
// undefined bits can have.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/virtual/check/undefined_registers.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

enum class UndefinedRule : std::uint8_t {
  whole,   // any undefined bit makes all results of the lane undefined
  moves,   // each result bit is an operand's bit, or a constant; which one is decided by the operands from `control` on
  select,  // moves, or where the predicate is undefined: the bits that differ
  bitwise,     // bit i depends on the operands' bits i
  sum,         // integers: exact bounds of a sum
  difference,  // and of a difference
  product,     // integers: bits below the lowest undefined one are defined
  parts,       // two numbers in one register, each by itself
  packs,       // cvt of two numbers into one register
  compare,     // predicates
};

// The registers of a statement by their role, at their places in the buffer.
struct UndefinedEffects {
  std::vector<RegisterAt> reads;      // values, and the accumulators of wgmma
  std::vector<RegisterAt> addresses;  // of operands in brackets
  std::vector<RegisterAt> writes;
  std::uint32_t guard = kNoRegister;
  std::uint32_t carry_in = kNoRegister, carry_out = kNoRegister;
  UndefinedRule rule = UndefinedRule::whole;
  int control = -1;   // moves: the first operand that chooses; -1: none
  int part_bits = 0;  // parts and packs: of each number of the result
  bool of_call = false;
};
[[nodiscard]] UndefinedEffects undefined_effects(const Program& program, std::int32_t pc);

// Sets the undefined bits of the results in `lanes`. Call it before the op is executed: it reads the operands' values.
void propagate(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
               UndefinedRegisters& registers);

// The same for mma, movmatrix, and for wmma.mma and others of which only a whole result is tracked; all lanes take part.
void propagate_matrix(const Exec& exec, const Op& op, const UndefinedEffects& effects, UndefinedRegisters& registers);

}  // namespace kvscope::ptx
