// The views of all threads of a cluster (one CTA without one), and how barriers and fences pass them on.
//
//   release(w, lanes)       what these lanes did and know, as one view to hand on; their warp's step goes up
//   acquire(w, lanes, v)    these lanes know v from here on
//
// Lanes of a warp nearly always know the same, so a warp has one view until some of its lanes learn something alone.
// What a thread did itself is always ordered before it and in no view of its own; what its engines did is ordered when
// it has waited for them (waited): that is kept by lane too.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ptx/check/clock.h"
#include "core/ptx/rows/op.h"

namespace kvscope::ptx {

// The last time a thread synchronised with others, for reports.
struct LastSync {
  std::int32_t pc = -1;
  std::string_view how;  // "mbarrier wait"
};

class ThreadViews {
 public:
  // `warps` of the whole cluster; all lanes live.
  explicit ThreadViews(int warps);

  [[nodiscard]] int warps() const { return static_cast<int>(warps_.size()); }
  void set_live(int warp, LaneMask lanes) { at(warp).live = lanes; }
  // Lanes that have left know nothing that matters any more.
  void leave(int warp, LaneMask lanes) { at(warp).live &= ~lanes; }

  [[nodiscard]] Step step(int warp) const { return at(warp).step; }
  [[nodiscard]] bool uniform(int warp) const { return at(warp).lanes.empty(); }
  [[nodiscard]] const View& view(int warp, int lane) const {
    const Warp& w = at(warp);
    return w.lanes.empty() ? w.common : w.lanes[static_cast<std::size_t>(lane)];
  }

  [[nodiscard]] View release(int warp, LaneMask lanes);
  void acquire(int warp, LaneMask lanes, const View& view);
  // fence.proxy.async: what these lanes did and know is fenced.
  void fence_proxy(int warp, LaneMask lanes);

  // cp.async: number of this instruction's copies, the same for all its lanes; and that a lane has waited up to one.
  [[nodiscard]] Step begin_copies(int warp) { return ++at(warp).copies; }
  [[nodiscard]] Step copies(int warp) const { return at(warp).copies; }
  void waited_for_copies(int warp, int lane, Step up_to);
  // Another engine's operations, by its number.
  void waited(int warp, int lane, ActorKey engine, Step up_to);

  // Is what `actor` did at `step` ordered before this thread goes on? And does a proxy fence stand between?
  [[nodiscard]] bool ordered(int warp, int lane, ActorKey actor, Step step) const;
  [[nodiscard]] bool fenced(int warp, int lane, ActorKey actor, Step step) const;

  void synchronised(int warp, LaneMask lanes, std::int32_t pc, std::string_view how);
  [[nodiscard]] const LastSync& last_sync(int warp, int lane) const {
    return at(warp).syncs[static_cast<std::size_t>(lane)];
  }

 private:
  struct Waited {
    int lane;
    ActorKey engine;
    Step up_to;
  };
  struct Warp {
    explicit Warp(int all) : common(all) {}
    LaneMask live = kAllLanes;
    Step step = 1;
    Step copies = 0;
    View common;
    std::vector<View> lanes;  // [32] when they differ
    std::array<Step, kLanes> copies_waited{};
    std::vector<Waited> waited;
    std::array<LastSync, kLanes> syncs{};
  };
  [[nodiscard]] Warp& at(int warp) { return warps_[static_cast<std::size_t>(warp)]; }
  [[nodiscard]] const Warp& at(int warp) const { return warps_[static_cast<std::size_t>(warp)]; }
  void part(Warp& w);
  void unite(Warp& w);
  void add_own(Clock& to, int warp, LaneMask lanes) const;

  std::vector<Warp> warps_;
};

}  // namespace kvscope::ptx
