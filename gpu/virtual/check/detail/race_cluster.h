// What the race checker keeps of a cluster, for its own sources.
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
#include "gpu/virtual/check/race_checker.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// The bytes of a chunk that an access within it touches.
inline ChunkBytes chunk_bytes(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t begin = address % kChunkBytes;
  const std::uint64_t all = (std::uint64_t{1} << bytes) - 1;
  return static_cast<ChunkBytes>(all << begin);
}
// CTAs that see one another's shared memory.
struct RaceChecker::Cluster {
  // The uses of an arrival barrier as an object: its bytes are written by init and inval alone.
  struct Object {
    Mark made;               // mbarrier.init
    std::vector<Mark> uses;  // by threads: an inval or an init behind them must be ordered
  };
  Cluster(const Launch& launch, std::size_t ctas) : order(Space::shared, launch), shadows(ctas), pending(ctas) {}

  HappensBefore order;
  std::vector<std::optional<Shadow>> shadows;  // by rank
  std::vector<PendingReads> pending;           // by rank
  std::map<std::uint64_t, Object> objects;     // by shared address with rank
};

// Who is about to touch bytes.
struct RaceChecker::Toucher {
  // Lanes of a warp, `first` among them.
  Toucher(const Exec& by, Cluster& of, int first)
      : exec(by),
        cluster(of),
        warp(of.order.warp(by)),
        lane(first),
        known(warp.uniform() ? &warp.ordered(first) : nullptr) {}
  // An engine, for its issuer.
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
  bool async_proxy = false;  // an ordinary write before it needs a fence
  const Clock* known;        // what all who touch know; null: not the same
  // An engine's step that is known to be covered.
  ActorKey behind = ~ActorKey{0};
  Step behind_step = 0;
  // Shadow::last of a chunk of this shadow that has nothing to say to an engine's write.
  const Shadow* harmless_in = nullptr;
  std::uint32_t harmless = 0;
};

// Does one who knows this stand behind all that the mark says? Cheap; false: look closer.
inline bool RaceChecker::covers(const Clock* known, const Mark& before) {
  if (known == nullptr) return false;
  if (before.lanes == 0) return known->covers(before.actor, before.step);
  return known->covers_warp(before.actor, before.step);
}
// The same of a toucher (its whole warp, when lanes touch).
inline bool RaceChecker::covered(Toucher& who, const Mark& before) {
  if (before.lanes != 0) return covers(who.known, before);
  if (before.actor == who.behind && before.step <= who.behind_step) return true;
  if (!covers(who.known, before)) return false;
  who.behind = before.actor;
  who.behind_step = before.step;
  return true;
}

// Every mark that lanes of one instruction make, one chunk after the other; `like` says what they have in common.
template <class Body>
void RaceChecker::each_piece(Cluster& cluster, const Mark& like, int bytes, LaneMask lanes,
                             std::span<const std::uint64_t, kLanes> addresses, Body body) {
  const int piece_bytes = std::min(bytes, static_cast<int>(kChunkBytes));
  const auto shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(piece_bytes)));
  // More than a chunk a lane: one after the other.
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
      if (rank >= cluster.shadows.size() || !cluster.shadows[rank] || !cluster.shadows[rank]->holds(offset)) continue;
      body(Piece{&*cluster.shadows[rank], offset, address, mark});
    }
  }
}

}  // namespace kvscope::ptx
