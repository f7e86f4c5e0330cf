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

// Of the lanes of `before` that touched these bytes, the first that is not ordered before `lane` of `warp`; -1: none.
int unordered_lane(const ThreadViews& threads, const Mark& before, ChunkBytes bytes, int warp, int lane) {
  int n = 0;
  for (LaneMask left = before.lanes; left != 0; left &= left - 1, ++n) {
    if ((before.bytes_of(n) & bytes) == 0) continue;
    const int theirs = std::countr_zero(left);
    if (!threads.ordered(warp, lane, before.actor + static_cast<ActorKey>(theirs), before.step)) return theirs;
  }
  return -1;
}

}  // namespace

RaceChecker::RaceChecker(RaceOptions options) : options_(options) {}
RaceChecker::~RaceChecker() = default;

int RaceChecker::warp_of(const Cta& cta, int warp) const {
  return cta.cluster_rank * warps_ + warp;
}

RaceChecker::Cluster* RaceChecker::of(const Cta& cta) {
  if (cta.index == last_cta_) return last_cluster_;
  const auto place = clusters_.find(cta.index);
  last_cta_ = cta.index;
  last_cluster_ = place == clusters_.end() ? nullptr : place->second.get();
  return last_cluster_;
}

void RaceChecker::launch_begins(Launch& launch) {
  const auto& block = launch.config.block;
  warps_ = static_cast<std::int32_t>((block[0] * block[1] * block[2] + kLanes - 1) / kLanes);
  clusters_.clear();
  last_cta_ = -1;
  told_.clear();
  suspects_.clear();
}

void RaceChecker::launch_ends(Launch&) {
  clusters_.clear();
  last_cta_ = -1;
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
  last_cta_ = -1;
}

void RaceChecker::cta_ends(Launch&, const Cta& cta) {
  clusters_.erase(cta.index);
  last_cta_ = -1;
}

void RaceChecker::exit(const Exec& exec, LaneMask lanes) {
  if (Cluster* cluster = of(exec.cta)) cluster->threads.leave(warp_of(exec.cta, exec.warp.index), lanes);
}

// --- one mark after the other ----------------------------------------------------------------------------------------

// Does the toucher's whole warp (of an engine: its issuer) stand behind all that the mark says? Cheap; false: look closer.
bool RaceChecker::covered(Toucher& who, const Mark& before) const {
  const ThreadViews& threads = who.cluster.threads;
  if (!threads.uniform(who.warp)) return false;
  const Clock& known = threads.view(who.warp, who.lane).ordered;
  if (before.lanes != 0) {
    const int warp = warp_of_key(before.actor);
    return is_copy(before.actor) ? known.covers_copies(warp, before.step) : known.covers_warp(warp, before.step);
  }
  if (before.actor == who.behind && before.step <= who.behind_step) return true;
  if (!known.covers(before.actor, before.step)) return false;
  who.behind = before.actor;
  who.behind_step = before.step;
  return true;
}

void RaceChecker::check_proxy(Toucher& who, const Piece& piece, const Mark& before) {
  if (!before.generic || !options_.proxy) return;
  if (!before.write && !(options_.strict_war_proxy && piece.mark.write)) return;
  const auto common = static_cast<ChunkBytes>(before.bytes & piece.mark.bytes);
  int n = 0;
  for (LaneMask left = before.lanes; left != 0; left &= left - 1, ++n) {
    if ((before.bytes_of(n) & common) == 0) continue;
    const int other = std::countr_zero(left);
    const ActorKey actor = before.actor + static_cast<ActorKey>(other);
    if (who.cluster.threads.fenced(who.warp, who.lane, actor, before.step)) continue;
    missing_fence(who, piece.address, before, piece.mark, other,
                  before.write
                      ? "ordinary stores must be followed by fence.proxy.async before the barrier"
                      : "ordinary loads must be followed by fence.proxy.async before the bytes are overwritten");
    return;
  }
}

void RaceChecker::check(Toucher& who, const Piece& piece) {
  const ThreadViews& threads = who.cluster.threads;
  const Mark& mark = piece.mark;
  for (const Mark& before : piece.shadow->marks(offset_of(piece.address))) {
    const auto common = static_cast<ChunkBytes>(before.bytes & mark.bytes);
    if (common == 0 || (!before.write && !mark.write)) continue;
    if (who.async_proxy) check_proxy(who, piece, before);
    if ((before.strong && mark.strong) || before.same_places(mark) || covered(who, before)) continue;
    if (mark.lanes == 0) {
      if (before.actor == mark.actor) continue;
      if (before.lanes == 0) {
        if (!threads.ordered(who.warp, who.lane, before.actor, before.step))
          conflict(who, piece.address, before, mark, who.lane, -1);
      } else if (const int other = unordered_lane(threads, before, common, who.warp, who.lane); other >= 0) {
        conflict(who, piece.address, before, mark, who.lane, other);
      }
      continue;
    }
    int n = 0;
    for (LaneMask left = mark.lanes; left != 0; left &= left - 1, ++n) {
      const auto theirs = static_cast<ChunkBytes>(mark.bytes_of(n) & common);
      if (theirs == 0) continue;
      const int lane = std::countr_zero(left);
      int other = -1;
      const bool unordered = before.lanes == 0 ? !threads.ordered(who.warp, lane, before.actor, before.step)
                                               : (other = unordered_lane(threads, before, theirs, who.warp, lane)) >= 0;
      if (!unordered) continue;
      conflict(who, piece.address, before, mark, lane, other);
      break;
    }
  }
}

// Earlier reads of these bytes that happened before this one: who is behind this one is behind them.
void RaceChecker::forget_older_reads(Toucher& who, const Piece& piece) {
  bool some = false;
  for (Mark& before : piece.shadow->marks(offset_of(piece.address))) {
    if (before.write || (before.bytes & ~piece.mark.bytes) != 0 || (piece.mark.strong && !before.strong)) continue;
    if (!covered(who, before)) continue;
    before.bytes = 0;
    some = true;
  }
  if (some) piece.shadow->drop_empty(offset_of(piece.address));
}

// All are looked at before any is made: lanes of one instruction are not held against each other here.
void RaceChecker::touch_pieces(Toucher& who) {
  for (const Piece& piece : pieces_) check(who, piece);
  for (const Piece& piece : pieces_) {
    if (piece.mark.write) {
      piece.shadow->write(offset_of(piece.address), piece.mark);
    } else {
      if (piece.shadow->crowded(offset_of(piece.address))) forget_older_reads(who, piece);
      piece.shadow->read(offset_of(piece.address), piece.mark);
    }
  }
  pieces_.clear();
}

void RaceChecker::touch_lanes(Toucher& who, Mark like, int bytes, LaneMask lanes,
                              std::span<const std::uint64_t, kLanes> addresses) {
  const int piece_bytes = std::min(bytes, static_cast<int>(kChunkBytes));
  like.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(piece_bytes)));
  // More than a chunk a lane: one after the other.
  for (int part = 0; part < bytes; part += piece_bytes) {
    LaneMask left = lanes;
    while (left != 0) {
      const int lead = std::countr_zero(left);
      const std::uint64_t address = addresses[static_cast<std::size_t>(lead)] + static_cast<std::uint64_t>(part);
      Mark mark = like;
      mark.lanes = LaneMask{1} << lead;
      mark.bytes = chunk_bytes(address, piece_bytes);
      mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
      left &= left - 1;
      // Lanes that go on where the last one ended, or all at one place, are one mark.
      std::uint64_t next = address + static_cast<std::uint64_t>(piece_bytes);
      bool together = false;
      for (; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        const std::uint64_t at = addresses[static_cast<std::size_t>(lane)] + static_cast<std::uint64_t>(part);
        if (at == address && (together || std::has_single_bit(mark.lanes))) {
          together = true;
          mark.shift = Mark::kEveryLane;
        } else if (at == next && !together && at / kChunkBytes == address / kChunkBytes) {
          mark.bytes = static_cast<ChunkBytes>(mark.bytes | chunk_bytes(at, piece_bytes));
          next += static_cast<std::uint64_t>(piece_bytes);
        } else {
          break;
        }
        mark.lanes |= LaneMask{1} << lane;
      }
      const std::uint64_t rank = rank_of(address), offset = offset_of(address);
      if (rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank]) continue;
      Shadow& shadow = *who.cluster.shadows[rank];
      if (shadow.holds(offset)) pieces_.push_back({&shadow, address, mark});
    }
  }
  touch_pieces(who);
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
    if (shadow.holds(at)) pieces_.push_back({&shadow, shared_address(rank, at), like});
    at = next;
  }
  touch_pieces(who);
}

void RaceChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  if (access.space == Space::shared) {
    const int warp = warp_of(exec.cta, exec.warp.index);
    Toucher who{.exec = exec, .cluster = *cluster, .warp = warp, .lane = std::countr_zero(access.lanes)};
    const Mark mark{.actor = base_of_warp(warp),
                    .step = cluster->threads.act(warp, access.lanes),
                    .pc = pc_of(exec, op),
                    .write = access.kind != AccessKind::load,
                    .strong = strong};
    touch_lanes(who, mark, access.matrix_rows ? 16 : access.bytes, access.lanes, access.addresses);
  }
  if (strong || (access.kind != AccessKind::load && !cluster->flags.empty())) {
    order_by_flags(exec, access, *cluster);
  }
}

}  // namespace kvscope::ptx
