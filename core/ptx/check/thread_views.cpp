#include "core/ptx/check/thread_views.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kvscope::ptx {
namespace {

ActorKey thread_key(int warp, int lane) {
  return static_cast<ActorKey>(warp * kLanes + lane);
}

template <class Body>
void each_lane(LaneMask lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
}

}  // namespace

ThreadViews::ThreadViews(int warps) : warps_(static_cast<std::size_t>(warps), Warp(warps)) {}

void ThreadViews::part(Warp& w) {
  if (w.lanes.empty()) w.lanes.assign(kLanes, w.common);
}

void ThreadViews::unite(Warp& w) {
  if (w.lanes.empty() || w.live == 0) return;
  const View& first = w.lanes[static_cast<std::size_t>(std::countr_zero(w.live))];
  bool same = true;
  each_lane(w.live, [&](int lane) { same = same && w.lanes[static_cast<std::size_t>(lane)] == first; });
  if (!same) return;
  w.common = first;
  w.lanes.clear();
}

// What the lanes did themselves, and what they have waited for.
void ThreadViews::add_own(Clock& to, int warp, LaneMask lanes) const {
  const Warp& w = at(warp);
  if ((w.live & ~lanes) == 0) {
    to.raise_warp(warp, w.step);
    Step least = w.copies;
    each_lane(lanes, [&](int lane) { least = std::min(least, w.copies_waited[static_cast<std::size_t>(lane)]); });
    if (least > 0) to.raise_copies(warp, least);
  } else {
    each_lane(lanes, [&](int lane) { to.raise(thread_key(warp, lane), w.step); });
  }
  if (w.copies > 0) {
    each_lane(lanes, [&](int lane) {
      const Step up_to = w.copies_waited[static_cast<std::size_t>(lane)];
      if (up_to > 0) to.raise(kCopiesOf + thread_key(warp, lane), up_to);
    });
  }
  for (const Waited& done : w.waited) {
    if ((lanes >> done.lane & 1) != 0) to.raise(done.engine, done.up_to);
  }
}

View ThreadViews::release(int warp, LaneMask lanes) {
  Warp& w = at(warp);
  View out(warps());
  if (w.lanes.empty()) {
    out = w.common;
  } else {
    each_lane(lanes, [&](int lane) { out.join(w.lanes[static_cast<std::size_t>(lane)]); });
  }
  add_own(out.ordered, warp, lanes);
  ++w.step;
  return out;
}

void ThreadViews::acquire(int warp, LaneMask lanes, const View& view) {
  Warp& w = at(warp);
  if (w.lanes.empty() && (w.live & ~lanes) == 0) {
    w.common.join(view);
    return;
  }
  part(w);
  each_lane(lanes, [&](int lane) { w.lanes[static_cast<std::size_t>(lane)].join(view); });
  unite(w);
}

void ThreadViews::fence_proxy(int warp, LaneMask lanes) {
  Warp& w = at(warp);
  if (w.lanes.empty() && (w.live & ~lanes) == 0) {
    w.common.fenced.join(w.common.ordered);
    add_own(w.common.fenced, warp, lanes);
  } else {
    part(w);
    each_lane(lanes, [&](int lane) {
      View& v = w.lanes[static_cast<std::size_t>(lane)];
      v.fenced.join(v.ordered);
      add_own(v.fenced, warp, LaneMask{1} << lane);
    });
  }
  ++w.step;
}

void ThreadViews::waited_for_copies(int warp, int lane, Step up_to) {
  Step& done = at(warp).copies_waited[static_cast<std::size_t>(lane)];
  done = std::max(done, up_to);
}

void ThreadViews::waited(int warp, int lane, ActorKey engine, Step up_to) {
  for (Waited& done : at(warp).waited) {
    if (done.lane != lane || done.engine != engine) continue;
    done.up_to = std::max(done.up_to, up_to);
    return;
  }
  at(warp).waited.push_back({lane, engine, up_to});
}

bool ThreadViews::ordered(int warp, int lane, ActorKey actor, Step step) const {
  const ActorKey self = thread_key(warp, lane);
  if (actor == self) return true;
  const Warp& w = at(warp);
  if (actor == kCopiesOf + self && w.copies_waited[static_cast<std::size_t>(lane)] >= step) return true;
  for (const Waited& done : w.waited) {
    if (done.lane == lane && done.engine == actor && done.up_to >= step) return true;
  }
  return view(warp, lane).ordered.covers(actor, step);
}

bool ThreadViews::fenced(int warp, int lane, ActorKey actor, Step step) const {
  return view(warp, lane).fenced.covers(actor, step);
}

void ThreadViews::synchronised(int warp, LaneMask lanes, std::int32_t pc, std::string_view how) {
  Warp& w = at(warp);
  each_lane(lanes, [&](int lane) { w.syncs[static_cast<std::size_t>(lane)] = {pc, how}; });
}

}  // namespace kvscope::ptx
