// Cluster launch control: a CTA cancels the launch of a cluster that has not started, and does its work itself.
//
//   try_cancel [response], [mbarrier]    asks, and writes 16 bytes to shared memory when they arrive at the barrier
//   query_cancel.is_canceled p, r        whether a cluster was canceled
//   query_cancel.get_first_ctaid ..., r  the coordinates of its first CTA; undefined if none was canceled
//
// The response is four words: 1 if a cluster was canceled, then x, y, z; programs must not depend on that. The next
// cluster that the schedule would start is the one canceled. Source: PTX ISA 9.0, "clusterlaunchcontrol".
#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/detail/copy_targets.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kResponseBytes = 16;
using Response = std::array<std::uint32_t, 4>;

// Takes the next cluster from the launch.
Response cancel_next(Launch& launch) {
  const std::int64_t size = cluster_size(launch);
  if (launch.next_cta >= launch.ctas_to_run()) return {};
  const auto extents = cluster_extents(launch);
  std::array<std::int64_t, 3> clusters{};
  for (std::size_t i = 0; i < 3; ++i) clusters[i] = launch.config.grid[i] / extents[i];
  const auto cluster = thread_at(clusters, next_cluster(launch));
  launch.next_cta += size;
  launch.ended_ctas += size;
  Response response{1, 0, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) response[i + 1] = static_cast<std::uint32_t>(cluster[i] * extents[i]);
  return response;
}

Flow try_cancel(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    Space space = space_of(instr);
    std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    const LaneRequest request{space, AccessKind::store, kResponseBytes, kResponseBytes, true};
    const bool reached = reach_lane(exec, op, lane, request, space, address) != nullptr;
    const MbarrierAt at =
        !reached ? MbarrierAt{}
                 : find_mbarrier_at(exec, op, lane, space_of(instr), lane_address(exec.registers, op, 1, lane), false);
    if (at.object == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    PendingOp p;
    p.op = new_operation(exec, op, lane, AsyncKind::st_async);
    p.op.mbarrier = shared_address(static_cast<std::uint64_t>(at.cta->cluster_rank), at.offset);
    p.op.bytes = p.bytes = kResponseBytes;
    p.instr = op.instr;
    p.shared = address;
    if (instr.has(Mod::multicast_cluster_all))
      p.multicast = static_cast<std::uint32_t>((std::uint64_t{1} << cluster_size(exec.launch)) - 1);
    const Response response = cancel_next(exec.launch);
    std::memcpy(p.values.data(), response.data(), sizeof response);
    ++at.object->copies;
    at.object->copied_bytes += p.bytes;
    if (exec.launch.monitor != nullptr) add_target_writes(p);
    issue(exec, std::move(p));
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

Response response_in(const Exec& exec, std::uint32_t reg, int lane) {
  Response response;
  std::memcpy(response.data(), exec.registers + reg + lane * kResponseBytes, sizeof response);
  return response;
}

Flow query_cancel(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  if (instr.has(Mod::is_canceled)) {
    LaneMask canceled = 0;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (response_in(exec, op.at[1], lane)[0] != 0) canceled |= LaneMask{1} << lane;
    }
    write_predicate(exec, op.at[0], lanes, canceled);
    return Flow::next;
  }
  const bool all = instr.has(Mod::get_first_ctaid);
  const std::size_t first = all || instr.has(Mod::get_first_ctaid_x) ? 0 : instr.has(Mod::get_first_ctaid_y) ? 1 : 2;
  for (std::size_t i = 0; i < (all ? 3U : 1U); ++i) {
    const std::uint32_t to = all ? op.list[i] : op.at[0];
    if (to == kNoRegister) continue;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      register_of<std::uint32_t>(exec, to)[lane] = response_in(exec, all ? op.list[4] : op.at[1], lane)[first + i + 1];
    }
  }
  return Flow::next;
}

}  // namespace

MachineHandler find_cluster_launch(const Instr& instr) {
  if (instr.opcode == Opcode::clusterlaunchcontrol_try_cancel) return try_cancel;
  return instr.opcode == Opcode::clusterlaunchcontrol_query_cancel ? query_cancel : nullptr;
}

}  // namespace kvscope::ptx
