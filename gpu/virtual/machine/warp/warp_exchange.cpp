#include "gpu/virtual/machine/warp/detail/warp_exchange.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// The positions of the operands of these instructions.
struct Operands {
  int d = 0;
  int a = 1;
  int mask = 2;
  bool has_d = true;
  bool has_a = true;
};

Operands operands_of(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::elect:
      return {.mask = 1, .has_a = false};
    case Opcode::bar_warp_sync:
      return {.mask = 0, .has_d = false, .has_a = false};
    default:
      return {};
  }
}

std::uint32_t mask_register(const Instr& instr, const Op& op) {
  // shfl has five operands: the mask is the last of its list.
  if (instr.opcode == Opcode::shfl) return op.list[op.count - 1];
  return op.at[static_cast<std::size_t>(operands_of(instr).mask)];
}

void load_register(const std::byte* registers, std::uint32_t reg, int bytes, LaneWords& to) {
  if (bytes == 0) {
    LaneMask word = 0;
    std::memcpy(&word, registers + reg, sizeof word);
    for (int lane = 0; lane < kLanes; ++lane) to[static_cast<std::size_t>(lane)] = word >> lane & 1;
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint64_t value = 0;
    std::memcpy(&value, registers + reg + lane * bytes, static_cast<std::size_t>(bytes));
    to[static_cast<std::size_t>(lane)] = value;
  }
}

void store_register(std::byte* registers, std::uint32_t reg, int bytes, const LaneWords& from, LaneMask lanes) {
  if (bytes == 0) {
    LaneMask word = 0;
    std::memcpy(&word, registers + reg, sizeof word);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      word &= ~(LaneMask{1} << lane);
      word |= static_cast<LaneMask>(from[static_cast<std::size_t>(lane)] & 1) << lane;
    }
    std::memcpy(registers + reg, &word, sizeof word);
    return;
  }
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::memcpy(registers + reg + lane * bytes, &from[static_cast<std::size_t>(lane)], static_cast<std::size_t>(bytes));
  }
}

void merge_lanes(const LaneWords& from, LaneMask lanes, LaneWords& to) {
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    to[lane] = from[lane];
  }
}

// Reads the operands of lanes at one op.
void bring(const Instr& instr, const Op& op, const std::byte* registers, LaneMask lanes, Exchange& x) {
  const Operands at = operands_of(instr);
  LaneWords reg{};
  if (at.has_a) {
    load_register(registers, op.at[static_cast<std::size_t>(at.a)], width_of(op, at.a), reg);
    if ((op.negated >> at.a & 1) != 0) {
      for (std::uint64_t& v : reg) v ^= 1;
    }
    merge_lanes(reg, lanes, x.a);
  }
  if (instr.opcode == Opcode::shfl) {
    load_register(registers, op.at[2], 4, reg);
    merge_lanes(reg, lanes, x.b);
    load_register(registers, op.at[3], 4, reg);
    merge_lanes(reg, lanes, x.c);
  }
  x.lanes |= lanes;
}

void take_away(const Instr& instr, const Op& op, std::byte* registers, LaneMask lanes, const Exchange& x) {
  const Operands at = operands_of(instr);
  if (at.has_d && op.at[0] != kNoRegister) store_register(registers, op.at[0], width_of(op, 0), x.d, lanes);
  if (op.at[4] == kNoRegister) return;
  LaneMask word = 0;
  std::memcpy(&word, registers + op.at[4], sizeof word);
  word = (word & ~lanes) | (x.p & lanes);
  std::memcpy(registers + op.at[4], &word, sizeof word);
}

// The lanes of `lanes` that name the same mask as the first of them.
LaneMask of_one_mask(const std::byte* reg, LaneMask lanes, LaneMask& mask) {
  std::array<LaneMask, kLanes> masks{};
  std::memcpy(masks.data(), reg, sizeof masks);
  mask = masks[static_cast<std::size_t>(std::countr_zero(lanes))];
  LaneMask same = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    same |= static_cast<LaneMask>(masks[static_cast<std::size_t>(lane)] == mask ? 1 : 0) << lane;
  }
  return same & lanes;
}

bool waits_for(const LaneGroup& f, std::uint16_t instr, LaneMask mask) {
  return f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == WaitKind::warp_sync &&
         f.wait.object == mask && f.wait.value == instr;
}

Report odd(ReportKind kind, std::string message, Severity severity) {
  Report r;
  r.kind = kind;
  r.severity = severity;
  r.message = std::move(message);
  return r;
}

void tell_exchange(Exec& exec, const Op& op, LaneMask lanes) {
  Monitor* const monitor = exec.launch.monitor;
  if (monitor == nullptr) return;
  if (exec.program().instr(op).opcode == Opcode::bar_warp_sync) {
    monitor->warp_barrier(exec, lanes);
  } else {
    monitor->collective(exec, op, lanes);
  }
}

Flow report_strange(Exec& exec, const Exchange& x) {
  return report(exec, odd(ReportKind::diverged,
                          fmt::format("lanes {:08x} read lanes that are not in their mask {:08x}: they keep their own "
                                      "value",
                                      x.strange, x.mask),
                          Severity::warning));
}

// Adds one party for each place at which some of these lanes have exited; lanes that never existed have none.
void add_exits(const Exec& exec, LaneMask lanes, std::vector<ReportParty>& to) {
  const auto exit_of = [&](LaneMask left) {
    return exec.warp.exited_at[static_cast<std::size_t>(std::countr_zero(left))];
  };
  for (LaneMask left = lanes; left != 0;) {
    const std::int32_t pc = exit_of(left);
    LaneMask same = 0;
    for (LaneMask rest = left; rest != 0; rest &= rest - 1) {
      if (exit_of(rest) == pc) same |= rest & (~rest + 1);
    }
    left &= ~same;
    if (pc >= 0) to.push_back(lanes_party(exec.launch, exec.warp, same, pc, "exited"));
  }
}

// The mask names lanes that have exited, or a shuffle reads lanes that do not exist.
Flow report_absent(Exec& exec, const Op& op, const Exchange& x) {
  const Opcode opcode = exec.program().instr(op).opcode;
  LaneMask gone = 0;
  for (LaneMask left = x.mask & exec.warp.exited; left != 0; left &= left - 1) {
    if (exec.warp.exited_at[static_cast<std::size_t>(std::countr_zero(left))] >= 0) gone |= left & (~left + 1);
  }
  if (opcode == Opcode::elect || (gone == 0 && x.absent == 0)) return Flow::next;
  const bool is_result = opcode == Opcode::vote || opcode == Opcode::match || opcode == Opcode::redux;
  std::string message;
  if (x.absent != 0) {
    message =
        fmt::format("lanes {:08x} read lanes that {}: PTX does not define the value, and they keep their own here",
                    x.absent, gone != 0 ? "have exited" : "do not exist");
  } else {
    message = fmt::format("lanes {:08x} of the mask {:08x} have exited: {}", gone, x.mask,
                          is_result ? "the result is that of the other lanes alone" : "they are not waited for");
  }
  Report r = odd(ReportKind::absent_threads, std::move(message),
                 x.absent != 0 || is_result ? Severity::warning : Severity::note);
  r.hint = "name in the mask only the lanes that reach this instruction, or let all lanes reach it";
  r.parties.push_back(lanes_party(exec.launch, exec.warp, x.lanes, exec.lane_group.pc, "arrived"));
  add_exits(exec, gone, r.parties);
  return report(exec, std::move(r));
}

// All lanes of one mask have arrived, `own` of them in the running lane group: they exchange, and the others continue.
Flow complete(Exec& exec, const Op& op, LaneMask own, LaneMask mask) {
  const Instr& instr = exec.program().instr(op);
  Exchange x;
  x.mask = mask;
  bring(instr, op, exec.registers, own, x);
  std::vector<ReportParty> places;  // of lanes that come from other instructions
  for (LaneGroup& f : exec.warp.lane_groups) {
    if (!waits_for(f, op.instr, mask)) continue;
    const Op& other = exec.program().ops[static_cast<std::size_t>(f.pc)];
    bring(instr, other, registers_of(exec.warp, f), f.lanes, x);
    if (f.pc != exec.lane_group.pc) places.push_back(lanes_party(exec.launch, exec.warp, f.lanes, f.pc, "waits"));
  }
  exchange(instr, live_lanes(exec.warp), x);
  tell_exchange(exec, op, x.lanes);
  take_away(instr, op, exec.registers, own, x);
  for (LaneGroup& f : exec.warp.lane_groups) {
    if (!waits_for(f, op.instr, mask)) continue;
    take_away(instr, exec.program().ops[static_cast<std::size_t>(f.pc)], registers_of(exec.warp, f), f.lanes, x);
    ++f.pc;
    f.wait = {};
    f.retries = false;
    wake(exec.launch, exec.cta, exec.warp, f);
  }
  Flow flow = Flow::next;
  if (!places.empty()) {
    Report r = odd(ReportKind::warp_pc_mix, fmt::format("lanes of mask {:08x} meet from different instructions", mask),
                   Severity::note);
    places.insert(places.begin(), lanes_party(exec.launch, exec.warp, own, exec.lane_group.pc, "arrived"));
    r.parties = std::move(places);
    flow = report(exec, std::move(r));
  }
  if (x.strange != 0 && flow != Flow::stopped) flow = report_strange(exec, x);
  if ((mask & exec.warp.exited) != 0 && flow != Flow::stopped) flow = report_absent(exec, op, x);
  return flow;
}

// Lanes with different masks, or with missing lanes: each group completes, or waits as a separate lane group.
Flow run_groups(Exec& exec, const Op& op, LaneMask lanes, std::uint32_t reg) {
  const std::int32_t pc = exec.lane_group.pc;
  LaneMask left = lanes;
  while (left != 0) {
    LaneMask mask = 0;
    const LaneMask own = of_one_mask(exec.registers + reg, left, mask);
    left &= ~own;
    LaneMask outside = own & ~mask;
    if (outside != 0) {
      Report r =
          odd(ReportKind::diverged,
              fmt::format("lanes {:08x} are not in the mask {:08x} that they name", outside, mask), Severity::error);
      if (report(exec, std::move(r)) == Flow::stopped) return Flow::stopped;
    }
    LaneMask here = own;
    for (const LaneGroup& f : exec.warp.lane_groups) {
      if (waits_for(f, op.instr, mask)) here |= f.lanes;
    }
    if ((mask & live_lanes(exec.warp) & ~here) == 0) {
      if (complete(exec, op, own, mask) == Flow::stopped) return Flow::stopped;
      continue;
    }
    const Wait wait{.kind = WaitKind::warp_sync, .object = mask, .value = op.instr};
    if (own == exec.lane_group.lanes) {
      exec.lane_group.wait = wait;
      return Flow::waits;
    }
    // Its lanes wait as a separate lane group; lanes that are done, or not in the mask, continue.
    LaneGroup& f = split_off(exec, own, pc);
    f.state = LaneGroupState::waiting;
    f.retries = true;
    f.wait = wait;
    if (exec.launch.monitor != nullptr) {
      exec.launch.monitor->park(exec_of(exec.launch, exec.cta, exec.warp, f), op);
    }
  }
  return Flow::next;
}

Flow run_exchange(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const std::uint32_t reg = mask_register(instr, op);
  LaneMask mask = 0;
  if (of_one_mask(exec.registers + reg, lanes, mask) == lanes && (mask & live_lanes(exec.warp)) == lanes) [[likely]] {
    Exchange x;
    x.mask = mask;
    bring(instr, op, exec.registers, lanes, x);
    exchange(instr, live_lanes(exec.warp), x);
    tell_exchange(exec, op, lanes);
    take_away(instr, op, exec.registers, lanes, x);
    const Flow flow = x.strange == 0 ? Flow::next : report_strange(exec, x);
    return (mask & exec.warp.exited) == 0 || flow == Flow::stopped ? flow : report_absent(exec, op, x);
  }
  return run_groups(exec, op, lanes, reg);
}

Flow run_activemask(Exec& exec, const Op& op, LaneMask lanes) {
  LaneWords d;
  d.fill(lanes);
  store_register(exec.registers, op.at[0], width_of(op, 0), d, lanes);
  return Flow::next;
}

}  // namespace

MachineHandler find_warp_exchange(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
    case Opcode::bar_warp_sync:
      return run_exchange;
    case Opcode::activemask:
      return run_activemask;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
