// The views of all threads of a cluster (one CTA without one), and how barriers and fences pass them on.
//
//   publish(w, lanes, view)   what these lanes did and know goes into a view to hand on
//   acquire(w, lanes, v)      these lanes know v from here on
//
// A warp's step goes up between what its lanes publish and what they do next: a step that a view covers is over.
// Lanes of a warp nearly always know the same: they share one view then, and so do warps behind a barrier of the CTA.
// What a thread did itself is always ordered before it and in no view of its own; what its engines did is ordered when
// it has waited for them (waited): that is kept by lane too.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/semantics/op.h"

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
  // Lanes that have left publish nothing any more: what they did without publishing it is never ordered before others.
  void leave(int warp, LaneMask lanes);
  // All lanes that have done anything and may still publish it.
  [[nodiscard]] bool whole(int warp, LaneMask lanes) const { return ((at(warp).live | at(warp).lost) & ~lanes) == 0; }

  // Of each warp the last step that all live threads know to be over.
  [[nodiscard]] std::vector<Step> known_to_all() const;

  // These lanes do something now: the step that it is done in.
  [[nodiscard]] Step act(int warp, LaneMask lanes) {
    Warp& w = at(warp);
    w.acted |= lanes;
    if (w.published) ++w.step, w.published = false;
    return w.step;
  }
  [[nodiscard]] bool uniform(int warp) const { return at(warp).uniform; }
  [[nodiscard]] const View& view(int warp, int lane) const { return *known(warp, lane); }
  [[nodiscard]] const Known& known(int warp, int lane) const { return at(warp).known[static_cast<std::size_t>(lane)]; }

  void publish(int warp, LaneMask lanes, View& to);
  // Only what they did themselves, and have waited for.
  void publish_own(int warp, LaneMask lanes, Clock& to);
  void acquire(int warp, LaneMask lanes, const Known& view);
  // What a lane did and knew at its last fence, to be published by a later plain store.
  struct Fenced {
    Known known;
    Step step = 0;
    Step copies = 0;
  };
  [[nodiscard]] Fenced behind_fence(int warp, int lane);
  void publish(int warp, int lane, const Fenced& fence, View& to) const;
  // Has the warp published anything since it did something in this step?
  [[nodiscard]] bool published_since(int warp, Step step) const { return at(warp).step > step || at(warp).published; }
  // fence.proxy.async: what these lanes did and know is fenced.
  void fence_proxy(int warp, LaneMask lanes);

  // cp.async: number of this instruction's copies, the same for all its lanes; and that a lane has waited up to one.
  [[nodiscard]] Step begin_copies(int warp) { return ++at(warp).copies; }
  void waited_for_copies(int warp, int lane, Step up_to);
  // Another engine's operations, by its number.
  void waited(int warp, LaneMask lanes, ActorKey engine, Step up_to);

  // Is what `actor` did at `step` ordered before this thread goes on? And does a proxy fence stand between?
  [[nodiscard]] bool ordered(int warp, int lane, ActorKey actor, Step step) const;
  [[nodiscard]] bool fenced(int warp, int lane, ActorKey actor, Step step) const {
    return view(warp, lane).fenced.covers(actor, step);
  }

  void synchronised(int warp, LaneMask lanes, std::int32_t pc, std::string_view how);
  [[nodiscard]] const LastSync& last_sync(int warp, int lane) const {
    return at(warp).syncs[static_cast<std::size_t>(lane)];
  }

 private:
  struct Waited {
    LaneMask lanes;
    ActorKey engine;
    Step up_to;
  };
  struct Warp {
    LaneMask live = kAllLanes;
    LaneMask acted = 0;
    LaneMask lost = 0;  // left after they had done something
    Step step = 1;
    bool published = false;  // what was done in `step`
    bool uniform = true;     // all live lanes share one view
    Step copies = 0;
    std::array<Known, kLanes> known;
    std::array<Step, kLanes> copies_waited{};
    std::vector<Waited> waited;
    std::array<LastSync, kLanes> syncs{};
  };
  [[nodiscard]] Warp& at(int warp) { return warps_[static_cast<std::size_t>(warp)]; }
  [[nodiscard]] const Warp& at(int warp) const { return warps_[static_cast<std::size_t>(warp)]; }
  // Replaces what these lanes know by change(what they know), once for those that share it.
  template <class Change>
  void change(int warp, LaneMask lanes, Change change);

  std::vector<Warp> warps_;
};

}  // namespace kvscope::ptx
