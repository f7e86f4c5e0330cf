// One opcode word understood: what the instruction does, before its operands. A module has few distinct words (some 200
// in 40 000 instructions), so each is understood once and shared by its statements.
//
//   "mul.wide.s32"          {mul, {wide}, types {s32}}        operands  d: 64 bits written, a and b: 32 read
//   "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"     {mma, ..., shape 16 8 16, types {f32, bf16, bf16, f32}}
//
// Modifiers come in any order. What the assembler refuses is an error, with the assembler's leniency (types of register
// and an instruction: the same width, and not float against integer, but .bN goes with everything). An opcode that
// PTX has and this machine has not, and a word that is none, are `unsupported`: the statement is a trap that says so.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/isa/opcode.h"
#include "gpu/virtual/text/module.h"
#include "gpu/virtual/text/parser.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

struct MatrixShape {
  std::int32_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

// What one operand of the statement is to the instruction.
enum class Role : std::uint8_t {
  written,       // a register, or a vector of them, or _
  read,          // a register or a constant
  read_written,  // wgmma's accumulators, addc's carry stays hidden
  address,       // [...]
  target,        // label, function, table
  arguments,     // (a, b) of a call
};

enum class Braces : std::uint8_t { none, allowed, required };

struct OperandRule {
  Role role = Role::read;
  Type type = Type::none;         // of each element; .pred for predicates; b32 for shift amounts
  std::int32_t elements = 1;      // of a vector operand: exactly so many
  Space space = Space::generic;   // of an address
  std::int32_t coordinates = 0;   // of an address: [map, {c0, c1}] has two
  Type second = Type::none;       // of a pair d|p: the type of p; none: no pair goes here
  bool pair = false;              // only a pair goes here: elect
  Type alternative = Type::none;  // what else may stand here: cp.async a size or a predicate, wgmma's A one descriptor
  bool constant = false;          // a number of the text, no register
  bool wider = false;             // registers may be wider than the type: ld, st, cvt
  bool packs = false;             // mov: a vector here is the pieces of one value of `type`
  Braces braces = Braces::none;   // may or must it be a vector: {a}, {a, b}
};

struct Instr {
  Opcode opcode = Opcode::unsupported;
  Mods mods;
  std::array<Type, 5> types{};  // in the order written
  std::int32_t type_count = 0;
  std::int32_t vector = 1;  // .v2 .v4 .v8
  MatrixShape shape;
  std::int32_t least_target = 0;  // 90: sm_90
  bool only_90a = false;          // wgmma, setmaxnreg: neither before nor after
  std::int32_t form = -1;         // the row of the grammar (gpu/virtual/isa/grammar.h) that the word is an example of
  std::string unsupported;        // "needs tensor memory, not modelled", "unknown opcode 'foo'"; "": can be run

  [[nodiscard]] bool has(Mod mod) const { return mods.test(static_cast<std::size_t>(mod)); }
  [[nodiscard]] Type type(int i = 0) const { return types[static_cast<std::size_t>(i)]; }
};

// The word alone. What is wrong with it is in `unsupported`.
[[nodiscard]] Instr understand(std::string_view word);

// The space that the word names for its address: ld.shared -> shared, ld -> generic. Of a copy with two addresses see
// operand_rules.
[[nodiscard]] Space space_of(const Instr& instr);

// One rule an operand, in the order written, for a statement of `operand_count` of them; empty when the opcode takes
// another number (or none). A pair d|p is one operand. `instr` must be supported. What an operand of call is its kind
// says, lists are arguments and the rest targets; the rules here say target for all.
[[nodiscard]] std::vector<OperandRule> operand_rules(const Instr& instr, int operand_count);

struct UnsupportedStatement {
  std::int32_t function = 0;
  std::int32_t statement = 0;
  std::string message;  // "unknown opcode 'foo'", "unknown modifier '.v3'", "needs tensor memory, not modelled"
};

// Every statement of a module, understood.
struct Decoded {
  std::vector<Instr> instrs;                  // one a distinct word
  std::vector<std::vector<std::int32_t>> of;  // [function][statement]: instrs
  std::vector<TextError> errors;              // types, operand kinds and counts, literals out of range; 20 at most
  std::vector<UnsupportedStatement> unsupported;

  [[nodiscard]] const Instr& at(std::int32_t function, std::int32_t statement) const {
    return instrs[static_cast<std::size_t>(
        of[static_cast<std::size_t>(function)][static_cast<std::size_t>(statement)])];
  }
};
// `target`: what the machine stands for, 90 for sm_90a; an instruction that needs a newer one is unsupported.
[[nodiscard]] Decoded decode(const Module& module, int target = 90);

}  // namespace kvscope::ptx
