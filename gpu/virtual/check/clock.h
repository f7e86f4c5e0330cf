// Vector clocks: which steps of every other actor happened before an actor goes on.
//
// Threads count in steps of their warp: a warp's number goes up each time some of its lanes publish what they did, so
// "all lanes of warp 2 up to step 7" is one number, and a clock of a CTA with W warps is mostly W numbers. Copies by
// cp.async count likewise, by warp. What is true of one lane alone, and of an engine, stands in a short list beside.
//
//   join(a, b)   the larger of each number: what happened before either
//
//   thread 40 is lane 8 of warp 1:   covers_thread(40, 7)   warps[1] >= 7, or the list says so of thread 40
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/virtual/check/happens_before.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// Who did something, as one number: threads of a cluster (1024 a CTA), the cp.async engine of each, other engines.
using ActorKey = std::uint32_t;
inline constexpr ActorKey kCopiesOf = 0x1'0000;  // + thread
inline constexpr ActorKey kEngines = 0x2'0000;   // + number
[[nodiscard]] constexpr bool is_thread(ActorKey a) {
  return a < kCopiesOf;
}
[[nodiscard]] constexpr bool is_copy(ActorKey a) {
  return a >= kCopiesOf && a < kEngines;
}
[[nodiscard]] constexpr ActorKey thread_behind(ActorKey a) {
  return is_copy(a) ? a - kCopiesOf : a;
}

class Clock {
 public:
  explicit Clock(int warps = 0) : warps_(static_cast<std::size_t>(warps)), copies_(static_cast<std::size_t>(warps)) {}

  // All lanes of a warp, or all their copies, up to a step.
  void raise_warp(int warp, Step step);
  void raise_copies(int warp, Step step);
  void raise(ActorKey actor, Step step);
  void join(const Clock& other);

  [[nodiscard]] bool covers_warp(int warp, Step step) const { return warps_[static_cast<std::size_t>(warp)] >= step; }
  [[nodiscard]] bool covers_copies(int warp, Step step) const {
    return copies_[static_cast<std::size_t>(warp)] >= step;
  }
  [[nodiscard]] bool covers(ActorKey actor, Step step) const {
    if (of_warp(actor) >= step) return true;
    for (const auto& [other, up_to] : others_) {  // few
      if (other >= actor) return other == actor && up_to >= step;
    }
    return false;
  }
  // The smaller of `steps`, one a warp, and what this one knows of each.
  void lower(std::vector<Step>& steps) const;
  // All that `other` knows.
  [[nodiscard]] bool includes(const Clock& other) const;

 private:
  [[nodiscard]] Step of_warp(ActorKey actor) const {
    if (is_thread(actor)) return warps_[actor / kLanes];
    return is_copy(actor) ? copies_[thread_behind(actor) / kLanes] : 0;
  }
  void drop_known();

  std::vector<Step> warps_;
  std::vector<Step> copies_;
  std::vector<std::pair<ActorKey, Step>> others_;  // by actor; of threads and copies only what is beyond their warp
};

// What a thread knows: everything ordered before it, and of that, what a proxy fence stands behind.
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

// Lanes, warps and barriers that know the same share one view; it never changes.
using Known = Shared<View>;

}  // namespace kvscope::ptx
