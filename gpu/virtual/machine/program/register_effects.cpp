#include "gpu/virtual/machine/program/register_effects.h"

namespace kvscope::ptx {

RegisterEffectsOf::RegisterEffectsOf(const Program& program, std::int32_t function)
    : program_(program), index_(function), function_(program.module->functions[static_cast<std::size_t>(function)]) {}

void RegisterEffectsOf::find(std::int32_t number, RegisterEffects& out) {
  out.reads.clear();
  out.accumulators.clear();
  out.writes.clear();
  const Statement& s = function_.body[static_cast<std::size_t>(number)];
  const Instr& instr = program_.decoded.at(index_, number);
  const auto operands = function_.operands_of(s);
  if (instr.opcode == Opcode::call) {
    call(operands, out);
  } else {
    const std::vector<OperandRule>& rules = rules_of(number, instr, operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Role role = i < rules.size() ? rules[i].role : Role::read;
      if (role == Role::read_written) {
        add(operands[i], out.accumulators);
        add(operands[i], out.reads);
      }
      add(operands[i], role == Role::written ? out.writes : out.reads);
    }
  }
  const auto product = program_.fused.find({index_, number});
  if (product != program_.fused.end()) {
    const auto factors = function_.operands_of(function_.body[static_cast<std::size_t>(product->second)]);
    for (const Operand& o : factors.subspan(1)) add(o, out.reads);
  }
  out.guard = s.guard;
  out.apart = out.writes.size() > 1 || operands.size() > 4;
}

const std::vector<OperandRule>& RegisterEffectsOf::rules_of(std::int32_t number, const Instr& instr,
                                                            std::size_t count) {
  const std::int32_t word = program_.decoded.of[static_cast<std::size_t>(index_)][static_cast<std::size_t>(number)];
  const auto [at, fresh] = rules_.try_emplace({word, count});
  if (fresh && instr.opcode != Opcode::unsupported && instr.unsupported.empty()) {
    at->second = operand_rules(instr, static_cast<int>(count));
  }
  return at->second;
}

void RegisterEffectsOf::add(const Operand& o, std::vector<std::int32_t>& to) const {
  if (o.kind == OperandKind::reg) to.push_back(o.index);
  for (const Operand& e : function_.elements_of(o)) add(e, to);
}

// Results, before the function, are written; all other operands are read.
void RegisterEffectsOf::call(std::span<const Operand> operands, RegisterEffects& out) const {
  bool found = false;
  for (const Operand& o : operands) {
    add(o, o.kind == OperandKind::list && !found ? out.writes : out.reads);
    if (o.kind == OperandKind::function || o.kind == OperandKind::reg) found = true;
  }
}

}  // namespace kvscope::ptx
