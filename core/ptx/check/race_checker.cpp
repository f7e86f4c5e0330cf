#include "core/ptx/check/race_checker.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

#include "core/ptx/check/race_cluster.h"
#include "core/ptx/machine/access.h"
#include "core/ptx/machine/state.h"
#include "core/ptx/machine/windows.h"

namespace kvscope::ptx {
namespace {

ChunkBytes chunk_bytes(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t begin = address % kChunkBytes;
  const std::uint64_t all = (std::uint64_t{1} << bytes) - 1;
  return static_cast<ChunkBytes>(all << begin);
}

}  // namespace

RaceChecker::RaceChecker(RaceOptions options) : options_(options) {}
RaceChecker::~RaceChecker() = default;

int RaceChecker::warp_of(const Cta& cta, int warp) const {
  return cta.cluster_rank * warps_ + warp;
}

RaceChecker::Cluster* RaceChecker::of(const Cta& cta) {
  const auto place = clusters_.find(cta.index);
  return place == clusters_.end() ? nullptr : place->second.get();
}

void RaceChecker::launch_begins(Launch& launch) {
  const auto& block = launch.config.block;
  warps_ = static_cast<std::int32_t>((block[0] * block[1] * block[2] + kLanes - 1) / kLanes);
  clusters_.clear();
  told_.clear();
  suspects_.clear();
}

void RaceChecker::cta_begins(Launch& launch, const Cta& cta) {
  std::shared_ptr<Cluster> cluster;
  const auto ctas = static_cast<int>(cluster_size(launch));
  if (ctas > 1) {
    for (const Cta& other : launch.ctas) {
      const auto place = clusters_.find(other.index);
      bool same = place != clusters_.end();
      for (std::size_t i = 0; i < 3 && same; ++i) {
        same = other.at[i] / launch.config.cluster[i] == cta.at[i] / launch.config.cluster[i];
      }
      if (same) cluster = place->second;
    }
  }
  if (cluster == nullptr) cluster = std::make_shared<Cluster>(ctas * warps_, ctas);
  cluster->shadows[static_cast<std::size_t>(cta.cluster_rank)].emplace(kSharedBase,
                                                                       static_cast<std::int64_t>(cta.shared.size()));
  for (const Warp& warp : cta.warps) cluster->threads.set_live(warp_of(cta, warp.index), ~warp.exited);
  clusters_[cta.index] = std::move(cluster);
}

void RaceChecker::cta_ends(Launch&, const Cta& cta) {
  clusters_.erase(cta.index);
}

void RaceChecker::exit(const Exec& exec, LaneMask lanes) {
  if (Cluster* cluster = of(exec.cta)) cluster->threads.leave(warp_of(exec.cta, exec.warp.index), lanes);
}

// --- accesses --------------------------------------------------------------------------------------------------------

namespace {

// Is what the mark says ordered before what lane `lane` of `warp` does now? `other`: the first of its lanes that is not.
bool is_ordered(const ThreadViews& threads, const Mark& before, ChunkBytes bytes, int warp, int lane, int& other) {
  other = -1;
  if (before.lanes == 0) return threads.ordered(warp, lane, before.actor, before.step);
  const int their_warp = static_cast<int>(thread_behind(before.actor)) / kLanes;
  const Clock& known = threads.view(warp, lane).ordered;
  if (is_copy(before.actor) ? known.covers_copies(their_warp, before.step) : known.covers_warp(their_warp, before.step))
    return true;
  int n = 0;
  for (LaneMask left = before.lanes; left != 0; left &= left - 1, ++n) {
    if ((before.bytes_of(n) & bytes) == 0) continue;
    const int theirs = std::countr_zero(left);
    if (threads.ordered(warp, lane, before.actor + static_cast<ActorKey>(theirs), before.step)) continue;
    other = theirs;
    return false;
  }
  return true;
}

}  // namespace

void RaceChecker::touch(Toucher& who, Shadow& shadow, std::uint64_t address, const Mark& mark) {
  const ThreadViews& threads = who.cluster.threads;
  ChunkBytes superseded = 0;
  for (Mark& before : shadow.marks(address)) {
    const auto common = static_cast<ChunkBytes>(before.bytes & mark.bytes);
    if (common == 0) continue;
    const bool both_read = !before.write && !mark.write;
    const bool harmless =
        both_read || (before.strong && mark.strong) || (mark.lanes == 0 && mark.actor == before.actor);
    if (before.same_places(mark) || (harmless && !both_read)) {
      if (both_read) before.bytes = static_cast<ChunkBytes>(before.bytes & ~common);
    } else if (mark.lanes == 0) {
      int other = -1;
      const bool ordered = is_ordered(threads, before, common, who.warp, who.lane, other);
      if (both_read) {
        if (ordered) before.bytes = static_cast<ChunkBytes>(before.bytes & ~common);
      } else if (!ordered) {
        conflict(who, address, before, mark, who.lane, other);
      }
    } else {
      bool all = true;
      int n = 0;
      const bool uniform = threads.uniform(who.warp) && before.lanes != 0;
      for (LaneMask left = mark.lanes; left != 0; left &= left - 1, ++n) {
        const auto theirs = static_cast<ChunkBytes>(mark.bytes_of(n) & common);
        if (theirs == 0) continue;
        int other = -1;
        const int lane = std::countr_zero(left);
        if (is_ordered(threads, before, theirs, who.warp, lane, other)) {
          const int their_warp = static_cast<int>(thread_behind(before.actor)) / kLanes;
          const Clock& known = threads.view(who.warp, lane).ordered;
          // What the whole warp knows of that whole warp needs no look at the other lanes.
          if (uniform && !is_copy(before.actor) && known.covers_warp(their_warp, before.step)) break;
          continue;
        }
        all = false;
        if (both_read) break;
        conflict(who, address, before, mark, lane, other);
        break;
      }
      if (both_read && all) before.bytes = static_cast<ChunkBytes>(before.bytes & ~common);
    }
    if (who.async_proxy && options_.proxy && before.write && before.generic) {
      int other = before.lanes == 0 ? -1 : 0, n = 0;
      bool fenced = true;
      for (LaneMask left = before.lanes; left != 0 && fenced; left &= left - 1, ++n) {
        if ((before.bytes_of(n) & common) == 0) continue;
        other = std::countr_zero(left);
        fenced = threads.fenced(who.warp, who.lane, before.actor + static_cast<ActorKey>(other), before.step);
      }
      if (!fenced) missing_fence(who, address, before, mark, other);
    }
    if (before.bytes == 0) superseded = 1;
  }
  if (mark.write) {
    shadow.erase(address, mark.bytes);
  } else if (superseded != 0) {
    shadow.erase(address, 0);
  }
  shadow.add(address, mark);
}

void RaceChecker::touch_lanes(Toucher& who, Mark like, int bytes, LaneMask lanes,
                              std::span<const std::uint64_t, kLanes> addresses) {
  // More than a chunk a lane: one after the other.
  for (int part = 0; part < std::max(1, bytes / static_cast<int>(kChunkBytes)); ++part) {
    const int piece = std::min(bytes, static_cast<int>(kChunkBytes));
    const auto begin = static_cast<std::uint64_t>(part) * kChunkBytes;
    LaneMask left = lanes;
    while (left != 0) {
      const int lead = std::countr_zero(left);
      const std::uint64_t address = addresses[static_cast<std::size_t>(lead)] + begin;
      Mark mark = like;
      mark.lanes = LaneMask{1} << lead;
      mark.bytes = chunk_bytes(address, piece);
      mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
      mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(piece)));
      left &= left - 1;
      // Lanes that go on where the last one ended, or all at one place, are one mark.
      int count = 1;
      bool together = false;
      while (left != 0) {
        const int lane = std::countr_zero(left);
        const std::uint64_t next = addresses[static_cast<std::size_t>(lane)] + begin;
        const bool behind = !together && next == address + static_cast<std::uint64_t>(count * piece) &&
                            next / kChunkBytes == address / kChunkBytes;
        const bool beside = (together || count == 1) && next == address;
        if (!behind && !beside) break;
        together = beside;
        if (together) mark.shift = Mark::kEveryLane;
        mark.lanes |= LaneMask{1} << lane;
        mark.bytes = static_cast<ChunkBytes>(mark.bytes | chunk_bytes(next, piece));
        ++count;
        left &= left - 1;
      }
      const std::uint64_t rank = rank_of(address), offset = offset_of(address);
      if (rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank]) continue;
      if (Shadow& shadow = *who.cluster.shadows[rank]; shadow.holds(offset)) touch(who, shadow, offset, mark);
    }
  }
}

void RaceChecker::touch_range(Toucher& who, Mark like, const ByteRange& range) {
  if (range.space != Space::shared) return;
  const std::uint64_t rank = rank_of(range.address);
  if (rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank]) return;
  Shadow& shadow = *who.cluster.shadows[rank];
  std::uint64_t at = offset_of(range.address);
  const std::uint64_t end = at + static_cast<std::uint64_t>(range.bytes);
  while (at < end) {
    const std::uint64_t next = std::min(end, (at / kChunkBytes + 1) * kChunkBytes);
    like.bytes = chunk_bytes(at, static_cast<std::int64_t>(next - at));
    if (shadow.holds(at)) touch(who, shadow, at, like);
    at = next;
  }
}

void RaceChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int warp = warp_of(exec.cta, exec.warp.index);
  ThreadViews& threads = cluster->threads;
  const bool writes = access.kind != AccessKind::load, reads = access.kind != AccessKind::store;
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  Cluster::WarpFences* fences = nullptr;
  if (auto& kept = cluster->fences[static_cast<std::size_t>(warp)]; kept) fences = &*kept;
  const auto each_address = [&](auto&& body) {
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      body(lane, access.addresses[static_cast<std::size_t>(lane)]);
    }
  };
  if (access.space == Space::shared) {
    Toucher who{.exec = exec, .cluster = *cluster, .warp = warp};
    Mark mark{.actor = base_of_warp(warp),
              .step = threads.step(warp),
              .pc = pc_of(exec, op),
              .write = writes,
              .strong = strong};
    touch_lanes(who, mark, access.matrix_rows ? 16 : access.bytes, access.lanes, access.addresses);
  }
  if (!strong) return;
  // Publishing first: an atomic that acquires and releases publishes what it knew before.
  if (writes) {
    each_address([&](int lane, std::uint64_t address) {
      const LaneMask bit = LaneMask{1} << lane;
      if (access.order == Order::release || access.order == Order::acq_rel || access.order == Order::sc) {
        View view = threads.release(warp, bit);
        const auto [flag, fresh] = cluster->flags.try_emplace(address, Cluster::Flag{View(threads.warps())});
        if (access.kind == AccessKind::atomic) view.join(flag->second.published);
        flag->second.published = std::move(view);
      } else if (fences != nullptr && (fences->has_before & bit) != 0) {
        const auto [flag, fresh] = cluster->flags.try_emplace(address, Cluster::Flag{View(threads.warps())});
        if (access.kind != AccessKind::atomic) flag->second.published = View(threads.warps());
        flag->second.published.join(fences->before[static_cast<std::size_t>(lane)]);
      }
    });
  }
  if (reads && !cluster->flags.empty()) {
    each_address([&](int lane, std::uint64_t address) {
      const auto flag = cluster->flags.find(address);
      if (flag == cluster->flags.end()) return;
      const LaneMask bit = LaneMask{1} << lane;
      if (access.order == Order::acquire || access.order == Order::acq_rel || access.order == Order::sc) {
        threads.acquire(warp, bit, flag->second.published);
        threads.synchronised(warp, bit, pc_of(exec, op), "acquire");
        return;
      }
      auto& kept = cluster->fences[static_cast<std::size_t>(warp)];
      if (!kept) kept.emplace();
      View& pending = kept->pending[static_cast<std::size_t>(lane)];
      if ((kept->has_pending & bit) == 0) pending = View(threads.warps());
      pending.join(flag->second.published);
      kept->has_pending |= bit;
    });
  }
}

}  // namespace kvscope::ptx
