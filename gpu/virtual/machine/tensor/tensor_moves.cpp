// tcgen05.ld and st between registers and tensor memory, their waits, and the fences around a synchronization of
// threads. The cells move when the instruction executes; the checker of tensor memory reports accesses that do not
// wait for them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"
#include "gpu/virtual/machine/tensor/tensor_layout.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kWarpLanes = 32;

// The place of a warp's access, checked. False: nothing may be accessed.
bool find_place(Exec& exec, const Op& op, LaneMask lanes, int operand, TensorMove& move, TensorAddress& from,
                std::vector<TensorRegion>& regions, bool& stopped) {
  const Instr& instr = exec.program().instr(op);
  const bool load = instr.opcode == Opcode::tcgen05_ld;
  const UniformValue bits = uniform_value(exec, op, lanes, operand, "address in tensor memory");
  stopped = bits.stopped;
  if (stopped) return false;
  const auto offset = static_cast<std::uint64_t>(address_offset(op, operand));
  from = tensor_address(static_cast<std::uint32_t>(bits.value + offset));
  move = tensor_move(instr);
  if (move.shape == TensorShape::s16x32bx2) {
    // {registers}, [address], split     [address], split, {registers}
    const int at = load ? move.registers + 1 : 1;
    move.split = register_of<std::uint32_t>(exec, op.list[at])[0];
  }
  regions = regions_of(move, from);
  const int lane = std::countr_zero(lanes);
  const std::int64_t first = kWarpLanes * (exec.warp.index % 4), rows = move.shape == TensorShape::s32x32b ? 32 : 16;
  if (from.lane < first || from.lane + rows > first + kWarpLanes || from.lane % rows != 0) {
    stopped = fault(exec, op, lane, ReportKind::tensor_access,
                    fmt::format("{} of warp {} {} lanes {} to {}, and this warp accesses lanes {} to {}{}",
                                load ? "tcgen05.ld" : "tcgen05.st", exec.warp.index, load ? "reads" : "writes",
                                from.lane, from.lane + rows - 1, first, first + kWarpLanes - 1,
                                rows == 16 ? ", 16 from a multiple of 16 on" : ""),
                    "warp w accesses lanes 32 (w % 4) to 32 (w % 4) + 31: add them to the address, shifted by 16") ==
              Flow::stopped;
    return false;
  }
  for (const TensorRegion& region : regions) {
    if (is_allocated(exec, op, lane, exec.cta, region, load ? "tcgen05.ld reads" : "tcgen05.st writes")) continue;
    stopped = exec.launch.status == LaunchStatus::failed;
    return false;
  }
  return true;
}

void tell_cells(const Exec& exec, const Op& op, AccessKind kind, std::span<const TensorRegion> regions) {
  if (exec.launch.monitor == nullptr) return;
  exec.launch.monitor->tensor_access(exec, op, {.kind = kind, .cta = exec.cta.index, .regions = regions});
}

Flow load_cells(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  TensorMove move;
  TensorAddress from;
  std::vector<TensorRegion> regions;
  bool stopped = false;
  if (!find_place(exec, op, lanes, 1, move, from, regions, stopped)) return stopped ? Flow::stopped : Flow::next;
  tell_cells(exec, op, AccessKind::load, regions);
  const TensorMemory& memory = exec.cta.tensor;
  for (int j = 0; j < move.registers; ++j) {
    if (op.list[j] == kNoRegister) continue;
    auto* const to = register_of<std::uint32_t>(exec, op.list[j]);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int t = std::countr_zero(left);
      const TensorAddress cell = cell_of(move, t, j);
      const std::uint32_t* const at = memory.row(from.lane + cell.lane) + from.column + cell.column;
      to[t] = move.halves ? (at[0] & 0xffff) | at[1] << 16 : at[0];
    }
  }
  return Flow::next;
}

Flow store_cells(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  TensorMove move;
  TensorAddress from;
  std::vector<TensorRegion> regions;
  bool stopped = false;
  if (!find_place(exec, op, lanes, 0, move, from, regions, stopped)) return stopped ? Flow::stopped : Flow::next;
  tell_cells(exec, op, AccessKind::store, regions);
  TensorMemory& memory = exec.cta.tensor;
  const std::uint32_t* const values = op.list + (move.shape == TensorShape::s16x32bx2 ? 2 : 1);
  for (int j = 0; j < move.registers; ++j) {
    const auto* const value = register_of<std::uint32_t>(exec, values[j]);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int t = std::countr_zero(left);
      const TensorAddress cell = cell_of(move, t, j);
      std::uint32_t* const at = memory.row(from.lane + cell.lane) + from.column + cell.column;
      if (move.halves) {
        at[0] = (at[0] & 0xffff0000) | (value[t] & 0xffff);
        at[1] = (at[1] & 0xffff0000) | value[t] >> 16;
      } else {
        at[0] = value[t];
      }
    }
  }
  event(exec);
  return Flow::next;
}

template <bool kStores>
Flow wait_for_cells(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->tensor_wait(exec, op, kStores);
  return Flow::next;
}

template <bool kBefore>
Flow fence_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  if (exec.launch.monitor != nullptr) exec.launch.monitor->tensor_fence(exec, op, lanes, kBefore);
  return Flow::next;
}

}  // namespace

MachineHandler find_tensor_move(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::tcgen05_ld:
      return load_cells;
    case Opcode::tcgen05_st:
      return store_cells;
    case Opcode::tcgen05_wait_ld:
      return wait_for_cells<false>;
    case Opcode::tcgen05_wait_st:
      return wait_for_cells<true>;
    case Opcode::tcgen05_fence_before:
      return fence_tensor<true>;
    case Opcode::tcgen05_fence_after:
      return fence_tensor<false>;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
