// Reports of undefined values: the read that a value comes from, and its use.
#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <functional>
#include <utility>

#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostOrigins = std::size_t{1} << 20;

// The register of the PTX text that the statement has at this place; -1: none.
std::int32_t register_named(const Program& program, std::int32_t pc, std::uint32_t reg) {
  const OpSource& source = program.sources[static_cast<std::size_t>(program.ops[static_cast<std::size_t>(pc)].source)];
  const Function& function = program.module->functions[static_cast<std::size_t>(source.function)];
  const FunctionCode& code = program.functions[static_cast<std::size_t>(source.function)];
  const Statement& statement = function.body[static_cast<std::size_t>(source.statement)];
  const auto is_there = [&](std::int32_t r) {
    return r >= 0 && code.registers[static_cast<std::size_t>(r)].reg == reg;
  };
  if (is_there(statement.guard)) return statement.guard;
  const std::function<std::int32_t(const Operand&)> find = [&](const Operand& o) {
    if (o.kind == OperandKind::reg && is_there(o.index)) return o.index;
    for (const Operand& e : function.elements_of(o)) {
      if (const std::int32_t found = find(e); found >= 0) return found;
    }
    return -1;
  };
  const auto operands = function.operands_of(statement);
  for (std::size_t i = operands.size(); i-- > 0;) {  // results come first, and may share the place
    if (const std::int32_t found = find(operands[i]); found >= 0) return found;
  }
  for (const std::int32_t result : function.results) {  // read by ret, which does not name them
    const std::int32_t r = program.module->variables[static_cast<std::size_t>(result)].in_register;
    if (is_there(r)) return r;
  }
  return -1;
}

// The variable, of the functions that the thread is in, that contains a byte of its local memory.
void name_local(const Exec& exec, std::uint64_t address, ReportAddress& to) {
  const Program& program = exec.program();
  for (std::int32_t a = exec.lane_group.activation; a >= 0;) {
    const Activation& activation = exec.warp.activations[static_cast<std::size_t>(a)];
    const std::int64_t offset = static_cast<std::int64_t>(address) - activation.local_base;
    const Function& f = program.module->functions[static_cast<std::size_t>(activation.function)];
    for (const std::int32_t i : f.variables) {
      const Variable& v = program.module->variables[static_cast<std::size_t>(i)];
      const std::int64_t within = offset - program.placements[static_cast<std::size_t>(i)];
      if (v.space != Space::local || within < 0 || within >= v.bytes) continue;
      to.symbol = declared_name(v.name);
      to.offset = within;
      return;
    }
    a = activation.caller;
  }
}

}  // namespace

std::uint32_t InitChecker::add_origin(const Origin& origin) {
  if (origins_.size() >= kMostOrigins) {  // the instruction, without the address
    for (std::size_t i = origins_.size(); i-- > 1;) {
      if (origins_[i].pc == origin.pc) return static_cast<std::uint32_t>(i);
    }
  }
  origins_.push_back(origin);
  return static_cast<std::uint32_t>(origins_.size() - 1);
}

void InitChecker::name_unwritten(const Exec& exec, const Op& op, UndefinedRegisters& registers, std::uint32_t reg,
                                 LaneMask lanes) {
  const LaneMask undefined = registers.lanes(reg) & lanes;
  if (undefined == 0 || registers.origin(reg) != 0) return;
  const std::int32_t pc = pc_of(exec, op);
  const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
  registers.set_origin(reg, add_origin({.pc = pc,
                                        .warp = exec.warp.index,
                                        .lane = std::countr_zero(undefined),
                                        .function = source.function,
                                        .reg = register_named(exec.program(), pc, reg)}));
}

std::string InitChecker::cause_of(const Exec& exec, const Origin& origin) const {
  if (origin.function >= 0) {
    const Function& f = exec.program().module->functions[static_cast<std::size_t>(origin.function)];
    return fmt::format("nothing had written {} in this lane",
                       origin.reg < 0 ? "the register" : name(f.registers[static_cast<std::size_t>(origin.reg)]));
  }
  if (origin.space == Space::local) return "this thread had not written this byte since the function began";
  if (origin.space == Space::shared) return "no thread and no copy had written this byte since the CTA began";
  return fmt::format("no thread and no copy had written this byte since it was allocated{}",
                     origin.discarded ? " or discarded" : "");
}

void InitChecker::tell(const Exec& exec, const Op& op, int lane, LaneMask lanes, std::uint32_t origin_number,
                       std::string_view how) {
  const Origin& origin = origins_[origin_number];
  Report r;
  r.kind = ReportKind::uninitialized;
  r.severity = severity_of(r.kind);
  if (origin.function < 0) {
    r.address = name_address(exec.launch, origin.space, origin.address, origin.bytes);
    if (origin.space == Space::local) name_local(exec, origin.address, r.address);
  }
  const Op& read = origin.pc < 0 ? op : exec.program().ops[static_cast<std::size_t>(origin.pc)];
  const auto warp = static_cast<std::size_t>(origin.warp);
  const Exec there{exec.launch, exec.cta, exec.cta.warps[warp < exec.cta.warps.size() ? warp : 0], exec.lane_group,
                   exec.registers};
  r.parties = {lane_party(there, read, origin.lane, LaneMask{1} << origin.lane, "read")};
  if (origin.pc != pc_of(exec, op)) r.parties.push_back(lane_party(exec, op, lane, lanes, "used"));
  r.message = fmt::format("the value {}: {}", how, cause_of(exec, origin));
  Exec copy = exec;
  static_cast<void>(report(copy, std::move(r)));
}

}  // namespace kvscope::ptx
