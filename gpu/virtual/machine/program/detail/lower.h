// The steps of make_program (program.h), one function at a time:
//
//   layout    offsets of variables: in shared memory by kernel, in an activation                  lower_layout.cpp
//   operands  registers, constants, addresses -> places in the buffer                             lower_operands.cpp
//   ops       a statement -> an Op: its handler, operands, branch target, call arguments          lower.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/machine/program/detail/function_registers.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

// --- layout ----------------------------------------------------------------------------------------------------------

// Program::placements, and local_bytes and param_bytes of every function.
void place_activation_variables(const Module& module, Program& program);
// Program::kernels. Does not use `program.calls` or the ops: the call graph is read from the statements.
void lay_out_kernels(const Module& module, Program& program);

// --- operands --------------------------------------------------------------------------------------------------------

// The operands of an Op under construction.
struct OperandRegisters {
  struct Place {
    std::uint32_t reg = kNoRegister;
    std::uint8_t bytes = 0;
  };
  std::vector<Place> flat;                            // all registers in the order written
  std::array<std::int32_t, 4> first{-1, -1, -1, -1};  // index in flat where operand i begins
  Place second;                                       // p of a pair d|p
  bool has_second = false;
  std::array<std::int64_t, 4> offsets{};  // of addresses
  int addresses = 0;
  bool lists = false;  // it has a vector, coordinates, more than four operands or more than one address
  bool uniform_address = false;
  std::uint8_t negated = 0;
  std::string rejection;  // why the machine does not support the statement; "": supported
};

// The statement's operands, interpreted by the rules of its instruction. `program` supplies placements.
[[nodiscard]] OperandRegisters operand_registers(const Module& module, const Function& function,
                                                 const Statement& statement, const std::vector<OperandRule>& rules,
                                                 const Program& program, FunctionRegisters& registers);

// The bits of a literal as a value of that type: 1.5 for f32 is 0x3fc00000.
[[nodiscard]] std::uint64_t literal_bits(const Operand& operand, Type type);

// --- ops -------------------------------------------------------------------------------------------------------------

void lower_function(std::int32_t index, const ProgramOptions& options, Program& program);

}  // namespace kvscope::ptx
