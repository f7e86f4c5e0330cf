#include <cstddef>
#include <unordered_map>

#include <fmt/format.h>

#include "gpu/virtual/isa/detail/operand_check.h"
#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {
namespace {

// "": the machine with this target supports it.
std::string target_message(const Instr& instr, int target) {
  if (instr.only_90a && target != 90) return fmt::format("needs sm_90a, this machine is sm_{}", target);
  if (instr.only_100a && (target < 100 || target >= 120)) {
    return fmt::format("needs sm_100a, this machine is sm_{}", target);
  }
  if (instr.only_120a && (target < 120 || target >= 130)) {
    return fmt::format("needs sm_120a, this machine is sm_{}", target);
  }
  if (instr.least_target > target) {
    return fmt::format("needs sm_{}, this machine is sm_{}", instr.least_target, target);
  }
  return {};
}

class Decoder {
 public:
  Decoder(const Module& module, int target) : module_(module), target_(target) {}

  Decoded decode() {
    decoded_.of.resize(module_.functions.size());
    for (std::size_t f = 0; f < module_.functions.size(); ++f) decode_function(f);
    return std::move(decoded_);
  }

 private:
  void decode_function(std::size_t f) {
    const Function& function = module_.functions[f];
    std::vector<std::int32_t>& of = decoded_.of[f];
    of.reserve(function.body.size());
    for (std::size_t s = 0; s < function.body.size(); ++s) {
      const Statement& statement = function.body[s];
      std::int32_t index = index_of(statement.opcode);
      if (has_parts(function, statement)) index = index_without_parts(index);
      of.push_back(index);
      const Instr& instr = decoded_.instrs[static_cast<std::size_t>(index)];
      if (!instr.unsupported.empty()) {
        decoded_.unsupported.push_back({static_cast<std::int32_t>(f), static_cast<std::int32_t>(s), instr.unsupported});
      } else if (decoded_.errors.size() < static_cast<std::size_t>(kMostErrors)) {
        const Checked checked{module_, function, statement, instr, rules_of(index, statement.operand_count)};
        std::string fault = operand_fault(checked);
        if (fault.empty()) fault = literal_fault(checked);
        if (!fault.empty()) decoded_.errors.push_back({statement.at, std::move(fault)});
      }
    }
  }

  std::int32_t index_of(std::string_view word) {
    const auto [at, is_new] = known_.try_emplace(word, static_cast<std::int32_t>(decoded_.instrs.size()));
    if (is_new) {
      Instr instr = understand(word);
      if (instr.unsupported.empty()) instr.unsupported = target_message(instr, target_);
      decoded_.instrs.push_back(std::move(instr));
    }
    return at->second;
  }

  // %r1.b3210, an operand of the video instructions.
  static bool has_parts(const Function& function, const Statement& statement) {
    for (const Operand& o : function.operands_of(statement)) {
      if (o.kind == OperandKind::reg && o.value != 0) return true;
    }
    return false;
  }

  // The same word as an unsupported instruction.
  std::int32_t index_without_parts(std::int32_t index) {
    const auto [at, is_new] = without_parts_.try_emplace(index, static_cast<std::int32_t>(decoded_.instrs.size()));
    if (is_new) {
      Instr instr = decoded_.instrs[static_cast<std::size_t>(index)];
      if (instr.unsupported.empty()) instr.unsupported = "selects parts of a register, not modeled";
      decoded_.instrs.push_back(std::move(instr));
    }
    return at->second;
  }

  // Computed once per word and number of operands.
  const std::vector<OperandRule>& rules_of(std::int32_t index, std::int32_t operand_count) {
    const auto [at, is_new] = rules_.try_emplace(std::int64_t{index} << 32 | operand_count);
    if (is_new) at->second = operand_rules(decoded_.instrs[static_cast<std::size_t>(index)], operand_count);
    return at->second;
  }

  const Module& module_;
  int target_;
  Decoded decoded_;
  std::unordered_map<std::string_view, std::int32_t> known_;
  std::unordered_map<std::int32_t, std::int32_t> without_parts_;
  std::unordered_map<std::int64_t, std::vector<OperandRule>> rules_;
};

}  // namespace

Decoded decode(const Module& module, int target) {
  return Decoder(module, target).decode();
}

}  // namespace kvscope::ptx
