// A statement held against the rules of its instruction: how many operands, of which kind, how wide. As lenient as the
// assembler and no more:
//
//   instruction     registers it takes
//   .bN             of N bits, any type           .uN .sN     of N bits, b u or s
//   .f16 .f32 .f64  of that type, and .bN         .bf16 .tf32 .e4m3x2 ...   .bN
//   ld st cvt       also wider ones (b u s; of a float type: b), not narrower
//
//   integer constants   for every type but floats         0f...   f32 f64 b32         0d... 1.5   f32 f64 b64
//   special registers   mov, and cvt between integers     names of variables   mov cvta mapa getctarank
//
//   add.f64 r1, r1, r1    "add.f64: operand 1 'r1' is 32 bits wide, expected 64"
//
// Source: what the assembler of CUDA 13.0 takes and refuses, kept in tests/gpu/virtual/isa/data/operands.txt.
#pragma once

#include <span>
#include <string>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// A statement and what is known about it.
struct Checked {
  const Module& module;
  const Function& function;
  const Statement& statement;
  const Instr& instr;                  // supported
  std::span<const OperandRule> rules;  // operand_rules(instr, statement.operand_count)
};

// The first fault; "": none.
[[nodiscard]] std::string operand_fault(const Checked& s);

// Constants out of the range that the instruction has for them (literal_ranges.cpp); kinds and types are right.
//   bar.sync 16           "barrier number 0..15"
[[nodiscard]] std::string literal_fault(const Checked& s);

}  // namespace kvscope::ptx
