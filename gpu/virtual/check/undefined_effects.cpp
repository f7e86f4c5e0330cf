// The registers of a statement by their role, and the rule for its results.
#include <algorithm>

#include "gpu/virtual/check/undefined_results.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {
namespace {

bool is_integer(Type type) {
  const TypeClass c = class_of(type);
  return c == TypeClass::bits || c == TypeClass::unsigned_integer || c == TypeClass::signed_integer;
}

// Bits of each of two numbers in one register; 0: the type is one number.
int part_bits_of(Type type) {
  switch (type) {
    case Type::f16x2:
    case Type::bf16x2:
    case Type::u16x2:
    case Type::s16x2:
      return 16;
    case Type::f32x2:
      return 32;
    default:
      return 0;
  }
}

UndefinedRule rule_of_arithmetic(const Instr& instr, UndefinedRule of_integers) {
  if (part_bits_of(instr.type()) != 0) return UndefinedRule::parts;
  const bool plain = is_integer(instr.type()) && !instr.has(Mod::sat) && !instr.has(Mod::cc);
  return plain ? of_integers : UndefinedRule::whole;
}

UndefinedRule rule_of_conversion(const Instr& instr, std::size_t operands) {
  if (instr.has(Mod::rs)) return UndefinedRule::whole;
  if (operands == 3) return UndefinedRule::packs;
  const bool plain = is_integer(instr.type(0)) && is_integer(instr.type(1)) && !instr.has(Mod::sat);
  return plain ? UndefinedRule::moves : UndefinedRule::whole;
}

void choose_rule(const Instr& instr, std::size_t operands, UndefinedEffects& e) {
  const auto moves = [&](int control) {
    e.rule = UndefinedRule::moves;
    e.control = control;
  };
  e.part_bits = part_bits_of(instr.type());
  switch (instr.opcode) {
    case Opcode::mov:
    case Opcode::brev:
      return moves(-1);
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::bfe:
      return moves(2);
    case Opcode::shf:
    case Opcode::prmt:
    case Opcode::bfi:
      return moves(3);
    case Opcode::selp:
      e.control = 3;
      e.rule = UndefinedRule::select;
      return;
    case Opcode::cvt:
      e.rule = rule_of_conversion(instr, operands);
      if (e.rule == UndefinedRule::packs) e.part_bits = bits(instr.type()) / 2;
      return;
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::not_:
    case Opcode::lop3:
      e.rule = UndefinedRule::bitwise;
      return;
    case Opcode::add:
      e.rule = rule_of_arithmetic(instr, UndefinedRule::sum);
      return;
    case Opcode::sub:
      e.rule = rule_of_arithmetic(instr, UndefinedRule::difference);
      return;
    case Opcode::mul:
    case Opcode::mad: {
      const bool low = instr.has(Mod::lo) || instr.has(Mod::wide);
      e.rule = rule_of_arithmetic(instr, low ? UndefinedRule::product : UndefinedRule::whole);
      return;
    }
    case Opcode::neg:
      e.rule = rule_of_arithmetic(instr, UndefinedRule::product);
      return;
    case Opcode::fma:
    case Opcode::min:
    case Opcode::max:
    case Opcode::abs:
    case Opcode::ex2:
    case Opcode::tanh:
      e.rule = rule_of_arithmetic(instr, UndefinedRule::whole);
      return;
    case Opcode::setp:
      if (e.part_bits == 0) e.rule = UndefinedRule::compare;
      return;
    default:
      return;
  }
}

class EffectsOf {
 public:
  EffectsOf(const Program& program, std::int32_t function)
      : function_(program.module->functions[static_cast<std::size_t>(function)]),
        code_(program.functions[static_cast<std::size_t>(function)]) {}

  void add(const Operand& o, std::vector<RegisterAt>& to) {
    if (o.kind == OperandKind::reg) {
      const RegisterPlace& place = code_.registers[static_cast<std::size_t>(o.index)];
      const RegisterAt at{place.reg, place.bytes};
      if (place.reg != kNoRegister && std::find(to.begin(), to.end(), at) == to.end()) to.push_back(at);
      partial_ = partial_ || o.value != 0;
    }
    for (const Operand& e : function_.elements_of(o)) add(e, to);
  }
  // An operand was a part of a register: %r1.b0.
  [[nodiscard]] bool partial() const { return partial_; }

 private:
  const Function& function_;
  const FunctionCode& code_;
  bool partial_ = false;
};

}  // namespace

UndefinedEffects undefined_effects(const Program& program, std::int32_t pc) {
  UndefinedEffects out;
  const Op& op = program.ops[static_cast<std::size_t>(pc)];
  out.guard = op.guard;
  const OpSource& source = program.sources[static_cast<std::size_t>(op.source)];
  const Function& function = program.module->functions[static_cast<std::size_t>(source.function)];
  if (static_cast<std::size_t>(source.statement) >= function.body.size()) return out;  // the closing ret
  const Instr& instr = program.instr(op);
  if (!instr.unsupported.empty() || instr.opcode == Opcode::unsupported) return out;
  const auto operands = function.operands_of(function.body[static_cast<std::size_t>(source.statement)]);
  EffectsOf effects(program, source.function);
  if (instr.opcode == Opcode::call) {
    out.of_call = true;
    bool found = false;
    for (const Operand& o : operands) {
      effects.add(o, o.kind == OperandKind::list && !found ? out.writes : out.reads);
      if (o.kind == OperandKind::function || o.kind == OperandKind::reg) found = true;
    }
    return out;
  }
  const std::vector<OperandRule> rules = operand_rules(instr, static_cast<int>(operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Role role = i < rules.size() ? rules[i].role : Role::read;
    if (role == Role::address) effects.add(operands[i], out.addresses);
    if (role == Role::read || role == Role::read_written || role == Role::target) effects.add(operands[i], out.reads);
    if (role == Role::written || role == Role::read_written) effects.add(operands[i], out.writes);
  }
  const auto product = program.fused.find({source.function, source.statement});
  if (product != program.fused.end()) {
    const auto factors = function.operands_of(function.body[static_cast<std::size_t>(product->second)]);
    for (const Operand& o : factors.subspan(1)) effects.add(o, out.reads);
    return out;
  }
  const bool reads_carry = instr.opcode == Opcode::addc || instr.opcode == Opcode::subc || instr.opcode == Opcode::madc;
  if (reads_carry) out.carry_in = op.at[4];
  if (instr.has(Mod::cc)) out.carry_out = op.at[4];
  if (!effects.partial()) choose_rule(instr, operands.size(), out);
  return out;
}

}  // namespace kvscope::ptx
