// What orders accesses: fences, flags, barriers, arrival barriers, and waiting for one's own copies.
#include <array>
#include <bit>
#include <cstddef>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {
namespace {

bool is_async_proxy(AsyncKind kind) {
  return kind != AsyncKind::cp_async && kind != AsyncKind::st_async && kind != AsyncKind::red_async;
}

}  // namespace

void RaceChecker::synchronise(const Exec& exec, LaneMask lanes, std::string_view how) {
  if (Cluster* cluster = of(exec.cta))
    cluster->threads.synchronised(warp_of(exec.cta, exec.warp.index), lanes, exec.lane_group.pc, how);
}

// A relaxed operation publishes what stands behind the lane's last fence, and nothing without one.
void RaceChecker::publish_by(Cluster& cluster, int warp, LaneMask lanes, Order order, View& to) {
  if (order != Order::relaxed) {
    cluster.threads.publish(warp, lanes, to);
  } else if (const auto& fences = cluster.fences[static_cast<std::size_t>(warp)]) {
    each_lane(lanes, [&](int lane) {
      const auto& before = (*fences)[static_cast<std::size_t>(lane)].before[0];
      if (before) cluster.threads.publish(warp, lane, *before, to);
    });
  }
}

// What a relaxed operation sees is known from the lane's next fence on.
void RaceChecker::learn(const Exec& exec, Cluster& cluster, int warp, LaneMask lanes, Order order, const Known& view,
                        std::string_view how) {
  if (acquires(order)) {
    cluster.threads.acquire(warp, lanes, view);
    synchronise(exec, lanes, how);
    return;
  }
  auto& fences = cluster.fences[static_cast<std::size_t>(warp)];
  if (fences == nullptr) fences = std::make_unique<Cluster::WarpFences>();
  const View nothing(cluster.threads.warps());
  each_lane(lanes, [&](int lane) { (*fences)[static_cast<std::size_t>(lane)].see(0, *view, nothing); });
}

void RaceChecker::fence(const Exec& exec, LaneMask lanes, Order, Scope) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  auto& fences = cluster->fences[static_cast<std::size_t>(warp)];
  if (fences == nullptr) fences = std::make_unique<Cluster::WarpFences>();
  each_lane(lanes, [&](int lane) {
    const auto acquire = [&](const Known& seen) {
      cluster->threads.acquire(warp, LaneMask{1} << lane, seen);
      cluster->threads.synchronised(warp, LaneMask{1} << lane, exec.lane_group.pc, "fence");
    };
    (*fences)[static_cast<std::size_t>(lane)].fence(0, acquire,
                                                    [&] { return cluster->threads.behind_fence(warp, lane); });
  });
}

void RaceChecker::proxy_fence(const Exec& exec, LaneMask lanes, Space space) {
  if (space == Space::global) return;  // only shared memory is watched
  if (Cluster* cluster = of(exec.cta)) cluster->threads.fence_proxy(warp_of(exec.cta, exec.warp.index), lanes);
}

// Stores and loads that are more than plain ones order what is around them.
void RaceChecker::order_by_flags(const Exec& exec, const WarpAccess& access, Cluster& cluster) {
  const int warp = warp_of(exec.cta, exec.warp.index), rank = exec.cta.cluster_rank;
  ThreadViews& threads = cluster.threads;
  const bool atomic = access.kind == AccessKind::atomic;
  // What an atomic that acquires and releases sees was there before it.
  const auto look = [&](int lane, std::uint64_t address) {
    const auto flag = cluster.flags.find(address);
    if (flag == cluster.flags.end()) return;
    const bool narrow = access.scope == Scope::cta || flag->second.scope == Scope::cta;
    if (narrow && flag->second.rank != rank) return;
    learn(exec, cluster, warp, LaneMask{1} << lane, access.order, flag->second.published, "acquire");
  };
  const auto publish = [&](int lane, std::uint64_t address) {
    const auto& fences = cluster.fences[static_cast<std::size_t>(warp)];
    const bool fenced = fences != nullptr && (*fences)[static_cast<std::size_t>(lane)].before[0].has_value();
    const auto flag = cluster.flags.find(address);
    if (access.order == Order::weak || (!releases(access.order) && !fenced)) {
      // Whoever sees this store's value has seen nothing of what was published before; an atomic hands it on.
      if (!atomic && flag != cluster.flags.end()) cluster.flags.erase(flag);
      return;
    }
    const auto view = std::make_shared<View>(threads.warps());
    if (atomic && flag != cluster.flags.end()) view->join(*flag->second.published);
    publish_by(cluster, warp, LaneMask{1} << lane, releases(access.order) ? Order::release : Order::relaxed, *view);
    cluster.flags[address] = {view, access.scope, rank};
  };
  const bool looks = access.kind != AccessKind::store, publishes = access.kind != AccessKind::load;
  each_lane(access.lanes, [&](int lane) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    if (looks && !cluster.flags.empty()) look(lane, address);
    if (publishes) publish(lane, address);
  });
}

// --- barriers --------------------------------------------------------------------------------------------------------

void RaceChecker::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  auto& gathered = cluster->barriers[static_cast<std::size_t>(exec.cta.cluster_rank)];
  View& view = gathered.at(barrier, View(cluster->threads.warps()));
  cluster->threads.publish(warp_of(exec.cta, exec.warp.index), lanes, view);
  synchronise(exec, lanes, "barrier");
}

void RaceChecker::barrier_done(Launch&, const Cta& cta, int barrier, std::span<const LaneMask>,
                               std::span<const LaneMask> waiting) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr) return;
  const Known all = cluster->barriers[static_cast<std::size_t>(cta.cluster_rank)].take(barrier);
  if (all == nullptr) return;
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    if (waiting[w] != 0) cluster->threads.acquire(warp_of(cta, static_cast<int>(w)), waiting[w], all);
  }
}

void RaceChecker::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  publish_by(*cluster, warp_of(exec.cta, exec.warp.index), lanes, order, cluster->cluster_gathering);
}

void RaceChecker::cluster_wait(const Exec& exec, LaneMask lanes, Order order) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  // Everyone has arrived when anyone passes, so what has been gathered is whole.
  learn(exec, *cluster, warp_of(exec.cta, exec.warp.index), lanes, order,
        std::make_shared<View>(cluster->cluster_gathering), "cluster barrier");
}

void RaceChecker::warp_barrier(const Exec& exec, LaneMask lanes) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  const auto view = std::make_shared<View>(cluster->threads.warps());
  cluster->threads.publish(warp, lanes, *view);
  cluster->threads.acquire(warp, lanes, view);
  synchronise(exec, lanes, "warp barrier");
}

void RaceChecker::collective(const Exec& exec, const Op&, LaneMask lanes) {
  if (!options_.collectives_order) return;
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  const auto view = std::make_shared<View>(cluster->threads.warps());
  cluster->threads.publish(warp, lanes, *view);
  cluster->threads.acquire(warp, lanes, view);
}

// --- arrival barriers ------------------------------------------------------------------------------------------------

// The object itself is written by init and inval alone; everything else may come in any order between them.
void RaceChecker::touch_object(Toucher& who, MbarrierEvent event, LaneMask lanes, std::uint64_t address) {
  Cluster::Object& object = who.cluster.object(address);
  Mark mark{.actor = base_of_warp(who.warp),
            .lanes = lanes,
            .step = who.cluster.threads.act(who.warp, lanes),
            .pc = who.exec.lane_group.pc,
            .bytes = static_cast<ChunkBytes>(0xff << address % kChunkBytes)};
  mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
  mark.shift = Mark::kEveryLane;
  mark.generic = false;  // bytes of an object are not data: no fence of proxies is asked for
  const auto against = [&](const Mark& before) {
    if (before.bytes == 0 || before.meets_itself(mark)) return;
    if (who.known != nullptr && who.known->covers_warp(warp_of_key(before.actor), before.step)) return;
    each_lane(mark.lanes, [&](int lane) {
      each_lane(before.lanes, [&](int other) {
        if (!who.cluster.threads.ordered(who.warp, lane, before.actor + static_cast<ActorKey>(other), before.step))
          conflict(who, address, before, mark, lane, other);
      });
    });
  };
  if (event != MbarrierEvent::init && event != MbarrierEvent::inval) {
    against(object.made);
    bool merged = false;
    for (Mark& use : object.uses) {
      if (use.actor != mark.actor || use.pc != mark.pc) continue;
      if (use.step == mark.step) {
        use.lanes |= mark.lanes;
        merged = true;
      } else {
        use.lanes &= ~mark.lanes;
      }
    }
    std::erase_if(object.uses, [](const Mark& use) { return use.lanes == 0; });
    if (!merged) object.uses.push_back(mark);
    return;
  }
  mark.write = true;
  for (const Mark& use : object.uses) against(use);
  std::array<std::uint64_t, kLanes> at;
  at.fill(address);
  touch_writes(who, mark, 8, lanes, at);
  if (event == MbarrierEvent::inval) {
    who.cluster.objects.erase(address);
  } else {
    object.made = mark;
    object.uses.clear();
  }
}

void RaceChecker::mbarrier(Launch&, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order order, Scope) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr) return;
  if (event == MbarrierEvent::phase_done) {
    return cluster->object(address).complete();
  }
  if (exec == nullptr) {
    if (event != MbarrierEvent::arrive) return;
    // Of cp.async.mbarrier.arrive: in the order in which they were issued.
    return cluster->object(address).arrive_copy(
        [](View& to, const auto& copy) { to.ordered.raise(copy.first, copy.second); });
  }
  const int warp = warp_of(exec->cta, exec->warp.index);
  Toucher who(*exec, *cluster, warp, std::countr_zero(lanes));
  touch_object(who, event, lanes, address);
  if (event == MbarrierEvent::wait_true) {
    learn(*exec, *cluster, warp, lanes, order, cluster->object(address).done, "mbarrier wait");
    return;
  }
  if (event != MbarrierEvent::arrive) return;
  Cluster::Object& object = cluster->object(address);
  if (order == Order::relaxed) {
    publish_by(*cluster, warp, lanes, order, object.collecting);
    return;
  }
  // Lanes arrive one after the other and mostly know the same: that goes in once, and a whole warp is one number.
  ThreadViews& threads = cluster->threads;
  const Known& known = threads.known(warp, who.lane);
  const Step step = threads.act(warp, lanes);
  if (object.collected != known || !threads.uniform(warp)) {
    threads.publish(warp, lanes, object.collecting);
    object.collected = known;
  } else {
    threads.publish_own(warp, lanes, object.collecting.ordered);
  }
  if (object.arriving_warp != warp || object.arriving_step != step) object.arriving = 0;
  object.arriving_warp = warp;
  object.arriving_step = step;
  object.arriving |= lanes;
  if (threads.whole(warp, object.arriving)) threads.publish_own(warp, object.arriving, object.collecting.ordered);
}

// --- engines ---------------------------------------------------------------------------------------------------------

// All lanes of one instruction share a step; a copy is a mark of its lane.
void RaceChecker::issue_copy(const Exec& exec, Cluster& cluster, const AsyncOp& op, std::span<const ByteRange> writes) {
  const int warp = warp_of(exec.cta, exec.warp.index), lane = op.thread % kLanes;
  Cluster::WarpCopies& copies = cluster.copies[static_cast<std::size_t>(warp)];
  if (copies.firsts.empty() || copies.issued_at != exec.launch.step || copies.pc != op.pc) {
    copies.firsts.push_back(op.number);
    copies.issued_at = exec.launch.step;
    copies.pc = op.pc;
    static_cast<void>(cluster.threads.begin_copies(warp));
  }
  Toucher who(exec, cluster, warp, lane, false);
  Mark mark{.actor = kCopiesOf + base_of_warp(warp),
            .lanes = LaneMask{1} << lane,
            .step = static_cast<Step>(copies.firsts.size()),
            .pc = op.pc,
            .write = true};
  for (const ByteRange& range : writes) {
    if (range.space != Space::shared) continue;
    mark.bytes = chunk_bytes(range.address, range.bytes);
    mark.first = static_cast<std::uint8_t>(range.address % kChunkBytes);
    mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(range.bytes)));
    touch_write(who, mark, range.address);
  }
}

void RaceChecker::async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                              std::span<const ByteRange> writes) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  if (op.kind == AsyncKind::cp_async) {
    issue_copy(exec, *cluster, op, writes);
    return;
  }
  const int warp = warp_of(exec.cta, exec.warp.index), lane = op.thread % kLanes;
  Toucher who(exec, *cluster, warp, lane, is_async_proxy(op.kind));
  const std::uint64_t owner =
      op.mbarrier != 0 ? op.mbarrier
                       : (op.kind == AsyncKind::wgmma ? static_cast<std::uint64_t>(warp / 4)
                                                      : base_of_warp(warp) + static_cast<std::uint64_t>(lane));
  Mark mark{.actor = cluster->engine(op.kind, op.mbarrier != 0, owner),
            .step = step_of(op.number),
            .pc = op.pc,
            .issuer = static_cast<std::uint16_t>(op.thread),
            .generic = !who.async_proxy};
  cluster->engine_of(mark.actor).open.issue(op.number, op.mbarrier != 0 ? bytes_of(writes) : 0);
  touch_ranges(who, mark, reads);
  mark.write = true;
  touch_ranges(who, mark, writes);

  // The copy will count its bytes on an object: that has to be one for the engine too.
  if (op.mbarrier == 0 || !options_.init_fence || !who.async_proxy) return;
  const auto object = cluster->objects.find(op.mbarrier);
  if (object == cluster->objects.end() || object->second.made.bytes == 0) return;
  const Mark& made = object->second.made;
  const int maker = std::countr_zero(made.lanes);
  mark.write = false;
  mark.bytes = made.bytes;
  if (!cluster->threads.ordered(warp, lane, made.actor + static_cast<ActorKey>(maker), made.step)) {
    conflict(who, op.mbarrier, made, mark, lane, maker);
  } else if (!cluster->threads.published_since(warp_of_key(made.actor), made.step)) {
    missing_fence(who, op.mbarrier, made, mark, maker,
                  "mbarrier.init must be followed by fence.mbarrier_init or a barrier before a copy counts on it");
  }
}

// The phase that these bytes end hands on that they are there: on every barrier they are credited to.
void RaceChecker::async_moves(Launch&, const Cta& cta, const AsyncOp& op, std::span<const ByteRange>,
                              std::span<const ByteRange> writes) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr || op.mbarrier == 0 || op.kind == AsyncKind::cp_async) return;
  const ActorKey actor = cluster->engine(op.kind, true, op.mbarrier);
  Engine& engine = cluster->engine_of(actor);
  engine.open.moved(op.number, bytes_of(writes));
  for (auto& [address, object] : cluster->objects) {
    if (offset_of(address) == offset_of(op.mbarrier))
      object.collecting.ordered.raise(actor, step_of(engine.open.done()));
  }
}

void RaceChecker::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool,
                             std::span<const std::uint64_t, kLanes> last) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  if (kind == AsyncKind::cp_async) {
    const auto& firsts = cluster->copies[static_cast<std::size_t>(warp)].firsts;
    each_lane(lanes, [&](int lane) {
      // A lane's last copy that is done is of the last instruction that began before it.
      const auto end = std::lower_bound(firsts.begin(), firsts.end(), last[static_cast<std::size_t>(lane)]);
      cluster->threads.waited_for_copies(warp, lane, static_cast<Step>(end - firsts.begin()));
    });
  } else {
    for (std::size_t e = 0; e < cluster->engines.size(); ++e) {
      const Engine& engine = cluster->engines[e];
      if (engine.by_barrier || (engine.kind == AsyncKind::wgmma) != (kind == AsyncKind::wgmma)) continue;
      const auto actor = kEngines + static_cast<ActorKey>(e);
      if (kind == AsyncKind::wgmma) {
        const std::uint64_t end = last[static_cast<std::size_t>(std::countr_zero(lanes))];
        if (end > 0 && engine.owner == static_cast<std::uint64_t>(warp / 4))
          cluster->threads.waited(warp, lanes, actor, step_of(end - 1));
        continue;
      }
      const std::uint64_t lane = engine.owner - base_of_warp(warp);
      if (lane >= kLanes || (lanes >> lane & 1) == 0 || last[lane] == 0) continue;
      cluster->threads.waited(warp, LaneMask{1} << lane, actor, step_of(last[lane] - 1));
    }
  }
  synchronise(exec, lanes, "wait for its copies");
}

void RaceChecker::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  const auto step = static_cast<Step>(cluster->copies[static_cast<std::size_t>(warp)].firsts.size());
  each_lane(lanes, [&](int lane) {
    cluster->object(mbarrier).copies.emplace_back(kCopiesOf + base_of_warp(warp) + static_cast<ActorKey>(lane), step);
  });
}

}  // namespace kvscope::ptx
