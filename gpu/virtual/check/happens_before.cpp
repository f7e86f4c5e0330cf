#include "gpu/virtual/check/happens_before.h"

#include <algorithm>
#include <utility>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint64_t kSharedFlag = std::uint64_t{1} << 63;  // a flag's key: shared memory of a cluster

Audience audience_of(Scope scope) {
  return scope == Scope::cta ? Audience::cta : scope == Scope::cluster ? Audience::cluster : Audience::grid;
}

}  // namespace

std::int64_t bytes_of(ByteRanges ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

// --- threads ---------------------------------------------------------------------------------------------------------

HappensBefore::HappensBefore(Space memory, const Launch& launch)
    : memory_(memory), grid_(launch.config.grid), cluster_(cluster_extents(launch)) {
  const auto& block = launch.config.block;
  warps_ = static_cast<std::size_t>((block[0] * block[1] * block[2] + kLanes - 1) / kLanes);
  if (memory != Space::shared) {
    if (launch.grid_workspace != 0)
      grid_barrier_ = {.address = launch.grid_workspace + kGridBarrierOffset, .ctas = launch.cta_count()};
    return;
  }
  // Threads that have not started have acquired nothing: known_to_all() must count them.
  for (std::uint32_t rank = 0; rank < cluster_size(launch); ++rank) add(rank);
}

void HappensBefore::add(std::uint32_t cta) {
  const auto know_nothing = std::make_shared<const View>(nothing());
  CtaThreads& threads = ctas_[cta];
  threads = {};
  threads.warps.reserve(warps_);
  for (std::size_t w = 0; w < warps_; ++w)
    threads.warps.emplace_back(actor_key(cta, static_cast<std::uint32_t>(w * kLanes)), know_nothing);
  last_ = nullptr;
}

void HappensBefore::begin(const Cta& cta) {
  const std::uint32_t number = number_of_cta(cta);
  if (memory_ != Space::shared) add(number);
  for (const Warp& warp : cta.warps) this->warp(cta, warp.index).set_live(~warp.exited);
}

void HappensBefore::end(const Cta& cta) {
  if (memory_ == Space::shared) return;
  const std::uint32_t number = number_of_cta(cta);
  ctas_.erase(number);
  last_ = nullptr;
  if (cluster_ != std::array<std::int64_t, 3>{1, 1, 1}) return;
  objects_.erase(objects_.lower_bound({number, 0}), objects_.lower_bound({number + 1, 0}));
  open_.erase(open_.lower_bound(actor_key(number, 0)), open_.lower_bound(actor_key(number + 1, 0)));
}

// Clusters are numbered like CTAs, x fastest.
std::uint32_t HappensBefore::cluster_of(std::uint32_t cta) const {
  if (memory_ == Space::shared) return 0;
  const std::int64_t x = cta % grid_[0] / cluster_[0], y = cta / grid_[0] % grid_[1] / cluster_[1];
  const std::int64_t z = cta / (grid_[0] * grid_[1]) / cluster_[2];
  return static_cast<std::uint32_t>(x + grid_[0] / cluster_[0] * (y + grid_[1] / cluster_[1] * z));
}

Clock HappensBefore::known_to_all() const {
  std::unique_ptr<Clock> common;
  for (const auto& [number, cta] : ctas_) {
    for (const WarpViews& warp : cta.warps) warp.lower(common);
  }
  return common != nullptr ? *common : Clock(static_cast<int>(warps_));
}

// --- publish and acquire ---------------------------------------------------------------------------------------------

// A relaxed operation publishes what the lane's last fence covers, and nothing without one.
void HappensBefore::publish_by(WarpViews& warp, LaneMask lanes, Order order, Audience audience, View& to) {
  if (order != Order::relaxed) return warp.publish(lanes, to);
  each_lane(lanes, [&](int lane) {
    if (const Known fenced = warp.at_fence(lane, audience)) to.join(*fenced);
  });
}

// What a relaxed operation sees is acquired at the lane's next fence.
void HappensBefore::learn(const Exec& exec, WarpViews& warp, LaneMask lanes, Order order, Audience audience,
                          const Known& view, LastSync sync) {
  if (!acquires(order)) {
    if (view != nullptr) warp.see(lanes, audience, view);
    return;
  }
  if (view != nullptr) warp.acquire(lanes, view);
  sync.pc = exec.lane_group.pc;
  warp.synchronized(lanes, sync);
}

// --- barriers --------------------------------------------------------------------------------------------------------

void HappensBefore::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes) {
  WarpViews& w = warp(exec);
  auto& barriers = threads(w.cta()).barriers;
  auto found = barriers.find(barrier);
  if (found == barriers.end()) found = barriers.emplace(barrier, Gathered{nothing(), nullptr, nullptr}).first;
  Gathered& gathered = found->second;
  w.publish(lanes, gathered.view);
  if (memory_ == Space::global) {
    w.publish_seen(lanes, gathered.seen);
    w.publish_seen_sc(lanes, gathered.seen_sc);
  }
  w.synchronized(lanes, {.pc = exec.lane_group.pc, .how = "barrier"});
}

void HappensBefore::barrier_done(const Cta& cta, int barrier, LaneMasks waiting) {
  auto& barriers = threads(number_of_cta(cta)).barriers;
  const auto gathered = barriers.find(barrier);
  if (gathered == barriers.end()) return;
  const auto all = std::make_shared<const View>(std::move(gathered->second.view));
  const Known seen = std::move(gathered->second.seen), seen_sc = std::move(gathered->second.seen_sc);
  barriers.erase(gathered);
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    if (waiting[w] == 0) continue;
    WarpViews& views = warp(cta, static_cast<int>(w));
    views.acquire(waiting[w], all);
    if (seen != nullptr) views.see_at_barrier(waiting[w], seen);
    if (seen_sc != nullptr) views.see_sc(waiting[w], seen_sc);
  }
}

void HappensBefore::meet(WarpViews& warp, LaneMask lanes) {
  const auto all = std::make_shared<View>(nothing());
  warp.publish(lanes, *all);
  warp.acquire(lanes, all);
  if (memory_ != Space::global) return;
  Known seen, seen_sc;
  warp.publish_seen(lanes, seen);
  warp.publish_seen_sc(lanes, seen_sc);
  if (seen != nullptr) warp.see_at_barrier(lanes, seen);
  if (seen_sc != nullptr) warp.see_sc(lanes, seen_sc);
}

HappensBefore::ClusterBarrier& HappensBefore::cluster_barrier(std::uint32_t cta) {
  return cluster_barriers_.try_emplace(cluster_of(cta), ClusterBarrier{.collecting = nothing()}).first->second;
}

void HappensBefore::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  WarpViews& w = warp(exec);
  publish_by(w, lanes, order, Audience::cluster, cluster_barrier(w.cta()).collecting);
}

// All threads acquire a phase before the next one completes, so the next one begins without it.
void HappensBefore::cluster_done(const Cta& cta) {
  ClusterBarrier& barrier = cluster_barrier(number_of_cta(cta));
  barrier.done = std::make_shared<const View>(std::exchange(barrier.collecting, nothing()));
}

void HappensBefore::cluster_wait(const Exec& exec, LaneMask lanes, Order order) {
  WarpViews& w = warp(exec);
  learn(exec, w, lanes, order, Audience::cluster, cluster_barrier(w.cta()).done, {.how = "cluster barrier"});
}

// --- arrival barriers ------------------------------------------------------------------------------------------------

HappensBefore::Object& HappensBefore::object(std::uint32_t cluster, std::uint64_t address) {
  const auto at = objects_.find({cluster, address});
  return at != objects_.end()
             ? at->second
             : objects_.emplace(ObjectKey{cluster, address}, Object{.collecting = nothing()}).first->second;
}

void HappensBefore::mbarrier(const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                             std::uint64_t address, Order order) {
  const std::uint32_t cluster = cluster_of(number_of_cta(cta));
  switch (event) {
    case MbarrierEvent::init:
      objects_.insert_or_assign({cluster, address}, Object{.collecting = nothing()});
      return;
    case MbarrierEvent::inval:
      objects_.erase({cluster, address});
      return;
    case MbarrierEvent::arrive: {
      if (exec != nullptr) return arrive(*exec, lanes, address, order);
      Object& o = object(cluster, address);
      if (o.copies.empty()) return;
      o.collecting.ordered.raise(o.copies.front().first, o.copies.front().second);
      o.copies.pop_front();
      return;
    }
    case MbarrierEvent::phase_done: {
      Object& o = object(cluster, address);
      o.done = std::make_shared<const View>(o.collecting);
      ++o.complete;
      return;
    }
    case MbarrierEvent::wait_true: {
      if (exec == nullptr) return;
      const Object& o = object(cluster, address);
      learn(*exec, warp(*exec), lanes, order, Audience::cluster, o.done,
            {.how = "mbarrier wait", .mbarrier = address, .complete = o.complete});
      return;
    }
    default:
      return;
  }
}

void HappensBefore::arrive(const Exec& exec, LaneMask lanes, std::uint64_t address, Order order) {
  WarpViews& w = warp(exec);
  Object& o = object(cluster_of(w.cta()), address);
  if (order == Order::relaxed) return publish_by(w, lanes, order, Audience::cluster, o.collecting);
  // Lanes arrive one after the other and have mostly acquired the same: that is joined once, and a whole warp is one
  // number.
  const Known& known = w.known(std::countr_zero(lanes));
  const Step step = w.act(lanes);
  if (o.collected != known || !w.uniform()) {
    w.publish(lanes, o.collecting);
    o.collected = known;
  } else {
    w.publish_own(lanes, o.collecting.ordered);
  }
  if (o.arriving_warp != &w || o.arriving_step != step) o.arriving = 0;
  o.arriving_warp = &w;
  o.arriving_step = step;
  o.arriving |= lanes;
  if (w.whole(o.arriving)) w.publish_own(o.arriving, o.collecting.ordered);
}

void HappensBefore::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  WarpViews& w = warp(exec);
  Object& o = object(cluster_of(w.cta()), mbarrier);
  each_lane(lanes, [&](int lane) { o.copies.emplace_back(kCopiesOf + w.thread(lane), w.copies()); });
}

// --- fences and flags ------------------------------------------------------------------------------------------------

// Thread 5 stores and executes fence.sc; after a barrier, thread 0 of its CTA adds to a counter by a relaxed atomic. A
// thread that sees the sum and then executes fence.sc has acquired the store: were its fence the earlier one of the two,
// its read of the counter would precede the addition that it has seen.
void HappensBefore::fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) {
  WarpViews& w = warp(exec);
  const bool sc = order == Order::sc && memory_ == Space::global && audience_of(scope) == Audience::grid;
  LaneMask acquired = sc ? w.acquire_sc(lanes) : 0;
  acquired |= w.fence(lanes, memory_ == Space::shared ? Audience::grid : audience_of(scope));
  if (sc) w.fence_all(lanes);
  has_fences_ = true;
  if (memory_ == Space::global && audience_of(scope) != Audience::grid) narrow_fences_[w.cta()] = exec.lane_group.pc;
  w.synchronized(acquired, {.pc = exec.lane_group.pc, .how = "fence"});
}

void HappensBefore::look_at_flag(const Exec& exec, WarpViews& warp, int lane, const Flag& flag,
                                 const WarpAccess& access) {
  const auto learn_from = [&](Audience audience, const Known& view) {
    if (view != nullptr) learn(exec, warp, LaneMask{1} << lane, access.order, audience, view, {.how = "acquire"});
  };
  const auto of = [](const std::map<std::uint32_t, Known>& by, std::uint32_t number) {
    const auto at = by.find(number);
    return at == by.end() ? Known() : at->second;
  };
  const Audience audience = audience_of(access.scope);
  learn_from(Audience::cta, of(flag.ctas, warp.cta()));
  if (audience >= Audience::cluster) learn_from(Audience::cluster, of(flag.clusters, cluster_of(warp.cta())));
  if (audience < Audience::grid) return;
  learn_from(Audience::grid, flag.grid);
  if (flag.sc != nullptr) warp.see_sc(LaneMask{1} << lane, flag.sc);
}

void HappensBefore::publish_flag(WarpViews& warp, int lane, std::uint64_t key, const WarpAccess& access) {
  // A reader that sees the value of a store does not see what was published before it. An atomic passes that on.
  if (access.kind != AccessKind::atomic) flags_.erase(key);
  const bool release = releases(access.order);
  const bool sc = memory_ == Space::global && !release && !warp.known(lane)->fenced.empty();
  if (access.order == Order::weak || (!release && !sc && !warp.has_fenced(lane))) return;
  Flag& flag = flags_[key];
  Known all;
  if (release) {
    const auto view = std::make_shared<View>(nothing());
    warp.publish(LaneMask{1} << lane, *view);
    all = view;
  }
  // Most locations have one view, which is shared with others that were published in the same step.
  const auto add = [&](Known& to, Audience audience) {
    const Known more = release ? all : warp.at_fence(lane, audience);
    if (more != nullptr) to = joined(to, more);
  };
  const Audience audience = audience_of(access.scope);
  add(flag.ctas[warp.cta()], Audience::cta);
  if (audience >= Audience::cluster) add(flag.clusters[cluster_of(warp.cta())], Audience::cluster);
  if (audience < Audience::grid) return;
  add(flag.grid, Audience::grid);
  if (sc) flag.sc = joined(flag.sc, warp.known(lane));
}

const HappensBefore::Flag* HappensBefore::published_at(std::uint64_t key) const {
  if (key == grid_barrier_.address) return &grid_barrier_.done;
  const auto flag = flags_.find(key);
  return flag == flags_.end() ? nullptr : &flag->second;
}

// The last arrival completes the phase.
void HappensBefore::arrive_at_grid_barrier() {
  if (++grid_barrier_.arrived < grid_barrier_.ctas) return;
  grid_barrier_.arrived = 0;
  grid_barrier_.done = std::exchange(flags_[grid_barrier_.address], {});
}

void HappensBefore::flags(const Exec& exec, const WarpAccess& access) {
  WarpViews& w = warp(exec);
  const std::uint64_t base =
      access.space == Space::shared ? kSharedFlag | static_cast<std::uint64_t>(cluster_of(w.cta())) << 32 : 0;
  each_lane(access.lanes, [&](int lane) {
    const std::uint64_t key = base | access.addresses[static_cast<std::size_t>(lane)];
    if (access.kind != AccessKind::store && access.order != Order::weak) {
      if (const Flag* flag = published_at(key)) look_at_flag(exec, w, lane, *flag, access);
    }
    if (access.kind != AccessKind::load) publish_flag(w, lane, key, access);
    if (access.kind == AccessKind::atomic && key == grid_barrier_.address) arrive_at_grid_barrier();
  });
}

// --- engines ---------------------------------------------------------------------------------------------------------

// An operation without bytes is done at once.
void HappensBefore::OpenOperations::issue(std::uint64_t number, std::int64_t bytes) {
  last_ = number;
  if (bytes > 0) open_.emplace_back(number, bytes);
}

void HappensBefore::OpenOperations::moved(std::uint64_t number, std::int64_t bytes) {
  const auto at = std::lower_bound(open_.begin(), open_.end(), number,
                                   [](const auto& open, std::uint64_t wanted) { return open.first < wanted; });
  if (at != open_.end() && at->first == number) at->second -= bytes;
  while (!open_.empty() && open_.front().second <= 0) open_.pop_front();
}

// The bytes are credited to every barrier at this offset (a multicast copy counts on one per CTA).
void HappensBefore::moved(ActorKey engine, std::uint64_t number, std::int64_t bytes) {
  OpenOperations& open = open_[engine];
  open.moved(number, bytes);
  const std::uint32_t cluster = cta_of(engine);
  const std::uint64_t offset = offset_of(mbarrier_of_engine(engine));
  const auto ranks = static_cast<std::uint64_t>(cluster_[0] * cluster_[1] * cluster_[2]);
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const auto at = objects_.find({cluster, shared_address(rank, offset)});
    if (at != objects_.end()) at->second.collecting.ordered.raise(engine, step_of(open.done()));
  }
}

void HappensBefore::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                               OperationNumbers last) {
  WarpViews& w = warp(exec);
  if (kind == AsyncKind::cp_async) {
    each_lane(lanes, [&](int lane) { w.waited_for_copies(lane, last[static_cast<std::size_t>(lane)]); });
  } else if (kind == AsyncKind::wgmma) {
    const std::uint64_t end = last[static_cast<std::size_t>(std::countr_zero(lanes))];
    if (end > 0) w.waited(lanes, actor_key(w.cta(), engine_of_thread(kind, w.index() / 4)), step_of(end - 1));
  } else if (!reads_only || memory_ == Space::shared) {
    each_lane(lanes, [&](int lane) {
      const std::uint64_t end = last[static_cast<std::size_t>(lane)];
      if (end > 0) w.waited_for_groups(lane, step_of(end - 1));
    });
  }
  w.synchronized(lanes, {.pc = exec.lane_group.pc, .how = "wait for its copies"});
}

void HappensBefore::tensor_commit(const Exec& exec, int lane, std::uint64_t number,
                                  std::span<const std::uint64_t> barriers) {
  const WarpViews& w = warp(exec);
  const ActorKey engine = key(w.cta(), engine_of_thread(AsyncKind::tcgen05, thread_of(w.thread(lane))));
  for (const std::uint64_t barrier : barriers)
    object(cluster_of(w.cta()), barrier).copies.emplace_back(engine, step_of(number));
}

// --- the monitor -----------------------------------------------------------------------------------------------------

void OrderMonitor::exit(const Exec& exec, LaneMask lanes) {
  if (HappensBefore* order = order_of(exec.cta)) order->warp(exec).leave(lanes);
}

void OrderMonitor::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool) {
  if (HappensBefore* order = order_of(exec.cta)) order->barrier_arrive(exec, barrier, lanes);
}

void OrderMonitor::barrier_done(Launch&, const Cta& cta, int barrier, LaneMasks, LaneMasks waiting) {
  if (HappensBefore* order = order_of(cta)) order->barrier_done(cta, barrier, waiting);
}

void OrderMonitor::cluster_arrive(const Exec& exec, LaneMask lanes, Order how) {
  if (HappensBefore* order = order_of(exec.cta)) order->cluster_arrive(exec, lanes, how);
}

void OrderMonitor::cluster_done(Launch&, const Cta& cta) {
  if (HappensBefore* order = order_of(cta)) order->cluster_done(cta);
}

void OrderMonitor::cluster_wait(const Exec& exec, LaneMask lanes, Order how) {
  if (HappensBefore* order = order_of(exec.cta)) order->cluster_wait(exec, lanes, how);
}

void OrderMonitor::warp_barrier(const Exec& exec, LaneMask lanes) {
  HappensBefore* order = order_of(exec.cta);
  if (order == nullptr) return;
  order->meet(order->warp(exec), lanes);
  order->warp(exec).synchronized(lanes, {.pc = exec.lane_group.pc, .how = "warp barrier"});
}

void OrderMonitor::collective(const Exec& exec, const Op&, LaneMask lanes) {
  HappensBefore* order = order_of(exec.cta);
  if (order == nullptr) return;
  if (collectives_order_) {
    order->meet(order->warp(exec), lanes);
  } else {
    order->warp(exec).meet(lanes, exec.lane_group.pc);
  }
}

void OrderMonitor::mbarrier(Launch&, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                            std::uint64_t address, std::int64_t, Order how, Scope) {
  if (HappensBefore* order = order_of(cta)) order->mbarrier(cta, exec, lanes, event, address, how);
}

void OrderMonitor::fence(const Exec& exec, LaneMask lanes, Order how, Scope scope) {
  if (HappensBefore* order = order_of(exec.cta)) order->fence(exec, lanes, how, scope);
}

void OrderMonitor::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                              OperationNumbers last) {
  if (HappensBefore* order = order_of(exec.cta)) order->group_wait(exec, kind, lanes, reads_only, last);
}

void OrderMonitor::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  if (HappensBefore* order = order_of(exec.cta)) order->cp_async_arrive(exec, lanes, mbarrier);
}

void OrderMonitor::tensor_commit(const Exec& exec, int lane, std::uint64_t number,
                                 std::span<const std::uint64_t> barriers) {
  if (HappensBefore* order = order_of(exec.cta)) order->tensor_commit(exec, lane, number, barriers);
}

}  // namespace kvscope::ptx
