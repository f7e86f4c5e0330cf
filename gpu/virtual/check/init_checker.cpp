// The values in registers.
#include "gpu/virtual/check/init_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/shfl_source.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint32_t kForgetEvery = 256;  // watched instructions of a warp

// How an instruction treats the undefined bits of its operands.
enum class Treatment : std::uint8_t {
  computes,  // its results may be undefined
  by_event,  // access() or collective() has the addresses or the lanes
  uses,      // everything else: its operands must be defined
};

Treatment treatment_of(const Instr& instr, const Op& op) {
  switch (instr.opcode) {
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red:
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
    case Opcode::wmma_load:
    case Opcode::wmma_store:
    case Opcode::wmma_mma:
    case Opcode::mma:
    case Opcode::movmatrix:
    case Opcode::wgmma_mma_async:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
      return Treatment::by_event;
    case Opcode::cvta:
    case Opcode::isspacep:
    case Opcode::mapa:
    case Opcode::getctarank:
    case Opcode::createpolicy:
    case Opcode::stacksave:
      return Treatment::computes;
    default:
      return op.compute != nullptr ? Treatment::computes : Treatment::uses;
  }
}

std::string use_by(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::bra:
    case Opcode::brx:
      return "decides a branch";
    default:
      return fmt::format("is an operand of {}", name(instr.opcode));
  }
}

}  // namespace

bool InitChecker::wants_instructions_of(const Cta& cta, const Warp& warp) const {
  if (wants_instructions()) return true;
  if (active_ == 0) return false;
  const auto found = warps_.find(cta.index);
  return found != warps_.end() && found->second[static_cast<std::size_t>(warp.index)].active;
}

InitChecker::WarpState& InitChecker::warp_of(const Cta& cta, const Warp& warp) {
  std::vector<WarpState>& warps = warps_[cta.index];
  if (warps.empty()) warps.resize(cta.warps.size());
  return warps[static_cast<std::size_t>(warp.index)];
}

InitChecker::WarpState* InitChecker::active_warp(const Exec& exec) {
  if (active_ == 0) return nullptr;
  const auto found = warps_.find(exec.cta.index);
  if (found == warps_.end()) return nullptr;
  WarpState& warp = found->second[static_cast<std::size_t>(exec.warp.index)];
  return warp.active ? &warp : nullptr;
}

void InitChecker::activate(const Exec& exec, WarpState& warp) {
  if (warp.active) return;
  warp.active = true;
  ++active_;
  exec.launch.watch_changed = true;
}

void InitChecker::deactivate_if_clean(const Exec& exec, WarpState& warp) {
  if (!warp.active || wants_instructions()) return;
  for (const ActivationState& a : warp.activations) {
    if (a.registers.count() != 0 || a.params.count() != 0) return;
  }
  warp.active = false;
  warp.calling = 0;
  --active_;
  exec.launch.watch_changed = true;
}

UndefinedRegisters& InitChecker::registers_of(const Exec& exec, WarpState& warp) {
  return state_of(exec, warp, exec.lane_group.activation).registers;
}

// All registers of the function except its parameters.
void InitChecker::mark_unwritten(const Exec& exec, std::int32_t activation, UndefinedRegisters& registers,
                                 LaneMask lanes) const {
  const auto function = static_cast<std::size_t>(exec.warp.activations[static_cast<std::size_t>(activation)].function);
  const std::vector<RegisterPlace>& places = exec.program().functions[function].registers;
  for (const RegisterPlace& r : places) {
    if (r.reg != kNoRegister) registers.mark({r.reg, r.bytes}, lanes, 0);
  }
  for (const std::int32_t p : exec.program().module->functions[function].parameters) {
    const std::int32_t r = exec.program().module->variables[static_cast<std::size_t>(p)].in_register;
    if (r < 0 || places[static_cast<std::size_t>(r)].reg == kNoRegister) continue;
    registers.define({places[static_cast<std::size_t>(r)].reg, places[static_cast<std::size_t>(r)].bytes}, lanes);
  }
}

// These lanes are at the first statement of a called function.
void InitChecker::enter(const Exec& exec, WarpState& warp, LaneMask lanes) {
  const Activation& activation = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  UndefinedRegisters& registers = registers_of(exec, warp);
  const auto function = static_cast<std::size_t>(activation.function);
  if (options_.registers) {
    mark_unwritten(exec, exec.lane_group.activation, registers, lanes);
  } else {
    for (const RegisterPlace& r : exec.program().functions[function].registers) {
      if (r.reg != kNoRegister) registers.define({r.reg, r.bytes}, lanes);
    }
  }
  take_arguments(exec, warp, lanes);
  if (!options_.local) return;
  const auto from = static_cast<std::uint64_t>(activation.local_base);
  const std::int64_t bytes = exec.program().functions[function].local_bytes;
  for (LaneMask left = lanes; left != 0; left &= left - 1) mark_local(exec, warp, std::countr_zero(left), from, bytes);
}

const UndefinedEffects& InitChecker::effects_of(const Program& program, std::int32_t pc) {
  const auto [place, fresh] = effects_.try_emplace(pc);
  if (fresh) place->second = undefined_effects(program, pc);
  return place->second;
}

void InitChecker::use(const Exec& exec, const Op& op, UndefinedRegisters& registers, RegisterAt reg, LaneMask lanes,
                      std::string_view how) {
  if (reg.reg == kNoRegister) return;
  const LaneMask undefined = registers.lanes(reg.reg) & lanes;
  if (undefined == 0) return;
  name_unwritten(exec, op, registers, reg.reg, undefined);
  tell(exec, op, std::countr_zero(undefined), undefined, registers.origin(reg.reg), how);
  registers.define(reg, lanes);
}

// The predicate and the addresses of an instruction.
void InitChecker::use_control(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
                              UndefinedRegisters& registers) {
  const Instr& instr = exec.program().instr(op);
  const bool branches = instr.opcode == Opcode::bra || instr.opcode == Opcode::brx;
  if (effects.guard != kNoRegister && treatment_of(instr, op) != Treatment::computes) {
    use(exec, op, registers, {effects.guard, 0}, exec.lane_group.lanes,
        branches ? "decides a branch" : "decides whether an instruction is executed");
  }
  for (const RegisterAt r : effects.addresses) use(exec, op, registers, r, lanes, "is part of an address");
}

void InitChecker::instruction(const Exec& exec, const Op& op, LaneMask lanes) {
  WarpState* const warp = active_warp(exec);
  if (warp == nullptr) return;
  const LaneGroup& f = exec.lane_group;
  if ((warp->calling & f.lanes) != 0) {
    LaneMask entered = 0;
    for (LaneMask left = warp->calling & f.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (f.depth > warp->depth[static_cast<std::size_t>(lane)]) entered |= LaneMask{1} << lane;
    }
    warp->calling &= ~f.lanes;
    if (entered != 0) enter(exec, *warp, entered);
  }
  UndefinedRegisters& registers = registers_of(exec, *warp);
  const UndefinedEffects& e = effects_of(exec.program(), pc_of(exec, op));
  use_control(exec, op, e, lanes, registers);
  if (e.of_call) {
    warp->calling |= lanes;
    for (LaneMask left = lanes; left != 0; left &= left - 1)
      warp->depth[static_cast<std::size_t>(std::countr_zero(left))] = f.depth;
  }
  const Instr& instr = exec.program().instr(op);
  switch (treatment_of(instr, op)) {
    case Treatment::computes:
      compute(exec, op, e, lanes, registers);
      break;
    case Treatment::by_event:
      if (instr.opcode == Opcode::ld || instr.opcode == Opcode::ldu) {
        for (const RegisterAt w : e.writes) registers.define(w, lanes);
      }
      break;
    case Treatment::uses:
      if (e.of_call) call(exec, op, e, lanes, *warp);
      if (instr.opcode == Opcode::ret && f.depth > 0) give_results(exec, op, *warp, lanes);
      for (const RegisterAt r : e.reads) {
        if (!e.of_call && (registers.lanes(r.reg) & lanes) != 0) use(exec, op, registers, r, lanes, use_by(instr));
      }
      for (const RegisterAt w : e.writes) {
        if (!e.of_call) registers.define(w, lanes);
      }
      if (instr.opcode == Opcode::alloca && options_.local) mark_alloca(exec, op, *warp, lanes);
      break;
  }
  if (++warp->watched % kForgetEvery == 0) forget_dead(exec, registers);
  deactivate_if_clean(exec, *warp);
}

void InitChecker::retried(const Exec& exec, const Op& op, LaneMask lanes) {
  WarpState* const warp = active_warp(exec);
  if (warp == nullptr) return;
  use_control(exec, op, effects_of(exec.program(), pc_of(exec, op)), lanes, registers_of(exec, *warp));
  deactivate_if_clean(exec, *warp);
}

// Under an undefined predicate, the result is the new value or the old one.
void InitChecker::compute(const Exec& exec, const Op& op, const UndefinedEffects& e, LaneMask lanes,
                          UndefinedRegisters& registers) {
  for (const RegisterAt r : e.reads) {
    if ((registers.lanes(r.reg) & lanes) != 0) name_unwritten(exec, op, registers, r.reg, lanes);
  }
  const LaneMask unknown = e.guard == kNoRegister ? 0 : registers.lanes(e.guard) & exec.lane_group.lanes;
  if (unknown != 0) name_unwritten(exec, op, registers, e.guard, unknown);
  const std::uint32_t origin = unknown == 0 ? 0 : registers.origin(e.guard);
  if (lanes != 0) propagate(exec, op, e, lanes, registers);
  if (unknown == 0) return;
  for (const RegisterAt w : e.writes) registers.mark(w, unknown, origin);
  if (e.carry_out != kNoRegister) registers.mark({e.carry_out, 0}, unknown, origin);
}

// Registers whose values are not read any more count as defined: the warp can leave the examined loop.
void InitChecker::forget_dead(const Exec& exec, UndefinedRegisters& registers) {
  const auto function =
      static_cast<std::size_t>(exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)].function);
  const std::vector<RegisterPlace>& places = exec.program().functions[function].registers;
  const std::int32_t pc = exec.lane_group.pc;
  const auto is_alive = [pc](const RegisterPlace& r) {
    return r.alive.empty() || std::any_of(r.alive.begin(), r.alive.end(),
                                          [pc](auto range) { return range.first <= pc + 1 && pc < range.second; });
  };
  std::vector<std::uint32_t> alive;
  for (const RegisterPlace& r : places) {
    if (r.reg != kNoRegister && registers.lanes(r.reg) != 0 && is_alive(r)) alive.push_back(r.reg);
  }
  for (const RegisterPlace& r : places) {
    if (r.reg == kNoRegister || registers.lanes(r.reg) == 0) continue;
    if (std::find(alive.begin(), alive.end(), r.reg) != alive.end()) continue;
    registers.define({r.reg, r.bytes}, exec.lane_group.lanes);
  }
}

void InitChecker::collective(const Exec& exec, const Op& op, LaneMask lanes) {
  WarpState* const warp = active_warp(exec);
  if (warp == nullptr) return;
  UndefinedRegisters& registers = registers_of(exec, *warp);
  const UndefinedEffects& e = effects_of(exec.program(), pc_of(exec, op));
  switch (exec.program().instr(op).opcode) {
    case Opcode::mma:
    case Opcode::movmatrix:
    case Opcode::wmma_mma:
      for (const RegisterAt r : e.reads) name_unwritten(exec, op, registers, r.reg, lanes);
      propagate_matrix(exec, op, e, registers);
      break;
    case Opcode::ldmatrix:
    case Opcode::wmma_load:
      take_rows(exec, op, *warp);
      break;
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
      exchange(exec, op, e, lanes, registers);
      break;
    default:
      break;
  }
  deactivate_if_clean(exec, *warp);
}

void InitChecker::exchange(const Exec& exec, const Op& op, const UndefinedEffects& e, LaneMask lanes,
                           UndefinedRegisters& registers) {
  const Instr& instr = exec.program().instr(op);
  for (const RegisterAt r : e.reads) name_unwritten(exec, op, registers, r.reg, lanes);
  const std::uint32_t mask = instr.opcode == Opcode::shfl    ? op.list[op.count - 1]
                             : instr.opcode == Opcode::elect ? op.at[1]
                                                             : op.at[2];
  use(exec, op, registers, {mask, 4}, lanes, "is a mask of lanes");
  const std::uint32_t a = op.at[1];
  const LaneMask undefined = a == kNoRegister ? 0 : registers.lanes(a) & lanes;
  const std::uint32_t origin = undefined == 0 ? 0 : registers.origin(a);
  switch (instr.opcode) {
    case Opcode::shfl:
      return shuffle(exec, op, e, lanes, registers);
    case Opcode::vote:
      return vote(exec, op, e, lanes, registers);
    case Opcode::match:
      use(exec, op, registers, {a, static_cast<std::uint8_t>(width_of(op, 1))}, lanes, "is compared by match");
      break;
    default:
      break;
  }
  for (const RegisterAt w : e.writes) {
    registers.define(w, lanes);
    if (instr.opcode == Opcode::redux && undefined != 0) registers.mark(w, lanes, origin);
  }
}

void InitChecker::shuffle(const Exec& exec, const Op& op, const UndefinedEffects& e, LaneMask lanes,
                          UndefinedRegisters& registers) {
  const std::uint32_t a = op.at[1], b = op.at[2], c = op.at[3];
  LaneMask undefined = 0;
  std::uint32_t origin = 0;
  for (const std::uint32_t reg : {a, b, c}) {
    if (undefined == 0 && (registers.lanes(reg) & lanes) != 0) origin = registers.origin(reg);
    undefined |= registers.lanes(reg) & lanes;
  }
  const LaneMask unknown = (registers.lanes(b) | registers.lanes(c)) & lanes;
  const ShflMode mode = shfl_mode(exec.program().instr(op));
  std::array<std::byte, std::size_t{4} * kLanes> bits{};
  for (LaneMask left = undefined == 0 ? 0 : lanes & ~unknown; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    int from = shfl_source(mode, lane, static_cast<std::uint32_t>(lane_value(exec, b, 4, lane)),
                           static_cast<std::uint32_t>(lane_value(exec, c, 4, lane)))
                   .lane;
    if ((lanes >> from & 1) == 0) from = lane;
    std::memcpy(bits.data() + 4 * lane, registers.bits(a) + 4 * from, 4);
  }
  for (const RegisterAt w : e.writes) {
    if (w.bytes == 0) {
      registers.define(w, lanes);
    } else {
      registers.assign(w, lanes, bits.data(), origin);
    }
    if (unknown != 0) registers.mark(w, unknown, origin);
  }
}

// A vote whose result the defined lanes decide alone is defined. A ballot has one bit per lane.
void InitChecker::vote(const Exec& exec, const Op& op, const UndefinedEffects& e, LaneMask lanes,
                       UndefinedRegisters& registers) {
  const Instr& instr = exec.program().instr(op);
  const LaneMask undefined = registers.lanes(op.at[1]) & lanes;
  const std::uint32_t origin = undefined == 0 ? 0 : registers.origin(op.at[1]);
  if (instr.has(Mod::ballot)) {
    std::array<LaneMask, kLanes> bits{};
    bits.fill(undefined);
    for (const RegisterAt w : e.writes) registers.assign(w, lanes, std::as_bytes(std::span(bits)).data(), origin);
    return;
  }
  LaneMask value = 0;
  std::memcpy(&value, exec.registers + op.at[1], sizeof value);
  if ((op.negated >> 1 & 1) != 0) value = ~value;
  const LaneMask yes = value & lanes & ~undefined, no = ~value & lanes & ~undefined;
  const bool decided = instr.has(Mod::all) ? no != 0 : instr.has(Mod::any) ? yes != 0 : yes != 0 && no != 0;
  if (!decided) use(exec, op, registers, {op.at[1], 0}, lanes, "decides a vote");
  for (const RegisterAt w : e.writes) registers.define(w, lanes);
}

}  // namespace kvscope::ptx
