#include "gpu/virtual/machine/matrix/wgmma_registers.h"

#include <algorithm>
#include <string>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

void add_registers(const Function& f, const Operand& o, std::vector<std::int32_t>& to) {
  if (o.kind == OperandKind::reg) to.push_back(o.index);
  for (const Operand& e : f.elements_of(o)) add_registers(f, e, to);
}

void sort_unique(std::vector<std::int32_t>& registers) {
  std::sort(registers.begin(), registers.end());
  registers.erase(std::unique(registers.begin(), registers.end()), registers.end());
}

bool share(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}

struct StatementPlace {
  const Function& function;
  std::int32_t number = 0;               // of the function
  const Statement* statement = nullptr;  // null: the closing ret
};
StatementPlace statement_place(const Exec& exec, const Op& op) {
  const Program& program = exec.program();
  const OpSource& source = program.sources[static_cast<std::size_t>(op.source)];
  const Function& f = program.module->functions[static_cast<std::size_t>(source.function)];
  const auto statement = static_cast<std::size_t>(source.statement);
  return {f, source.function, statement < f.body.size() ? &f.body[statement] : nullptr};
}

}  // namespace

void WgmmaRegisters::launch_begins(Launch& launch) {
  warps_.clear();
  const auto& instrs = launch.program->decoded.instrs;
  has_products_ =
      std::any_of(instrs.begin(), instrs.end(), [](const Instr& i) { return i.opcode == Opcode::wgmma_mma_async; });
  uses_.assign(has_products_ ? launch.program->ops.size() : 0, {});
}

const WgmmaRegisters::Uses& WgmmaRegisters::uses_at(const Exec& exec, const Op& op) {
  Uses& uses = uses_[static_cast<std::size_t>(pc_of(exec, op))];
  if (uses.known) return uses;
  uses.known = true;
  const StatementPlace place = statement_place(exec, op);
  const Instr& instr = exec.program().instr(op);
  if (place.statement == nullptr || !instr.unsupported.empty()) return uses;
  const auto operands = place.function.operands_of(*place.statement);
  const auto rules = operand_rules(instr, static_cast<int>(operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool writes = i < rules.size() && (rules[i].role == Role::written || rules[i].role == Role::read_written);
    add_registers(place.function, operands[i], writes ? uses.written : uses.read);
  }
  sort_unique(uses.written);
  sort_unique(uses.read);
  return uses;
}

void WgmmaRegisters::instruction(const Exec& exec, const Op& op, LaneMask) {
  if (!has_products_) return;
  WarpState& warp = warps_[{exec.cta.index, exec.warp.index}];
  const StatementPlace place = statement_place(exec, op);
  if (warp.function != place.number) {
    if (warp.function >= 0 && place.number != exec.launch.function) return;  // a callee has separate registers
    warp.function = place.number;
    warp.unfenced.assign(place.function.registers.size(), false);
    warp.writer.assign(place.function.registers.size(), -1);
  }
  switch (exec.program().instr(op).opcode) {
    case Opcode::wgmma_fence:
      warp.unfenced.assign(warp.unfenced.size(), false);
      return;
    case Opcode::wgmma_mma_async:
      issue(exec, op, warp);
      return;
    case Opcode::wgmma_commit_group:
      warp.groups.push_back(std::move(warp.open));
      warp.open.clear();
      return;
    case Opcode::wgmma_wait_group: {
      const std::uint64_t most = lane_value(exec, op.at[0], width_of(op, 0), 0);
      while (warp.groups.size() > most) warp.groups.pop_front();
      return;
    }
    default:
      look(exec, op, warp);
      return;
  }
}

void WgmmaRegisters::issue(const Exec& exec, const Op& op, WarpState& warp) {
  const StatementPlace place = statement_place(exec, op);
  const auto operands = place.function.operands_of(*place.statement);
  Flight flight;
  flight.pc = pc_of(exec, op);
  add_registers(place.function, operands[0], flight.d);
  if (operands[1].kind == OperandKind::vector) add_registers(place.function, operands[1], flight.a);
  sort_unique(flight.d);
  sort_unique(flight.a);
  for (const auto* registers : {&flight.d, &flight.a}) {
    const auto wrong = std::find_if(registers->begin(), registers->end(),
                                    [&](std::int32_t r) { return warp.unfenced[static_cast<std::size_t>(r)]; });
    if (wrong == registers->end()) continue;
    tell(exec, op, warp.writer[static_cast<std::size_t>(*wrong)], false);
    break;
  }
  warp.open.push_back(std::move(flight));
}

void WgmmaRegisters::look(const Exec& exec, const Op& op, WarpState& warp) {
  const Uses& uses = uses_at(exec, op);
  const auto touches = [&](const Flight& f) {
    return share(uses.written, f.d) || share(uses.read, f.d) || share(uses.written, f.a);
  };
  const auto look_at = [&](const std::vector<Flight>& flights) {
    const auto touched = std::find_if(flights.begin(), flights.end(), touches);
    if (touched != flights.end()) tell(exec, op, touched->pc, true);
    return touched != flights.end();
  };
  if (!look_at(warp.open)) static_cast<void>(std::any_of(warp.groups.begin(), warp.groups.end(), look_at));
  for (const std::int32_t r : uses.written) {
    warp.unfenced[static_cast<std::size_t>(r)] = true;
    warp.writer[static_cast<std::size_t>(r)] = pc_of(exec, op);
  }
}

void WgmmaRegisters::tell(const Exec& exec, const Op& op, std::int32_t other, bool in_flight) {
  const Op& that = exec.program().ops[static_cast<std::size_t>(other)];
  Report r;
  r.kind = in_flight ? ReportKind::reg_in_flight : ReportKind::no_wgmma_fence;
  r.severity = severity_of(r.kind);
  r.message = in_flight ? "registers of a product in flight are accessed before the wait that covers it"
                        : "registers of this product were written since the last wgmma.fence";
  r.hint = in_flight ? "wgmma.commit_group and wgmma.wait_group come first"
                     : "wgmma.fence.sync.aligned comes between the writes and the first wgmma.mma_async";
  r.parties.push_back(lane_party(exec, op, 0, exec.lane_group.lanes, in_flight ? "uses" : "issued"));
  r.parties.push_back(lane_party(exec, that, 0, exec.lane_group.lanes, in_flight ? "issued" : "write"));
  Exec again{exec.launch, exec.cta, exec.warp, exec.lane_group, exec.registers};
  static_cast<void>(report(again, std::move(r)));
}

}  // namespace kvscope::ptx
