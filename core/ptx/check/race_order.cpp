// What orders accesses: fences, barriers, arrival barriers, and waiting for one's own copies.
#include <array>
#include <bit>
#include <cstddef>

#include "core/ptx/check/race_cluster.h"
#include "core/ptx/machine/access.h"
#include "core/ptx/machine/windows.h"

namespace kvscope::ptx {
namespace {

bool is_async_proxy(AsyncKind kind) {
  return kind != AsyncKind::cp_async && kind != AsyncKind::st_async && kind != AsyncKind::red_async;
}

}  // namespace

void RaceChecker::fence(const Exec& exec, LaneMask lanes, Order, Scope) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  auto& kept = cluster->fences[static_cast<std::size_t>(warp)];
  if (!kept) kept.emplace();
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const LaneMask bit = LaneMask{1} << lane;
    if ((kept->has_pending & bit) != 0) {
      cluster->threads.acquire(warp, bit, kept->pending[static_cast<std::size_t>(lane)]);
      kept->has_pending &= ~bit;
    }
    kept->before[static_cast<std::size_t>(lane)] = cluster->threads.release(warp, bit);
    kept->has_before |= bit;
  }
}

void RaceChecker::proxy_fence(const Exec& exec, LaneMask lanes, Space) {
  if (Cluster* cluster = of(exec.cta)) cluster->threads.fence_proxy(warp_of(exec.cta, exec.warp.index), lanes);
}

// --- barriers --------------------------------------------------------------------------------------------------------

void RaceChecker::synchronise(const Exec& exec, LaneMask lanes, std::string_view how) {
  if (Cluster* cluster = of(exec.cta))
    cluster->threads.synchronised(warp_of(exec.cta, exec.warp.index), lanes, exec.fragment.pc, how);
}

void RaceChecker::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  auto& gathered = cluster->barriers[static_cast<std::size_t>(exec.cta.cluster_rank)];
  View& view = gathered.try_emplace(barrier, View(cluster->threads.warps())).first->second;
  view.join(cluster->threads.release(warp_of(exec.cta, exec.warp.index), lanes));
  synchronise(exec, lanes, "barrier");
}

void RaceChecker::barrier_done(Launch&, const Cta& cta, int barrier, std::span<const LaneMask>,
                               std::span<const LaneMask> waiting) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr) return;
  auto& gathered = cluster->barriers[static_cast<std::size_t>(cta.cluster_rank)];
  const auto place = gathered.find(barrier);
  if (place == gathered.end()) return;
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    if (waiting[w] != 0) cluster->threads.acquire(warp_of(cta, static_cast<int>(w)), waiting[w], place->second);
  }
  gathered.erase(place);
}

void RaceChecker::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr || order == Order::relaxed) return;
  if (cluster->cluster_gathering == View()) cluster->cluster_gathering = View(cluster->threads.warps());
  cluster->cluster_gathering.join(cluster->threads.release(warp_of(exec.cta, exec.warp.index), lanes));
}

void RaceChecker::cluster_wait(const Exec& exec, LaneMask lanes, Order order) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr || order == Order::relaxed || cluster->cluster_gathering == View()) return;
  // Everyone has arrived when anyone passes, so what has been gathered is whole.
  cluster->threads.acquire(warp_of(exec.cta, exec.warp.index), lanes, cluster->cluster_gathering);
  synchronise(exec, lanes, "cluster barrier");
}

void RaceChecker::warp_barrier(const Exec& exec, LaneMask lanes) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  cluster->threads.acquire(warp, lanes, cluster->threads.release(warp, lanes));
  synchronise(exec, lanes, "warp barrier");
}

void RaceChecker::collective(const Exec& exec, const Op&, LaneMask lanes) {
  if (!options_.collectives_order) return;
  if (Cluster* cluster = of(exec.cta)) {
    const int warp = warp_of(exec.cta, exec.warp.index);
    cluster->threads.acquire(warp, lanes, cluster->threads.release(warp, lanes));
  }
}

void RaceChecker::mbarrier(Launch&, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order order, Scope) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr) return;
  const auto [place, fresh] = cluster->objects.try_emplace(
      address, Cluster::Object{View(cluster->threads.warps()), View(cluster->threads.warps())});
  Cluster::Object& object = place->second;
  if (event == MbarrierEvent::phase_done) {
    object.done.join(object.collecting);
    return;
  }
  if (exec == nullptr) return;
  const int warp = warp_of(exec->cta, exec->warp.index);
  const bool begins_or_ends = event == MbarrierEvent::init || event == MbarrierEvent::inval;
  // The object itself is written by init and inval alone; everything else may come in any order behind.
  std::array<std::uint64_t, kLanes> at;
  at.fill(address);
  Toucher who{.exec = *exec, .cluster = *cluster, .warp = warp};
  Mark mark{.actor = base_of_warp(warp), .step = cluster->threads.step(warp), .pc = exec->fragment.pc};
  mark.write = begins_or_ends;
  mark.strong = !begins_or_ends;
  // Bytes of an object are not data: no fence of proxies is asked for.
  mark.generic = false;
  touch_lanes(who, mark, 8, lanes, at);
  if (event == MbarrierEvent::arrive && order != Order::relaxed) {
    object.collecting.join(cluster->threads.release(warp, lanes));
  } else if (event == MbarrierEvent::wait_true && order != Order::relaxed) {
    cluster->threads.acquire(warp, lanes, object.done);
    synchronise(*exec, lanes, "mbarrier wait");
  }
}

// --- engines ---------------------------------------------------------------------------------------------------------

void RaceChecker::async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                              std::span<const ByteRange> writes) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index), lane = op.thread % kLanes;
  Toucher who{.exec = exec, .cluster = *cluster, .warp = warp, .lane = lane, .async_proxy = is_async_proxy(op.kind)};
  Mark mark{.pc = op.pc, .issuer = static_cast<std::uint16_t>(op.thread), .generic = !who.async_proxy};
  if (op.kind == AsyncKind::cp_async) {
    // All lanes of one instruction share a number; a copy is a mark of its lane.
    auto& last = cluster->copying[warp];
    const std::pair now{exec.launch.step, op.pc};
    if (last != now || cluster->threads.copies(warp) == 0) (void)cluster->threads.begin_copies(warp);
    last = now;
    const Step step = cluster->threads.copies(warp);
    cluster->copies[base_of_warp(warp) + static_cast<ActorKey>(lane)].emplace_back(op.number, step);
    mark.actor = kCopiesOf + base_of_warp(warp);
    mark.step = step;
    for (const ByteRange& range : writes) {
      if (range.space != Space::shared || range.bytes > kChunkBytes) continue;
      std::array<std::uint64_t, kLanes> at{};
      at[static_cast<std::size_t>(lane)] = range.address;
      mark.write = true;
      touch_lanes(who, mark, static_cast<int>(range.bytes), LaneMask{1} << lane, at);
    }
    return;
  }
  const std::uint64_t owner =
      op.mbarrier != 0 ? op.mbarrier
                       : (op.kind == AsyncKind::wgmma ? static_cast<std::uint64_t>(warp / 4)
                                                      : base_of_warp(warp) + static_cast<std::uint64_t>(lane));
  mark.actor = cluster->engine({op.kind, owner});
  mark.step = op.number;
  for (const ByteRange& range : reads) touch_range(who, mark, range);
  mark.write = true;
  for (const ByteRange& range : writes) touch_range(who, mark, range);
}

void RaceChecker::async_moves(Launch&, const Cta& cta, const AsyncOp& op, std::span<const ByteRange>,
                              std::span<const ByteRange>) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr || op.mbarrier == 0) return;
  // The phase that these bytes end hands on that they are there: on every barrier they are credited to.
  const ActorKey engine = cluster->engine({op.kind, op.mbarrier});
  for (auto& [address, object] : cluster->objects) {
    if (offset_of(address) == offset_of(op.mbarrier)) object.collecting.ordered.raise(engine, op.number);
  }
}

void RaceChecker::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool,
                             std::span<const std::uint64_t, kLanes> last) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t end = last[static_cast<std::size_t>(lane)];
    const ActorKey thread = base_of_warp(warp) + static_cast<ActorKey>(lane);
    if (kind == AsyncKind::cp_async) {
      auto& issued = cluster->copies[thread];
      while (!issued.empty() && issued.front().first < end) issued.pop_front();
      // A lane that has none left has waited for all there were.
      const Step up_to = issued.empty() ? cluster->threads.copies(warp) : issued.front().second - 1;
      cluster->threads.waited_for_copies(warp, lane, up_to);
      continue;
    }
    if (end == 0) continue;
    for (std::size_t e = 0; e < cluster->engines.size(); ++e) {
      const Engine& engine = cluster->engines[e];
      const bool own = kind == AsyncKind::wgmma
                           ? engine.kind == AsyncKind::wgmma && engine.owner == static_cast<std::uint64_t>(warp / 4)
                           : engine.kind != AsyncKind::wgmma && engine.owner == thread;
      if (own) cluster->threads.waited(warp, lane, kEngines + static_cast<ActorKey>(e), end - 1);
    }
  }
  synchronise(exec, lanes, "wait for its copies");
}

void RaceChecker::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  const auto [place, fresh] = cluster->objects.try_emplace(
      mbarrier, Cluster::Object{View(cluster->threads.warps()), View(cluster->threads.warps())});
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const ActorKey thread = base_of_warp(warp) + static_cast<ActorKey>(std::countr_zero(left));
    place->second.collecting.ordered.raise(kCopiesOf + thread, cluster->threads.copies(warp));
  }
}

}  // namespace kvscope::ptx
