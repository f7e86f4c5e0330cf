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

inline ActorKey base_of_warp(int warp) {
  return static_cast<ActorKey>(warp * kLanes);
}
// The bytes of a chunk that an access within it touches.
inline ChunkBytes chunk_bytes(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t begin = address % kChunkBytes;
  const std::uint64_t all = (std::uint64_t{1} << bytes) - 1;
  return static_cast<ChunkBytes>(all << begin);
}
inline int warp_of_key(ActorKey actor) {
  return static_cast<int>(thread_behind(actor)) / kLanes;
}
// An engine of a cluster: what it is called in a report, and which of its operations have not moved their bytes.
struct RaceChecker::Engine {
  AsyncKind kind = AsyncKind::bulk_load;
  bool by_barrier = false;
  std::uint64_t owner = 0;  // an mbarrier's address with its rank, a thread's key, a warpgroup
  OpenOperations open;
};

// CTAs that see one another's shared memory.
struct RaceChecker::Cluster {
  struct Object : Phases<View, std::pair<ActorKey, Step>> {  // an arrival barrier
    explicit Object(int warps) : Phases{View(warps), std::make_shared<View>(warps), {}} {}
    Known collected;  // what went into `collecting` last
    // Arrivals of one warp in one step: when it is the whole warp, they are one number.
    int arriving_warp = -1;
    Step arriving_step = 0;
    LaneMask arriving = 0;
    Mark made;               // mbarrier.init
    std::vector<Mark> uses;  // by threads: an inval or an init behind them must be ordered
  };
  struct Flag {  // a location that a release, or a store behind a fence, has published through
    Known published;
    Scope scope = Scope::gpu;
    int rank = 0;
  };
  Cluster(int warps_of_cluster, int ctas)
      : threads(warps_of_cluster),
        shadows(static_cast<std::size_t>(ctas)),
        pending(static_cast<std::size_t>(ctas)),
        barriers(static_cast<std::size_t>(ctas)),
        cluster_gathering(warps_of_cluster),
        fences(static_cast<std::size_t>(warps_of_cluster)),
        copies(static_cast<std::size_t>(warps_of_cluster)) {}

  ThreadViews threads;
  std::vector<std::optional<Shadow>> shadows;  // by rank
  std::vector<PendingReads> pending;           // by rank
  std::vector<Gatherings<View>> barriers;      // by rank: named ones
  View cluster_gathering;
  std::map<std::uint64_t, Object> objects;  // by shared address with rank
  std::map<std::uint64_t, Flag> flags;      // by address, shared ones with rank
  std::vector<Engine> engines;              // by key - kEngines
  using WarpFences = std::array<LaneFences<View, ThreadViews::Fenced, 1>, kLanes>;
  std::vector<std::unique_ptr<WarpFences>> fences;  // by warp; null: it has come to none
  // cp.async by warp: each instruction's first operation; its step is its place, from 1 on.
  struct WarpCopies {
    std::vector<std::uint64_t> firsts;
    std::uint64_t issued_at = 0;  // the launch's step
    std::int32_t pc = -1;
  };
  std::vector<WarpCopies> copies;

  [[nodiscard]] ActorKey engine(AsyncKind kind, bool by_barrier, std::uint64_t owner) {
    std::size_t number = 0;
    while (number < engines.size() && (engines[number].kind != kind || engines[number].by_barrier != by_barrier ||
                                       engines[number].owner != owner)) {
      ++number;
    }
    if (number == engines.size()) engines.push_back({kind, by_barrier, owner, {}});
    return kEngines + static_cast<ActorKey>(number);
  }
  [[nodiscard]] Engine& engine_of(ActorKey actor) { return engines[actor - kEngines]; }
  [[nodiscard]] const Engine& engine_of(ActorKey actor) const { return engines[actor - kEngines]; }
  [[nodiscard]] Object& object(std::uint64_t address) {
    return objects.try_emplace(address, Object(threads.warps())).first->second;
  }
};

// Who is about to touch bytes.
struct RaceChecker::Toucher {
  // Lanes of a warp, `first` among them.
  Toucher(const Exec& by, Cluster& of, int its_warp, int first)
      : exec(by),
        cluster(of),
        warp(its_warp),
        lane(first),
        known(of.threads.uniform(its_warp) ? &of.threads.view(its_warp, first).ordered : nullptr) {}
  // An engine, for its issuer.
  Toucher(const Exec& by, Cluster& of, int its_warp, int issuer, bool other_proxy)
      : exec(by),
        cluster(of),
        warp(its_warp),
        lane(issuer),
        async_proxy(other_proxy),
        known(&of.threads.view(its_warp, issuer).ordered) {}

  const Exec& exec;
  Cluster& cluster;
  int warp;                  // in the cluster
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
  const int warp = warp_of_key(before.actor);
  return is_copy(before.actor) ? known->covers_copies(warp, before.step) : known->covers_warp(warp, before.step);
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
