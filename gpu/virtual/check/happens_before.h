// The rules of what happens before what, shared by the checkers of shared memory (race_order.cpp, thread_views) and of
// global memory (global_order). Each rule is written once, for any clock that can join, include and be copied:
//
//   shared memory   View        of the threads of a cluster: what is ordered, and of that what a proxy fence covers
//   global memory   GridClock   of the threads of a grid
//
//   joined(a, b)    the smallest clock that includes both: one of the two where that is enough, else a new one
//   LaneFences      what a fence orders before later relaxed accesses, and after earlier ones
//   Gatherings      named barriers: the clocks of all that arrive become one, which those that wait acquire
//   Phases          an arrival barrier: what its phases collect, what the last complete phase hands on
//   OpenOperations  operations of an engine: done up to the last before the oldest whose bytes have not all moved
//
// Example: lane 3 acquires a flag with clock {warp 1: 7} and knows {warp 0: 2}: joined() = {warp 0: 2, warp 1: 7}.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// A number that goes up with what an actor does. 32 bits last for four billion operations of one launch.
using Step = std::uint32_t;
// Operations of engines count as steps by their number in the launch.
[[nodiscard]] constexpr Step step_of(std::uint64_t number) {
  return static_cast<Step>(number);
}

[[nodiscard]] constexpr bool releases(Order order) {
  return order == Order::release || order == Order::acq_rel || order == Order::sc;
}
[[nodiscard]] constexpr bool acquires(Order order) {
  return order == Order::acquire || order == Order::acq_rel || order == Order::sc;
}

// body(lane) for each lane of a mask, lowest first.
template <class Body>
void each_lane(LaneMask lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
}

// Clocks are shared and never change once they are known to a thread; null: nothing is known.
template <class Clock>
using Shared = std::shared_ptr<const Clock>;

template <class Clock>
[[nodiscard]] Shared<Clock> joined(const Shared<Clock>& mine, const Shared<Clock>& more) {
  if (mine == nullptr || mine == more || more->includes(*mine)) return more;
  if (mine->includes(*more)) return mine;
  const auto both = std::make_shared<Clock>(*mine);
  both->join(*more);
  return both;
}

// Fences of a lane, for circles of readers from the narrowest (CTA, cluster, grid; one circle where scopes do not matter).
// A relaxed access publishes what the lane did and knew at its last fence of that circle (`before`). What a relaxed access
// sees is pending: the lane knows it from its next fence on.
template <class Clock, class Before, std::size_t kCircles>
struct LaneFences {
  std::array<std::optional<Before>, kCircles> before;
  std::array<std::shared_ptr<Clock>, kCircles> pending;

  // `nothing`: a clock that knows nothing.
  void see(std::size_t circle, const Clock& seen, const Clock& nothing) {
    auto& clock = pending[circle];
    if (clock == nullptr) clock = std::make_shared<Clock>(nothing);
    clock->join(seen);
  }
  // A fence for this circle and the narrower ones: acquire(clock) of what is pending, then before = now().
  template <class Acquire, class Now>
  void fence(std::size_t circle, Acquire acquire, Now now) {
    for (std::size_t c = 0; c <= circle; ++c) {
      if (const Shared<Clock> seen = std::move(pending[c])) acquire(seen);
      pending[c] = nullptr;
    }
    const Before at = now();
    for (std::size_t c = 0; c <= circle; ++c) before[c] = at;
  }
};

// Named barriers of a CTA while threads arrive at them.
template <class Clock>
class Gatherings {
 public:
  // What has been gathered so far; `nothing` when this thread is the first.
  [[nodiscard]] Clock& at(int barrier, const Clock& nothing) {
    return gathered_.try_emplace(barrier, nothing).first->second;
  }
  // The barrier is complete: what all that arrived know. Null: no thread has.
  [[nodiscard]] Shared<Clock> take(int barrier) {
    const auto place = gathered_.find(barrier);
    if (place == gathered_.end()) return nullptr;
    const auto all = std::make_shared<const Clock>(std::move(place->second));
    gathered_.erase(place);
    return all;
  }

 private:
  std::map<int, Clock> gathered_;
};

// An arrival barrier. A copy is what cp.async.mbarrier.arrive of one lane waits for.
template <class Clock, class Copy>
struct Phases {
  Clock collecting;         // from all phases
  Shared<Clock> done;       // of the last complete phase
  std::deque<Copy> copies;  // cp.async.mbarrier.arrive that have not arrived, in the order of issue

  void complete() { done = std::make_shared<const Clock>(collecting); }
  // raise(collecting, copy) for the oldest copy, which arrives.
  template <class Raise>
  void arrive_copy(Raise raise) {
    if (copies.empty()) return;
    raise(collecting, copies.front());
    copies.pop_front();
  }
};

// Bytes of all ranges together.
[[nodiscard]] inline std::int64_t bytes_of(std::span<const ByteRange> ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

// Operations of one engine that move their bytes in any order.
class OpenOperations {
 public:
  // One without bytes is done at once.
  void issue(std::uint64_t number, std::int64_t bytes) {
    last_ = number;
    if (bytes > 0) open_.push_back({number, bytes});
  }
  void moved(std::uint64_t number, std::int64_t bytes) {
    for (Open& open : open_) {
      if (open.number == number) open.bytes -= bytes;
    }
    while (!open_.empty() && open_.front().bytes <= 0) open_.pop_front();
  }
  // The last operation up to which all are done.
  [[nodiscard]] std::uint64_t done() const { return open_.empty() ? last_ : open_.front().number - 1; }

 private:
  struct Open {
    std::uint64_t number;
    std::int64_t bytes;
  };
  std::deque<Open> open_;
  std::uint64_t last_ = 0;  // issued
};

}  // namespace kvscope::ptx
