// Fences change no value: memory is sequentially consistent here. Monitors that check for missing fences receive each
// one.
#include <fmt/format.h>

#include <bit>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

Flow fence(Exec& exec, const Op& op, LaneMask lanes) {
  if (exec.launch.monitor == nullptr) return Flow::next;
  const Instr& instr = exec.program().instr(op);
  Order order = order_of(instr);
  if (order == Order::weak) order = instr.opcode == Opcode::membar ? Order::sc : Order::acq_rel;  // the default order
  exec.launch.monitor->fence(exec, lanes, order, scope_of(instr));
  return Flow::next;
}

// .proxy.async of all memory, or of one space.
Flow proxy_fence(Exec& exec, const Op& op, LaneMask lanes) {
  if (exec.launch.monitor == nullptr) return Flow::next;
  const Instr& instr = exec.program().instr(op);
  const bool shared = instr.has(Mod::shared_cta) || instr.has(Mod::shared_cluster);
  exec.launch.monitor->proxy_fence(exec, lanes,
                                   shared                   ? Space::shared
                                   : instr.has(Mod::global) ? Space::global
                                                            : Space::generic);
  return Flow::next;
}

// .proxy.alias: this machine never reorders such accesses.
Flow nothing(Exec&, const Op&, LaneMask) {
  return Flow::next;
}

// [map], 128: the map must be in valid memory.
Flow tensormap_acquire(Exec& exec, const Op& op, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    Space space = Space::generic;
    const LaneRequest request{Space::generic, AccessKind::load, 128, 64};
    if (reach_lane(exec, op, lane, request, space, address) == nullptr && exec.launch.status == LaunchStatus::failed) {
      return Flow::stopped;
    }
  }
  if (exec.launch.monitor != nullptr) {
    exec.launch.monitor->fence(exec, lanes, Order::acquire, scope_of(exec.program().instr(op)));
  }
  return Flow::next;
}

}  // namespace

MachineHandler find_fence(const Instr& instr) {
  if (instr.opcode != Opcode::fence && instr.opcode != Opcode::membar) return nullptr;
  if (!instr.has(Mod::proxy)) return fence;
  if (instr.has(Mod::alias)) return nothing;
  if (instr.has(Mod::async)) return proxy_fence;
  if (instr.has(Mod::async_generic)) return fence;
  return instr.has(Mod::acquire) && instr.has(Mod::tensormap_generic) ? tensormap_acquire : fence;
}

}  // namespace kvscope::ptx
