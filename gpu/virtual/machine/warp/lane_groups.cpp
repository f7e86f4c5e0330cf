#include "gpu/virtual/machine/warp/detail/lane_groups.h"

#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "gpu/virtual/machine/warp/detail/random_schedule.h"

namespace kvscope::ptx {
namespace {

bool is_ready(const LaneGroup& f) {
  return f.lanes != 0 && f.state == LaneGroupState::ready;
}

// Whether the lane group is at the instruction that it waits for, and would execute it again with other lanes.
bool can_be_joined(const LaneGroup& f) {
  return f.lanes != 0 && (f.state == LaneGroupState::ready || f.retries);
}

void drop_empty(Warp& warp) {
  std::erase_if(warp.lane_groups, [](const LaneGroup& f) { return f.lanes == 0; });
}

// Ordered by call depth (deepest first), then by pc; of equal ones the first.
bool before(const LaneGroup& a, const LaneGroup& b) {
  return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc;
}

// Merges all lane groups at the same place into lane group `to`.
void merge(Launch& launch, Cta& cta, Warp& warp, std::int32_t to) {
  LaneGroup& f = warp.lane_groups[static_cast<std::size_t>(to)];
  for (LaneGroup& other : warp.lane_groups) {
    if (&other == &f || !can_be_joined(other) || other.activation != f.activation || other.pc != f.pc) continue;
    f.lanes |= other.lanes;
    f.backward = std::max(f.backward, other.backward);
    f.retries = f.retries && other.retries;
    if (launch.monitor != nullptr) launch.monitor->merge(exec_of(launch, cta, warp, f), other.lanes);
    --warp.activations[static_cast<std::size_t>(f.activation)].users;
    other.lanes = 0;
  }
}

// Selects from the ready lane groups those whose turn it is; when all have had a turn, the next round begins.
bool begin_round_if_over(Warp& warp) {
  bool any = false;
  for (const LaneGroup& f : warp.lane_groups) {
    if (!is_ready(f)) continue;
    if (!f.had_turn) return true;
    any = true;
  }
  for (LaneGroup& f : warp.lane_groups) {
    if (is_ready(f)) f.had_turn = false, f.backward = 0;
  }
  return any;
}

std::int32_t first_of(const Warp& warp) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < warp.lane_groups.size(); ++i) {
    const LaneGroup& f = warp.lane_groups[i];
    if (!is_ready(f) || f.had_turn) continue;
    if (best < 0 || before(f, warp.lane_groups[static_cast<std::size_t>(best)])) best = static_cast<std::int32_t>(i);
  }
  return best;
}

// A seeded schedule occasionally lets a different lane group run first.
std::int32_t any_of(Launch& launch, const Warp& warp, std::int32_t best) {
  if (launch.config.options.policy != Policy::seeded || next_random(launch, 8) != 0) return best;
  std::vector<std::int32_t> ready;
  for (std::size_t i = 0; i < warp.lane_groups.size(); ++i) {
    if (is_ready(warp.lane_groups[i]) && !warp.lane_groups[i].had_turn) ready.push_back(static_cast<std::int32_t>(i));
  }
  return ready[static_cast<std::size_t>(next_random(launch, ready.size()))];
}

}  // namespace

LaneGroup& split_off(Exec& exec, LaneMask lanes, std::int32_t pc) {
  LaneGroup& from = exec.lane_group;
  LaneGroup taken = from;
  taken.lanes = lanes;
  taken.pc = pc;
  taken.state = LaneGroupState::ready;
  taken.retries = false;
  taken.wait = {};
  from.lanes &= ~lanes;
  ++exec.warp.activations[static_cast<std::size_t>(from.activation)].users;
  exec.warp.current = -1;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->split(exec, lanes, pc);
  KVSCOPE_ASSERT(exec.warp.lane_groups.size() < exec.warp.lane_groups.capacity());  // so that `from` stays valid
  exec.warp.lane_groups.push_back(taken);
  return exec.warp.lane_groups.back();
}

std::int32_t choose_lane_group(Launch& launch, Cta& cta, Warp& warp) {
  drop_empty(warp);
  if (!begin_round_if_over(warp)) {
    warp.current = -1;
    return -1;
  }
  std::int32_t best = any_of(launch, warp, first_of(warp));
  merge(launch, cta, warp, best);
  // Merged lane groups are empty. They would take the room of those that split off from the one that runs.
  const auto first = warp.lane_groups.begin();
  best -=
      static_cast<std::int32_t>(std::count_if(first, first + best, [](const LaneGroup& f) { return f.lanes == 0; }));
  drop_empty(warp);
  warp.current = best;
  return limit_of(warp, warp.lane_groups[static_cast<std::size_t>(best)]);
}

std::int32_t limit_of(const Warp& warp, const LaneGroup& f) {
  std::int32_t limit = std::numeric_limits<std::int32_t>::max();
  for (const LaneGroup& other : warp.lane_groups) {
    if (&other == &f || !can_be_joined(other)) continue;
    const bool mergeable = other.activation == f.activation;
    if (!mergeable && (!is_ready(other) || other.had_turn || other.depth != f.depth)) continue;
    if (other.pc > f.pc) limit = std::min(limit, other.pc);
    // It has jumped back to the place of another lane group.
    if (other.pc == f.pc && mergeable) limit = f.pc;
    // Another lane group at the same place that cannot be merged: they alternate.
    if (other.pc == f.pc && !mergeable) limit = std::min(limit, f.pc + 1);
  }
  return limit;
}

bool has_ready(const Warp& warp) {
  return std::any_of(warp.lane_groups.begin(), warp.lane_groups.end(), is_ready);
}

bool has_ready(const Cta& cta) {
  return std::any_of(cta.warps.begin(), cta.warps.end(), [](const Warp& w) { return has_ready(w); });
}

}  // namespace kvscope::ptx
