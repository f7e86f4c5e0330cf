#include "gpu/virtual/machine/warp/detail/run_warp.h"

#include <bit>
#include <cstring>
#include <limits>

#include "gpu/virtual/machine/barriers/detail/cluster_barriers.h"
#include "gpu/virtual/machine/barriers/detail/named_barriers.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

[[gnu::always_inline]] inline LaneMask guarded(const std::byte* registers, const Op& op, LaneMask lanes) {
  if (op.guard == kNoRegister) return lanes;
  LaneMask predicate;
  std::memcpy(&predicate, registers + op.guard, sizeof predicate);
  return lanes & ((op.flags & kGuardNegated) != 0 ? ~predicate : predicate);
}

// std::popcount, which is a call of a library on processors that may lack the instruction.
[[gnu::always_inline]] inline std::int64_t count_of(LaneMask lanes) {
  if (lanes == kAllLanes) return kLanes;
  lanes -= lanes >> 1 & 0x55555555U;
  lanes = (lanes & 0x33333333U) + (lanes >> 2 & 0x33333333U);
  return ((lanes + (lanes >> 4)) & 0x0f0f0f0fU) * 0x01010101U >> 24;
}

bool others_are_ready(const Warp& warp, const LaneGroup& f) {
  for (const LaneGroup& other : warp.lane_groups) {
    if (&other != &f && other.lanes != 0 && other.state == LaneGroupState::ready) return true;
  }
  return false;
}

// Counts a backward branch: after kTurn of them, others get their turn.
// Returns false if another lane group must be chosen.
bool went_back(Launch& launch, Warp& warp, LaneGroup& f, std::int32_t from) {
  if (!launch.backward_taken.empty()) ++launch.backward_taken[static_cast<std::size_t>(from)];
  if (++f.backward < kTurn) return true;
  f.backward = 0;
  if (!others_are_ready(warp, f)) return true;
  f.had_turn = true;
  warp.current = -1;
  return false;
}

// Runs one lane group until another must be chosen. kWatched: a monitor is told each instruction; kCounted: Launch::run_counts.
template <bool kWatched, bool kCounted>
class LaneGroupRun {
 public:
  LaneGroupRun(Launch& launch, Cta& cta, Warp& warp, std::int32_t limit, std::int64_t most)
      : exec_(exec_of(launch, cta, warp, warp.lane_groups[static_cast<std::size_t>(warp.current)])),
        limit_(limit),
        most_(most) {}

  std::int64_t run() {
    const Op* const ops = exec_.launch.program->ops.data();
    LaneGroup& f = exec_.lane_group;
    std::byte* const registers = exec_.registers;
    const LaneMask all = f.lanes;
    std::int32_t pc = f.pc;
    if constexpr (kCounted) begin_sequence(f.retries ? pc + 1 : pc);
    while (ran_ < most_) {
      const Op& op = ops[pc];
      const LaneMask lanes = guarded(registers, op, all);
      if constexpr (kCounted) {
        if (lanes != all && !f.retries) exec_.launch.run_counts.leave_out(pc, count_of(all & ~lanes));
      }
      if constexpr (kWatched) {
        f.pc = pc;
        count();
        if (f.retries) {
          exec_.launch.monitor->retried(exec_, op, lanes);
        } else {
          exec_.launch.monitor->instruction(exec_, op, lanes);
        }
      }
      if (op.machine == nullptr && op.compute != nullptr) [[likely]] {
        if (lanes != 0) op.compute(registers, op, lanes);
        ++pc;
      } else if ((op.flags & kBranch) != 0) {
        if (lanes == 0) {
          ++pc;
        } else {
          if (lanes != all) {
            f.pc = pc;
            end_sequence(pc + 1);
            branch(exec_, lanes, op.target);
            ++ran_;
            break;
          }
          const bool back = (op.flags & kBackward) != 0;
          const std::int32_t from = pc;
          end_sequence(pc + 1);
          pc = op.target;
          begin_sequence(pc);
          if (back) {
            f.pc = pc;
            const bool goes_on = went_back(exec_.launch, exec_.warp, f, from);
            if (!goes_on) {
              ++ran_;
              break;
            }
            if (exec_.warp.lane_groups.size() > 1) limit_ = limit_of(exec_.warp, f);
          }
        }
      } else {
        if (lanes == 0) {
          ++pc;
        } else {
          f.pc = pc;
          const bool goes_on = run_machine(op, lanes);
          if (!goes_on) {
            end_sequence(pc + 1);
            break;
          }
          pc = f.pc;
          if (pc >= limit_) break;
          continue;
        }
      }
      ++ran_;
      f.pc = pc;
      if (pc >= limit_) {
        exec_.warp.current = -1;
        break;
      }
      if constexpr (kWatched) {
        if (exec_.launch.watch_changed) break;
      }
    }
    end_sequence(pc);
    if (f.pc >= limit_) exec_.warp.current = -1;
    count();
    return ran_;
  }

 private:
  // Updates the instruction counts that clocks read.
  void count() {
    const std::int64_t fresh = ran_ - counted_;
    counted_ = ran_;
    exec_.launch.step += static_cast<std::uint64_t>(fresh);
    exec_.launch.turn.warp_left -= fresh;
    exec_.cta.steps += fresh;
    exec_.warp.steps += fresh;
  }

  // Ops that run one behind the other, by the same lanes.
  void begin_sequence(std::int32_t pc) {
    if constexpr (kCounted) begin_ = pc;
  }
  // At `pc` or at the end of one that has ended already: nothing.
  void end_sequence(std::int32_t pc) {
    if constexpr (kCounted) {
      if (begin_ >= pc) return;
      exec_.launch.run_counts.add(begin_, pc, lane_count_, divergent_);
      begin_ = kNoSequence;
    }
  }

  // Returns false if another lane group must be chosen.
  bool run_machine(const Op& op, LaneMask lanes) {
    LaneGroup& f = exec_.lane_group;
    count();
    const LaneMask before = f.lanes;
    switch (op.machine(exec_, op, lanes)) {
      case Flow::next:
        ++ran_;
        ++f.pc;
        f.retries = false;
        // Lanes have exited, or another lane group has been woken: `all` and the limit have changed.
        return exec_.warp.current >= 0 && f.lanes == before && !exec_.launch.watch_changed;
      case Flow::jumped:
        ++ran_;
        f.retries = false;
        exec_.warp.current = -1;
        return false;
      case Flow::waits:
        park(op);
        f.retries = true;
        return false;
      case Flow::waits_behind:
        ++ran_;
        park(op);
        f.retries = false;
        ++f.pc;
        return false;
      case Flow::ended:
        ++ran_;
        exec_.warp.current = -1;
        return false;
      case Flow::stopped:
        ++ran_;
        return false;
    }
    return false;
  }

  void park(const Op& op) {
    exec_.lane_group.state = LaneGroupState::waiting;
    exec_.warp.current = -1;
    if (exec_.launch.monitor != nullptr) exec_.launch.monitor->park(exec_, op);
  }

  Exec exec_;
  std::int32_t limit_;
  std::int64_t most_;
  std::int64_t ran_ = 0;
  std::int64_t counted_ = 0;
  static constexpr std::int32_t kNoSequence = std::numeric_limits<std::int32_t>::max();
  std::int32_t begin_ = kNoSequence;
  std::int64_t lane_count_ = count_of(exec_.lane_group.lanes);
  bool divergent_ = exec_.lane_group.lanes != ~exec_.warp.exited;
};

template <bool kWatched, bool kCounted>
std::int64_t run_lane_group(Launch& launch, Cta& cta, Warp& warp, std::int32_t limit, std::int64_t most) {
  return LaneGroupRun<kWatched, kCounted>(launch, cta, warp, limit, most).run();
}

// Lanes have exited: re-evaluates waits for all lanes of this warp, or of its warpgroup.
void look_again(Launch& launch, Cta& cta, const Warp& left) {
  for (Warp& warp : cta.warps) {
    for (LaneGroup& f : warp.lane_groups) {
      if (f.lanes == 0 || f.state != LaneGroupState::waiting || !f.retries) continue;
      const bool same_warp = f.wait.kind == WaitKind::warp_sync || f.wait.kind == WaitKind::warp_aligned ||
                             f.wait.kind == WaitKind::named_barrier;
      if ((same_warp && warp.index == left.index) || f.wait.kind == WaitKind::warpgroup) wake(launch, cta, warp, f);
    }
  }
}

}  // namespace

std::int64_t run_warp(Launch& launch, Cta& cta, Warp& warp, std::int64_t most) {
  warp.lane_groups.reserve(kMaxLaneGroups);
  std::int64_t ran = 0;
  while (ran < most && launch.status == LaunchStatus::running && launch.turn.warp_left > 0) {
    std::int32_t limit = 0;
    if (warp.current < 0) {
      limit = choose_lane_group(launch, cta, warp);
      if (warp.current < 0) break;
    } else {
      limit = limit_of(warp, warp.lane_groups[static_cast<std::size_t>(warp.current)]);
    }
    const auto chosen = static_cast<std::size_t>(warp.current);
    const std::int64_t left = most - ran;
    launch.watch_changed = false;
    const bool watched = launch.monitor != nullptr && launch.monitor->wants_instructions_of(cta, warp);
    const auto run = launch.run_counts.started()
                         ? (watched ? run_lane_group<true, true> : run_lane_group<false, true>)
                         : (watched ? run_lane_group<true, false> : run_lane_group<false, false>);
    const std::int64_t now = run(launch, cta, warp, limit, left);
    LaneGroup& f = warp.lane_groups[chosen];
    if (f.quiet_since != cta.events) f.quiet = 0, f.quiet_since = cta.events;
    f.quiet += now;
    ran += now;
  }
  return ran;
}

void branch(Exec& exec, LaneMask taken, std::int32_t pc) {
  LaneGroup& f = exec.lane_group;
  const std::int32_t here = f.pc;
  const bool back = pc <= here;
  if (taken == f.lanes) {
    f.pc = pc;
    if (back) static_cast<void>(went_back(exec.launch, exec.warp, f, here));
    return;
  }
  if (taken != 0) {
    LaneGroup& other = split_off(exec, taken, pc);
    if (back) static_cast<void>(went_back(exec.launch, exec.warp, other, here));
  }
  f.pc = here + 1;
}

Flow exit_lanes(Exec& exec, LaneMask lanes) {
  Warp& warp = exec.warp;
  LaneGroup& f = exec.lane_group;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->exit(exec, lanes);
  warp.exited |= lanes;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    warp.exited_at[static_cast<std::size_t>(std::countr_zero(left))] = f.pc;
  }
  f.lanes &= ~lanes;
  const bool ended = f.lanes == 0;
  if (ended) release(warp, f.activation);
  event(exec);
  look_again(exec.launch, exec.cta, warp);
  look_again_at_named_barriers(exec.launch, exec.cta);
  look_again_at_cluster_barrier(exec.launch, exec.cta);
  return ended ? Flow::ended : Flow::next;
}

}  // namespace kvscope::ptx
