// What the race checker keeps of a cluster, for its own sources.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/ptx/check/race_checker.h"
#include "core/ptx/machine/state.h"

namespace kvscope::ptx {

inline ActorKey base_of_warp(int warp) {
  return static_cast<ActorKey>(warp * kLanes);
}

// An engine of a cluster: what it is called in a report.
struct RaceChecker::Engine {
  AsyncKind kind = AsyncKind::bulk_load;
  std::uint64_t owner = 0;  // an mbarrier's address with its rank, a thread, a warpgroup
  friend auto operator<=>(const Engine&, const Engine&) = default;
};

// CTAs that see one another's shared memory.
struct RaceChecker::Cluster {
  struct Object {  // an arrival barrier
    View collecting;
    View done;
  };
  struct Flag {  // a location that a release, or a store behind a fence, has published through
    View published;
  };
  Cluster(int warps_of_cluster, int ctas)
      : threads(warps_of_cluster), shadows(static_cast<std::size_t>(ctas)), barriers(static_cast<std::size_t>(ctas)) {
    fences.resize(static_cast<std::size_t>(warps_of_cluster));
  }

  ThreadViews threads;
  std::vector<std::optional<Shadow>> shadows;  // by rank
  std::vector<std::map<int, View>> barriers;   // by rank: named ones, being gathered
  View cluster_gathering;
  View cluster_done;
  std::map<std::uint64_t, Object> objects;  // by shared address with rank
  std::map<std::uint64_t, Flag> flags;      // by address, shared ones with rank
  std::vector<Engine> engines;              // by key - kEngines
  // Of cp.async: which of a lane's operations are of which instruction, oldest first.
  std::map<ActorKey, std::deque<std::pair<std::uint64_t, Step>>> copies;
  std::map<int, std::pair<std::uint64_t, std::int32_t>> copying;  // by warp: the launch's step and pc of its last
  struct WarpFences {
    std::array<View, kLanes> before;   // a fence's history, for a later plain store
    std::array<View, kLanes> pending;  // seen by a plain load, for a later fence
    LaneMask has_before = 0, has_pending = 0;
  };
  std::vector<std::optional<WarpFences>> fences;  // by warp

  [[nodiscard]] ActorKey engine(const Engine& e) {
    const auto number = static_cast<std::size_t>(std::find(engines.begin(), engines.end(), e) - engines.begin());
    if (number == engines.size()) engines.push_back(e);
    return kEngines + static_cast<ActorKey>(number);
  }
};

// Who is about to touch bytes.
struct RaceChecker::Toucher {
  const Exec& exec;
  Cluster& cluster;
  int warp = 0;              // in the cluster
  int lane = 0;              // of an engine's issuer
  bool async_proxy = false;  // an ordinary write before it needs a fence
};

// A write over a write that it is not ordered behind: harmless when the bytes are equal.
struct RaceChecker::Suspect {
  Report report;
  std::uint64_t address = 0;  // of the common bytes' chunk
  ChunkBytes bytes = 0;
  std::array<std::byte, kChunkBytes> old{};
};

}  // namespace kvscope::ptx
