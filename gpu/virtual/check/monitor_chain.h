// Several monitors in the place of one: each is told everything, in the order in which they were added.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class MonitorChain final : public Monitor {
 public:
  void add(Monitor& monitor) { monitors_.push_back(&monitor); }  // it outlives the chain
  [[nodiscard]] bool empty() const { return monitors_.empty(); }

  [[nodiscard]] bool wants_instructions() const override {
    return std::any_of(monitors_.begin(), monitors_.end(), [](const Monitor* m) { return m->wants_instructions(); });
  }
  void launch_begins(Launch& launch) override;
  void launch_ends(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void cta_suspended(Launch& launch, const Cta& cta) override;
  void instruction(const Exec& exec, const Op& op, LaneMask lanes) override;
  void retried(const Exec& exec, const Op& op, LaneMask lanes) override;
  void split(const Exec& exec, LaneMask taken, std::int32_t pc) override;
  void merge(const Exec& exec, LaneMask joined) override;
  void park(const Exec& exec, const Op& op) override;
  void resume(const Exec& exec) override;
  void exit(const Exec& exec, LaneMask lanes) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void stored(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void discarded(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) override;
  void barrier_done(Launch& launch, const Cta& cta, int barrier, std::span<const LaneMask> arrived,
                    std::span<const LaneMask> waiting) override;
  void cluster_arrive(const Exec& exec, LaneMask lanes, Order order) override;
  void cluster_wait(const Exec& exec, LaneMask lanes, Order order) override;
  void warp_barrier(const Exec& exec, LaneMask lanes) override;
  void collective(const Exec& exec, const Op& op, LaneMask lanes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) override;
  void proxy_fence(const Exec& exec, LaneMask lanes, Space space) override;
  void copy_issued(const Exec& exec, const PendingOp& copy) override;
  void async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void async_done(Launch& launch, const Cta& cta, const AsyncOp& op) override;
  void group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) override;
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                  std::span<const std::uint64_t, kLanes> last) override;
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) override;
  void printed(const Exec& exec, std::string_view text) override;
  void reported(Launch& launch, const Report& report) override;

 private:
  std::vector<Monitor*> monitors_;
};

}  // namespace kvscope::ptx
