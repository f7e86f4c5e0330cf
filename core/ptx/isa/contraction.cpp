// Products and sums that the assembler fuses: seen in the machine code it writes, unless one of the two names a
// rounding.
#include <cstddef>

#include "core/ptx/isa/survey.h"

namespace kvscope::ptx {
namespace {

bool rounds_as_it_likes(const Instr& instr) {
  return instr.type_count == 1 && instr.type() == Type::f32 && !instr.has(Mod::rn) && !instr.has(Mod::rz) &&
         !instr.has(Mod::rm) && !instr.has(Mod::rp) && !instr.has(Mod::sat);
}

// How often a register stands somewhere, and where it stood last.
struct Uses {
  std::int32_t count = 0;
  std::int32_t last = -1;
};

// Every mention of a register in a statement, written or read.
template <typename Visit>
void visit_registers(const Function& function, std::span<const Operand> operands, const Visit& visit) {
  for (const Operand& o : operands) {
    if (o.kind == OperandKind::reg) visit(static_cast<std::size_t>(o.index));
    visit_registers(function, function.elements_of(o), visit);
  }
}

}  // namespace

std::vector<ContractionPair> contraction_pairs(const Module& module, const Decoded& decoded) {
  std::vector<ContractionPair> pairs;
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const Function& function = module.functions[f];
    const auto instr_of = [&](std::size_t s) -> const Instr& {
      return decoded.at(static_cast<std::int32_t>(f), static_cast<std::int32_t>(s));
    };
    std::vector<Uses> uses(function.registers.size());
    for (std::size_t s = 0; s < function.body.size(); ++s) {
      visit_registers(function, function.operands_of(function.body[s]), [&](std::size_t r) {
        ++uses[r].count;
        uses[r].last = static_cast<std::int32_t>(s);
      });
      if (function.body[s].guard >= 0) ++uses[static_cast<std::size_t>(function.body[s].guard)].count;
    }
    for (std::size_t s = 0; s < function.body.size(); ++s) {
      const Instr& product = instr_of(s);
      const auto operands = function.operands_of(function.body[s]);
      if (product.opcode != Opcode::mul || !rounds_as_it_likes(product) || operands.size() != 3) continue;
      if (operands[0].kind != OperandKind::reg) continue;
      const Uses& use = uses[static_cast<std::size_t>(operands[0].index)];
      if (use.count != 2 || use.last <= static_cast<std::int32_t>(s)) continue;  // written here, read once later
      const Instr& sum = instr_of(static_cast<std::size_t>(use.last));
      const bool is_sum = sum.opcode == Opcode::add || sum.opcode == Opcode::sub;
      if (!is_sum || !rounds_as_it_likes(sum) || sum.has(Mod::ftz) != product.has(Mod::ftz)) continue;
      pairs.push_back({static_cast<std::int32_t>(f), static_cast<std::int32_t>(s), use.last});
    }
  }
  return pairs;
}

}  // namespace kvscope::ptx
