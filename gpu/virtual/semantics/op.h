// One instruction in executable form: its handler and the places of its operands. Made once from a statement
// (machine/program/lower.h), executed millions of times.
//
// A register stores its value for all 32 lanes contiguously. The registers of one function are in one buffer of the
// warp; an operand is a byte offset into it. Constants and special registers are in the same buffer, so a handler does
// not distinguish them from registers. A predicate is one 32-bit word, one bit per lane.
//
//   width   1 bit (predicate)    16 bits    32 bits    64 bits    128 bits
//   bytes   4                    64         128        256        512       begins at a multiple of min(its size, 64)
//
// Two registers of one op have the same place or disjoint places, and registers of different widths are disjoint. A
// handler may therefore compute lanes in any order.
//
// Example: add.s32 %r3, %r1, 4: compute = the addition of 32 lanes; at = {%r3, %r1, the constant 4 in all lanes}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {

using LaneMask = std::uint32_t;
inline constexpr int kLanes = 32;
inline constexpr LaneMask kAllLanes = 0xffffffffu;

struct Op;

// Computes lanes of a register from lanes of registers: no memory, no other warp, no jump. Lanes outside `lanes` keep
// their values.
using OpHandler = void (*)(std::byte* registers, const Op& op, LaneMask lanes);

// How the lane group continues after an instruction.
enum class Flow : std::uint8_t {
  next,          // at the following instruction
  jumped,        // at the pc that the handler has set; the lane group may have split
  waits,         // parked at this instruction, which is executed again when it is woken
  waits_behind,  // parked at the following instruction: this one is complete
  ended,         // no lane is left
  stopped,       // the launch ends with an error
};
struct Exec;
using MachineHandler = Flow (*)(Exec& exec, const Op& op, LaneMask lanes);

inline constexpr std::uint32_t kNoRegister = 0xffffffffu;

struct alignas(64) Op {
  OpHandler compute = nullptr;       // either this
  MachineHandler machine = nullptr;  // or this; if both are set, the machine's wraps it
  // Operands in the order written, the first four; a pair d|p (or p|q) has d in at[0] and p in at[4]. at[4] is also the
  // carry predicate that add.cc writes and addc reads.
  std::array<std::uint32_t, 5> at{kNoRegister, kNoRegister, kNoRegister, kNoRegister, kNoRegister};
  std::uint32_t guard = kNoRegister;  // the predicate word
  // Statements with a vector, a matrix or more than four operands: all registers, flattened in the order written (d
  // before p); _ is kNoRegister.
  const std::uint32_t* list = nullptr;
  std::int32_t target = -1;  // of a branch: the op to continue at; of an address: the offset; of a
                             // call: Program::calls
  std::int32_t source = -1;  // Program::sources: its statement
  std::uint16_t instr = 0;   // Program::instrs
  std::uint16_t count = 0;   // of list
  std::uint8_t flags = 0;    // OpFlag
  std::uint8_t negated = 0;  // bit i: the predicate at[i] is negated
  std::uint16_t widths = 0;  // of the registers at[i]: see width_of
};
static_assert(sizeof(Op) == 64);

enum OpFlag : std::uint8_t {
  kGuardNegated = 1,
  kBackward = 2,        // a branch to an earlier op
  kUniformAddress = 4,  // the address is equal in all lanes: a variable or a number
  kBranch = 8,          // a jump to `target` only, executed by the scheduler itself
  kOrdinary = 16,       // the word has no modifier of order, scope or .nc: an access is weak
};

// Bytes per lane of the register at[i], 2 4 8 or 16; 0: a predicate, or no register. For handlers whose registers may
// be wider than the type they work on (ld.u8 into a 32-bit register), and for addresses of 32 bits. For a vector: the
// width of its registers, which is equal for all of them.
[[nodiscard]] constexpr int width_of(const Op& op, int i) {
  const int code = op.widths >> (3 * i) & 7;
  return code == 0 ? 0 : 1 << code;
}

enum class Rounding : std::uint8_t { nearest, zero, down, up, away /* ties away from zero: .rna */ };
[[nodiscard]] Rounding rounding_of(const Instr& instr);  // .rn, .rz, .rm, .rp or .rna; without one of them, nearest

// The order in which a matrix instruction adds; all are fp32 sums. docs/15_virtual_gpu.md describes them.
enum class SumMode : std::uint8_t {
  seq,     // d = c; for k ascending d = round(d + a b): a plain loop
  exact,   // one rounding of the exact sum
  hopper,  // terms aligned to the largest and truncated, as an H100 adds
};
inline constexpr std::array<std::string_view, 3> kSumNames{"seq", "exact", "hopper"};  // of all programs' option sum
[[nodiscard]] constexpr std::string_view name(SumMode sum) {
  return kSumNames[static_cast<std::size_t>(sum)];
}
[[nodiscard]] std::optional<SumMode> sum_from_name(std::string_view name);

// A sum fused with a product: the computation of add or sub with registers d, a, b, c.
enum class Fused : std::uint8_t {
  none,
  plus,        // a b + c
  minus,       // a b - c
  subtracted,  // c - a b
};

// The input of find_op_handler: the instruction, and the widths of the registers in the order of `at` (of the first
// five in `list`, if the op uses it).
struct OpRequest {
  const Instr* instr = nullptr;
  std::array<std::uint8_t, 5> register_bytes{};  // of one lane: 2, 4, 8, 16; 0: a predicate or nothing there
  SumMode sum = SumMode::seq;
  // Elements of the first operand; 0: unspecified. Distinguishes mov.b16 {a, b}, r from mov.b16 r, {a, b}.
  std::uint8_t results = 0;
  Fused fused = Fused::none;  // of add and sub of f32: rounded once
};

// The instruction set that the loops are compiled for. All give the same bits.
enum class Simd : std::uint8_t { baseline, avx2, avx512 };
[[nodiscard]] Simd best_simd();  // of this processor

// The handler of a pure computation; nullptr for all others (memory, control, instructions that wait for other lanes).
// mma and movmatrix count as pure: they execute with all lanes or none.
[[nodiscard]] OpHandler find_op_handler(const OpRequest& request, Simd simd = best_simd());

}  // namespace kvscope::ptx
