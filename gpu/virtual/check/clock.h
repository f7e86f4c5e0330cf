// Vector clocks: for each other actor, the last of its steps that happened before the owner of the clock continues.
//
// A clock has one part per CTA that it has heard of. Parts that hold the same numbers are shared between clocks, so a
// clock of a large grid costs only the CTAs that exchanged data. In a part, threads count in steps of their warp: the
// step of a warp increases when some of its lanes publish what they did. "All lanes of warp 2 up to step 7" is therefore
// one number, and so is "all cp.async of warp 2 up to its 7th". Steps of a single lane, or of an engine, are
// entries of a short list beside these numbers.
//
//   actor                                     key: CTA << 32 |
//   thread t of the CTA                       t
//   cp.async of thread t                      kCopiesOf + t
//   engine of a thread, or of a warpgroup     kEngines | kind << 26 | its number
//   engine that counts on an arrival barrier  kEngines | kByBarrier | kind << 26 | rank << 21 | offset / 8
//
//   join(other)   the maximum of each number: what happened before either clock
//
// Example: thread 40 is lane 8 of warp 1. covers(40, 7) holds if the number of warp 1 is at least 7, or if the list has
// an entry {thread 40, at least 7}.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// A number that increases with what an actor does, from 1. 32 bits suffice for four billion operations of one launch.
using Step = std::uint32_t;
// Operations of engines use their number in the launch as step.
[[nodiscard]] constexpr Step step_of(std::uint64_t number) {
  return static_cast<Step>(number);
}

using ActorKey = std::uint64_t;
inline constexpr std::uint32_t kCopiesOf = 0x1'0000, kEngines = 0x8000'0000, kByBarrier = 0x4000'0000;

[[nodiscard]] constexpr ActorKey actor_key(std::uint32_t cta, std::uint32_t number) {
  return static_cast<ActorKey>(cta) << 32 | number;
}
[[nodiscard]] constexpr std::uint32_t cta_of(ActorKey a) {
  return static_cast<std::uint32_t>(a >> 32);
}
[[nodiscard]] constexpr std::uint32_t number_of(ActorKey a) {
  return static_cast<std::uint32_t>(a);
}
[[nodiscard]] constexpr bool is_engine(ActorKey a) {
  return number_of(a) >= kEngines;
}
[[nodiscard]] constexpr bool is_copy(ActorKey a) {
  return number_of(a) >= kCopiesOf && !is_engine(a);
}
// Of a thread or its cp.async: the thread in its CTA.
[[nodiscard]] constexpr int thread_of(ActorKey a) {
  return static_cast<int>(number_of(a) % kCopiesOf);
}

// Numbers of engines. `owner`: a thread of the CTA, a warpgroup of it, or an arrival barrier's shared address.
[[nodiscard]] constexpr std::uint32_t engine_of_thread(AsyncKind kind, int owner) {
  return kEngines | static_cast<std::uint32_t>(kind) << 26 | static_cast<std::uint32_t>(owner);
}
[[nodiscard]] constexpr std::uint32_t engine_of_barrier(AsyncKind kind, std::uint64_t mbarrier) {
  return kEngines | kByBarrier | static_cast<std::uint32_t>(kind) << 26 |
         static_cast<std::uint32_t>(rank_of(mbarrier) << 21 | offset_of(mbarrier) / 8);
}
[[nodiscard]] constexpr AsyncKind kind_of_engine(ActorKey a) {
  return static_cast<AsyncKind>(number_of(a) >> 26 & 15);
}
[[nodiscard]] constexpr bool counts_on_barrier(ActorKey a) {
  return (number_of(a) & kByBarrier) != 0;
}
[[nodiscard]] constexpr std::uint64_t mbarrier_of_engine(ActorKey a) {
  return shared_address(number_of(a) >> 21 & 31, (number_of(a) & 0x1f'ffff) * 8);
}

class Clock {
 public:
  // Warps of a CTA.
  explicit Clock(int warps = 0) : warps_(static_cast<std::size_t>(warps)) {}

  // All lanes of a warp, or all their cp.async, up to a step. `lane0`: the key of lane 0, or of its cp.async.
  void raise_warp(ActorKey lane0, Step step);
  void raise(ActorKey actor, Step step);
  void join(const Clock& other);
  // The minimum of each warp's number. Entries of single actors are dropped.
  void lower(const Clock& other);

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] bool covers_warp(ActorKey lane0, Step step) const {
    const Part* part = find(cta_of(lane0));
    return part != nullptr && part->of_warp(number_of(lane0)) >= step;
  }
  [[nodiscard]] bool covers(ActorKey actor, Step step) const {
    const Part* part = find(cta_of(actor));
    return part != nullptr ? part->covers(number_of(actor), step) : step == 0;
  }
  // Whether everything that `other` covers is covered.
  [[nodiscard]] bool includes(const Clock& other) const;

 private:
  struct Part {
    explicit Part(std::size_t warps) : steps(2 * warps) {}

    std::vector<Step> steps;                              // [2 * warps]: of each warp its threads, then its cp.async
    std::vector<std::pair<std::uint32_t, Step>> singles;  // by number; threads and copies only beyond their warp

    [[nodiscard]] std::size_t slot(std::uint32_t number) const {
      return number % kCopiesOf / kLanes * 2 + number / kCopiesOf;
    }
    [[nodiscard]] Step of_warp(std::uint32_t number) const { return number < kEngines ? steps[slot(number)] : 0; }
    [[nodiscard]] bool covers(std::uint32_t number, Step step) const {
      if (of_warp(number) >= step) return true;
      const auto at = std::lower_bound(singles.begin(), singles.end(), std::pair{number, Step{0}});
      return at != singles.end() && at->first == number && at->second >= step;
    }
    [[nodiscard]] bool includes(const Part& other) const;
    void join(const Part& other);
    void drop_covered();
  };
  struct Entry {
    std::uint32_t cta = 0;
    std::shared_ptr<Part> part;  // written only while no other clock shares it
  };
  [[nodiscard]] std::size_t place(std::uint32_t cta) const;  // where it is in parts_, or belongs
  [[nodiscard]] const Part* find(std::uint32_t cta) const {
    if (!parts_.empty() && parts_.front().cta == cta) return parts_.front().part.get();
    const std::size_t i = parts_.size() < 2 ? parts_.size() : place(cta);
    return i < parts_.size() && parts_[i].cta == cta ? parts_[i].part.get() : nullptr;
  }
  [[nodiscard]] Part& own(std::uint32_t cta);

  std::size_t warps_;
  std::vector<Entry> parts_;  // by CTA
};

// What a thread has acquired: everything ordered before it, and the part of that which a fence of any thread on the way
// covers: fence.proxy.async in shared memory, fence.sc of the whole grid in global memory.
struct View {
  explicit View(int warps = 0) : ordered(warps), fenced(warps) {}
  Clock ordered;
  Clock fenced;

  void join(const View& other) {
    ordered.join(other.ordered);
    fenced.join(other.fenced);
  }
  [[nodiscard]] bool includes(const View& other) const {
    return ordered.includes(other.ordered) && fenced.includes(other.fenced);
  }
};

// Lanes, warps and barriers that have acquired the same share one view, which never changes.
using Known = std::shared_ptr<const View>;

// The smallest view that includes both: one of the two where that is enough, else a new one.
[[nodiscard]] Known joined(const Known& mine, const Known& more);

}  // namespace kvscope::ptx
