#include "gpu/virtual/check/race_checker.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

// The first lane of `before` that touched these bytes and is not ordered before `lane` of `warp`; -1 if there is none.
// `self`: the actor that touches them now, which does not conflict with itself.
int unordered_lane(const WarpViews& warp, const Mark& before, ChunkBytes bytes, int lane, ActorKey self) {
  int n = 0;
  for (LaneMask left = before.lanes; left != 0; left &= left - 1, ++n) {
    if ((before.bytes_of(n) & bytes) == 0) continue;
    const int theirs = std::countr_zero(left);
    const ActorKey actor = before.actor + static_cast<ActorKey>(theirs);
    if (actor != self && !warp.is_ordered(lane, actor, before.step)) return theirs;
  }
  return -1;
}

}  // namespace

RaceChecker::RaceChecker(RaceOptions options) : OrderMonitor(options.collectives_order), options_(options) {}
RaceChecker::~RaceChecker() = default;

RaceChecker::Cluster* RaceChecker::of(const Cta& cta) {
  if (cta.index == last_cta_) return last_cluster_;
  const auto place = clusters_.find(cta.index);
  last_cta_ = cta.index;
  last_cluster_ = place == clusters_.end() ? nullptr : place->second.get();
  return last_cluster_;
}

HappensBefore* RaceChecker::order_of(const Cta& cta) {
  Cluster* cluster = of(cta);
  return cluster == nullptr ? nullptr : &cluster->order;
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
  const auto ctas = static_cast<std::size_t>(cluster_size(launch));
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
  if (cluster == nullptr) cluster = std::make_shared<Cluster>(launch, ctas);
  cluster->shadows[static_cast<std::size_t>(cta.cluster_rank)].emplace(kSharedBase,
                                                                       static_cast<std::int64_t>(cta.shared.size()));
  PendingReads& pending = cluster->pending[static_cast<std::size_t>(cta.cluster_rank)];
  if (spare_.empty()) {
    pending = {};
  } else {
    pending = std::move(spare_.back());
    spare_.pop_back();
  }
  cluster->rows[static_cast<std::size_t>(cta.cluster_rank)] = {};
  cluster->past_behind[static_cast<std::size_t>(cta.cluster_rank)].clear();
  cluster->order.begin(cta);
  clusters_[cta.index] = std::move(cluster);
  last_cta_ = -1;
}

void RaceChecker::cta_ends(Launch&, const Cta& cta) {
  if (Cluster* cluster = of(cta); cluster != nullptr && cluster->pending.size() == 1) {
    cluster->pending.front().reset();
    spare_.push_back(std::move(cluster->pending.front()));
  }
  clusters_.erase(cta.index);
  last_cta_ = -1;
}

void RaceChecker::proxy_fence(const Exec& exec, LaneMask lanes, Space space) {
  if (space == Space::global) return;  // only shared memory is watched
  if (Cluster* cluster = of(exec.cta)) cluster->order.warp(exec).fence_all(lanes);
}

// --- mark against mark ----------------------------------------------------------------------------------------

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
    if (who.warp.is_fenced(who.lane, actor, before.step)) continue;
    missing_fence(who, piece.address, before, piece.mark, other,
                  before.write
                      ? "fence.proxy.async is missing between the ordinary stores and this access: in each thread "
                        "that stored, before the barrier, or in the issuing thread, after it"
                      : "ordinary loads must be followed by fence.proxy.async before the bytes are overwritten");
    return;
  }
}

// Checks a new mark against an earlier one.
void RaceChecker::check(Toucher& who, const Piece& piece, const Mark& before, ChunkBytes common) {
  const Mark& mark = piece.mark;
  if (needs_fence(who, before, mark)) check_proxy(who, piece, before);
  if ((before.strong && mark.strong) || before.meets_itself(mark) || covered(who, before)) return;
  if (mark.lanes == 0) {
    if (before.actor == mark.actor) return;
    if (before.lanes == 0) {
      if (!who.warp.is_ordered(who.lane, before.actor, before.step))
        conflict(who, piece.address, before, mark, who.lane, -1);
    } else if (const int other = unordered_lane(who.warp, before, common, who.lane, mark.actor); other >= 0) {
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
    const bool unordered =
        before.lanes == 0
            ? !who.warp.is_ordered(lane, before.actor, before.step)
            : (other = unordered_lane(who.warp, before, theirs, lane, mark.actor + static_cast<ActorKey>(lane))) >= 0;
    if (!unordered) continue;
    conflict(who, piece.address, before, mark, lane, other);
    return;
  }
}

// Checks a new mark against all earlier ones of its chunk.
void RaceChecker::check_all(Toucher& who, const Piece& piece) {
  if (const Mark* only = piece.shadow->alone(piece.chunk)) {
    if (only->bytes == 0 || (covered(who, *only) && !needs_fence(who, *only, piece.mark))) return;
  }
  for (const Mark& before : piece.mark.write ? piece.shadow->marks(piece.chunk) : piece.shadow->writes(piece.chunk)) {
    const auto common = static_cast<ChunkBytes>(before.bytes & piece.mark.bytes);
    if (common == 0 || (!before.write && !piece.mark.write)) continue;
    if (covered(who, before) && !needs_fence(who, before, piece.mark)) continue;
    check(who, piece, before, common);
  }
}

// All pieces are checked before any is written: lanes of one instruction do not conflict here.
void RaceChecker::write_pieces(Toucher& who) {
  for (std::size_t i = 0; i < pieces_.size();) {
    const std::uint64_t rank = rank_of(pieces_[i].address), first = pieces_[i].shadow->first_address();
    Regions regions;
    bool whole = true;
    for (; i < pieces_.size() && rank_of(pieces_[i].address) == rank; ++i) {
      regions.add(pieces_[i].chunk - first, pieces_[i].chunk - first);
      whole = whole && pieces_[i].mark.bytes == Shadow::kWholeChunk;
    }
    meet_reads(who, rank, regions, whole);
  }
  for (const Piece& piece : pieces_) check_all(who, piece);
  for (const Piece& piece : pieces_) {
    piece.shadow->write(piece.chunk, piece.mark, who.cluster.pending[rank_of(piece.address)].now());
  }
  pieces_.clear();
}

// Lanes that each write another chunk, all of it or, in ascending order, a part: a row, or a column of a tile. Returns the lanes whose earlier
// accesses have to be looked at more closely: all of them if the lanes are not like this.
LaneMask RaceChecker::write_far_lanes(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                                      std::span<const std::uint64_t, kLanes> addresses) {
  const std::uint64_t rank = rank_of(addresses[0]);
  if (lanes != kAllLanes || bytes > kChunkBytes || rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank])
    return lanes;
  const bool whole = bytes == kChunkBytes;
  if (whole ? lane_loops().any_equal(addresses.data())
            : !lane_loops().apart(addresses.data(), static_cast<std::uint64_t>(kChunkBytes)))
    return lanes;
  Shadow& shadow = *who.cluster.shadows[rank];
  LaneOffsets offsets;
  const std::uint64_t bits =
      lane_loops().offsets(addresses.data(), shared_address(rank, shadow.first_address()), offsets.data());
  const LaneExtent extent = lane_loops().extent(offsets.data());
  const auto high = static_cast<std::uint64_t>(extent.high);
  if (bits >= shadow.limit() || !shadow.holds(shadow.first_address() + high) || (whole && bits % kChunkBytes != 0))
    return lanes;
  if (!who.cluster.pending[rank].empty() || !who.cluster.rows[rank].empty()) {
    Regions regions;
    for (const std::int32_t offset : offsets)
      regions.add(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(offset));
    meet_reads(who, rank, regions, whole);
  }
  const auto is_before = [&](const Mark& before) { return covered(who, before); };
  if (whole) return shadow.write_lane_chunks(like, offsets.data(), extent, who.cluster.pending[rank].now(), is_before);
  return shadow.write_lanes(like, bytes, lanes, offsets.data(), is_before);
}

void RaceChecker::touch_writes(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                               std::span<const std::uint64_t, kLanes> addresses) {
  if (stays_in_rows(who, like, bytes, lanes, addresses)) return;
  lanes = write_far_lanes(who, like, bytes, lanes, addresses);
  if (lanes == 0) return;
  each_piece(who.cluster, like, bytes, lanes, addresses, [this](const Piece& piece) { pieces_.push_back(piece); });
  write_pieces(who);
}

// One lane writes bytes of one chunk, which `mark` has.
void RaceChecker::touch_write(Toucher& who, const Mark& mark, std::uint64_t address) {
  const std::uint64_t rank = rank_of(address), offset = offset_of(address);
  if (rank >= who.cluster.shadows.size() || !who.cluster.shadows[rank] || !who.cluster.shadows[rank]->holds(offset))
    return;
  Shadow& shadow = *who.cluster.shadows[rank];
  const PendingReads& pending = who.cluster.pending[rank];
  if (!pending.empty() || !who.cluster.rows[rank].empty()) {
    Regions regions;
    regions.add(offset - shadow.first_address(), offset - shadow.first_address());
    meet_reads(who, rank, regions, mark.bytes == Shadow::kWholeChunk);
  }
  check_all(who, {&shadow, offset, address, mark});
  shadow.write(offset, mark, pending.now());
}

// An engine reads or overwrites these ranges.
void RaceChecker::touch_ranges(Toucher& who, const Mark& like, ByteRanges ranges) {
  const auto rank_at = [&](std::size_t i) { return rank_of(ranges[i].address); };
  const auto is_there = [&](std::size_t i) {
    return ranges[i].space == Space::shared && ranges[i].bytes > 0 && rank_at(i) < who.cluster.shadows.size() &&
           who.cluster.shadows[rank_at(i)];
  };
  for (std::size_t i = 0; i < ranges.size();) {
    if (!is_there(i)) {
      ++i;
      continue;
    }
    // Consecutive ranges of one window together.
    const std::uint64_t rank = rank_at(i);
    Shadow& shadow = *who.cluster.shadows[rank];
    Regions regions;
    bool whole = like.write;
    std::size_t end = i;
    for (; end < ranges.size() && is_there(end) && rank_at(end) == rank; ++end) {
      const std::uint64_t from = offset_of(ranges[end].address) - shadow.first_address();
      const auto bytes = static_cast<std::uint64_t>(ranges[end].bytes);
      regions.add(from, from + bytes - 1);
      whole = whole && (from | bytes) % kChunkBytes == 0;
    }
    meet_reads(who, rank, regions, whole);
    for (; i < end; ++i) touch_range(who, like, shadow, ranges[i]);
  }
}

void RaceChecker::touch_range(Toucher& who, const Mark& like, Shadow& shadow, const ByteRange& range) {
  const std::uint64_t rank = rank_of(range.address);
  const std::uint64_t now = who.cluster.pending[rank].now();
  std::uint64_t at = offset_of(range.address);
  const std::uint64_t end = at + static_cast<std::uint64_t>(range.bytes);
  Piece piece{&shadow, at, range.address, like};
  const auto look = [&](std::uint64_t from, std::uint64_t bytes) {
    piece.chunk = from;
    piece.address = shared_address(rank, from);
    piece.mark.bytes = chunk_bytes(from, static_cast<std::int64_t>(bytes));
    check_all(who, piece);
  };
  if (who.harmless_in != &shadow) who.harmless = 0;
  who.harmless_in = &shadow;
  while (at < end && shadow.holds(at)) {
    const std::uint64_t next = std::min(end, (at / kChunkBytes + 1) * kChunkBytes);
    if (!like.write || next - at < kChunkBytes) {
      look(at, next - at);
      if (like.write) {
        shadow.write(at, piece.mark, now);
        who.harmless = 0;  // numbers are valid until the next write
      } else {
        add_read(who.known, piece);
      }
      at = next;
      continue;
    }
    const std::uint64_t begin = at;
    piece.mark.bytes = Shadow::kWholeChunk;
    const Shadow::Writer writer = shadow.writer_of(piece.mark, now);
    const std::uint32_t* last = &shadow.last()[(at - shadow.first_address()) / kChunkBytes];
    for (; at + kChunkBytes <= end && shadow.holds(at); at += kChunkBytes, ++last) {
      if (*last == who.harmless) continue;
      look(at, kChunkBytes);
      if (shadow.alone(at) != nullptr) who.harmless = *last;
    }
    shadow.write_chunks(begin, (at - begin) / kChunkBytes, writer);
  }
}

void RaceChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  if (access.space == Space::shared) {
    WarpViews& warp = cluster->order.warp(exec);
    const Step step = warp.act(access.lanes);
    const std::int32_t pc = pc_of(exec, op);
    const bool write = access.kind != AccessKind::load;
    if (write || !read_behind(*cluster, warp, access, pc, step, strong)) {
      Toucher who(exec, *cluster, std::countr_zero(access.lanes));
      const Mark mark{
          .actor = warp.lane0(), .step = step, .pc = pc, .meets = warp.meets(), .write = write, .strong = strong};
      const int bytes = access.matrix_rows ? 16 : access.bytes;
      if (write) {
        touch_writes(who, mark, bytes, access.lanes, access.addresses);
      } else {
        touch_reads(who, mark, bytes, access);
      }
    }
  }
  if (access.space != Space::shared && access.space != Space::global) return;
  if (strong || (access.kind != AccessKind::load && cluster->order.flag_count() > 0))
    cluster->order.flags(exec, access);
}

}  // namespace kvscope::ptx
