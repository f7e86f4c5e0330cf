// The instruction set as a table of text, one row per form, in the order and notation of the PTX ISA:
//
//   opcode   words                         operands      accepts
//   "mul"    "lo|hi <int>"                 "=T T T"      mul.lo.s32 d, a, b      all of type s32
//   "mul"    "wide u16|u32|s16|s32"        "=W T T"      mul.wide.s32 d, a, b    d of twice the width
//   "fma"    "<rnd> ftz? sat? f32"         "=T T T T"    fma.rn.ftz.f32, fma.ftz.rn.f32
//
// Words that may follow the opcode, in any order; only types keep their order.
//   a|b|c      one of them                 a?   may be missing          a*   any number of them
//   <rnd>      a named group of words        {memory}     one row for each of several words; both are in grammar.cpp
//   lo/unsigned   written ".lo", meaning Mod::lo_unsigned (opcode.h)
//   u32 f16x2     a type: the first is T, then T2, T3, T4              v2 v4 v8   the vector size
//   m16n8k16      a matrix shape; m64nNk16: N = 8, 16 .. 256; m64nMk32: M = 8, 16, 24, 32, 48 .. 256
//
// Operands, in the order written:
//   T T2 T3 T4  that type     W  T's class, twice as wide     u32 pred ..  this type     L  label, function
//   A  address in the space given by the words     A:shared  in this space     M  tensor map, coordinates: [map, {..}]
//   Rd Ra Rb Rc   the registers of a matrix       _  only _
//   =x  written     +x  read and written     #x  a constant     ~x  registers may be wider (ld, st, cvt)
//   x*v  a vector of the word's size     x*n  of .x1 .x2 .x4 ..  x|pred  a pair d|p     x|pred?  x or a pair
//   x*m  a vector of a bit for each lane of tensor memory: 4 of 32 bits, 8 with .cta_group::2
//   x*p  two x in braces     x*q  four x in braces     %x  a register of exactly this type, not a constant
//   x/y  x or y     x/A  x or an address     x&  or {a, b, ...}, the pieces of one x (mov)
//   x?   may be missing     mask, policy  present if the words include .multicast::cluster, .L2::cache_hint
//
// Source: PTX ISA 9.0, the syntax at the head of each instruction; where it is ambiguous, the assembler of CUDA 13.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/isa/opcode.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

struct Form {
  std::string_view base;  // "barrier.cta.sync": the prefix of the word
  std::string_view words;
  std::string_view operands;
  std::int32_t target = 0;  // the minimum; 90 for sm_90
};
inline constexpr std::int32_t kOnly90a = 9000;    // Form::target of wgmma
inline constexpr std::int32_t kOnly100a = 10000;  // of tcgen05: sm_100a, sm_103a, sm_110a, not sm_120
inline constexpr std::int32_t kOnly120a = 12000;  // of mma with 6 and 4 bits or block scales: sm_120a, sm_121a

// The forms by family, one source file each.
[[nodiscard]] std::span<const Form> integer_forms();
[[nodiscard]] std::span<const Form> bit_forms();
[[nodiscard]] std::span<const Form> float_forms();
[[nodiscard]] std::span<const Form> convert_forms();
[[nodiscard]] std::span<const Form> memory_forms();
[[nodiscard]] std::span<const Form> atomic_forms();
[[nodiscard]] std::span<const Form> warp_forms();
[[nodiscard]] std::span<const Form> control_forms();
[[nodiscard]] std::span<const Form> barrier_forms();
[[nodiscard]] std::span<const Form> copy_forms();
[[nodiscard]] std::span<const Form> mbarrier_forms();
[[nodiscard]] std::span<const Form> matrix_forms();
[[nodiscard]] std::span<const Form> tensor_forms();

// PTX features that the machine does not support. `base` "": of any opcode. `word` "": the whole opcode.
struct Refusal {
  std::string_view base;
  std::string_view word;
  std::string_view message;
};
[[nodiscard]] std::span<const Refusal> refusals();

// A parsed form: the content of its words and operands.
struct Choice {
  enum class Kind : std::uint8_t { mod, type, vector, shape } kind = Kind::mod;
  std::string written;
  Mod mod = Mod::count;
  Type type = Type::none;
  std::int32_t vector = 1;
  MatrixShape shape;
  std::int32_t n_step = 0;  // of a shape: n is any multiple of this up to 256; 16: also 8 and 24
};

struct Slot {
  std::vector<Choice> choices;
  bool optional = false;
  bool repeated = false;
};

struct OperandPattern {
  enum class TypeFrom : std::uint8_t { fixed, word, wide, matrix };
  enum class Elements : std::uint8_t { one, vector, matrices, fragment, lane_mask, pair, four };
  OperandRule rule;                      // the part that does not depend on the word
  TypeFrom type_from = TypeFrom::fixed;  // rule.type
  std::int32_t which = 0;                // word: T, T2 .. from 0; matrix: 'd', 'a', 'b', 'c'
  Elements elements = Elements::one;
  bool space_from_word = false;
  bool map = false;
  bool optional = false;
  Mod when = Mod::count;  // count: always
};

struct Pattern {
  const Form* form = nullptr;
  Opcode opcode = Opcode::unsupported;
  std::vector<Slot> slots;
  std::vector<OperandPattern> operands;
};

inline constexpr int kMostOperands = 10;

// Whether the instruction accepts a statement without operands: true for ret, false for bar.warp.sync.
[[nodiscard]] bool takes_no_operand(const Instr& instr);

// All patterns, in the order of the files above; Instr::form is an index into them. Parsed at the first call.
[[nodiscard]] std::span<const Pattern> patterns();
[[nodiscard]] std::span<const std::int32_t> patterns_of(std::string_view base);  // empty: unknown opcode

}  // namespace kvscope::ptx
