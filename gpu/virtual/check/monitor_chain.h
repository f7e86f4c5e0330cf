// Several monitors in place of one: each receives every event, in the order in which the monitors were added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class MonitorChain final : public Monitor {
 public:
  void add(Monitor& monitor) {  // must outlive the chain
    monitors_.push_back(&monitor);
    if (monitor.wants_accesses()) of_accesses_.push_back(&monitor);
    const OperationEvents operations = monitor.wants_operations();
    if (operations.issue) of_issues_.push_back(&monitor);
    if (operations.moves) of_moves_.push_back(&monitor);
    if (operations.lane_moves) of_lane_moves_.push_back(&monitor);
    if (operations.done) of_ends_.push_back(&monitor);
  }
  [[nodiscard]] bool empty() const { return monitors_.empty(); }
  // The monitor that is the only one, which receives the same events without the chain; null: there are several, or none.
  [[nodiscard]] Monitor* only() const { return monitors_.size() == 1 ? monitors_.front() : nullptr; }

  // A chain of the parts of all monitors; null if one of them has none.
  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t parts) override {
    auto chain = std::make_unique<MonitorChain>();
    for (Monitor* monitor : monitors_) {
      chain->owned_.push_back(monitor->fork(parts));
      if (chain->owned_.back() == nullptr) return nullptr;
      chain->add(*chain->owned_.back());
    }
    return chain;
  }
  void join(Monitor& part) override {
    const auto& parts = static_cast<MonitorChain&>(part).monitors_;
    for (std::size_t i = 0; i < monitors_.size(); ++i) monitors_[i]->join(*parts[i]);
  }

  [[nodiscard]] bool wants_instructions() const override {
    return std::any_of(monitors_.begin(), monitors_.end(), [](const Monitor* m) { return m->wants_instructions(); });
  }
  [[nodiscard]] bool wants_instructions_of(const Cta& cta, const Warp& warp) const override {
    return std::any_of(monitors_.begin(), monitors_.end(),
                       [&](const Monitor* m) { return m->wants_instructions_of(cta, warp); });
  }

  [[nodiscard]] bool wants_run_counts() const override {
    return std::any_of(monitors_.begin(), monitors_.end(), [](const Monitor* m) { return m->wants_run_counts(); });
  }

  void access(const Exec& exec, const Op& op, const WarpAccess& access) override {
    for (Monitor* monitor : of_accesses_) monitor->access(exec, op, access);
  }
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override {
    for (Monitor* monitor : of_issues_) monitor->async_issue(exec, op, reads, writes);
  }
  void copies_issue(const Exec& exec, const LaneCopies& copies) override {
    for (Monitor* monitor : of_issues_) monitor->copies_issue(exec, copies);
  }
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override {
    for (Monitor* monitor : op.kind == AsyncKind::cp_async ? of_lane_moves_ : of_moves_)
      monitor->async_moves(launch, cta, op, reads, writes);
  }
  void async_done(Launch& launch, const Cta& cta, const AsyncOp& op) override {
    for (Monitor* monitor : of_ends_) monitor->async_done(launch, cta, op);
  }

  // Forwards one event of Monitor: its name, its parameters, their names.
#define KVSCOPE_FORWARD(event, parameters, arguments)             \
  void event parameters override {                                \
    for (Monitor * monitor : monitors_) monitor->event arguments; \
  }
  KVSCOPE_FORWARD(launch_begins, (Launch & launch), (launch))
  KVSCOPE_FORWARD(launch_ends, (Launch & launch), (launch))
  KVSCOPE_FORWARD(cta_begins, (Launch & launch, const Cta& cta), (launch, cta))
  KVSCOPE_FORWARD(cta_ends, (Launch & launch, const Cta& cta), (launch, cta))
  KVSCOPE_FORWARD(cta_suspended, (Launch & launch, const Cta& cta), (launch, cta))
  KVSCOPE_FORWARD(instruction, (const Exec& exec, const Op& op, LaneMask lanes), (exec, op, lanes))
  KVSCOPE_FORWARD(retried, (const Exec& exec, const Op& op, LaneMask lanes), (exec, op, lanes))
  KVSCOPE_FORWARD(split, (const Exec& exec, LaneMask taken, std::int32_t pc), (exec, taken, pc))
  KVSCOPE_FORWARD(merge, (const Exec& exec, LaneMask joined), (exec, joined))
  KVSCOPE_FORWARD(park, (const Exec& exec, const Op& op), (exec, op))
  KVSCOPE_FORWARD(resume, (const Exec& exec), (exec))
  KVSCOPE_FORWARD(exit, (const Exec& exec, LaneMask lanes), (exec, lanes))
  KVSCOPE_FORWARD(stored, (const Exec& exec, const Op& op, const WarpAccess& access), (exec, op, access))
  KVSCOPE_FORWARD(discarded, (const Exec& exec, const Op& op, const WarpAccess& access), (exec, op, access))
  KVSCOPE_FORWARD(barrier_arrive, (const Exec& exec, int barrier, LaneMask lanes, bool waits),
                  (exec, barrier, lanes, waits))
  KVSCOPE_FORWARD(barrier_done, (Launch & launch, const Cta& cta, int barrier, LaneMasks arrived, LaneMasks waiting),
                  (launch, cta, barrier, arrived, waiting))
  KVSCOPE_FORWARD(cluster_arrive, (const Exec& exec, LaneMask lanes, Order order), (exec, lanes, order))
  KVSCOPE_FORWARD(cluster_done, (Launch & launch, const Cta& cta), (launch, cta))
  KVSCOPE_FORWARD(cluster_wait, (const Exec& exec, LaneMask lanes, Order order), (exec, lanes, order))
  KVSCOPE_FORWARD(warp_barrier, (const Exec& exec, LaneMask lanes), (exec, lanes))
  KVSCOPE_FORWARD(collective, (const Exec& exec, const Op& op, LaneMask lanes), (exec, op, lanes))
  KVSCOPE_FORWARD(mbarrier,
                  (Launch & launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                   std::uint64_t address, std::int64_t amount, Order order, Scope scope),
                  (launch, cta, exec, lanes, event, address, amount, order, scope))
  KVSCOPE_FORWARD(fence, (const Exec& exec, LaneMask lanes, Order order, Scope scope), (exec, lanes, order, scope))
  KVSCOPE_FORWARD(proxy_fence, (const Exec& exec, LaneMask lanes, Space space), (exec, lanes, space))
  KVSCOPE_FORWARD(copy_issued, (const Exec& exec, const PendingOp& copy), (exec, copy))
  KVSCOPE_FORWARD(box_moves, (Launch & launch, const Cta& cta, const PendingOp& copy), (launch, cta, copy))
  KVSCOPE_FORWARD(group_commit, (const Exec& exec, AsyncKind kind, LaneMask lanes), (exec, kind, lanes))
  KVSCOPE_FORWARD(group_wait,
                  (const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only, OperationNumbers last),
                  (exec, kind, lanes, reads_only, last))
  KVSCOPE_FORWARD(cp_async_arrive, (const Exec& exec, LaneMask lanes, std::uint64_t mbarrier), (exec, lanes, mbarrier))
  KVSCOPE_FORWARD(tensor_access, (const Exec& exec, const Op& op, const TensorAccess& access), (exec, op, access))
  KVSCOPE_FORWARD(tensor_wait, (const Exec& exec, const Op& op, bool stores), (exec, op, stores))
  KVSCOPE_FORWARD(tensor_fence, (const Exec& exec, const Op& op, LaneMask lanes, bool before),
                  (exec, op, lanes, before))
  KVSCOPE_FORWARD(tensor_freed, (const Exec& exec, const Op& op, std::int64_t column, std::uint64_t columns),
                  (exec, op, column, columns))
  KVSCOPE_FORWARD(tensor_commit,
                  (const Exec& exec, int lane, std::uint64_t number, std::span<const std::uint64_t> barriers),
                  (exec, lane, number, barriers))
  KVSCOPE_FORWARD(printed, (const Exec& exec, std::string_view text), (exec, text))
  KVSCOPE_FORWARD(reported, (Launch & launch, const Report& report), (launch, report))
#undef KVSCOPE_FORWARD

 private:
  std::vector<Monitor*> monitors_;
  // Of these: Monitor::wants_accesses, wants_operations.
  std::vector<Monitor*> of_accesses_, of_issues_, of_moves_, of_lane_moves_, of_ends_;
  std::vector<std::unique_ptr<Monitor>> owned_;  // of a chain for a part of a launch
};

}  // namespace kvscope::ptx
