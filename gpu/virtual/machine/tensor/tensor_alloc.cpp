// tcgen05.alloc, dealloc, relinquish_alloc_permit, and the checks that all instructions of tensor memory share.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

std::string columns_text(std::int64_t column, std::int64_t columns) {
  return fmt::format("columns {} to {}", column, column + columns - 1);
}

// "tcgen05.dealloc at gemm.cu:80 by warp 2"
std::string act_text(const Launch& launch, std::string_view what, std::int32_t pc, std::int32_t warp) {
  return fmt::format("{} at {} by warp {}", what, launch.program->source_text(pc), warp);
}

// What is known about a column that no live allocation contains: it was freed, or never allocated.
std::string fate_of(const Launch& launch, const TensorMemory& memory, std::int64_t column) {
  const auto& all = memory.allocations();
  const auto freed = std::find_if(all.rbegin(), all.rend(),
                                  [column](const TensorAllocation& a) { return !a.live() && a.contains(column); });
  if (freed != all.rend())
    return act_text(launch, "it was freed by tcgen05.dealloc", freed->freed_pc, freed->freed_warp);
  std::string live;
  for (const TensorAllocation& a : all) {
    if (a.live()) live += fmt::format("{}{}", live.empty() ? "" : ", ", columns_text(a.column, a.columns));
  }
  return live.empty() ? "no columns are allocated" : "allocated: " + live;
}

// Both CTAs of a pair execute such an instruction: each waits until the other has come as far. False: it waits.
bool met_peer(Exec& exec, const Op& op, Flow& flow) {
  if (!exec.program().instr(op).has(Mod::cta_group_2)) return true;
  Cta* const peer = peer_of(exec.launch, exec.cta);
  const bool arrived = exec.lane_group.retries && exec.lane_group.wait.kind == WaitKind::tensor_peer;
  // A peer that has exited may have come here first.
  const bool met =
      arrived && peer != nullptr && static_cast<std::uint64_t>(peer->tensor.pair_actions) >= exec.lane_group.wait.value;
  if (met) {
    exec.lane_group.wait = {};
    return true;
  }
  if (peer == nullptr || peer->state == CtaState::done) {
    flow = fault(exec, op, 0, ReportKind::tensor_alloc,
                 peer == nullptr ? "an instruction with .cta_group::2 in a CTA without a peer"
                                 : "an instruction with .cta_group::2, and the peer CTA has exited",
                 "launch clusters of an even number of CTAs, and execute it in both CTAs of each pair");
    return false;
  }
  TensorMemory& own = exec.cta.tensor;
  if (!arrived) {
    ++own.pair_actions;
    event(exec.launch, exec.cta);
    wake_all(exec.launch, *peer, WaitKind::tensor_peer, 0);
    exec.lane_group.wait.value = static_cast<std::uint64_t>(own.pair_actions);
  }
  if (static_cast<std::uint64_t>(peer->tensor.pair_actions) >= exec.lane_group.wait.value) {
    exec.lane_group.wait = {};
    return true;
  }
  exec.lane_group.wait = {.kind = WaitKind::tensor_peer, .value = exec.lane_group.wait.value};
  flow = Flow::waits;
  return false;
}

Flow allocate_columns(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  TensorMemory& memory = exec.cta.tensor;
  const int lane = std::countr_zero(lanes);
  const UniformValue columns = uniform_value(exec, op, lanes, 1, "column count");
  if (columns.stopped) return Flow::stopped;
  if (!TensorMemory::is_size(columns.value)) {
    return fault(exec, op, lane, ReportKind::tensor_alloc,
                 fmt::format("tcgen05.alloc of {} columns: a power of two from {} to {}", columns.value, kTensorUnit,
                             kTensorColumns));
  }
  if (memory.relinquished_pc >= 0) {
    return fault(exec, op, lane, ReportKind::tensor_alloc,
                 fmt::format("tcgen05.alloc after the CTA gave up its right to allocate: {}",
                             act_text(exec.launch, "tcgen05.relinquish_alloc_permit", memory.relinquished_pc,
                                      memory.relinquished_warp)),
                 "allocate first, then execute tcgen05.relinquish_alloc_permit");
  }
  const auto wanted = static_cast<std::int32_t>(columns.value);
  if (wanted > memory.most_columns) {
    return fault(exec, op, lane, ReportKind::tensor_alloc,
                 fmt::format("tcgen05.alloc of {} columns after one of {}: a later allocation must not be larger",
                             wanted, memory.most_columns),
                 "allocate the largest part first");
  }
  Flow flow = Flow::next;
  const bool waited_for_room = exec.lane_group.retries && exec.lane_group.wait.kind == WaitKind::tensor_room;
  if (!waited_for_room && !met_peer(exec, op, flow)) return flow;
  const auto column = memory.allocate(wanted, exec.warp.index, pc_of(exec, op));
  if (!column) {
    exec.lane_group.wait = {.kind = WaitKind::tensor_room};
    return Flow::waits;
  }
  exec.lane_group.wait = {};
  Space space = space_of(exec.program().instr(op));
  std::uint64_t address = lane_address(exec.registers, op, 0, lane);
  std::byte* const to = reach_lane(exec, op, lane, {space, AccessKind::store, 4, 4, true}, space, address);
  event(exec);
  if (to == nullptr) return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
  if (space != Space::shared) {
    return fault(exec, op, lane, ReportKind::bad_window,
                 fmt::format("tcgen05.alloc writes its address to 0x{:x}, which is not shared memory", address));
  }
  LaneAddresses addresses;
  addresses.at.fill(address);
  const WarpAccess access{.kind = AccessKind::store,
                          .space = Space::shared,
                          .bytes = 4,
                          .lanes = LaneMask{1} << lane,
                          .addresses = addresses.at};
  if (exec.launch.monitor != nullptr) exec.launch.monitor->access(exec, op, access);
  const std::uint32_t bits = tensor_bits({0, *column});
  std::memcpy(to, &bits, sizeof bits);
  if (exec.launch.monitor != nullptr) exec.launch.monitor->stored(exec, op, access);
  return Flow::next;
}

Flow free_columns(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  const int lane = std::countr_zero(lanes);
  const UniformValue bits = uniform_value(exec, op, lanes, 0, "address"),
                     columns = uniform_value(exec, op, lanes, 1, "column count");
  if (bits.stopped || columns.stopped) return Flow::stopped;
  Flow flow = Flow::next;
  if (!met_peer(exec, op, flow)) return flow;
  TensorMemory& memory = exec.cta.tensor;
  const TensorAddress at = tensor_address(static_cast<std::uint32_t>(bits.value));
  if (at.lane != 0 || !memory.free(static_cast<std::int32_t>(at.column), static_cast<std::int32_t>(columns.value),
                                   exec.warp.index, pc_of(exec, op))) {
    return fault(exec, op, lane, ReportKind::tensor_alloc,
                 fmt::format("tcgen05.dealloc of {} columns at 0x{:08x} (lane {}, column {}) frees no allocation: {}",
                             columns.value, bits.value, at.lane, at.column, fate_of(exec.launch, memory, at.column)),
                 "free the address and the number of columns of one tcgen05.alloc, once");
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->tensor_freed(exec, op, at.column, columns.value);
  wake_all(exec.launch, exec.cta, WaitKind::tensor_room, 0);
  event(exec);
  return Flow::next;
}

Flow relinquish_permit(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  Flow flow = Flow::next;
  if (!met_peer(exec, op, flow)) return flow;
  exec.cta.tensor.relinquished_pc = pc_of(exec, op);
  exec.cta.tensor.relinquished_warp = exec.warp.index;
  return Flow::next;
}

}  // namespace

Cta* peer_of(Launch& launch, Cta& cta) {
  return cluster_size(launch) < 2 ? nullptr
                                  : cta_of_rank(launch, cta, static_cast<std::uint64_t>(cta.cluster_rank) ^ 1);
}

std::vector<Cta*> ctas_of(Launch& launch, Cta& cta, bool pair) {
  if (!pair) return {&cta};
  Cta* const peer = peer_of(launch, cta);
  if (peer == nullptr) return {};
  return cta.cluster_rank % 2 == 0 ? std::vector{&cta, peer} : std::vector{peer, &cta};
}

bool agrees_on_group(Exec& exec, const Op& op) {
  const std::int32_t group = exec.program().instr(op).has(Mod::cta_group_2) ? 2 : 1;
  std::int32_t& first = exec.cta.tensor.cta_group;
  if (first == 0) first = group;
  if (first == group) return true;
  return fault(exec, op, 0, ReportKind::tensor_alloc,
               fmt::format(".cta_group::{} in a kernel that has used .cta_group::{}", group, first),
               "all tcgen05 instructions of a kernel have the same .cta_group") != Flow::stopped;
}

bool is_allocated(Exec& exec, const Op& op, int lane, const Cta& cta, const TensorRegion& region,
                  std::string_view what) {
  const auto outside = cta.tensor.outside(region);
  if (!outside) return true;
  const bool lanes = region.lane < 0 || region.lane + region.lanes > kTensorLanes;
  fault(exec, op, lane, ReportKind::tensor_access,
        lanes ? fmt::format("{} lanes {} to {}, and tensor memory has {}", what, region.lane,
                            region.lane + region.lanes - 1, kTensorLanes)
              : fmt::format("{} {}{}, and column {} is not allocated: {}", what,
                            columns_text(region.column, region.columns), &cta == &exec.cta ? "" : " of the peer CTA",
                            outside->column, fate_of(exec.launch, cta.tensor, outside->column)),
        lanes ? "" : "allocate the columns with tcgen05.alloc, and free them after the last use");
  return false;
}

UniformValue uniform_value(Exec& exec, const Op& op, LaneMask lanes, int operand, std::string_view what) {
  const std::uint32_t reg = op.at[static_cast<std::size_t>(operand)];
  const int width = width_of(op, operand), first = std::countr_zero(lanes);
  const UniformValue out{lane_value(exec, reg, width, first), false};
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t other = lane_value(exec, reg, width, lane);
    if (other == out.value) continue;
    const Flow flow =
        fault(exec, op, lane, ReportKind::diverged,
              fmt::format("lanes of warp {} have different values of the {}: 0x{:x} in lane {}, 0x{:x} in "
                          "lane {}",
                          exec.warp.index, what, out.value, first, other, lane),
              "one value for the whole warp");
    return {out.value, flow == Flow::stopped};
  }
  return out;
}

void end_tensor_memory(Launch& launch, Cta& cta) {
  const auto& ops = cta.async.tensor;
  if (const auto late = std::find_if(ops.begin(), ops.end(), [](const TensorOp& t) { return t.barriers.empty(); });
      late != ops.end()) {
    engine_fault(launch, cta, late->op, ReportKind::exit_in_flight,
                 "the CTA ended with this operation of the tensor core in flight",
                 "tcgen05.commit, and a wait for its mbarrier before the end");
  }
  while (!cta.async.tensor.empty()) perform_tensor_op(launch, cta);
  for (const TensorAllocation& a : cta.tensor.allocations()) {
    if (!a.live()) continue;
    AsyncOp op;
    op.kind = AsyncKind::tcgen05;
    op.cta = cta.index;
    op.thread = a.warp * kLanes;
    op.pc = a.pc;
    engine_fault(launch, cta, op, ReportKind::tensor_alloc,
                 fmt::format("the CTA ended with {} of tensor memory allocated", columns_text(a.column, a.columns)),
                 "tcgen05.dealloc, after the last use and before the kernel ends");
  }
}

MachineHandler find_tensor_alloc(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::tcgen05_alloc:
      return allocate_columns;
    case Opcode::tcgen05_dealloc:
      return free_columns;
    case Opcode::tcgen05_relinquish_alloc_permit:
      return relinquish_permit;
    default:
      return nullptr;
  }
}

MachineHandler find_tensor(const Instr& instr) {
  for (const auto find : {find_tensor_alloc, find_tensor_move, find_tensor_engine}) {
    if (const MachineHandler handler = find(instr)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
