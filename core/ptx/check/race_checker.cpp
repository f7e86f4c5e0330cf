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
// `self`: who touches them now, which is not held against itself.
int unordered_lane(const ThreadViews& threads, const Mark& before, ChunkBytes bytes, int warp, int lane,
                   ActorKey self) {
  int n = 0;
  for (LaneMask left = before.lanes; left != 0; left &= left - 1, ++n) {
    if ((before.bytes_of(n) & bytes) == 0) continue;
    const int theirs = std::countr_zero(left);
    const ActorKey actor = before.actor + static_cast<ActorKey>(theirs);
    if (actor != self && !threads.ordered(warp, lane, actor, before.step)) return theirs;
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

// Does the toucher (its whole warp, when lanes touch) stand behind all that the mark says? Cheap; false: look closer.
inline bool RaceChecker::covered(Toucher& who, const Mark& before) {
  if (who.known == nullptr) return false;
  if (before.lanes != 0) {
    const int warp = warp_of_key(before.actor);
    return is_copy(before.actor) ? who.known->covers_copies(warp, before.step)
                                 : who.known->covers_warp(warp, before.step);
  }
  if (before.actor == who.behind && before.step <= who.behind_step) return true;
  if (!who.known->covers(before.actor, before.step)) return false;
  who.behind = before.actor;
  who.behind_step = before.step;
  return true;
}

inline bool RaceChecker::needs_fence(const Toucher& who, const Mark& before, const Mark& mark) const {
  return who.async_proxy && before.generic && options_.proxy &&
         (before.write || (options_.strict_war_proxy && mark.write));
}

void RaceChecker::check_proxy(Toucher& who, const Piece& piece, const Mark& before) {
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

// One mark against one that was there before.
void RaceChecker::check(Toucher& who, const Piece& piece, const Mark& before, ChunkBytes common) {
  const ThreadViews& threads = who.cluster.threads;
  const Mark& mark = piece.mark;
  if (needs_fence(who, before, mark)) check_proxy(who, piece, before);
  if ((before.strong && mark.strong) || before.meets_itself(mark) || covered(who, before)) return;
  if (mark.lanes == 0) {
    if (before.actor == mark.actor) return;
    if (before.lanes == 0) {
      if (!threads.ordered(who.warp, who.lane, before.actor, before.step))
        conflict(who, piece.address, before, mark, who.lane, -1);
    } else if (const int other = unordered_lane(threads, before, common, who.warp, who.lane, mark.actor); other >= 0) {
      conflict(who, piece.address, before, mark, who.lane, other);
    }
    return;
  }
  int n = 0;
  for (LaneMask left = mark.lanes; left != 0; left &= left - 1, ++n) {
    const auto theirs = static_cast<ChunkBytes>(mark.bytes_of(n) & common);
    if (theirs == 0) continue;
    const int lane = std::countr_zero(left);
    int other = -1;
    const bool unordered = before.lanes == 0 ? !threads.ordered(who.warp, lane, before.actor, before.step)
                                             : (other = unordered_lane(threads, before, theirs, who.warp, lane,
                                                                       mark.actor + static_cast<ActorKey>(lane))) >= 0;
    if (!unordered) continue;
    conflict(who, piece.address, before, mark, lane, other);
    return;
  }
}

// Earlier reads of these bytes that happened before this one: who is behind this one is behind them.
void RaceChecker::forget_older_reads(Toucher& who, const Piece& piece) {
  bool some = false;
  for (Mark& before : piece.shadow->marks(piece.chunk)) {
    if (before.write || (before.bytes & ~piece.mark.bytes) != 0 || (piece.mark.strong && !before.strong)) continue;
    if (!covered(who, before)) continue;
    before.bytes = 0;
    some = true;
  }
  if (some) piece.shadow->drop_empty(piece.chunk);
}

// Everything before it that conflicts.
inline void RaceChecker::check_all(Toucher& who, const Piece& piece) {
  for (const Mark& before : piece.shadow->marks(piece.chunk)) {
    const auto common = static_cast<ChunkBytes>(before.bytes & piece.mark.bytes);
    if (common == 0 || (!before.write && !piece.mark.write)) continue;
    if (covered(who, before) && !needs_fence(who, before, piece.mark)) continue;
    check(who, piece, before, common);
  }
}

void RaceChecker::read(Toucher& who, const Piece& piece) {
  check_all(who, piece);
  for (Mark& before : piece.shadow->marks(piece.chunk)) {
    // The same lanes at the same bytes: the last time is the one that matters. What was not strong stays beside what
    // is: a strong write behind it would be a race with it alone.
    if (before.write || (!before.same_places(piece.mark) || (before.bytes & ~piece.mark.bytes) != 0) ||
        (piece.mark.strong && !before.strong))
      continue;
    before = piece.mark;
    return;
  }
  if (piece.shadow->crowded(piece.chunk)) forget_older_reads(who, piece);
  piece.shadow->read(piece.chunk, piece.mark);
}

// Writes are looked at before any is made: lanes of one instruction are not held against each other here.
void RaceChecker::write_pieces(Toucher& who) {
  for (const Piece& piece : pieces_) check_all(who, piece);
  for (const Piece& piece : pieces_) piece.shadow->write(piece.chunk, piece.mark);
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
      if (!shadow.holds(offset)) continue;
      const Piece piece{&shadow, offset, address, mark};
      if (mark.write) {
        pieces_.push_back(piece);
      } else {
        read(who, piece);
      }
    }
  }
  write_pieces(who);
}

void RaceChecker::touch_range(Toucher& who, Mark like, const ByteRange& range) {
  if (range.space != Space::shared) return;
  const std::uint64_t rank = rank_of(range.address);
  if (rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank]) return;
  Shadow& shadow = *who.cluster.shadows[rank];
  std::uint64_t at = offset_of(range.address);
  const std::uint64_t end = at + static_cast<std::uint64_t>(range.bytes);
  Piece piece{&shadow, at, range.address, like};
  while (at < end) {
    const std::uint64_t next = std::min(end, (at / kChunkBytes + 1) * kChunkBytes);
    piece.chunk = at;
    piece.address = shared_address(rank, at);
    piece.mark.bytes = chunk_bytes(at, static_cast<std::int64_t>(next - at));
    at = next;
    if (!shadow.holds(piece.chunk)) continue;
    if (!like.write) {
      read(who, piece);
      continue;
    }
    check_all(who, piece);
    shadow.write(piece.chunk, piece.mark);
  }
}

void RaceChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  if (access.space == Space::shared) {
    const int warp = warp_of(exec.cta, exec.warp.index);
    Toucher who(exec, *cluster, warp, std::countr_zero(access.lanes));
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
