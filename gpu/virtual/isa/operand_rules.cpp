#include <algorithm>
#include <cstddef>

#include "gpu/virtual/isa/grammar.h"
#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {
namespace {

// mul.wide: twice the width, the same class.
Type twice_as_wide(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return type;
  }
}

// Types are D A B C; for wmma.mma with f16 inputs D C; for a wmma.load or store its single type.
Type element_of(const Instr& instr, char matrix) {
  if (instr.type_count == 1) return instr.type(0);
  if (instr.type_count == 2) return matrix == 'd' ? instr.type(0) : matrix == 'c' ? instr.type(1) : Type::f16;
  switch (matrix) {
    case 'd':
      return instr.type(0);
    case 'a':
      return instr.type(1);
    case 'b':
      return instr.type(2);
    default:
      return instr.type(3);
  }
}

Type register_of(Type element) {
  if (element == Type::f32 || element == Type::f64 || element == Type::s32) return element;
  return Type::b32;  // packed, or tf32
}

// Bits of an element of A or B in a register: .kind::f8f6f4 and mxf8f6f4 have 8 for each type.
std::int32_t stored_bits(const Instr& instr, Type element) {
  return instr.has(Mod::kind_f8f6f4) || instr.has(Mod::kind_mxf8f6f4) ? 8 : bits(element);
}

// m16n8k16 of bf16: A 16 x 16 x 16 bits over 32 lanes: 4 registers; D 16 x 8 x 32 bits: 4. A sparse A has half.
std::int32_t registers_of(const Instr& instr, char matrix, Type element) {
  const bool wmma =
      instr.opcode == Opcode::wmma_load || instr.opcode == Opcode::wmma_store || instr.opcode == Opcode::wmma_mma;
  const bool input = matrix == 'a' || matrix == 'b';
  if (wmma && input && element == Type::f16) return 8;  // PTX ISA: eight registers of f16x2 for each shape
  const std::int32_t rows = matrix == 'b' ? instr.shape.k : instr.shape.m;
  const std::int32_t of_a = is_sparse(instr) ? instr.shape.k / 2 : instr.shape.k;
  const std::int32_t columns = matrix == 'a' ? of_a : instr.shape.n;
  const std::int32_t lanes = instr.opcode == Opcode::wgmma_mma_async ? 128 : 32;
  return rows * columns * (input ? stored_bits(instr, element) : bits(element)) / lanes / bits(register_of(element));
}

// The wmma fragment that a load or store accesses.
char matrix_of(const Instr& instr, char written) {
  if (instr.opcode == Opcode::wmma_load && instr.has(Mod::b)) return 'b';
  return written;
}

// The registers of .x1 .x2 ..: of a matrix move its matrices, of a tensor memory access one or more for each repeat.
std::int32_t repeated_registers(const Instr& instr) {
  constexpr Mod kRepeats[] = {Mod::x1, Mod::x2, Mod::x4, Mod::x8, Mod::x16, Mod::x32, Mod::x64, Mod::x128};
  std::int32_t count = instr.has(Mod::shape_16x256b) ? 4 : instr.has(Mod::shape_16x128b) ? 2 : 1;
  for (const Mod repeat : kRepeats) {
    if (instr.has(repeat)) return count;
    count *= 2;
  }
  return 1;
}

std::int32_t coordinates(const Instr& instr) {
  if (instr.has(Mod::tile_gather4) || instr.has(Mod::tile_scatter4)) return 5;  // a column and four rows
  for (int d = 0; d < 5; ++d) {
    if (instr.has(static_cast<Mod>(static_cast<int>(Mod::d1) + d))) return d + 1;
  }
  return 0;
}

OperandRule rule_of(const Instr& instr, const OperandPattern& p) {
  OperandRule rule = p.rule;
  switch (p.type_from) {
    case OperandPattern::TypeFrom::fixed:
      break;
    case OperandPattern::TypeFrom::word:
      rule.type = instr.type(p.which);
      break;
    case OperandPattern::TypeFrom::wide:
      rule.type = twice_as_wide(instr.type());
      break;
    case OperandPattern::TypeFrom::matrix: {
      const char matrix = matrix_of(instr, static_cast<char>(p.which));
      const Type element = element_of(instr, matrix);
      rule.type = register_of(element);
      rule.elements = registers_of(instr, matrix, element);
      break;
    }
  }
  if (p.elements == OperandPattern::Elements::vector) rule.elements = instr.vector;
  if (p.elements == OperandPattern::Elements::matrices) rule.elements = repeated_registers(instr);
  if (p.elements == OperandPattern::Elements::lane_mask) rule.elements = instr.has(Mod::cta_group_2) ? 8 : 4;
  if (p.elements == OperandPattern::Elements::pair) rule.elements = 2;
  if (p.elements == OperandPattern::Elements::four) rule.elements = 4;
  if (p.elements == OperandPattern::Elements::vector) rule.braces = Braces::allowed;
  if (rule.elements > 1 || p.elements == OperandPattern::Elements::matrices ||
      p.elements == OperandPattern::Elements::fragment) {
    rule.braces = Braces::required;
  }
  if (p.space_from_word) rule.space = space_of(instr);
  if (p.map) rule.coordinates = coordinates(instr);
  return rule;
}

}  // namespace

int block_scales_of(const Instr& instr) {
  if (instr.has(Mod::kind_mxf8f6f4)) return 1;
  return instr.has(Mod::scale_vec_4X) || instr.has(Mod::block16) ? 4 : 2;
}

Space space_of(const Instr& instr) {
  if (instr.has(Mod::shared) || instr.has(Mod::shared_cta) || instr.has(Mod::shared_cluster)) return Space::shared;
  if (instr.has(Mod::global)) return Space::global;
  if (instr.has(Mod::param) || instr.has(Mod::param_entry) || instr.has(Mod::param_func)) return Space::param;
  if (instr.has(Mod::local)) return Space::local;
  if (instr.has(Mod::const_)) return Space::constant;
  return Space::generic;
}

bool takes_no_operand(const Instr& instr) {
  if (instr.opcode == Opcode::call) return false;
  return std::ranges::all_of(patterns()[static_cast<std::size_t>(instr.form)].operands,
                             [](const OperandPattern& p) { return p.optional; });
}

std::vector<OperandRule> operand_rules(const Instr& instr, int operand_count) {
  std::vector<OperandRule> rules;
  if (instr.form < 0 || operand_count < 0) return rules;
  if (instr.opcode == Opcode::call) {
    if (operand_count >= 1 && operand_count <= 4) {
      rules.resize(static_cast<std::size_t>(operand_count), {.role = Role::target});
    }
    return rules;
  }

  std::vector<const OperandPattern*> present;
  int required = 0;
  for (const OperandPattern& p : patterns()[static_cast<std::size_t>(instr.form)].operands) {
    if (p.when != Mod::count && !instr.has(p.when)) continue;
    present.push_back(&p);
    if (!p.optional) ++required;
  }
  int spare = operand_count - required;  // for the optional operands, in order
  if (spare < 0) return rules;
  for (const OperandPattern* p : present) {
    if (p->optional && spare-- <= 0) continue;
    rules.push_back(rule_of(instr, *p));
  }
  if (rules.size() != static_cast<std::size_t>(operand_count)) rules.clear();
  return rules;
}

}  // namespace kvscope::ptx
