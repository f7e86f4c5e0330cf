// Checks a statement against the rules of its instruction: number, kind and width of the operands. It accepts exactly
// what the assembler accepts:
//
//   instruction     registers it accepts
//   .bN             of N bits, any type           .uN .sN     of N bits, b u or s
//   .f16 .f32 .f64  of that type, and .bN         .bf16 .tf32 .e4m3x2 ...   .bN
//   ld st cvt       also wider ones (b u s; of a float type: b), not narrower
//
//   integer constants   for each type but floats         0f...   f32 f64 b32         0d... 1.5   f32 f64 b64
//   special registers   mov, and cvt between integers     names of variables   mov cvta mapa getctarank
//
//   add.f64 r1, r1, r1    "add.f64: operand 1 'r1' is 32 bits wide, expected 64"
//
// Source: what the assembler of CUDA 13.0 accepts and rejects, recorded in tests/gpu/virtual/isa/data/operands.txt.
#pragma once

#include <span>
#include <string>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// A statement with its instruction and operand rules.
struct Checked {
  const Module& module;
  const Function& function;
  const Statement& statement;
  const Instr& instr;                  // supported
  std::span<const OperandRule> rules;  // operand_rules(instr, statement.operand_count)
};

// The first fault; "" if there is none.
[[nodiscard]] std::string operand_fault(const Checked& s);

// A fault for a constant outside the range of the instruction (literal_ranges.cpp). Precondition: kinds and types
// match.
//   bar.sync 16           "barrier number 0..15"
[[nodiscard]] std::string literal_fault(const Checked& s);

}  // namespace kvscope::ptx
