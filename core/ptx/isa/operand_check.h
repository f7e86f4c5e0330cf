// A statement held against the rules of its instruction: how many operands, of which kind, how wide, which numbers. As
// lenient as the assembler and no more:
//
//   .bN register          with any type of the same width        u and s mixed        a float and an integer: refused
//   ld st cvt             registers may be wider than an integer type
//   shift amounts         a register of 32 bits
//
//   add.f64 r1, r1, r1    "add.f64: operand 1 'r1' is 32 bits wide, expected 64"
//
// Source: what the assembler of CUDA 13.0 takes and refuses (tests/core/ptx/isa/data).
#pragma once

#include <optional>

#include "core/ptx/isa/instr.h"
#include "core/ptx/text/module.h"
#include "core/ptx/text/parser.h"

namespace kvscope::ptx {

// The first fault of the statement. `instr` is supported.
[[nodiscard]] std::optional<TextError> check_operands(const Module& module, const Function& function,
                                                      const Statement& statement, const Instr& instr);

}  // namespace kvscope::ptx
