#include "gpu/virtual/machine/warp/detail/control.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/matrix/detail/sparse_operand.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

Report about(ReportKind kind, std::string message, std::string hint = "") {
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.message = std::move(message);
  r.hint = std::move(hint);
  return r;
}

Flow run_exit(Exec& exec, const Op&, LaneMask lanes) {
  return exit_lanes(exec, lanes);
}

Flow run_trap(Exec& exec, const Op&, LaneMask) {
  const bool no_grid_barrier = exec.launch.reads_grid_workspace && exec.launch.grid_workspace == 0;
  return report(exec,
                about(ReportKind::trap, "the kernel has executed trap",
                      no_grid_barrier ? "a barrier of the whole grid, as in cooperative_groups' this_grid().sync(), "
                                        "needs a cooperative launch (ptx run --cooperative)"
                                      : ""));
}

Flow run_brkpt(Exec& exec, const Op&, LaneMask) {
  return report(exec, about(ReportKind::trap, "the kernel has executed brkpt, and no debugger is attached"));
}

Flow run_nothing(Exec&, const Op&, LaneMask) {
  return Flow::next;
}

// The duration is ignored; the effect is that other lane groups run.
Flow run_nanosleep(Exec& exec, const Op&, LaneMask) {
  exec.lane_group.had_turn = true;
  exec.launch.turn.warp_left = 0;
  exec.warp.current = -1;
  return Flow::next;
}

// Lanes whose divisor is zero; 8 bytes per lane are the widest.
LaneMask zero_lanes(const std::byte* reg, int bytes, LaneMask lanes) {
  LaneMask out = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::uint64_t value = 0;
    std::memcpy(&value, reg + lane * bytes, static_cast<std::size_t>(bytes));
    if (value == 0) out |= LaneMask{1} << lane;
  }
  return out;
}

}  // namespace

bool is_running(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::clock:
    case SpecialRegister::clock64:
    case SpecialRegister::clock_hi:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
    case SpecialRegister::globaltimer_hi:
      return true;
    default:
      return false;
  }
}

Flow run_uniform_branch(Exec& exec, const Op& op, LaneMask lanes) {
  if (lanes != exec.lane_group.lanes && exec.launch.config.options.report_uni_diverged) {
    Report r =
        about(ReportKind::diverged,
              fmt::format("bra.uni is taken by lanes {:08x} of {:08x}: the lanes split", lanes, exec.lane_group.lanes),
              "without .uni the branch is legal");
    r.severity = Severity::warning;
    if (report(exec, std::move(r)) == Flow::stopped) return Flow::stopped;
  }
  branch(exec, lanes, op.target);
  return Flow::jumped;
}

Flow run_indexed_branch(Exec& exec, const Op& op, LaneMask lanes) {
  std::array<std::uint32_t, kLanes> index{};
  std::memcpy(index.data(), exec.registers + op.at[0], sizeof index);
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (index[static_cast<std::size_t>(lane)] < op.count) continue;
    return report(exec, about(ReportKind::trap, fmt::format("lane {}: index {} is past the table of {} targets", lane,
                                                            index[static_cast<std::size_t>(lane)], op.count)));
  }
  const std::int32_t here = exec.lane_group.pc;
  const LaneMask stay = exec.lane_group.lanes & ~lanes;
  LaneMask left = lanes;
  while (left != 0) {
    const std::uint32_t to = index[static_cast<std::size_t>(std::countr_zero(left))];
    LaneMask same = 0;
    for (LaneMask l = left; l != 0; l &= l - 1) {
      if (index[static_cast<std::size_t>(std::countr_zero(l))] == to) same |= l & (~l + 1);
    }
    left &= ~same;
    const auto pc = static_cast<std::int32_t>(op.list[to]);
    if (pc <= here) ++exec.lane_group.backward;
    if (left != 0 || stay != 0) {
      split_off(exec, same, pc);
    } else {
      exec.lane_group.pc = pc;
    }
  }
  if (stay != 0) exec.lane_group.pc = here + 1;
  return Flow::jumped;
}

Flow run_unsupported(Exec& exec, const Op& op, LaneMask) {
  const Program& program = exec.program();
  const OpSource& source = program.sources[static_cast<std::size_t>(op.source)];
  std::string why = program.instr(op).unsupported;
  for (const UnsupportedStatement& u : program.decoded.unsupported) {
    if (u.function == source.function && u.statement == source.statement) why = u.message;
  }
  const Statement& s = program.statement(op.source);
  const std::string place = s.frame >= 0 ? fmt::format(" (source {})", program.source_text(op.source)) : "";
  return report(
      exec, about(ReportKind::unsupported, fmt::format("{}:{}:{} '{}'{} kernel {}: {}", program.module->file, s.at.line,
                                                       s.at.column, s.opcode, place, exec.launch.config.kernel, why)));
}

Flow run_clock(Exec& exec, const Op& op, LaneMask lanes) {
  const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
  for (const SpecialPlace& reg : exec.program().functions[static_cast<std::size_t>(source.function)].specials) {
    if (is_running(reg.special)) fill_special(exec.launch, exec.cta, exec.warp, reg, exec.registers);
  }
  op.compute(exec.registers, op, lanes);
  return Flow::next;
}

Flow run_division(Exec& exec, const Op& op, LaneMask lanes) {
  const LaneMask zero = zero_lanes(exec.registers + op.at[2], width_of(op, 2), lanes);
  if (zero != 0 && exec.launch.config.options.report_div_by_zero) {
    const bool rem = exec.program().instr(op).opcode == Opcode::rem;
    const Flow flow =
        report(exec, about(ReportKind::div_by_zero,
                           fmt::format("{} by 0 in lanes {:08x}: the {} is all ones", rem ? "remainder" : "division",
                                       zero, rem ? "remainder" : "quotient")));
    if (flow == Flow::stopped) return flow;
  }
  op.compute(exec.registers, op, lanes);
  return Flow::next;
}

bool all_lanes_here(Exec& exec, LaneMask lanes) {
  if (lanes == live_lanes(exec.warp)) return true;
  exec.lane_group.wait = {.kind = WaitKind::warp_aligned};
  return false;
}

Flow run_aligned(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  op.compute(exec.registers, op, kAllLanes);
  return Flow::next;
}

Flow run_sparse_aligned(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (!has_valid_metadata(exec, op) && exec.launch.status != LaunchStatus::running) return Flow::stopped;
  return run_aligned(exec, op, lanes);
}

MachineHandler find_control(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::ret:
      return run_ret;
    case Opcode::exit:
      return run_exit;
    case Opcode::trap:
      return run_trap;
    case Opcode::brkpt:
      return run_brkpt;
    case Opcode::nanosleep:
      return run_nanosleep;
    case Opcode::griddepcontrol:
    case Opcode::pmevent:
      return run_nothing;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
