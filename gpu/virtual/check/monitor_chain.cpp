#include "gpu/virtual/check/monitor_chain.h"

namespace kvscope::ptx {
namespace {

template <class Call>
void each(const std::vector<Monitor*>& monitors, Call call) {
  for (Monitor* monitor : monitors) call(*monitor);
}

}  // namespace

void MonitorChain::launch_begins(Launch& launch) {
  each(monitors_, [&](Monitor& monitor) { monitor.launch_begins(launch); });
}

void MonitorChain::launch_ends(Launch& launch) {
  each(monitors_, [&](Monitor& monitor) { monitor.launch_ends(launch); });
}

void MonitorChain::cta_begins(Launch& launch, const Cta& cta) {
  each(monitors_, [&](Monitor& monitor) { monitor.cta_begins(launch, cta); });
}

void MonitorChain::cta_ends(Launch& launch, const Cta& cta) {
  each(monitors_, [&](Monitor& monitor) { monitor.cta_ends(launch, cta); });
}

void MonitorChain::cta_suspended(Launch& launch, const Cta& cta) {
  each(monitors_, [&](Monitor& monitor) { monitor.cta_suspended(launch, cta); });
}

void MonitorChain::instruction(const Exec& exec, const Op& op, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.instruction(exec, op, lanes); });
}

void MonitorChain::retried(const Exec& exec, const Op& op, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.retried(exec, op, lanes); });
}

void MonitorChain::split(const Exec& exec, LaneMask taken, std::int32_t pc) {
  each(monitors_, [&](Monitor& monitor) { monitor.split(exec, taken, pc); });
}

void MonitorChain::merge(const Exec& exec, LaneMask joined) {
  each(monitors_, [&](Monitor& monitor) { monitor.merge(exec, joined); });
}

void MonitorChain::park(const Exec& exec, const Op& op) {
  each(monitors_, [&](Monitor& monitor) { monitor.park(exec, op); });
}

void MonitorChain::resume(const Exec& exec) {
  each(monitors_, [&](Monitor& monitor) { monitor.resume(exec); });
}

void MonitorChain::exit(const Exec& exec, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.exit(exec, lanes); });
}

void MonitorChain::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  each(monitors_, [&](Monitor& monitor) { monitor.access(exec, op, access); });
}

void MonitorChain::stored(const Exec& exec, const Op& op, const WarpAccess& access) {
  each(monitors_, [&](Monitor& monitor) { monitor.stored(exec, op, access); });
}

void MonitorChain::discarded(const Exec& exec, const Op& op, const WarpAccess& access) {
  each(monitors_, [&](Monitor& monitor) { monitor.discarded(exec, op, access); });
}

void MonitorChain::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) {
  each(monitors_, [&](Monitor& monitor) { monitor.barrier_arrive(exec, barrier, lanes, waits); });
}

void MonitorChain::barrier_done(Launch& launch, const Cta& cta, int barrier, std::span<const LaneMask> arrived,
                                std::span<const LaneMask> waiting) {
  each(monitors_, [&](Monitor& monitor) { monitor.barrier_done(launch, cta, barrier, arrived, waiting); });
}

void MonitorChain::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  each(monitors_, [&](Monitor& monitor) { monitor.cluster_arrive(exec, lanes, order); });
}

void MonitorChain::cluster_wait(const Exec& exec, LaneMask lanes, Order order) {
  each(monitors_, [&](Monitor& monitor) { monitor.cluster_wait(exec, lanes, order); });
}

void MonitorChain::warp_barrier(const Exec& exec, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.warp_barrier(exec, lanes); });
}

void MonitorChain::collective(const Exec& exec, const Op& op, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.collective(exec, op, lanes); });
}

void MonitorChain::mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                            std::uint64_t address, std::int64_t amount, Order order, Scope scope) {
  each(monitors_,
       [&](Monitor& monitor) { monitor.mbarrier(launch, cta, exec, lanes, event, address, amount, order, scope); });
}

void MonitorChain::fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) {
  each(monitors_, [&](Monitor& monitor) { monitor.fence(exec, lanes, order, scope); });
}

void MonitorChain::proxy_fence(const Exec& exec, LaneMask lanes, Space space) {
  each(monitors_, [&](Monitor& monitor) { monitor.proxy_fence(exec, lanes, space); });
}

void MonitorChain::copy_issued(const Exec& exec, const PendingOp& copy) {
  each(monitors_, [&](Monitor& monitor) { monitor.copy_issued(exec, copy); });
}

void MonitorChain::async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                               std::span<const ByteRange> writes) {
  each(monitors_, [&](Monitor& monitor) { monitor.async_issue(exec, op, reads, writes); });
}

void MonitorChain::async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange> reads,
                               std::span<const ByteRange> writes) {
  each(monitors_, [&](Monitor& monitor) { monitor.async_moves(launch, cta, op, reads, writes); });
}

void MonitorChain::async_done(Launch& launch, const Cta& cta, const AsyncOp& op) {
  each(monitors_, [&](Monitor& monitor) { monitor.async_done(launch, cta, op); });
}

void MonitorChain::group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) {
  each(monitors_, [&](Monitor& monitor) { monitor.group_commit(exec, kind, lanes); });
}

void MonitorChain::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                              std::span<const std::uint64_t, kLanes> last) {
  each(monitors_, [&](Monitor& monitor) { monitor.group_wait(exec, kind, lanes, reads_only, last); });
}

void MonitorChain::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  each(monitors_, [&](Monitor& monitor) { monitor.cp_async_arrive(exec, lanes, mbarrier); });
}

void MonitorChain::printed(const Exec& exec, std::string_view text) {
  each(monitors_, [&](Monitor& monitor) { monitor.printed(exec, text); });
}

void MonitorChain::reported(Launch& launch, const Report& report) {
  each(monitors_, [&](Monitor& monitor) { monitor.reported(launch, report); });
}

}  // namespace kvscope::ptx
