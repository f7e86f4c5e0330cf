// Which registers an asynchronous product still needs, seen in the text: from the instruction on to the wait that covers
// it, and back to the last wgmma.fence. Branches end the look: what is behind them is not known.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/ptx/machine/access.h"
#include "core/ptx/machine/scheduler.h"
#include "core/ptx/machine/wgmma.h"

namespace kvscope::ptx {
namespace {

using Registers = std::vector<std::int32_t>;  // Function::registers

void add_registers(const Function& f, const Operand& o, Registers& to) {
  if (o.kind == OperandKind::reg) to.push_back(o.index);
  for (const Operand& e : f.elements_of(o)) add_registers(f, e, to);
}

bool share(const Registers& a, const Registers& b) {
  return std::any_of(a.begin(), a.end(), [&](std::int32_t r) { return std::find(b.begin(), b.end(), r) != b.end(); });
}

bool is_branch(const Instr& instr) {
  return instr.opcode == Opcode::bra || instr.opcode == Opcode::brx || instr.opcode == Opcode::ret ||
         instr.opcode == Opcode::exit || instr.opcode == Opcode::call;
}

// What a statement writes and what else it reads.
struct Uses {
  Registers written, read;
};
Uses uses_of(const Function& f, const Statement& s, const Instr& instr) {
  Uses uses;
  const auto operands = f.operands_of(s);
  const auto rules = operand_rules(instr, static_cast<int>(operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool writes = i < rules.size() && (rules[i].role == Role::written || rules[i].role == Role::read_written);
    add_registers(f, operands[i], writes ? uses.written : uses.read);
  }
  return uses;
}

struct Text {
  const Program& program;
  std::int32_t function;
  const Function& f;
  [[nodiscard]] const Instr& instr(std::int32_t s) const { return program.decoded.at(function, s); }
  [[nodiscard]] const Statement& at(std::int32_t s) const { return f.body[static_cast<std::size_t>(s)]; }
  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(f.body.size()); }
};

// The number in wgmma.wait_group N.
std::int64_t wait_count(const Text& text, std::int32_t s) {
  const auto operands = text.f.operands_of(text.at(s));
  return operands.empty() ? 0 : operands[0].value;
}

// The first statement behind `from` that touches D, or writes A, before the wait that covers it; -1: none.
std::int32_t touched_in_flight(const Text& text, std::int32_t from, const Registers& d, const Registers& a) {
  std::int64_t commits = 0;
  for (std::int32_t s = from + 1; s < text.count(); ++s) {
    const Instr& instr = text.instr(s);
    if (instr.opcode == Opcode::wgmma_commit_group) ++commits;
    if (instr.opcode == Opcode::wgmma_wait_group && commits > wait_count(text, s)) return -1;
    if (is_branch(instr)) return -1;
    if (instr.opcode == Opcode::wgmma_mma_async || !instr.unsupported.empty()) continue;
    const Uses uses = uses_of(text.f, text.at(s), instr);
    if (share(uses.written, d) || share(uses.read, d) || share(uses.written, a)) return s;
  }
  return -1;
}

// The last statement before `from` that writes one of the registers with no wgmma.fence behind it; -1: none.
std::int32_t written_unfenced(const Text& text, std::int32_t from, const Registers& registers) {
  for (std::int32_t s = from - 1; s >= 0; --s) {
    const Instr& instr = text.instr(s);
    if (instr.opcode == Opcode::wgmma_fence || is_branch(instr)) return -1;
    if (instr.opcode == Opcode::wgmma_mma_async || !instr.unsupported.empty()) continue;
    if (share(uses_of(text.f, text.at(s), instr).written, registers)) return s;
  }
  return -1;
}

Flow tell(Exec& exec, const Op& op, std::int32_t statement, ReportKind kind, std::string message, std::string hint) {
  const std::int32_t pc =
      statement - exec.program().sources[static_cast<std::size_t>(op.source)].statement + pc_of(exec, op);
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.message = std::move(message);
  r.hint = std::move(hint);
  r.parties.push_back(lane_party(exec, op, 0, exec.fragment.lanes, "issued"));
  ReportParty other = lane_party(exec, exec.program().ops[static_cast<std::size_t>(pc)], 0, exec.fragment.lanes,
                                 kind == ReportKind::reg_in_flight ? "touched" : "write");
  r.parties.push_back(std::move(other));
  return report(exec, std::move(r));
}

}  // namespace

Flow check_wgmma_registers(Exec& exec, const Op& op) {
  const std::int32_t pc = pc_of(exec, op);
  auto& looked_at = exec.cta.async.wgmma_places;
  if (std::find(looked_at.begin(), looked_at.end(), pc) != looked_at.end()) return Flow::next;
  looked_at.push_back(pc);

  const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
  const Function& f = exec.program().module->functions[static_cast<std::size_t>(source.function)];
  const Text text{exec.program(), source.function, f};
  const auto operands = f.operands_of(text.at(source.statement));
  Registers d, a;
  add_registers(f, operands[0], d);
  if (operands[1].kind == OperandKind::vector) add_registers(f, operands[1], a);

  const std::int32_t early = touched_in_flight(text, source.statement, d, a);
  if (early >= 0 && tell(exec, op, early, ReportKind::reg_in_flight,
                         "registers of a product that goes on are used before the wait that covers it",
                         "wgmma.commit_group and wgmma.wait_group come first") == Flow::stopped) {
    return Flow::stopped;
  }
  d.insert(d.end(), a.begin(), a.end());
  const std::int32_t late = written_unfenced(text, source.statement, d);
  if (late >= 0) {
    return tell(exec, op, late, ReportKind::no_wgmma_fence,
                "registers of this product were written since the last wgmma.fence",
                "wgmma.fence.sync.aligned comes between the writes and the first wgmma.mma_async");
  }
  return Flow::next;
}

}  // namespace kvscope::ptx
