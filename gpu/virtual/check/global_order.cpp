#include "gpu/virtual/check/detail/global_order.h"

#include <algorithm>
#include <bit>

#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {

std::size_t GlobalOrder::reach_of(Scope scope) {
  return scope == Scope::cta ? kCta : scope == Scope::cluster ? kCluster : kGrid;
}

void GlobalOrder::begin(const Launch& launch) {
  end();
  const auto& block = launch.config.block;
  threads_ = static_cast<std::size_t>((block[0] * block[1] * block[2] + kLanes - 1) / kLanes * kLanes);
  cluster_ = cluster_extents(launch);
  grid_ = launch.config.grid;
}

void GlobalOrder::end() {
  ctas_.clear();
  cluster_gathering_.clear();
  objects_.clear();
  flags_.clear();
}

void GlobalOrder::begin_cta(const Launch&, const Cta& cta) {
  CtaThreads threads;
  threads.warps.resize(cta.warps.size());
  ctas_.insert_or_assign(cta.index, std::move(threads));
}

void GlobalOrder::end_cta(const Cta& cta) {
  ctas_.erase(cta.index);
  if (cluster_ != std::array<std::int64_t, 3>{1, 1, 1}) return;
  const std::int32_t cluster = cluster_of(cta.index);
  objects_.erase(objects_.lower_bound({cluster, 0}), objects_.lower_bound({cluster + 1, 0}));
}

GlobalOrder::Who GlobalOrder::who(const Cta& cta, int warp) const {
  return {cta.index, cluster_of(cta.index), warp};
}

// Clusters are numbered as CTAs are, x fastest.
std::int32_t GlobalOrder::cluster_of(std::int32_t cta) const {
  const std::int64_t x = cta % grid_[0] / cluster_[0], y = cta / grid_[0] % grid_[1] / cluster_[1];
  const std::int64_t z = cta / (grid_[0] * grid_[1]) / cluster_[2];
  return static_cast<std::int32_t>(x + grid_[0] / cluster_[0] * (y + grid_[1] / cluster_[1] * z));
}

Step GlobalOrder::act(const Who& who) {
  Warp& w = at(who);
  if (w.published) ++w.step, w.published = false;
  return w.step;
}

bool GlobalOrder::ordered(const Who& who, int lane, const GlobalTouch& touch) const {
  using By = GlobalTouch::By;
  const Lane& me = at(who).lanes[static_cast<std::size_t>(lane)];
  const std::size_t self = thread_of(who, lane);
  const auto known = [&](std::size_t slot) { return me.known == nullptr ? 0 : me.known->of(touch.cta, slot); };
  switch (touch.by) {
    case By::nobody:
      return true;
    case By::threads: {
      LaneMask others = touch.lanes;
      if (touch.cta == who.cta && touch.thread / kLanes == who.warp) others &= ~(LaneMask{1} << lane);
      for (; others != 0; others &= others - 1) {
        if (known(touch.thread + static_cast<std::size_t>(std::countr_zero(others))) < touch.step) return false;
      }
      return true;
    }
    case By::copy:
      if (touch.cta == who.cta && touch.thread == self && me.copies >= touch.step) return true;
      return known(copies_slot(touch.thread)) >= touch.step;
    case By::bulk:
      if (touch.cta == who.cta && touch.thread == self && me.stores >= touch.step) return true;
      return known(stores_slot(touch.thread)) >= touch.step;
    case By::engine:
      return me.known != nullptr && me.known->of_engine(engine_key(cluster_of(touch.cta), touch.lanes)) >= touch.step;
  }
  return false;
}

// --- clocks handed on ------------------------------------------------------------------------------------------------

void GlobalOrder::publish(const Who& who, LaneMask lanes, GridClock& to) {
  Warp& w = at(who);
  w.published = true;
  const GridClock* last = nullptr;
  each_lane(lanes, [&](int lane) {
    const Lane& l = w.lanes[static_cast<std::size_t>(lane)];
    if (l.known != nullptr && l.known.get() != last) to.join(*l.known);
    last = l.known.get();
  });
  each_lane(lanes, [&](int lane) {
    const Lane& l = w.lanes[static_cast<std::size_t>(lane)];
    const std::size_t thread = thread_of(who, lane);
    to.raise(who.cta, thread, w.step);
    if (l.copies > 0) to.raise(who.cta, copies_slot(thread), l.copies);
    if (l.stores > 0) to.raise(who.cta, stores_slot(thread), l.stores);
  });
}

// Null: the lane has come to no fence of that reach.
GlobalOrder::Known GlobalOrder::behind_fence(const Who& who, int lane, std::size_t reach) {
  Lane& l = at(who).lanes[static_cast<std::size_t>(lane)];
  if (l.fences == nullptr || !l.fences->before[reach]) return nullptr;
  Fenced& f = *l.fences->before[reach];
  if (f.whole != nullptr) return f.whole;
  const auto whole = f.known == nullptr ? std::make_shared<GridClock>() : std::make_shared<GridClock>(*f.known);
  const std::size_t thread = thread_of(who, lane);
  whole->raise(who.cta, thread, f.step);
  if (f.copies > 0) whole->raise(who.cta, copies_slot(thread), f.copies);
  if (f.stores > 0) whole->raise(who.cta, stores_slot(thread), f.stores);
  f.whole = whole;
  return whole;
}

// What these lanes have seen by relaxed reads without a fence since.
void GlobalOrder::publish_seen(const Who& who, LaneMask lanes, GridClock& to) {
  each_lane(lanes, [&](int lane) {
    const Lane& l = at(who).lanes[static_cast<std::size_t>(lane)];
    if (l.fences == nullptr) return;
    for (const auto& seen : l.fences->pending) {
      if (seen != nullptr) to.join(*seen);
    }
  });
}

void GlobalOrder::publish_by(const Who& who, LaneMask lanes, Order order, std::size_t reach, GridClock& to) {
  if (order != Order::relaxed) return publish(who, lanes, to);
  each_lane(lanes, [&](int lane) {
    if (const Known fenced = behind_fence(who, lane, reach)) to.join(*fenced);
  });
}

void GlobalOrder::acquire(const Who& who, LaneMask lanes, const Known& known) {
  if (known == nullptr) return;
  Warp& w = at(who);
  Known from, made;  // lanes mostly know the same
  bool any = false;
  each_lane(lanes, [&](int lane) {
    Known& mine = w.lanes[static_cast<std::size_t>(lane)].known;
    if (any && mine == from) {
      mine = made;
      return;
    }
    from = mine;
    any = true;
    made = joined(mine, known);
    mine = made;
  });
}

void GlobalOrder::learn(const Who& who, LaneMask lanes, Order order, std::size_t reach, const Known& known) {
  if (known == nullptr) return;
  if (acquires(order)) return acquire(who, lanes, known);
  each_lane(lanes, [&](int lane) {
    Lane& l = at(who).lanes[static_cast<std::size_t>(lane)];
    if (l.fences == nullptr) l.fences = std::make_unique<Fences>();
    l.fences->see(reach, *known, GridClock());
  });
}

// --- barriers --------------------------------------------------------------------------------------------------------

void GlobalOrder::barrier_arrive(const Who& who, int barrier, LaneMask lanes) {
  GridClock& gathered = ctas_.at(who.cta).barriers.at(barrier, GridClock());
  publish(who, lanes, gathered);
  publish_seen(who, lanes, gathered);
}

void GlobalOrder::barrier_done(const Cta& cta, int barrier, std::span<const LaneMask> waiting) {
  const Known all = ctas_.at(cta.index).barriers.take(barrier);
  if (all == nullptr) return;
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    if (waiting[w] != 0) acquire(who(cta, static_cast<int>(w)), waiting[w], all);
  }
}

void GlobalOrder::meet(const Who& who, LaneMask lanes) {
  const auto all = std::make_shared<GridClock>();
  publish(who, lanes, *all);
  publish_seen(who, lanes, *all);
  acquire(who, lanes, all);
}

void GlobalOrder::cluster_arrive(const Who& who, LaneMask lanes, Order order) {
  publish_by(who, lanes, order, kCluster, cluster_gathering_[who.cluster]);
}

// Everyone has arrived when anyone passes, so what has been gathered is whole.
void GlobalOrder::cluster_wait(const Who& who, LaneMask lanes, Order order) {
  learn(who, lanes, order, kCluster, std::make_shared<GridClock>(cluster_gathering_[who.cluster]));
}

// --- fences and flags ------------------------------------------------------------------------------------------------

void GlobalOrder::fence(const Who& who, LaneMask lanes, Scope scope) {
  const std::size_t reach = reach_of(scope);
  each_lane(lanes, [&](int lane) {
    Lane& l = at(who).lanes[static_cast<std::size_t>(lane)];
    if (l.fences == nullptr) l.fences = std::make_unique<Fences>();
    l.fences->fence(
        reach, [&](const Known& seen) { acquire(who, LaneMask{1} << lane, seen); },
        [&]() -> Fenced {
          Warp& w = at(who);
          w.published = true;
          return {l.known, w.step, l.copies, l.stores, nullptr};
        });
  });
}

void GlobalOrder::flag(const Who& who, int lane, std::uint64_t key, AccessKind kind, Order order, Scope scope) {
  const LaneMask bit = LaneMask{1} << lane;
  const std::size_t reach = reach_of(scope);
  const auto found = flags_.find(key);
  if (kind != AccessKind::store && found != flags_.end() && order != Order::weak) {
    const Flag& f = found->second;
    const auto of = [](const std::map<std::int32_t, Known>& by, std::int32_t number) {
      const auto place = by.find(number);
      return place == by.end() ? Known() : place->second;
    };
    learn(who, bit, order, kCta, of(f.ctas, who.cta));
    if (reach >= kCluster) learn(who, bit, order, kCluster, of(f.clusters, who.cluster));
    if (reach >= kGrid) learn(who, bit, order, kGrid, f.grid);
  }
  if (kind == AccessKind::load) return;
  // Whoever sees a store's value has seen nothing of what was published before; an atomic hands it on.
  const bool atomic = kind == AccessKind::atomic;
  if (!atomic && found != flags_.end()) flags_.erase(found);
  const Lane& l = at(who).lanes[static_cast<std::size_t>(lane)];
  const bool fenced = l.fences != nullptr && l.fences->before[kCta].has_value();
  if (order == Order::weak || (!releases(order) && !fenced)) return;
  Flag& f = flags_[key];
  Known all;
  if (releases(order)) {
    const auto clock = std::make_shared<GridClock>();
    publish(who, bit, *clock);
    all = clock;
  }
  // Most locations have one clock, which is shared with others that were published in the same step.
  const auto add = [&](Known& to, std::size_t r) {
    const Known more = all != nullptr ? all : behind_fence(who, lane, r);
    if (more != nullptr) to = joined(to, more);
  };
  add(f.ctas[who.cta], kCta);
  if (reach >= kCluster) add(f.clusters[who.cluster], kCluster);
  if (reach >= kGrid) add(f.grid, kGrid);
}

// --- arrival barriers ------------------------------------------------------------------------------------------------

void GlobalOrder::mbarrier_init(std::int32_t cluster, std::uint64_t address) {
  objects_.insert_or_assign({cluster, address}, Object{});
}

void GlobalOrder::mbarrier_arrive(const Who& who, LaneMask lanes, std::uint64_t address, Order order) {
  publish_by(who, lanes, order, kCluster, object(who.cluster, address).collecting);
}

// In the order in which they were issued.
void GlobalOrder::mbarrier_arrive_copies(std::int32_t cluster, std::uint64_t address) {
  object(cluster, address).arrive_copy([](GridClock& to, const Copies& copies) {
    to.raise(copies.cta, copies.slot, copies.step);
  });
}

void GlobalOrder::mbarrier_phase_done(std::int32_t cluster, std::uint64_t address) {
  object(cluster, address).complete();
}

void GlobalOrder::mbarrier_waited(const Who& who, LaneMask lanes, std::uint64_t address, Order order) {
  learn(who, lanes, order, kCluster, object(who.cluster, address).done);
}

// --- engines ---------------------------------------------------------------------------------------------------------

void GlobalOrder::issued_copy(const Who& who, int lane, std::uint64_t number) {
  at(who).lanes[static_cast<std::size_t>(lane)].last_copy = step_of(number);
}

void GlobalOrder::waited_for_copies(const Who& who, LaneMask lanes, std::span<const std::uint64_t, kLanes> last) {
  each_lane(lanes, [&](int lane) {
    const std::uint64_t end = last[static_cast<std::size_t>(lane)];
    Step& done = at(who).lanes[static_cast<std::size_t>(lane)].copies;
    if (end > 0) done = std::max(done, step_of(end - 1));
  });
}

void GlobalOrder::waited_for_stores(const Who& who, LaneMask lanes, std::span<const std::uint64_t, kLanes> last) {
  each_lane(lanes, [&](int lane) {
    const std::uint64_t end = last[static_cast<std::size_t>(lane)];
    Step& done = at(who).lanes[static_cast<std::size_t>(lane)].stores;
    if (end > 0) done = std::max(done, step_of(end - 1));
  });
}

void GlobalOrder::copies_arrive(const Who& who, LaneMask lanes, std::uint64_t address) {
  each_lane(lanes, [&](int lane) {
    object(who.cluster, address)
        .copies.push_back(
            {who.cta, copies_slot(thread_of(who, lane)), at(who).lanes[static_cast<std::size_t>(lane)].last_copy});
  });
}

void GlobalOrder::issued_load(const Who& who, std::uint64_t address, std::uint64_t number, std::int64_t bytes) {
  object(who.cluster, address).loads.issue(number, bytes);
}

// The phase that these bytes end hands on that they are there: on every barrier they are credited to.
void GlobalOrder::moved_load(std::int32_t cluster, std::uint64_t address, std::uint64_t number, std::int64_t bytes) {
  OpenOperations& loads = object(cluster, address).loads;
  loads.moved(number, bytes);
  for (auto at = objects_.lower_bound({cluster, 0}); at != objects_.end() && at->first.first == cluster; ++at) {
    if (offset_of(at->first.second) != offset_of(address)) continue;
    at->second.collecting.raise_engine(engine_key(cluster, address), step_of(loads.done()));
  }
}

}  // namespace kvscope::ptx
