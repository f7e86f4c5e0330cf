// The state of order (happens_before.h) of one warp: per lane, its own steps and the steps of others that it has acquired.
//
//   publish(lanes, view)    adds to a view the steps of these lanes, and everything that they have acquired
//   acquire(lanes, known)   adds `known` to the views of these lanes
//
// The step of a warp increases between a publication and the next access, so a step that a view covers has ended. Lanes
// of a warp have nearly always acquired the same and share one view then, as do warps after a barrier of their CTA. The
// steps of a thread are always ordered before the thread itself, and are not in its view. The operations of its engines
// are ordered after it has waited for them, which is recorded per lane as well.
//
// A publication has an audience: the threads of the CTA, of the cluster, or of the grid. A relaxed access publishes the
// state of its lane at the lane's last fence for that audience. A view that a relaxed access sees is pending until the
// next fence of the lane, which acquires it. Of two fence.sc whose threads are linked by relaxed accesses, the later one
// acquires also what the earlier one covers although another thread publishes it (happens_before.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// body(lane) for each lane of a mask, lowest first.
template <class Body>
void each_lane(LaneMask lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
}

// The last time a thread synchronized with others, for reports.
struct LastSync {
  std::int32_t pc = -1;
  std::string_view how;        // "mbarrier wait"
  std::uint64_t mbarrier = 0;  // the shared address, with the rank, of a wait for an arrival barrier
  std::uint32_t complete = 0;  // its phases that were complete when the wait returned
};

enum class Audience : std::uint8_t { cta, cluster, grid };
inline constexpr std::size_t kAudiences = 3;

class WarpViews {
 public:
  // `lane0`: the key of the warp's lane 0. All lanes are live and have acquired `nothing`.
  WarpViews(ActorKey lane0, const Known& nothing);

  [[nodiscard]] ActorKey lane0() const { return lane0_; }
  [[nodiscard]] std::uint32_t cta() const { return cta_of(lane0_); }
  [[nodiscard]] int index() const { return thread_of(lane0_) / kLanes; }  // in its CTA
  [[nodiscard]] ActorKey thread(int lane) const { return lane0_ + static_cast<ActorKey>(lane); }

  void set_live(LaneMask lanes) { live_ = lanes; }
  // Lanes that exit publish nothing any more: accesses that they have not published are never ordered before others.
  void leave(LaneMask lanes) {
    live_ &= ~lanes;
    lost_ |= lanes & acted_;
  }
  // Whether `lanes` are all lanes that have done anything and may still publish it.
  [[nodiscard]] bool whole(LaneMask lanes) const { return ((live_ | lost_) & ~lanes) == 0; }
  // The minimum of `common` and of what each live lane has acquired; where `common` is empty, of the latter alone.
  void lower(std::unique_ptr<Clock>& common) const;

  // These lanes do something now. Returns the step in which they do it.
  [[nodiscard]] Step act(LaneMask lanes) {
    acted_ |= lanes;
    if (published_) ++step_, published_ = false;
    return step_;
  }
  // Whether the warp has published anything since it did something in this step.
  [[nodiscard]] bool published_since(Step step) const { return step_ > step || published_; }

  [[nodiscard]] bool uniform() const { return uniform_; }  // all live lanes share one view
  [[nodiscard]] const Known& known(int lane) const {
    return uniform_ ? common_ : known_[static_cast<std::size_t>(lane)];
  }
  [[nodiscard]] const Clock& ordered(int lane) const { return known(lane)->ordered; }

  void publish(LaneMask lanes, View& to);
  // Only their own steps, and operations that they have waited for.
  void publish_own(LaneMask lanes, Clock& to);
  void acquire(LaneMask lanes, const Known& view);

  // Later relaxed accesses for this audience, or for a narrower one, publish what these lanes did and have acquired so
  // far. The lanes acquire what they saw by relaxed accesses; returns those that saw anything.
  LaneMask fence(LaneMask lanes, Audience audience);
  // What the lane did and had acquired at its last fence for this audience; null: there was none.
  [[nodiscard]] Known at_fence(int lane, Audience audience);
  [[nodiscard]] bool has_fenced(int lane) const {
    return fences_ != nullptr && (*fences_)[static_cast<std::size_t>(lane)].before[0] != nullptr;
  }
  // Lanes see a view by a relaxed access.
  void see(LaneMask lanes, Audience audience, const Known& seen);
  // Lanes wait at a barrier whose other threads have seen this.
  void see_at_barrier(LaneMask lanes, const Known& seen);
  // Publishes everything that these lanes, or others before a barrier, have seen by relaxed accesses since their last fence.
  void publish_seen(LaneMask lanes, Known& to) const;
  // What these lanes did and have acquired is fenced (View::fenced).
  void fence_all(LaneMask lanes);
  // A relaxed access of these lanes sees what another thread has fenced by fence.sc: their next fence.sc acquires it.
  void see_sc(LaneMask lanes, const Known& seen);
  void publish_seen_sc(LaneMask lanes, Known& to) const;
  // fence.sc of the grid. Returns the lanes that acquired anything.
  LaneMask acquire_sc(LaneMask lanes);

  // --- shuffles, votes, matrix instructions: they order no memory access, but reports tell whether one is between ---

  // These lanes execute such an instruction together.
  void meet(LaneMask lanes, std::int32_t pc);
  // How often lanes of the warp have met; from kMostMeets on, no longer counted.
  [[nodiscard]] std::uint16_t meets() const { return meets_; }
  // The pc at which both lanes have met since meets() was `since`; -1: they have not, or it is not known.
  [[nodiscard]] std::int32_t met_since(int lane, int other, std::uint16_t since) const;

  // --- engines of the warp's threads ---

  // cp.async `number` of an instruction at `pc` that executes in the launch's step `at`: its step. All copies of one
  // warp instruction share one.
  [[nodiscard]] Step issue_copy(std::uint64_t number, std::uint64_t at, std::int32_t pc) {
    if (first_copies_.empty() || copied_at_ != at || copied_pc_ != pc) first_copies_.push_back(number);
    copied_at_ = at;
    copied_pc_ = pc;
    return copies();
  }
  [[nodiscard]] Step copies() const { return static_cast<Step>(first_copies_.size()); }  // of the last one issued
  // The lane has waited for its cp.async with numbers below `end`.
  void waited_for_copies(int lane, std::uint64_t end);
  // A thread of the warp has issued operations of this kind that a group of the thread waits for.
  void issue_grouped(AsyncKind kind) { grouped_ |= 1u << static_cast<unsigned>(kind); }
  // The lane has waited for all its grouped operations up to a step.
  void waited_for_groups(int lane, Step up_to);
  void waited(LaneMask lanes, ActorKey engine, Step up_to);

  // Whether what `actor` did at `step` is ordered before the lane continues, and whether a proxy fence is in between.
  [[nodiscard]] bool is_ordered(int lane, ActorKey actor, Step step) const;
  // Whether a barrier since the lane's last fence came after a relaxed access that saw it.
  [[nodiscard]] bool is_seen(int lane, ActorKey actor, Step step) const;
  // Whether the lane has seen it by a relaxed access, and only its fence after that access is missing.
  [[nodiscard]] bool is_pending(int lane, ActorKey actor, Step step) const;
  [[nodiscard]] bool is_fenced(int lane, ActorKey actor, Step step) const {
    return known(lane)->fenced.covers(actor, step);
  }

  void synchronized(LaneMask lanes, const LastSync& sync) {
    if (lanes == kAllLanes) {
      common_sync_ = sync;
      own_syncs_ = 0;
      return;
    }
    each_lane(lanes, [&](int lane) { syncs_[static_cast<std::size_t>(lane)] = sync; });
    own_syncs_ |= lanes;
  }
  [[nodiscard]] const LastSync& last_sync(int lane) const {
    return (own_syncs_ >> lane & 1) != 0 ? syncs_[static_cast<std::size_t>(lane)] : common_sync_;
  }

 private:
  struct Waited {
    LaneMask lanes;
    ActorKey engine;
    Step up_to;
  };
  // What a lane did and had acquired at a fence.
  struct AtFence {
    Known known;
    Step step = 0, copies = 0;
    std::vector<std::pair<ActorKey, Step>> engines;
    Known whole;  // all of the above; null until it is needed
  };
  struct LaneFences {  // by Audience
    std::array<std::shared_ptr<AtFence>, kAudiences> before;
    std::array<Known, kAudiences> pending;
    Known at_barriers;
    Known pending_sc;  // of its View::fenced
  };
  using Fences = std::array<LaneFences, kLanes>;

  [[nodiscard]] Fences& fences();
  // Replaces what these lanes have acquired by change(a lane, the lanes that share its view), once per view.
  template <class Change>
  void change(LaneMask lanes, Change change);
  void split();  // the lanes may acquire different views

  ActorKey lane0_;
  LaneMask live_ = kAllLanes, acted_ = 0;
  LaneMask lost_ = 0;  // exited after an access
  Step step_ = 1;
  bool published_ = false;  // the accesses of `step_`
  bool uniform_ = true;
  // What the lanes have acquired. One pointer while they share it: copies of a shared pointer are atomic operations.
  Known common_;                     // of all lanes, if uniform_
  std::array<Known, kLanes> known_;  // otherwise
  std::unique_ptr<Fences> fences_;   // null: the warp has come to none
  LastSync common_sync_;
  LaneMask own_syncs_ = 0;  // lanes whose last one is in syncs_; of the others it is the common one
  std::array<LastSync, kLanes> syncs_{};
  struct Meeting {
    LaneMask lanes;
    std::uint16_t number;  // meets() before it
    std::int32_t pc;
  };
  static constexpr std::uint16_t kMostMeets = 0xffff;
  static constexpr std::size_t kMostMeetings = 8;
  std::uint16_t meets_ = 0;
  std::vector<Meeting> meetings_;  // the last one of each mask, of at most kMostMeetings masks
  // cp.async: the first number of each warp instruction. Its step is its index + 1.
  std::vector<std::uint64_t> first_copies_;
  std::uint64_t copied_at_ = 0;
  std::int32_t copied_pc_ = -1;
  std::array<Step, kLanes> copies_waited_{};
  std::uint32_t grouped_ = 0;  // by AsyncKind
  std::vector<Waited> waited_;
};

}  // namespace kvscope::ptx
