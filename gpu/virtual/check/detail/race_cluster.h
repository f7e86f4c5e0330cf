// The state of the race checker per cluster, for its own sources.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/virtual/check/detail/race_reads.h"
#include "gpu/virtual/check/detail/race_rows.h"
#include "gpu/virtual/check/race_checker.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// The bytes of its chunk that an access touches.
inline ChunkBytes chunk_bytes(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t begin = address % kChunkBytes;
  const std::uint64_t all = (std::uint64_t{1} << bytes) - 1;
  return static_cast<ChunkBytes>(all << begin);
}
// CTAs that can access one another's shared memory.
struct RaceChecker::Cluster {
  // The uses of an arrival barrier as an object: its bytes are written by init and inval alone.
  struct Object {
    Mark made;               // mbarrier.init
    std::vector<Mark> uses;  // by threads: a later inval or init must be ordered after them
  };
  // Of a warp and its CTA's own memory: the writes with lower numbers (Shadow::past) are ordered before all lanes of the warp.
  struct PastBehind {
    std::uint64_t end = 0;
    // The last attempt to raise it. Another clock at the same address is harmless: the next attempt comes later.
    const Clock* tried = nullptr;
    std::uint64_t tried_end = 0;
  };
  Cluster(const Launch& launch, std::size_t ctas)
      : order(Space::shared, launch), shadows(ctas), pending(ctas), rows(ctas), past_behind(ctas) {}

  [[nodiscard]] PastBehind& behind(std::size_t rank, std::size_t warp) {
    std::vector<PastBehind>& warps = past_behind[rank];
    if (warp >= warps.size()) warps.resize(warp + 1);
    return warps[warp];
  }

  HappensBefore order;
  std::vector<std::optional<Shadow>> shadows;        // by rank
  std::vector<PendingReads> pending;                 // by rank
  std::vector<LaneRows> rows;                        // by rank
  std::vector<std::vector<PastBehind>> past_behind;  // by rank and warp
  std::map<std::uint64_t, Object> objects;           // by shared address with rank
};

// The lanes of a warp, or the engine, that are about to access bytes.
struct RaceChecker::Toucher {
  // Lanes of the warp that executes; `first` is the lowest.
  Toucher(const Exec& by, Cluster& of, int first)
      : exec(by),
        cluster(of),
        warp(of.order.warp(by)),
        lane(first),
        known(warp.uniform() ? &warp.ordered(first) : nullptr) {}
  // An engine on behalf of the lane that issues.
  Toucher(const Exec& by, Cluster& of, int issuer, bool other_proxy)
      : exec(by),
        cluster(of),
        warp(of.order.warp(by)),
        lane(issuer),
        async_proxy(other_proxy),
        known(&warp.ordered(issuer)) {}

  const Exec& exec;
  Cluster& cluster;
  WarpViews& warp;
  int lane;                  // of an engine's issuer
  bool async_proxy = false;  // an earlier write through the generic proxy needs a fence
  const Clock* known;        // what all of them have acquired; null: they have different views
  // The last steps, of an engine and of a warp, that `known` was found to cover.
  ActorKey behind = ~ActorKey{0}, behind_warp = ~ActorKey{0};
  Step behind_step = 0, behind_warp_step = 0;
  // Shadow::last of a chunk of this shadow with which the engine's write does not conflict.
  const Shadow* harmless_in = nullptr;
  std::uint32_t harmless = 0;
};

// Whether the clock covers all accesses of the mark. Fast; false means that each lane has to be checked.
inline bool RaceChecker::covers(const Clock* known, const Mark& before) {
  if (known == nullptr) return false;
  if (before.lanes == 0) return known->covers(before.actor, before.step);
  return known->covers_warp(before.actor, before.step);
}
// The same for a toucher.
inline bool RaceChecker::covered(Toucher& who, const Mark& before) {
  if (before.lanes != 0) {
    if (before.actor == who.behind_warp && before.step <= who.behind_warp_step) return true;
    if (!covers(who.known, before)) return false;
    who.behind_warp = before.actor;
    who.behind_warp_step = before.step;
    return true;
  }
  if (before.actor == who.behind && before.step <= who.behind_step) return true;
  if (!covers(who.known, before)) return false;
  who.behind = before.actor;
  who.behind_step = before.step;
  return true;
}

// Calls body for each mark that the lanes of one instruction make, chunk by chunk; `like` has their common fields.
template <class Body>
void RaceChecker::each_piece(Cluster& cluster, const Mark& like, int bytes, LaneMask lanes,
                             std::span<const std::uint64_t, kLanes> addresses, Body body) {
  const int piece_bytes = std::min(bytes, static_cast<int>(kChunkBytes));
  const auto shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(piece_bytes)));
  const auto give = [&](const Mark& mark, std::uint64_t address) {
    const std::uint64_t rank = rank_of(address), offset = offset_of(address);
    if (rank >= cluster.shadows.size() || !cluster.shadows[rank] || !cluster.shadows[rank]->holds(offset)) return;
    body(Piece{&*cluster.shadows[rank], offset, address, mark});
  };
  // A row from the beginning of a chunk on: each chunk has as many lanes as fit.
  const auto size = static_cast<std::uint64_t>(bytes), first = addresses[0];
  if (lanes == kAllLanes && bytes <= kChunkBytes && first % kChunkBytes == 0 &&
      addresses[kLanes - 1] - first == (kLanes - 1) * size &&
      lane_loops().pattern(addresses.data(), size).from_row == 0) {
    const int each = static_cast<int>(kChunkBytes) / bytes;
    Mark mark = like;
    mark.shift = shift;
    mark.bytes = Shadow::kWholeChunk;
    for (int lane = 0; lane < kLanes; lane += each) {
      mark.lanes = ((LaneMask{1} << each) - 1) << lane;
      give(mark, first + static_cast<std::uint64_t>(lane) * size);
    }
    return;
  }
  // A chunk for each lane.
  if (bytes == kChunkBytes && first % kChunkBytes == 0 && lanes == kAllLanes &&
      !lane_loops().any_equal(addresses.data())) {
    Mark mark = like;
    mark.shift = shift;
    mark.bytes = Shadow::kWholeChunk;
    for (int lane = 0; lane < kLanes; ++lane) {
      mark.lanes = LaneMask{1} << lane;
      give(mark, addresses[static_cast<std::size_t>(lane)]);
    }
    return;
  }
  // Accesses of more than a chunk per lane are split.
  for (int part = 0; part < bytes; part += piece_bytes) {
    LaneMask left = lanes;
    while (left != 0) {
      const int lead = std::countr_zero(left);
      const std::uint64_t address = addresses[static_cast<std::size_t>(lead)] + static_cast<std::uint64_t>(part);
      Mark mark = like;
      mark.shift = shift;
      mark.lanes = LaneMask{1} << lead;
      mark.bytes = chunk_bytes(address, piece_bytes);
      mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
      left &= left - 1;
      // Lanes with adjacent bytes, and lanes at one address, share a mark.
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
      give(mark, address);
    }
  }
}

}  // namespace kvscope::ptx
