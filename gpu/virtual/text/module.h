// A parsed PTX file: its functions and their statements, with every name resolved. Errors of the text (a missing
// semicolon, an unknown register, a duplicate label) are found here. The meaning of opcodes is in gpu/virtual/isa.
//
//   .visible .entry scale(.param .u64 x) {            functions[0]: entry "scale", parameters {x: u64 at 0}
//     .reg .b32 %r<3>;                                 registers: %r0 %r1 %r2
//     .loc 1 7 3                                       frames[0]: file 1 line 7 column 3
//     @%p1 bra DONE;                                   body[0]: opcode "bra", guard %p1, operand label -> statement 2
//     add.s32 %r1, %r2, 4;                             body[1]: opcode "add.s32", operands reg reg integer, frame 0
//   DONE: ret;                                         body[2]
//   }
//
// All references are indexes into flat arrays; string views point into `text`, which the module owns. A module is a
// value: it may be copied and moved (the text is shared).
// Source of the grammar: PTX ISA, "Syntax", "State Spaces, Types, and Variables", "Directives", and the output of nvcc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

// A position in the PTX text, counted from 1; a tab is one column.
struct TextPlace {
  std::int32_t line = 0;
  std::int32_t column = 0;
  friend bool operator==(const TextPlace&, const TextPlace&) = default;
};

// A place in the sources that the PTX was compiled from. With inlining, `outer` is the call site.
struct Frame {
  std::int32_t file = 0;  // the file's number in Module::files; 0: none
  std::int32_t line = 0;
  std::int32_t column = 0;
  std::int32_t outer = -1;    // Module::frames
  std::string_view function;  // the inlined function that contains the line, not demangled; "" for the outermost frame
};

struct SourceFile {
  std::int32_t number = 0;
  std::string path;  // as written
};

enum class OperandKind : std::uint8_t {
  reg,          // index: Function::registers; value not 0: a part of it, "b3210" of %r1.b3210, its letters as bytes
  special,      // index: a SpecialRegister
  integer,      // value: 64 bits; the user of the operand truncates it to its width
  float_bits,   // 0f...: value: the 32 bits
  double_bits,  // 0d... or 1.5: value: the 64 bits
  variable,     // index: Module::variables, plus value [bytes]: its address. Also kernel and call parameters
  function,     // index: Module::functions: its address
  label,        // index: the statement of the body that follows it (body.size(): the end)
  address,  // [base + value]: elements[0] is reg, variable or integer; optional elements[1] is a vector of coordinates
  vector,   // {a, b, ...}: elements
  pair,     // d|p: two elements
  list,     // (a, b): arguments or results of a call
  sink,     // _
  table,    // index: Function::tables: .branchtargets, .calltargets, or a .callprototype
};

struct Operand {
  OperandKind kind = OperandKind::sink;
  bool negated = false;     // !p
  std::int32_t index = -1;  // see kind
  std::int32_t first = 0;   // Function::operands: elements
  std::int32_t count = 0;   // of elements
  std::int32_t column = 0;  // in the PTX text
  std::int64_t value = 0;   // see kind
};

enum class SpecialRegister : std::int16_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock64,
  clock_hi,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  aggr_smem_size,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  reserved_smem_offset_0,
  reserved_smem_offset_1,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  envreg0,  // .. envreg0 + 31
  count = envreg0 + 32,
};
[[nodiscard]] std::string name(SpecialRegister special);  // "%tid.x", "%envreg3"
// `name` with its %; %tid alone (a vector) returns tid_x, and the operand is a vector of x, y, z, 0.
[[nodiscard]] std::optional<SpecialRegister> special_from_name(std::string_view name);
[[nodiscard]] int bits(SpecialRegister special);  // 64: clock64, globaltimer; 1: is_explicit_cluster; else 32

struct Register {
  std::string_view name;     // "%r" of "%r<516>", or the whole name
  std::int32_t number = -1;  // in a range: 12 for %r12
  Type type = Type::none;
  std::int8_t element = -1;  // a .v2 or .v4 register is 2 or 4 registers, named v.x v.y v.z v.w: 1 for v.y
};

enum class Linkage : std::uint8_t { internal, visible, weak, external, common };

// One item of an initializer: a number, or the address of a symbol plus a number.
struct InitItem {
  enum class Kind : std::uint8_t { bits, variable, generic_variable, function } kind = Kind::bits;
  std::int32_t index = -1;     // Module::variables or functions
  std::int64_t value = 0;      // the bits, or the offset added to the address
  std::int32_t byte_mask = 0;  // 0xFF00(sym): bit 1, for byte 1 of the address only; 0: the whole address
};

// A variable in any space except reg: of the module, of a function's body, or a parameter of a kernel or call.
struct Variable {
  std::string_view name;
  Space space = Space::generic;
  Type type = Type::none;
  std::int32_t vector = 1;
  std::int64_t align = 1;  // [bytes]
  std::int64_t bytes = 0;  // total; 0: extern with [], sized by the launch
  std::vector<std::int64_t> extents;
  Linkage linkage = Linkage::internal;
  std::vector<InitItem> init;            // element by element; missing items are zero
  std::int32_t function = -1;            // the function whose body declares it; -1: the module
  std::int32_t parameter_offset = -1;    // [bytes] in the parameter block of a kernel or function; -1: none
  Space pointer_space = Space::generic;  // .ptr .global
  std::int64_t pointer_align = 0;        // [bytes] alignment of the target; 0: not declared as a pointer
  std::int32_t in_register = -1;         // a parameter of a .func in space reg: its index in Function::registers
  std::string_view opaque;               // "texref", "samplerref", "surfref": type none, no bytes
  TextPlace at;
};

struct KernelLimits {
  std::array<std::int32_t, 3> max_threads{};       // .maxntid; 0: not given
  std::array<std::int32_t, 3> required_threads{};  // .reqntid
  std::array<std::int32_t, 3> cluster{};           // .reqnctapercluster
  std::int32_t max_cluster_rank = 0;
  std::int32_t max_registers = 0;
  std::int32_t min_ctas = 0;
  std::int32_t max_ctas = 0;
  bool explicit_cluster = false;
  bool no_return = false;
};

struct Statement {
  std::string_view opcode;  // the whole dotted word: "ld.global.nc.v4.f32"
  std::int32_t first_operand = 0;
  std::int32_t operand_count = 0;
  std::int32_t guard = -1;  // Function::registers; -1: none
  bool guard_negated = false;
  std::int32_t frame = -1;  // Module::frames
  TextPlace at;             // of the opcode
};

struct Label {
  std::string_view name;
  std::int32_t statement = 0;
};

// .branchtargets and .calltargets: the possible targets. A .callprototype has only `prototype`.
struct TargetTable {
  std::string_view name;
  bool of_calls = false;
  std::vector<std::int32_t> targets;  // statements, or functions if of_calls
  std::int32_t prototype = -1;        // Module::functions: the declaration made from it
};

struct Function {
  std::string_view name;  // "": made from a .callprototype
  bool entry = false;
  bool defined = false;  // has a body
  Linkage linkage = Linkage::internal;
  std::vector<std::int32_t> parameters;  // Module::variables, in order
  std::vector<std::int32_t> results;     // of a .func; they have no parameter_offset
  std::int64_t parameter_bytes = 0;
  // .alias: the function it refers to; operands and initializers already refer to that function.
  std::int32_t alias_of = -1;
  KernelLimits limits;
  std::vector<Register> registers;
  std::vector<std::int32_t> variables;  // Module::variables declared in the body, call parameters included
  std::vector<Statement> body;
  std::vector<Operand> operands;
  std::vector<Label> labels;
  std::vector<TargetTable> tables;
  TextPlace at;        // of the name in the definition, or in a declaration if there is none
  TextPlace declared;  // of its first occurrence

  [[nodiscard]] std::span<const Operand> operands_of(const Statement& s) const {
    return std::span(operands).subspan(static_cast<std::size_t>(s.first_operand),
                                       static_cast<std::size_t>(s.operand_count));
  }
  [[nodiscard]] std::span<const Operand> elements_of(const Operand& o) const {
    return std::span(operands).subspan(static_cast<std::size_t>(o.first), static_cast<std::size_t>(o.count));
  }
};

// The text between the braces of the file's debug sections; "": it has none. debug_info.h reads the types in them.
struct DebugSections {
  std::string_view strings, abbreviations, info;
};

struct Module {
  std::string file;  // the file name given by the caller
  std::shared_ptr<const std::string> text;
  std::int32_t version = 0;  // 90 for ".version 9.0"
  std::int32_t target = 0;   // 90 for sm_90a
  char target_suffix = 0;    // 'a', 'f' or 0
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<SourceFile> files;
  std::vector<Frame> frames;
  DebugSections debug;
  std::vector<std::string_view> lines;  // of the text, for carets and displays
  // Targets of views that are not contiguous in the text: names in .debug_str, an opcode written with blanks.
  std::shared_ptr<const std::deque<std::string>> pieces;

  // -1: not found.
  [[nodiscard]] std::int32_t find_function(std::string_view name) const;
  [[nodiscard]] std::int32_t find_variable(std::string_view name) const;  // of the module
  [[nodiscard]] std::string_view file_of(const Frame& frame) const;       // "" if it has none
};

[[nodiscard]] std::string name(const Register& r);  // "%r12"

}  // namespace kvscope::ptx
