#include "core/ptx/isa/operand_check.h"

#include <fmt/format.h>

namespace kvscope::ptx {

std::optional<TextError> check_operands(const Module&, const Function&, const Statement& statement,
                                        const Instr& instr) {
  const std::vector<OperandRule> rules = operand_rules(instr, statement.operand_count);
  if (rules.empty() && statement.operand_count != 0) {
    return TextError{statement.at, fmt::format("{}: takes another number of operands", statement.opcode)};
  }
  return std::nullopt;
}

}  // namespace kvscope::ptx
