// What happens before what among the threads of one cluster or of one grid: the one set of rules that the race checkers
// of shared memory (race_checker.h) and of global memory (global_races.h) ask.
//
//   source of order                      who publishes, and what             who acquires it
//   bar.sync, barrier.cluster, warp sync  all threads that arrive             all threads that wait
//   mbarrier.arrive ... wait              arrivals of the phase, its copies   lanes that find the phase complete
//   release, or fence and relaxed access  the lane, through that location     lanes that read it with acquire, or read it
//                                                                             relaxed and then execute a fence
//   the barrier of a cooperative grid     each CTA, by a release as above     lanes that poll it, as above: what all CTAs
//                                                                             have published in the last complete phase
//   two fence.sc of the grid, linked by   what the earlier fence covers,      the thread of the later fence, as PTX orders
//     relaxed accesses (global memory)    published by any thread after it    any two fence.sc
//   waits for cp.async, bulk              engines of the thread               the thread
//   waits for wgmma                       products of all four warps          the warp
//
// Only these order anything. The two memories differ in three points:
//
//                                      shared          global
//   fences reach                       every thread    the threads of their scope
//   a barrier hands on what its        no              yes, to strong reads and to writes: the last block's sum of the
//     threads saw by relaxed reads                     CUDA programming guide has an atomic, then __syncthreads, then
//                                                      volatile reads. A weak read needs a fence after the atomic
//   wait_group.read of a bulk store    orders it       does not: the bytes may not have been written yet
//
// CTAs are numbered within what is watched: by rank in a cluster, linearly in a grid. Clocks: clock.h; the state of a
// warp's lanes: warp_views.h.
//
// Example: lane 3 acquires a flag with clock {warp 1: 7} and has {warp 0: 2}: it continues with {warp 0: 2, warp 1: 7}.
// Source: PTX ISA, "Memory Consistency Model".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/virtual/check/warp_views.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

[[nodiscard]] constexpr bool releases(Order order) {
  return order == Order::release || order == Order::acq_rel || order == Order::sc;
}
[[nodiscard]] constexpr bool acquires(Order order) {
  return order == Order::acquire || order == Order::acq_rel || order == Order::sc;
}

// Bytes of all ranges together.
[[nodiscard]] std::int64_t bytes_of(ByteRanges ranges);

class HappensBefore {
 public:
  // `memory`: Space::shared for one cluster of the launch, Space::global for its whole grid.
  HappensBefore(Space memory, const Launch& launch);

  void begin(const Cta& cta);
  void end(const Cta& cta);  // its threads have exited

  [[nodiscard]] WarpViews& warp(const Cta& cta, int warp) {
    return threads(number_of_cta(cta)).warps[static_cast<std::size_t>(warp)];
  }
  [[nodiscard]] WarpViews& warp(ActorKey thread) {
    return threads(cta_of(thread)).warps[static_cast<std::size_t>(thread_of(thread) / kLanes)];
  }
  [[nodiscard]] WarpViews& warp(const Exec& exec) { return this->warp(exec.cta, exec.warp.index); }
  [[nodiscard]] std::uint32_t number_of_cta(const Cta& cta) const {
    return static_cast<std::uint32_t>(memory_ == Space::shared ? cta.cluster_rank : cta.index);
  }
  // The key of an actor. Engines that count on an arrival barrier belong to the cluster of the CTA, all others to it.
  [[nodiscard]] ActorKey key(std::uint32_t cta, std::uint32_t number) const {
    return actor_key((number & (kEngines | kByBarrier)) > kEngines ? cluster_of(cta) : cta, number);
  }
  // Steps of each warp that all live threads have acquired.
  [[nodiscard]] Clock known_to_all() const;

  // --- barriers ---

  void barrier_arrive(const Exec& exec, int barrier, LaneMask lanes);
  void barrier_done(const Cta& cta, int barrier, LaneMasks waiting);
  void cluster_arrive(const Exec& exec, LaneMask lanes, Order order);
  void cluster_done(const Cta& cta);
  void cluster_wait(const Exec& exec, LaneMask lanes, Order order);
  void meet(WarpViews& warp, LaneMask lanes);  // a barrier of these lanes alone
  // `exec`: null when an engine arrives on behalf of cp.async.mbarrier.arrive.
  void mbarrier(const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event, std::uint64_t address,
                Order order);
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier);

  // --- fences and flags ---

  void fence(const Exec& exec, LaneMask lanes, Order order, Scope scope);
  // A strong access, or a store to a location that has been published through.
  void flags(const Exec& exec, const WarpAccess& access);
  // Locations that a release, or an access after a fence, has published through.
  [[nodiscard]] std::size_t flag_count() const { return flags_.size(); }

  // For reports: whether any thread has executed a fence, and the last fence of a CTA that does not reach the grid, as
  // its pc; -1: none.
  [[nodiscard]] bool has_fences() const { return has_fences_; }
  [[nodiscard]] std::int32_t narrow_fence(std::uint32_t cta) const {
    const auto at = narrow_fences_.find(cta);
    return at == narrow_fences_.end() ? -1 : at->second;
  }

  // --- engines ---

  // An operation of an engine that counts on an arrival barrier moves `bytes` in any order.
  void issue(ActorKey engine, std::uint64_t number, std::int64_t bytes) { open_[engine].issue(number, bytes); }
  // Some of its bytes have moved: the phase that they complete covers the engine's operations up to there.
  void moved(ActorKey engine, std::uint64_t number, std::int64_t bytes);
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only, OperationNumbers last);
  // tcgen05.commit `number` of a lane: its earlier operations of the tensor core arrive at these barriers (monitor.h).
  void tensor_commit(const Exec& exec, int lane, std::uint64_t number, std::span<const std::uint64_t> barriers);

 private:
  struct Gathered {
    View view;
    Known seen;     // by relaxed reads that no fence has followed; null: nothing
    Known seen_sc;  // of that, what only a fence.sc acquires; null: nothing
  };
  struct CtaThreads {
    std::vector<WarpViews> warps;
    std::map<int, Gathered> barriers;  // named barriers while threads arrive
  };
  // The barrier of a cluster. A thread may arrive again while others have not left the phase before.
  struct ClusterBarrier {
    View collecting;       // from this phase
    Known done = nullptr;  // of the last complete phase; null: none is complete
  };
  // An arrival barrier.
  struct Object {
    View collecting = View();    // from all phases
    Known done = nullptr;        // of the last complete phase; null: none is complete
    std::uint32_t complete = 0;  // phases
    // cp.async.mbarrier.arrive and tcgen05.commit operations that have not arrived yet, in issue order.
    std::deque<std::pair<ActorKey, Step>> copies = {};
    Known collected = nullptr;  // what went into `collecting` last
    // Arrivals of one warp in one step: once they are the whole warp, they are one number.
    const WarpViews* arriving_warp = nullptr;
    Step arriving_step = 0;
    LaneMask arriving = 0;
  };
  // What has been published through a location, for each audience; null: nothing.
  struct Flag {
    Known grid;
    std::map<std::uint32_t, Known> clusters, ctas;
    Known sc;  // its View::fenced, for readers that execute a fence.sc of the grid
  };
  // The barrier of a cooperative grid: a counter to which each CTA adds once a phase, and which it polls. A CTA that polls
  // late reads a value to which others have added in the next phase already.
  struct GridBarrier {
    std::uint64_t address = 0;  // 0: the launch has none
    std::int64_t ctas = 0, arrived = 0;
    Flag done = {};  // of the last complete phase; flags_ has that of the current one
  };
  // Operations of one engine. They move their bytes in any order, and count as done up to the last one before the
  // oldest that still has bytes to move.
  class OpenOperations {
   public:
    void issue(std::uint64_t number, std::int64_t bytes);
    void moved(std::uint64_t number, std::int64_t bytes);
    [[nodiscard]] std::uint64_t done() const { return open_.empty() ? last_ : open_.front().first - 1; }

   private:
    std::deque<std::pair<std::uint64_t, std::int64_t>> open_;  // number, which increases; bytes
    std::uint64_t last_ = 0;                                   // issued
  };
  using ObjectKey = std::pair<std::uint32_t, std::uint64_t>;  // cluster, shared address with the rank

  void add(std::uint32_t cta);
  [[nodiscard]] CtaThreads& threads(std::uint32_t cta) {
    if (last_ == nullptr || last_number_ != cta) {
      last_ = &ctas_.at(cta);
      last_number_ = cta;
    }
    return *last_;
  }
  [[nodiscard]] std::uint32_t cluster_of(std::uint32_t cta) const;
  [[nodiscard]] ClusterBarrier& cluster_barrier(std::uint32_t cta);
  [[nodiscard]] Object& object(std::uint32_t cluster, std::uint64_t address);
  [[nodiscard]] View nothing() const { return View(static_cast<int>(warps_)); }

  static void publish_by(WarpViews& warp, LaneMask lanes, Order order, Audience audience, View& to);
  static void learn(const Exec& exec, WarpViews& warp, LaneMask lanes, Order order, Audience audience,
                    const Known& view, LastSync sync);
  void arrive(const Exec& exec, LaneMask lanes, std::uint64_t address, Order order);
  void look_at_flag(const Exec& exec, WarpViews& warp, int lane, const Flag& flag, const WarpAccess& access);
  void publish_flag(WarpViews& warp, int lane, std::uint64_t key, const WarpAccess& access);
  // What an access that reads this location may acquire; null: nothing.
  [[nodiscard]] const Flag* published_at(std::uint64_t key) const;
  void arrive_at_grid_barrier();

  Space memory_;
  std::size_t warps_;                           // of a CTA
  std::array<std::int64_t, 3> grid_, cluster_;  // [CTAs]
  std::unordered_map<std::uint32_t, CtaThreads> ctas_;
  std::uint32_t last_number_ = 0;  // of *last_
  CtaThreads* last_ = nullptr;
  std::map<std::uint32_t, ClusterBarrier> cluster_barriers_;  // by cluster
  std::map<ObjectKey, Object> objects_;
  std::map<ActorKey, OpenOperations> open_;
  std::unordered_map<std::uint64_t, Flag> flags_;
  GridBarrier grid_barrier_;
  std::unordered_map<std::uint32_t, std::int32_t> narrow_fences_;  // by CTA, in global memory
  bool has_fences_ = false;
};

// A monitor that asks what happens before what: it forwards every event that orders something to a HappensBefore.
class OrderMonitor : public Monitor {
 public:
  explicit OrderMonitor(bool collectives_order) : collectives_order_(collectives_order) {}

  void exit(const Exec& exec, LaneMask lanes) override;
  void barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) override;
  void barrier_done(Launch& launch, const Cta& cta, int barrier, LaneMasks arrived, LaneMasks waiting) override;
  void cluster_arrive(const Exec& exec, LaneMask lanes, Order order) override;
  void cluster_done(Launch& launch, const Cta& cta) override;
  void cluster_wait(const Exec& exec, LaneMask lanes, Order order) override;
  void warp_barrier(const Exec& exec, LaneMask lanes) override;
  void collective(const Exec& exec, const Op& op, LaneMask lanes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) override;
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only, OperationNumbers last) override;
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) override;
  void tensor_commit(const Exec& exec, int lane, std::uint64_t number,
                     std::span<const std::uint64_t> barriers) override;

 protected:
  // Null: nothing of this CTA is watched.
  [[nodiscard]] virtual HappensBefore* order_of(const Cta& cta) = 0;
  [[nodiscard]] bool collectives_order() const { return collectives_order_; }

 private:
  bool collectives_order_;  // lanes that meet at a shuffle, vote, ldmatrix or mma are ordered by it
};

}  // namespace kvscope::ptx
