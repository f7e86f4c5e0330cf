// Products and sums that the assembler fuses. Determined from the machine code it produces: it fuses them unless one of
// the two has an explicit rounding.
#include <algorithm>
#include <cstddef>

#include "gpu/virtual/isa/survey.h"

namespace kvscope::ptx {
namespace {

bool rounds_as_it_likes(const Instr& instr) {
  return instr.type_count == 1 && instr.type() == Type::f32 && !instr.has(Mod::rn) && !instr.has(Mod::rz) &&
         !instr.has(Mod::rm) && !instr.has(Mod::rp) && !instr.has(Mod::sat);
}

// The number of occurrences of a register, and the statement of the last one.
struct Uses {
  std::int32_t count = 0;
  std::int32_t last = -1;
};

// Visits every occurrence of a register in a statement, written or read.
template <typename Visit>
void visit_registers(const Function& function, std::span<const Operand> operands, const Visit& visit) {
  for (const Operand& o : operands) {
    if (o.kind == OperandKind::reg) visit(static_cast<std::size_t>(o.index));
    visit_registers(function, function.elements_of(o), visit);
  }
}

bool names(const Function& function, const Operand& o, std::int32_t reg) {
  if (o.kind == OperandKind::reg && o.index == reg) return true;
  const auto elements = function.elements_of(o);
  return std::any_of(elements.begin(), elements.end(), [&](const Operand& e) { return names(function, e, reg); });
}

// Whether the factors have the same values at the sum as at the product: no jump enters or leaves in between, and no
// statement in between has one of them as its first operand, which is where results are.
bool factors_last(const Function& function, const Decoded& decoded, std::int32_t f, std::int32_t product,
                  std::int32_t sum, const std::vector<bool>& entered) {
  const auto factors = function.operands_of(function.body[static_cast<std::size_t>(product)]).subspan(1);
  for (std::int32_t s = product; s < sum; ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (entered[at + 1]) return false;
    if (decoded.at(f, s).opcode == Opcode::call) return false;
    const auto operands = function.operands_of(function.body[at]);
    if (operands.empty()) continue;
    for (const Operand& factor : factors) {
      if (factor.kind == OperandKind::reg && names(function, operands[0], factor.index)) return false;
    }
  }
  return true;
}

// [statements + 1] targets of jumps, and statements that follow a jump.
std::vector<bool> entries_of(const Function& function, const Decoded& decoded, std::int32_t f) {
  std::vector<bool> out(function.body.size() + 1);
  for (std::size_t s = 0; s < function.body.size(); ++s) {
    const Opcode opcode = decoded.at(f, static_cast<std::int32_t>(s)).opcode;
    if (opcode != Opcode::bra && opcode != Opcode::brx && opcode != Opcode::ret && opcode != Opcode::exit) continue;
    out[s + 1] = true;
    for (const Operand& o : function.operands_of(function.body[s])) {
      if (o.kind == OperandKind::label) out[static_cast<std::size_t>(o.index)] = true;
      if (o.kind != OperandKind::table) continue;
      for (const std::int32_t t : function.tables[static_cast<std::size_t>(o.index)].targets) {
        out[static_cast<std::size_t>(t)] = true;
      }
    }
  }
  return out;
}

}  // namespace

std::vector<ContractionPair> contraction_pairs(const Module& module, const Decoded& decoded) {
  std::vector<ContractionPair> pairs;
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const Function& function = module.functions[f];
    const auto instr_of = [&](std::size_t s) -> const Instr& {
      return decoded.at(static_cast<std::int32_t>(f), static_cast<std::int32_t>(s));
    };
    const std::vector<bool> entered = entries_of(function, decoded, static_cast<std::int32_t>(f));
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
      if (operands[0].kind != OperandKind::reg || function.body[s].guard >= 0) continue;
      const Uses& use = uses[static_cast<std::size_t>(operands[0].index)];
      if (use.count != 2 || use.last <= static_cast<std::int32_t>(s)) continue;  // written here, read once later
      const Instr& sum = instr_of(static_cast<std::size_t>(use.last));
      const bool is_sum = sum.opcode == Opcode::add || sum.opcode == Opcode::sub;
      if (!is_sum || !rounds_as_it_likes(sum) || sum.has(Mod::ftz) != product.has(Mod::ftz)) continue;
      if (!factors_last(function, decoded, static_cast<std::int32_t>(f), static_cast<std::int32_t>(s), use.last,
                        entered)) {
        continue;
      }
      pairs.push_back({static_cast<std::int32_t>(f), static_cast<std::int32_t>(s), use.last});
    }
  }
  return pairs;
}

}  // namespace kvscope::ptx
