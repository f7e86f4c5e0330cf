#include "gpu/virtual/check/thread_views.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kvscope::ptx {
namespace {

ActorKey thread_key(int warp, int lane) {
  return static_cast<ActorKey>(warp * kLanes + lane);
}

}  // namespace

ThreadViews::ThreadViews(int warps) : warps_(static_cast<std::size_t>(warps)) {
  const Known nothing = std::make_shared<View>(warps);
  for (Warp& w : warps_) w.known.fill(nothing);
}

void ThreadViews::leave(int warp, LaneMask lanes) {
  Warp& w = at(warp);
  w.live &= ~lanes;
  w.lost |= lanes & w.acted;
}

template <class Change>
void ThreadViews::change(int warp, LaneMask lanes, Change change) {
  Warp& w = at(warp);
  if (w.uniform && (w.live & ~lanes) == 0) {
    if (lanes == 0) return;
    w.known.fill(change(std::countr_zero(lanes), lanes));
    return;
  }
  LaneMask left = lanes;
  while (left != 0) {
    const auto lead = static_cast<std::size_t>(std::countr_zero(left));
    LaneMask sharing = 0;
    each_lane(left, [&](int lane) {
      if (w.known[static_cast<std::size_t>(lane)] == w.known[lead]) sharing |= LaneMask{1} << lane;
    });
    const Known next = change(static_cast<int>(lead), sharing);
    each_lane(sharing, [&](int lane) { w.known[static_cast<std::size_t>(lane)] = next; });
    left &= ~sharing;
  }
  if (w.live == 0) return;
  const Known& first = w.known[static_cast<std::size_t>(std::countr_zero(w.live))];
  w.uniform = true;
  each_lane(w.live, [&](int lane) { w.uniform = w.uniform && w.known[static_cast<std::size_t>(lane)] == first; });
  if (w.uniform) w.known.fill(Known(first));
}

void ThreadViews::publish_own(int warp, LaneMask lanes, Clock& to) {
  Warp& w = at(warp);
  w.published = true;
  if (whole(warp, lanes)) {
    to.raise_warp(warp, w.step);
    Step least = w.copies;
    each_lane(lanes, [&](int lane) { least = std::min(least, w.copies_waited[static_cast<std::size_t>(lane)]); });
    if (least > 0) to.raise_copies(warp, least);
  } else {
    each_lane(lanes & w.acted, [&](int lane) { to.raise(thread_key(warp, lane), w.step); });
  }
  if (w.copies > 0) {
    each_lane(lanes, [&](int lane) {
      const Step up_to = w.copies_waited[static_cast<std::size_t>(lane)];
      if (up_to > 0) to.raise(kCopiesOf + thread_key(warp, lane), up_to);
    });
  }
  for (const Waited& done : w.waited) {
    if ((lanes & done.lanes) != 0) to.raise(done.engine, done.up_to);
  }
}

void ThreadViews::publish(int warp, LaneMask lanes, View& to) {
  const Warp& w = at(warp);
  const View* last = nullptr;
  each_lane(lanes, [&](int lane) {
    const View* view = w.known[static_cast<std::size_t>(lane)].get();
    if (view != last) to.join(*view);
    last = view;
  });
  publish_own(warp, lanes, to.ordered);
}

ThreadViews::Fenced ThreadViews::behind_fence(int warp, int lane) {
  Warp& w = at(warp);
  w.published = true;
  return {known(warp, lane), w.step, w.copies_waited[static_cast<std::size_t>(lane)]};
}

void ThreadViews::publish(int warp, int lane, const Fenced& fence, View& to) const {
  to.join(*fence.known);
  to.ordered.raise(thread_key(warp, lane), fence.step);
  if (fence.copies > 0) to.ordered.raise(kCopiesOf + thread_key(warp, lane), fence.copies);
  for (const Waited& done : at(warp).waited) {
    if ((done.lanes >> lane & 1) != 0) to.ordered.raise(done.engine, done.up_to);
  }
}

void ThreadViews::acquire(int warp, LaneMask lanes, const Known& view) {
  change(warp, lanes, [&](int lead, LaneMask) -> Known { return joined(known(warp, lead), view); });
}

void ThreadViews::fence_proxy(int warp, LaneMask lanes) {
  Warp& w = at(warp);
  const auto fence = [&](int lead, LaneMask of) -> Known {
    const auto next = std::make_shared<View>(*known(warp, lead));
    next->fenced.join(next->ordered);
    publish_own(warp, of, next->fenced);
    return next;
  };
  if (w.uniform && whole(warp, lanes)) {
    change(warp, lanes, fence);
    return;
  }
  // Each lane's fence is behind what it did itself, not behind what its neighbours did.
  each_lane(lanes, [&](int lane) {
    w.uniform = false;
    w.known[static_cast<std::size_t>(lane)] = fence(lane, LaneMask{1} << lane);
  });
}

void ThreadViews::waited_for_copies(int warp, int lane, Step up_to) {
  Step& done = at(warp).copies_waited[static_cast<std::size_t>(lane)];
  done = std::max(done, up_to);
}

void ThreadViews::waited(int warp, LaneMask lanes, ActorKey engine, Step up_to) {
  auto& all = at(warp).waited;
  for (Waited& done : all) {
    if (done.engine == engine && done.up_to <= up_to) done.lanes &= ~lanes;
  }
  std::erase_if(all, [](const Waited& done) { return done.lanes == 0; });
  all.push_back({lanes, engine, up_to});
}

bool ThreadViews::ordered(int warp, int lane, ActorKey actor, Step step) const {
  const ActorKey self = thread_key(warp, lane);
  if (actor == self) return true;
  const Warp& w = at(warp);
  if (actor == kCopiesOf + self && w.copies_waited[static_cast<std::size_t>(lane)] >= step) return true;
  for (const Waited& done : w.waited) {
    if ((done.lanes >> lane & 1) != 0 && done.engine == actor && done.up_to >= step) return true;
  }
  return view(warp, lane).ordered.covers(actor, step);
}

std::vector<Step> ThreadViews::known_to_all() const {
  std::vector<Step> out(warps_.size(), ~Step{0});
  for (const Warp& w : warps_) {
    const View* last = nullptr;
    each_lane(w.live, [&](int lane) {
      const View* view = w.known[static_cast<std::size_t>(lane)].get();
      if (view != last) view->ordered.lower(out);
      last = view;
    });
  }
  return out;
}

void ThreadViews::synchronised(int warp, LaneMask lanes, std::int32_t pc, std::string_view how) {
  Warp& w = at(warp);
  each_lane(lanes, [&](int lane) { w.syncs[static_cast<std::size_t>(lane)] = {pc, how}; });
}

}  // namespace kvscope::ptx
