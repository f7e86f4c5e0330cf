#include "gpu/virtual/isa/survey.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace kvscope::ptx {
namespace {

std::vector<WordUse> by_count(const std::map<std::string, WordUse, std::less<>>& uses) {
  std::vector<WordUse> sorted;
  for (const auto& [word, use] : uses) sorted.push_back(use);
  std::ranges::stable_sort(sorted, [](const WordUse& a, const WordUse& b) { return a.count > b.count; });
  return sorted;
}

// The base name of an unknown opcode is its first word: "multimem".
std::string base_of(const Instr& instr, std::string_view word) {
  if (instr.opcode != Opcode::unsupported) return std::string(name(instr.opcode));
  return std::string(word.substr(0, word.find('.')));
}

// The functions that a function may call: named in it, in an operand or in the table of an indirect call.
struct Calls {
  std::vector<std::int32_t> named;
  bool indirect = false;
};

Calls calls_of(const Module& module, const Decoded& decoded, std::size_t f) {
  const Function& function = module.functions[f];
  Calls calls;
  for (const Operand& o : function.operands) {
    if (o.kind == OperandKind::function) calls.named.push_back(o.index);
  }
  for (std::size_t s = 0; s < function.body.size(); ++s) {
    // The tables of brx.idx contain statements, not functions.
    if (decoded.at(static_cast<std::int32_t>(f), static_cast<std::int32_t>(s)).opcode != Opcode::call) continue;
    for (const Operand& o : function.operands_of(function.body[s])) {
      if (o.kind == OperandKind::reg) calls.indirect = true;
      if (o.kind != OperandKind::table) continue;
      const std::vector<std::int32_t>& targets = function.tables[static_cast<std::size_t>(o.index)].targets;
      calls.named.insert(calls.named.end(), targets.begin(), targets.end());
    }
  }
  return calls;
}

std::vector<std::int32_t> held_by_variables(const Module& module) {
  std::vector<std::int32_t> held;
  for (const Variable& variable : module.variables) {
    for (const InitItem& item : variable.init) {
      if (item.kind == InitItem::Kind::function) held.push_back(item.index);
    }
  }
  return held;
}

// The kernel and all functions that it may call.
std::vector<bool> reachable(const Module& module, const Decoded& decoded, std::size_t kernel) {
  std::vector<bool> reached(module.functions.size());
  std::vector<std::size_t> open{kernel};
  reached[kernel] = true;
  const auto reach = [&](const std::vector<std::int32_t>& functions) {
    for (const std::int32_t f : functions) {
      const auto at = static_cast<std::size_t>(f);
      if (f < 0 || at >= reached.size() || reached[at] || module.functions[at].entry) continue;
      reached[at] = true;
      open.push_back(at);
    }
  };
  while (!open.empty()) {
    const std::size_t f = open.back();
    open.pop_back();
    const Calls calls = calls_of(module, decoded, f);
    reach(calls.named);
    if (calls.indirect) reach(held_by_variables(module));
  }
  return reached;
}

}  // namespace

Survey survey(const Module& module, const Decoded& decoded) {
  Survey result;
  std::map<std::string, WordUse, std::less<>> words;
  std::map<std::string, WordUse, std::less<>> bases;
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    for (std::size_t s = 0; s < module.functions[f].body.size(); ++s) {
      const std::string_view word = module.functions[f].body[s].opcode;
      const Instr& instr = decoded.at(static_cast<std::int32_t>(f), static_cast<std::int32_t>(s));
      auto at = words.find(word);
      if (at == words.end()) {
        at = words.emplace(std::string(word), WordUse{std::string(word), 0, instr.unsupported}).first;
      }
      ++at->second.count;
      ++result.statements;
    }
  }
  for (const auto& [word, use] : words) {
    const std::string base = base_of(understand(word), word);
    WordUse& whole = bases[base];
    whole.word = base;
    whole.count += use.count;
    if (whole.unsupported.empty()) whole.unsupported = use.unsupported;
  }
  result.words = by_count(words);
  result.bases = by_count(bases);

  for (const UnsupportedStatement& u : decoded.unsupported) {
    const Function& function = module.functions[static_cast<std::size_t>(u.function)];
    const Statement& statement = function.body[static_cast<std::size_t>(u.statement)];
    result.unsupported.push_back({std::string(statement.opcode), u.message, std::string(function.name), statement.at});
  }
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    if (!module.functions[f].entry || !module.functions[f].defined) continue;
    KernelSurvey kernel;
    kernel.name = module.functions[f].name;
    const std::vector<bool> reached = reachable(module, decoded, f);
    for (std::size_t g = 0; g < reached.size(); ++g) {
      if (reached[g]) kernel.statements += std::ssize(module.functions[g].body);
    }
    for (std::size_t u = 0; u < decoded.unsupported.size(); ++u) {
      if (reached[static_cast<std::size_t>(decoded.unsupported[u].function)]) {
        kernel.unsupported.push_back(static_cast<std::int32_t>(u));
      }
    }
    result.kernels.push_back(std::move(kernel));
  }
  result.contraction = contraction_pairs(module, decoded);
  return result;
}

}  // namespace kvscope::ptx
