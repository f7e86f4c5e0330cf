// Kernels of one instruction each, to compare the virtual GPU with a GPU instruction by instruction.
//
//   const InstructionKernel add = *instruction_kernel("add.rn.f32");   reads {f32, f32}, writes {f32}
//   ptx_of({add})            entry i0: thread t loads the operands of set t, executes add.rn.f32, stores the result
//   operand_sets(add)        kOperandSets sets: edges of the type, random bits, ties, subnormals, neighbors
//
// A set is the operands of one thread. An instruction of a warp (shfl, mma) takes 32 sets together. Memory of a kernel,
// 8 bytes for each value:
//
//   in   [read registers][kOperandSets]      out  [written registers][kOperandSets]
//
// A predicate is 0 or 1; a value of 16 or 32 bits is in the low bits. The carry flag is one more value. Each thread has one
// memory cell for an atomic operation: the cell before it is a value read, the cell after it a value written. Operands
// are a function of the word, the register and the set, so results of one machine can be compared on another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::gpu {

inline constexpr std::int64_t kOperandSets = 2048;

// The numbers that a register is filled with.
enum class Operands : std::uint8_t {
  scalar,    // one number, or two packed ones, of `type`
  matrix,    // numbers of `type` in the range in which products of a matrix are finite, rarely others
  shape,     // a count, a position, a lane
  carry,     // 0 or 1
  divisor,   // a scalar that is not zero
  metadata,  // of a sparse matrix: nibbles that PTX allows
};

struct InstructionRegister {
  ptx::Type type = ptx::Type::none;  // of the numbers
  int bits = 32;                     // of the register; 1: a predicate
  Operands operands = Operands::scalar;
  int same_as = -1;  // index of an earlier register with the same values; -1: none
};

struct InstructionKernel {
  std::string word;                         // "add.rn.f32"
  std::vector<InstructionRegister> reads;   // %a0 ..
  std::vector<InstructionRegister> writes;  // %d0 ..
  std::string text;                         // the statements that compute %d from %a
};

// std::nullopt: the word computes nothing (loads, stores, control), needs another architecture than sm_90a, is mov,
// whose operands have no types, or an atomic operation with an order, a scope, a hint or a vector.
[[nodiscard]] std::optional<InstructionKernel> instruction_kernel(const std::string& word);

// Every word with a kernel, in the order of the instruction set's table (gpu/virtual/isa/grammar.h): each choice of each
// modifier.
[[nodiscard]] const std::vector<std::string>& measured_words();

// A PTX module with entries i0, i1 ..; each has one parameter of 16 bytes: the addresses of `in` and `out`.
[[nodiscard]] std::string ptx_of(std::span<const InstructionKernel> kernels);

// [read registers][kOperandSets]
[[nodiscard]] std::vector<std::uint64_t> operand_sets(const InstructionKernel& kernel);

}  // namespace kvscope::gpu
