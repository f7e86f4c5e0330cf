#include "gpu/virtual/check/warp_views.h"

#include <algorithm>

namespace kvscope::ptx {

WarpViews::WarpViews(ActorKey lane0, const Known& nothing) : lane0_(lane0), common_(nothing) {}

void WarpViews::split() {
  if (uniform_) known_.fill(common_);
  uniform_ = false;
}

template <class Change>
void WarpViews::change(LaneMask lanes, Change change) {
  if (uniform_ && (live_ & ~lanes) == 0) {
    if (lanes == 0) return;
    common_ = change(std::countr_zero(lanes), lanes);
    return;
  }
  split();
  LaneMask left = lanes;
  while (left != 0) {
    const auto lead = static_cast<std::size_t>(std::countr_zero(left));
    LaneMask sharing = 0;
    each_lane(left, [&](int lane) {
      if (known_[static_cast<std::size_t>(lane)] == known_[lead]) sharing |= LaneMask{1} << lane;
    });
    const Known next = change(static_cast<int>(lead), sharing);
    each_lane(sharing, [&](int lane) { known_[static_cast<std::size_t>(lane)] = next; });
    left &= ~sharing;
  }
  if (live_ == 0) return;
  const Known& first = known_[static_cast<std::size_t>(std::countr_zero(live_))];
  bool same = true;
  each_lane(live_, [&](int lane) { same = same && known_[static_cast<std::size_t>(lane)] == first; });
  if (!same) return;
  common_ = first;
  known_.fill(nullptr);
  uniform_ = true;
}

void WarpViews::lower(std::unique_ptr<Clock>& common) const {
  const View* last = nullptr;
  each_lane(live_, [&](int lane) {
    const View* view = known(lane).get();
    if (common == nullptr) {
      common = std::make_unique<Clock>(view->ordered);
    } else if (view != last) {
      common->lower(view->ordered);
    }
    last = view;
  });
}

void WarpViews::publish_own(LaneMask lanes, Clock& to) {
  published_ = true;
  if (whole(lanes)) {
    to.raise_warp(lane0_, step_);
    Step least = copies();
    each_lane(least > 0 ? lanes : 0,
              [&](int lane) { least = std::min(least, copies_waited_[static_cast<std::size_t>(lane)]); });
    if (least > 0) to.raise_warp(kCopiesOf + lane0_, least);
  } else {
    each_lane(lanes & acted_, [&](int lane) { to.raise(thread(lane), step_); });
  }
  if (!first_copies_.empty()) {
    each_lane(lanes,
              [&](int lane) { to.raise(kCopiesOf + thread(lane), copies_waited_[static_cast<std::size_t>(lane)]); });
  }
  for (const Waited& done : waited_) {
    if ((lanes & done.lanes) != 0) to.raise(done.engine, done.up_to);
  }
}

void WarpViews::publish(LaneMask lanes, View& to) {
  const View* last = nullptr;
  each_lane(uniform_ && lanes != 0 ? LaneMask{1} : lanes, [&](int lane) {
    const View* view = known(lane).get();
    if (view != last) to.join(*view);
    last = view;
  });
  publish_own(lanes, to.ordered);
}

void WarpViews::acquire(LaneMask lanes, const Known& view) {
  change(lanes, [&](int lead, LaneMask) { return joined(known(lead), view); });
}

// --- fences ----------------------------------------------------------------------------------------------------------

WarpViews::Fences& WarpViews::fences() {
  if (fences_ == nullptr) fences_ = std::make_unique<Fences>();
  return *fences_;
}

LaneMask WarpViews::fence(LaneMask lanes, Audience audience) {
  LaneMask acquired = 0;
  const auto end = static_cast<std::size_t>(audience) + 1;
  each_lane(lanes, [&](int lane) {
    LaneFences& f = fences()[static_cast<std::size_t>(lane)];
    for (std::size_t r = 0; r < end; ++r) {
      if (const Known seen = std::move(f.pending[r])) {
        acquire(LaneMask{1} << lane, seen);
        acquired |= LaneMask{1} << lane;
      }
      f.pending[r] = nullptr;
    }
    if (const Known seen = f.at_barriers; seen != nullptr && audience == Audience::grid) {
      f.at_barriers = nullptr;
      acquire(LaneMask{1} << lane, seen);
      acquired |= LaneMask{1} << lane;
    }
    published_ = true;
    const auto now = std::make_shared<AtFence>();
    now->known = known(lane);
    now->step = step_;
    now->copies = copies_waited_[static_cast<std::size_t>(lane)];
    for (const Waited& done : waited_) {
      if ((done.lanes >> lane & 1) != 0) now->engines.emplace_back(done.engine, done.up_to);
    }
    for (std::size_t r = 0; r < end; ++r) f.before[r] = now;
  });
  return acquired;
}

Known WarpViews::at_fence(int lane, Audience audience) {
  if (fences_ == nullptr) return nullptr;
  const auto& at = (*fences_)[static_cast<std::size_t>(lane)].before[static_cast<std::size_t>(audience)];
  if (at == nullptr) return nullptr;
  if (at->whole == nullptr) {
    const auto whole = std::make_shared<View>(*at->known);
    whole->ordered.raise(thread(lane), at->step);
    whole->ordered.raise(kCopiesOf + thread(lane), at->copies);
    for (const auto& [engine, up_to] : at->engines) whole->ordered.raise(engine, up_to);
    at->whole = whole;
  }
  return at->whole;
}

void WarpViews::see(LaneMask lanes, Audience audience, const Known& seen) {
  each_lane(lanes, [&](int lane) {
    Known& pending = fences()[static_cast<std::size_t>(lane)].pending[static_cast<std::size_t>(audience)];
    pending = joined(pending, seen);
  });
}

void WarpViews::publish_seen(LaneMask lanes, Known& to) const {
  if (fences_ == nullptr) return;
  each_lane(lanes, [&](int lane) {
    const LaneFences& f = (*fences_)[static_cast<std::size_t>(lane)];
    for (const Known& seen : {f.pending[0], f.pending[1], f.pending[2], f.at_barriers}) {
      if (seen != nullptr && seen != to) to = joined(to, seen);
    }
  });
}

void WarpViews::see_sc(LaneMask lanes, const Known& seen) {
  each_lane(lanes, [&](int lane) {
    Known& pending = fences()[static_cast<std::size_t>(lane)].pending_sc;
    pending = joined(pending, seen);
  });
}

void WarpViews::publish_seen_sc(LaneMask lanes, Known& to) const {
  if (fences_ == nullptr) return;
  each_lane(lanes, [&](int lane) {
    const Known& seen = (*fences_)[static_cast<std::size_t>(lane)].pending_sc;
    if (seen != nullptr && seen != to) to = joined(to, seen);
  });
}

LaneMask WarpViews::acquire_sc(LaneMask lanes) {
  if (fences_ == nullptr) return 0;
  LaneMask acquired = 0;
  each_lane(lanes, [&](int lane) {
    const Known seen = std::move((*fences_)[static_cast<std::size_t>(lane)].pending_sc);
    (*fences_)[static_cast<std::size_t>(lane)].pending_sc = nullptr;
    if (seen == nullptr) return;
    const auto covered = std::make_shared<View>();
    covered->ordered = covered->fenced = seen->fenced;
    acquire(LaneMask{1} << lane, covered);
    acquired |= LaneMask{1} << lane;
  });
  return acquired;
}

void WarpViews::see_at_barrier(LaneMask lanes, const Known& seen) {
  each_lane(lanes, [&](int lane) {
    Known& known = fences()[static_cast<std::size_t>(lane)].at_barriers;
    known = joined(known, seen);
  });
}

void WarpViews::fence_all(LaneMask lanes) {
  const auto fence = [&](int lead, LaneMask of) -> Known {
    const auto next = std::make_shared<View>(*known(lead));
    next->fenced.join(next->ordered);
    publish_own(of, next->fenced);
    return next;
  };
  if (uniform_ && whole(lanes)) return change(lanes, fence);
  // A lane's fence covers what the lane did itself, not what its neighbors did.
  if (lanes != 0) split();
  each_lane(lanes, [&](int lane) { known_[static_cast<std::size_t>(lane)] = fence(lane, LaneMask{1} << lane); });
}

// --- engines ---------------------------------------------------------------------------------------------------------

// The lane's last copy that is done belongs to the last instruction that began before `end`.
void WarpViews::waited_for_copies(int lane, std::uint64_t end) {
  const auto instructions = std::lower_bound(first_copies_.begin(), first_copies_.end(), end) - first_copies_.begin();
  Step& done = copies_waited_[static_cast<std::size_t>(lane)];
  done = std::max(done, static_cast<Step>(instructions));
}

void WarpViews::waited_for_groups(int lane, Step up_to) {
  each_lane(grouped_, [&](int kind) {
    const std::uint32_t engine = engine_of_thread(static_cast<AsyncKind>(kind), thread_of(thread(lane)));
    waited(LaneMask{1} << lane, actor_key(cta(), engine), up_to);
  });
}

void WarpViews::waited(LaneMask lanes, ActorKey engine, Step up_to) {
  for (Waited& done : waited_) {
    if (done.engine == engine && done.up_to <= up_to) done.lanes &= ~lanes;
  }
  std::erase_if(waited_, [](const Waited& done) { return done.lanes == 0; });
  waited_.push_back({lanes, engine, up_to});
}

bool WarpViews::is_ordered(int lane, ActorKey actor, Step step) const {
  if (actor == thread(lane)) return true;
  if (actor == kCopiesOf + thread(lane) && copies_waited_[static_cast<std::size_t>(lane)] >= step) return true;
  for (const Waited& done : waited_) {
    if ((done.lanes >> lane & 1) != 0 && done.engine == actor && done.up_to >= step) return true;
  }
  return ordered(lane).covers(actor, step);
}

bool WarpViews::is_seen(int lane, ActorKey actor, Step step) const {
  if (fences_ == nullptr) return false;
  const Known& seen = (*fences_)[static_cast<std::size_t>(lane)].at_barriers;
  return seen != nullptr && seen->ordered.covers(actor, step);
}

bool WarpViews::is_pending(int lane, ActorKey actor, Step step) const {
  if (fences_ == nullptr) return false;
  const LaneFences& f = (*fences_)[static_cast<std::size_t>(lane)];
  const auto covers = [&](const Known& seen) { return seen != nullptr && seen->ordered.covers(actor, step); };
  return std::any_of(f.pending.begin(), f.pending.end(), covers) || covers(f.at_barriers) ||
         (f.pending_sc != nullptr && f.pending_sc->fenced.covers(actor, step));
}

void WarpViews::meet(LaneMask lanes, std::int32_t pc) {
  if (meets_ == kMostMeets) return;
  const Meeting now{lanes, meets_++, pc};
  for (Meeting& m : meetings_) {
    if (m.lanes != lanes) continue;
    m = now;
    return;
  }
  if (meetings_.size() == kMostMeetings) meetings_.erase(meetings_.begin());
  meetings_.push_back(now);
}

std::int32_t WarpViews::met_since(int lane, int other, std::uint16_t since) const {
  const LaneMask both = LaneMask{1} << lane | LaneMask{1} << other;
  for (const Meeting& m : meetings_) {
    if (since < kMostMeets && m.number >= since && (m.lanes & both) == both) return m.pc;
  }
  return -1;
}

}  // namespace kvscope::ptx
