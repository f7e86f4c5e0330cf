#include "gpu/virtual/machine/barriers/detail/cluster_barriers.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

Order order_of(const Instr& instr, Order otherwise) {
  return instr.has(Mod::relaxed) ? Order::relaxed : otherwise;
}

Report misuse(std::string message) {
  Report r;
  r.kind = ReportKind::barrier_rearrive;
  r.message = std::move(message);
  return r;
}

void let_pass(Launch& launch, Cta& cta) {
  const std::int64_t cluster = cluster_of(launch, cta);
  const auto in_cluster = [&](const Cta& other) { return cluster_of(launch, other) == cluster; };
  bool any = false;
  for (const Cta& other : launch.ctas) {
    if (!in_cluster(other)) continue;
    for (std::size_t w = 0; w < other.warps.size(); ++w) {
      if ((live_lanes(other.warps[w]) & ~other.cluster_arrived[w]) != 0) return;
      any = any || other.cluster_arrived[w] != 0;
    }
  }
  if (!any) return;
  if (launch.monitor != nullptr) launch.monitor->cluster_done(launch, cta);
  for (Cta& other : launch.ctas) {
    if (!in_cluster(other)) continue;
    for (std::size_t w = 0; w < other.warps.size(); ++w) {
      other.cluster_passed[w] = other.cluster_arrived[w] & live_lanes(other.warps[w]);
      other.cluster_arrived[w] = 0;
    }
    event(launch, other);
    wake_all(launch, other, WaitKind::cluster_barrier, 0);
  }
}

Flow run_arrive(Exec& exec, const Op& op, LaneMask lanes) {
  const auto w = static_cast<std::size_t>(exec.warp.index);
  const LaneMask again = lanes & (exec.cta.cluster_arrived[w] | exec.cta.cluster_passed[w]);
  if (again != 0) {
    return report(exec,
                  misuse(fmt::format("lanes {:08x} arrive at the cluster's barrier again without a wait", again)));
  }
  exec.cta.cluster_arrived[w] |= lanes;
  if (exec.launch.monitor != nullptr) {
    exec.launch.monitor->cluster_arrive(exec, lanes, order_of(exec.program().instr(op), Order::release));
  }
  event(exec);
  let_pass(exec.launch, exec.cta);
  return Flow::next;
}

Flow run_wait(Exec& exec, const Op& op, LaneMask lanes) {
  const auto w = static_cast<std::size_t>(exec.warp.index);
  LaneMask& passed = exec.cta.cluster_passed[w];
  const LaneMask without = lanes & ~(passed | exec.cta.cluster_arrived[w]);
  if (without != 0) {
    return report(exec,
                  misuse(fmt::format("lanes {:08x} wait at the cluster's barrier without having arrived", without)));
  }
  if ((lanes & ~passed) != 0) {
    exec.lane_group.wait = {.kind = WaitKind::cluster_barrier};
    return Flow::waits;
  }
  passed &= ~lanes;
  if (exec.launch.monitor != nullptr) {
    exec.launch.monitor->cluster_wait(exec, lanes, order_of(exec.program().instr(op), Order::acquire));
  }
  return Flow::next;
}

}  // namespace

MachineHandler find_cluster_barrier(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::barrier_cluster_arrive:
      return run_arrive;
    case Opcode::barrier_cluster_wait:
      return run_wait;
    default:
      return nullptr;
  }
}

void look_again_at_cluster_barrier(Launch& launch, Cta& cta) {
  const bool used = std::any_of(launch.ctas.begin(), launch.ctas.end(), [](const Cta& c) {
    return std::any_of(c.cluster_arrived.begin(), c.cluster_arrived.end(), [](LaneMask m) { return m != 0; });
  });
  if (used) let_pass(launch, cta);
}

}  // namespace kvscope::ptx
