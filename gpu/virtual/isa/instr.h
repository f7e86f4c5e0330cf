// One opcode word, decoded: what the instruction does, without its operands. A module has few distinct words (about 200
// in 40 000 instructions), so each word is decoded once and shared by its statements.
//
//   "mul.wide.s32"          {mul, {wide}, types {s32}}        operands  d: 64 bits written, a and b: 32 read
//   "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"     {mma, ..., shape 16 8 16, types {f32, bf16, bf16, f32}}
//
// Modifiers come in any order. A word that the assembler rejects is an error. Types are checked as leniently as by the
// assembler: register and instruction need the same width, and float does not match integer, but .bN matches all types.
// Valid PTX that the machine does not support, and unknown words, are `unsupported`: such a statement becomes a trap
// that reports the reason.
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

// The role of one operand in an instruction.
enum class Role : std::uint8_t {
  written,       // a register, or a vector of them, or _
  read,          // a register or a constant
  read_written,  // wgmma's accumulators; the carry of addc is not an operand
  address,       // [...]
  target,        // label, function, table
  arguments,     // (a, b) of a call
};

enum class Braces : std::uint8_t { none, allowed, required };

struct OperandRule {
  Role role = Role::read;
  Type type = Type::none;         // of each element; .pred for predicates; b32 for shift amounts
  std::int32_t elements = 1;      // exact number for a vector operand
  Space space = Space::generic;   // of an address
  std::int32_t coordinates = 0;   // of an address: [map, {c0, c1}] has two
  Type second = Type::none;       // of a pair d|p: the type of p; none: pairs are not accepted
  bool pair = false;              // only a pair is accepted: elect
  Type alternative = Type::none;  // a second accepted type: cp.async a size or a predicate, wgmma's A one descriptor
  bool or_address = false;        // an address is accepted too: tcgen05.mma's A
  bool constant = false;          // a number in the text, not a register
  bool in_register = false;       // a register of exactly this type, not a number: the random bits of cvt.rs
  bool wider = false;             // registers may be wider than the type: ld, st, cvt
  bool packs = false;             // mov: a vector is the pieces of one value of `type`
  Braces braces = Braces::none;   // whether the operand may or must be a vector: {a}, {a, b}
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
  bool only_100a = false;         // tcgen05: sm_100 to sm_110, with the suffix a or f
  bool only_120a = false;         // mma with block scales: sm_120, sm_121, with the suffix a or f
  std::int32_t form = -1;         // the row of the grammar (gpu/virtual/isa/grammar.h) that the word is an example of
  std::string unsupported;        // "needs textures, not modeled", "unknown opcode 'foo'"; "": can be run

  [[nodiscard]] bool has(Mod mod) const { return mods.test(static_cast<std::size_t>(mod)); }
  [[nodiscard]] Type type(int i = 0) const { return types[static_cast<std::size_t>(i)]; }
};

// The block scales of a row of A, of a word with .block_scale: 1, 2 or 4.
[[nodiscard]] int block_scales_of(const Instr& instr);
// Whether A is sparse: mma.sp, wgmma.mma_async.sp, tcgen05.mma.sp.
[[nodiscard]] inline bool is_sparse(const Instr& instr) {
  return instr.has(Mod::sp) || instr.has(Mod::sp_ordered_metadata);
}

// Decodes the word alone. A fault is stored in `unsupported`.
[[nodiscard]] Instr understand(std::string_view word);

// The address space that the word names: ld.shared -> shared, ld -> generic. For copies with two addresses use
// operand_rules.
[[nodiscard]] Space space_of(const Instr& instr);

// One rule per operand, in the order written, for a statement of `operand_count` operands; empty if the opcode does not
// accept that number (or accepts none). A pair d|p is one operand. Precondition: `instr` is supported. For call, the
// kind of an operand determines its role (lists are arguments, the rest targets); the rules returned here are all
// `target`.
[[nodiscard]] std::vector<OperandRule> operand_rules(const Instr& instr, int operand_count);

struct UnsupportedStatement {
  std::int32_t function = 0;
  std::int32_t statement = 0;
  std::string message;  // "unknown opcode 'foo'", "unknown modifier '.v3'", "needs textures, not modeled"
};

// All statements of a module, decoded.
struct Decoded {
  std::vector<Instr> instrs;                  // one per distinct word
  std::vector<std::vector<std::int32_t>> of;  // [function][statement]: index in instrs
  std::vector<TextError> errors;              // types, operand kinds and counts, literals out of range; at most 20
  std::vector<UnsupportedStatement> unsupported;

  [[nodiscard]] const Instr& at(std::int32_t function, std::int32_t statement) const {
    return instrs[static_cast<std::size_t>(
        of[static_cast<std::size_t>(function)][static_cast<std::size_t>(statement)])];
  }
};
// `target`: the architecture of the machine, 90 for sm_90a; an instruction that needs a later one is unsupported.
[[nodiscard]] Decoded decode(const Module& module, int target = 90);

}  // namespace kvscope::ptx
