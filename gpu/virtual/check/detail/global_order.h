// Which thread of a grid knows of what, for the checker of global memory: barriers, flags and fences hand clocks on.
//
//   publish(who, lanes, to)     what these lanes did and know goes into a clock to hand on
//   acquire(who, lanes, clock)  these lanes know it from here on
//
// A flag is a location that a release, or an access behind a fence, has published through. It has a clock for each
// circle of readers (Reach): one published at CTA scope reaches the threads of that CTA alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/virtual/check/detail/global_cells.h"
#include "gpu/virtual/check/detail/grid_clock.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

class GlobalOrder {
 public:
  using Known = Shared<GridClock>;  // null: nothing

  // One warp: whose lanes do something.
  struct Who {
    std::int32_t cta = 0;
    std::int32_t cluster = 0;
    int warp = 0;
  };

  void begin(const Launch& launch);
  void end();
  void begin_cta(const Launch& launch, const Cta& cta);
  void end_cta(const Cta& cta);
  [[nodiscard]] Who who(const Exec& exec) const { return who(exec.cta, exec.warp.index); }
  [[nodiscard]] Who who(const Cta& cta, int warp) const;

  // The step in which the warp does something now.
  [[nodiscard]] Step act(const Who& who);
  // Is what was touched ordered before this lane goes on? `self`: what it did itself is.
  [[nodiscard]] bool ordered(const Who& who, int lane, const GlobalTouch& touch) const;

  // --- what orders ---------------------------------------------------------------------------------------------------

  void barrier_arrive(const Who& who, int barrier, LaneMask lanes);
  void barrier_done(const Cta& cta, int barrier, std::span<const LaneMask> waiting);
  void meet(const Who& who, LaneMask lanes);  // a barrier of these lanes alone
  void cluster_arrive(const Who& who, LaneMask lanes, Order order);
  void cluster_wait(const Who& who, LaneMask lanes, Order order);
  void fence(const Who& who, LaneMask lanes, Scope scope);
  // Of a strong access, or a store where flags are. `key`: its address, shared ones with their cluster.
  void flag(const Who& who, int lane, std::uint64_t key, AccessKind kind, Order order, Scope scope);
  [[nodiscard]] std::size_t flags() const { return flags_.size(); }

  void mbarrier_init(std::int32_t cluster, std::uint64_t address);
  void mbarrier_arrive(const Who& who, LaneMask lanes, std::uint64_t address, Order order);
  void mbarrier_arrive_copies(std::int32_t cluster, std::uint64_t address);
  void mbarrier_phase_done(std::int32_t cluster, std::uint64_t address);
  void mbarrier_waited(const Who& who, LaneMask lanes, std::uint64_t address, Order order);

  void issued_copy(const Who& who, int lane, std::uint64_t number);
  void waited_for_copies(const Who& who, LaneMask lanes, std::span<const std::uint64_t, kLanes> last);
  void waited_for_stores(const Who& who, LaneMask lanes, std::span<const std::uint64_t, kLanes> last);
  void copies_arrive(const Who& who, LaneMask lanes, std::uint64_t address);
  void issued_load(const Who& who, std::uint64_t address, std::uint64_t number, std::int64_t bytes);
  void moved_load(std::int32_t cluster, std::uint64_t address, std::uint64_t number, std::int64_t bytes);

 private:
  // Circles of threads, from the narrowest.
  static constexpr std::size_t kCta = 0, kCluster = 1, kGrid = 2, kReaches = 3;
  [[nodiscard]] static std::size_t reach_of(Scope scope);

  // What a lane did and knew at a fence.
  struct Fenced {
    Known known;
    Step step = 0, copies = 0, stores = 0;
    Known whole;  // all of it, made when it is asked for first
  };
  using Fences = LaneFences<GridClock, Fenced, kReaches>;
  struct Lane {
    Known known;
    Step copies = 0, stores = 0;  // its cp.async and bulk stores up to here are done
    Step last_copy = 0;           // issued
    std::unique_ptr<Fences> fences;
  };
  struct Warp {
    Step step = 1;
    bool published = false;  // what was done in `step`
    std::array<Lane, kLanes> lanes;
  };
  struct CtaThreads {
    std::vector<Warp> warps;
    Gatherings<GridClock> barriers;
  };
  struct Flag {
    Known grid;
    std::map<std::int32_t, Known> clusters, ctas;
  };
  struct Copies {  // cp.async of a thread up to a step
    std::int32_t cta;
    std::size_t slot;
    Step step;
  };
  struct Object : Phases<GridClock, Copies> {  // an arrival barrier
    OpenOperations loads;
  };

  [[nodiscard]] Warp& at(const Who& who) { return ctas_.at(who.cta).warps[static_cast<std::size_t>(who.warp)]; }
  [[nodiscard]] const Warp& at(const Who& who) const {
    return ctas_.at(who.cta).warps[static_cast<std::size_t>(who.warp)];
  }
  [[nodiscard]] static std::size_t thread_of(const Who& who, int lane) {
    return static_cast<std::size_t>(who.warp * kLanes + lane);
  }
  [[nodiscard]] std::size_t copies_slot(std::size_t thread) const { return threads_ + thread; }
  [[nodiscard]] std::size_t stores_slot(std::size_t thread) const { return 2 * threads_ + thread; }
  [[nodiscard]] std::int32_t cluster_of(std::int32_t cta) const;
  [[nodiscard]] Object& object(std::int32_t cluster, std::uint64_t address) { return objects_[{cluster, address}]; }
  [[nodiscard]] static std::uint64_t engine_key(std::int32_t cluster, std::uint64_t address) {
    return static_cast<std::uint64_t>(cluster) << 32 | address;
  }

  void publish(const Who& who, LaneMask lanes, GridClock& to);
  [[nodiscard]] Known behind_fence(const Who& who, int lane, std::size_t reach);
  void publish_seen(const Who& who, LaneMask lanes, GridClock& to);
  void publish_by(const Who& who, LaneMask lanes, Order order, std::size_t reach, GridClock& to);
  void acquire(const Who& who, LaneMask lanes, const Known& known);
  void learn(const Who& who, LaneMask lanes, Order order, std::size_t reach, const Known& known);

  std::size_t threads_ = 0;                       // slots of a CTA's threads: whole warps
  std::array<std::int64_t, 3> grid_{1, 1, 1};     // CTAs
  std::array<std::int64_t, 3> cluster_{1, 1, 1};  // CTAs of one
  std::unordered_map<std::int32_t, CtaThreads> ctas_;
  std::map<std::int32_t, GridClock> cluster_gathering_;
  std::map<std::pair<std::int32_t, std::uint64_t>, Object> objects_;
  std::unordered_map<std::uint64_t, Flag> flags_;
};

}  // namespace kvscope::ptx
