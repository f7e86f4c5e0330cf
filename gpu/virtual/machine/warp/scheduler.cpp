#include "gpu/virtual/machine/warp/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/diagnosis/detail/deadlock.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/detail/random_schedule.h"
#include "gpu/virtual/machine/warp/detail/run_warp.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

constexpr std::int32_t kMostTimeOuts = 3;  // rounds of timed-out waits without an event: then it is a deadlock
constexpr std::int32_t kMostSpins = 2;     // rounds of resumed CTAs without an event

bool is_seeded(const Launch& launch) {
  return launch.config.options.policy == Policy::seeded;
}

// --- a CTA's turn ----------------------------------------------------------------------------------------------------

// The next warp after the last one that can continue; -1: none.
std::int32_t next_warp(Launch& launch, const Cta& cta) {
  const auto count = static_cast<std::int32_t>(cta.warps.size());
  if (is_seeded(launch)) {
    std::vector<std::int32_t> ready;
    for (std::int32_t w = 0; w < count; ++w) {
      if (has_ready(cta.warps[static_cast<std::size_t>(w)])) ready.push_back(w);
    }
    return ready.empty() ? -1 : ready[static_cast<std::size_t>(next_random(launch, ready.size()))];
  }
  for (std::int32_t i = 1; i <= count; ++i) {
    const std::int32_t w = (cta.turn + i) % count;
    if (has_ready(cta.warps[static_cast<std::size_t>(w)])) return w;
  }
  return -1;
}

// All lane groups that could continue have run for a long time without an event.
bool polls(const Cta& cta) {
  for (const Warp& warp : cta.warps) {
    for (const LaneGroup& f : warp.lane_groups) {
      if (f.lanes == 0 || f.state != LaneGroupState::ready) continue;
      if (f.quiet_since != cta.events || f.quiet < kPollingSteps) return false;
    }
  }
  return true;
}

bool has_ended(const Cta& cta) {
  return std::all_of(cta.warps.begin(), cta.warps.end(), [](const Warp& w) { return has_ended(w); });
}

// Reports a CTA that keeps issuing copies which nothing waits for. The count is exact but slow, so that it is taken only
// after as many new entries as the limit.
bool holds_too_many_copies(Launch& launch, Cta& cta) {
  const std::int64_t most = launch.config.options.limits.copies;
  if (cta.async.pushed <= most) return false;
  cta.async.pushed = in_flight(cta.async);
  if (cta.async.pushed <= most) return false;
  Report r;
  r.kind = ReportKind::limit;
  r.message =
      fmt::format("{} asynchronous copies and groups of this CTA are in flight: at most {}", cta.async.pushed, most);
  r.hint = "wait for the copies that a loop issues, or a larger limit: --max-copies";
  return !add_report(launch, cta, std::move(r));
}

// Runs warps of the CTA until none can continue, it polls, it has ended, or the steps are used up.
void run_cta(Launch& launch, Cta& cta, std::uint64_t end) {
  const auto extents = cluster_extents(launch);
  const bool in_cluster = extents[0] * extents[1] * extents[2] > 1;
  while (launch.status == LaunchStatus::running && launch.step < end) {
    if (is_seeded(launch) && launch.turn.cta_left <= 0) return;
    Warp* warp = &cta.warps[static_cast<std::size_t>(cta.turn)];
    if (launch.turn.warp_left <= 0 || !has_ready(*warp)) {
      if (holds_too_many_copies(launch, cta)) return;
      const std::int32_t next = next_warp(launch, cta);
      if (next < 0) {
        // A CTA outside clusters has no other CTA to wait for: its engines perform an operation.
        if (!in_cluster && perform_next(launch, cta)) continue;
        return;
      }
      if (next <= cta.turn && polls(cta)) {
        cta.state = CtaState::suspended;
        if (launch.monitor != nullptr) launch.monitor->cta_suspended(launch, cta);
        return;
      }
      cta.turn = next;
      warp = &cta.warps[static_cast<std::size_t>(next)];
      launch.turn.warp_left = kTurn;
      if (is_seeded(launch)) {
        launch.turn.warp_left = static_cast<std::int64_t>(1 + next_random(launch, 64));
        if (next_random(launch, 4) == 0) static_cast<void>(perform_next(launch, cta));
      }
    }
    auto most = static_cast<std::int64_t>(end - launch.step);
    // A CTA's turn ends at the same point however the run is split into steps.
    if (is_seeded(launch)) most = std::min(most, launch.turn.cta_left);
    const std::int64_t ran = run_warp(launch, cta, *warp, std::min(launch.turn.warp_left, most));
    launch.turn.cta_left -= ran;
    if (has_ended(*warp) && has_ended(cta)) {
      end_cta(launch, cta);
      return;
    }
  }
}

// --- selection of the CTA --------------------------------------------------------------------------------------------

bool can_go_on(const Cta& cta) {
  return cta.state == CtaState::running && has_ready(cta);
}

// The first CTA after CTA `last` that can continue, in order, then from the beginning.
Cta* next_ready(Launch& launch, std::int32_t last) {
  Cta* first = nullptr;
  if (is_seeded(launch)) {
    std::vector<Cta*> ready;
    for (Cta& cta : launch.ctas) {
      if (can_go_on(cta)) ready.push_back(&cta);
    }
    return ready.empty() ? nullptr : ready[static_cast<std::size_t>(next_random(launch, ready.size()))];
  }
  for (Cta& cta : launch.ctas) {
    if (!can_go_on(cta)) continue;
    if (cta.index > last) return &cta;
    if (first == nullptr) first = &cta;
  }
  return first;
}

// Engines of a cluster perform an operation when none of its lane groups can continue.
bool let_engines_work(Launch& launch) {
  for (Cta& cta : launch.ctas) {
    const std::int64_t cluster = cluster_of(launch, cta);
    const bool busy = std::any_of(launch.ctas.begin(), launch.ctas.end(), [&](const Cta& other) {
      return can_go_on(other) && cluster_of(launch, other) == cluster;
    });
    if (!busy && perform_next(launch, cta)) return true;
  }
  return false;
}

// Rounds without an effect, counted since the last event.
std::int32_t& rounds_without_event(Launch& launch, std::int32_t Turn::*rounds) {
  Turn& turn = launch.turn;
  if (turn.events != launch.events) turn.events = launch.events, turn.time_outs = 0, turn.spins = 0;
  return turn.*rounds;
}

bool resume_suspended(Launch& launch) {
  const bool any =
      std::any_of(launch.ctas.begin(), launch.ctas.end(), [](const Cta& c) { return c.state == CtaState::suspended; });
  if (!any) return false;
  // A long loop that counts is not a hang; only a loop whose state repeats is one. The test is costly, so it runs at
  // powers of two.
  const std::int32_t rounds = ++rounds_without_event(launch, &Turn::spins);
  if (rounds > kMostSpins && std::has_single_bit(static_cast<unsigned>(rounds - 1)) && spins_in_vain(launch))
    return false;
  for (Cta& cta : launch.ctas) {
    if (cta.state != CtaState::suspended) continue;
    cta.state = CtaState::running;
    for (Warp& warp : cta.warps) {
      for (LaneGroup& f : warp.lane_groups) f.quiet = 0;
    }
  }
  return true;
}

// As the hardware's time-out: threads that wait for an mbarrier continue, and try_wait returns false.
bool time_out(Launch& launch) {
  std::vector<std::pair<Cta*, std::pair<Warp*, LaneGroup*>>> waiting;
  for (Cta& cta : launch.ctas) {
    for (Warp& warp : cta.warps) {
      for (LaneGroup& f : warp.lane_groups) {
        if (f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == WaitKind::mbarrier) {
          waiting.push_back({&cta, {&warp, &f}});
        }
      }
    }
  }
  if (waiting.empty() || rounds_without_event(launch, &Turn::time_outs) >= kMostTimeOuts) return false;
  ++launch.turn.time_outs;
  for (const auto& [cta, who] : waiting) {
    who.second->wait.timed_out = true;
    wake(launch, *cta, *who.first, *who.second);
  }
  return true;
}

// The CTA whose turn it is; null: the launch has ended, or the search must be repeated.
Cta* whose_turn(Launch& launch) {
  Turn& turn = launch.turn;
  if (turn.cta >= 0) {
    Cta* cta = find_cta(launch, turn.cta);
    if (cta != nullptr && can_go_on(*cta) && (!is_seeded(launch) || turn.cta_left > 0)) return cta;
  }
  drop_ended(launch);
  if (is_seeded(launch) || launch.config.options.cooperative) {
    while (start_next(launch)) {
    }
  }
  if (launch.ended_ctas == launch.ctas_to_run()) {
    launch.status = LaunchStatus::finished;
    return nullptr;
  }
  if (Cta* cta = next_ready(launch, turn.cta)) {
    turn.cta = cta->index;
    turn.warp_left = 0;
    turn.cta_left = is_seeded(launch) ? static_cast<std::int64_t>(1 + next_random(launch, 2000)) : 0;
    return cta;
  }
  if (let_engines_work(launch) || start_next(launch) || resume_suspended(launch) || time_out(launch)) return nullptr;
  report_deadlock(launch);
  launch.status = LaunchStatus::failed;
  return nullptr;
}

// Reports blocks of malloc that no thread of this or an earlier launch has freed.
void report_leaks(Launch& launch) {
  if (launch.status != LaunchStatus::finished) return;
  const std::int64_t blocks = launch.memory->heap_blocks(), bytes = launch.memory->heap_bytes();
  if (blocks == 0) return;
  Report r;
  r.kind = ReportKind::leak;
  r.severity = severity_of(r.kind);
  r.message = fmt::format("{} malloc blocks are not freed, {} bytes", blocks, bytes);
  if (!add_report(launch, Cta{}, std::move(r))) launch.status = LaunchStatus::finished;
}

}  // namespace

std::uint64_t run(Launch& launch, std::uint64_t instructions) {
  const std::uint64_t begin = launch.step;
  if (!launch.turn.told_begin) {
    launch.turn.told_begin = true;
    if (launch.monitor != nullptr) {
      launch.monitor->launch_begins(launch);
      if (launch.monitor->wants_run_counts()) launch.run_counts.start(launch.program->ops.size());
    }
  }
  const auto most = static_cast<std::uint64_t>(launch.config.options.limits.instructions);
  const std::uint64_t end = begin + std::min(instructions, most - std::min(most, begin));
  // In the last eighth, backward branches are counted to find those that keep the kernel busy.
  const std::uint64_t watched = most - most / 8;
  while (launch.status == LaunchStatus::running && launch.step < end) {
    if (launch.step >= watched && launch.backward_taken.empty()) {
      launch.backward_taken.resize(launch.program->ops.size());
    }
    if (Cta* cta = whose_turn(launch)) run_cta(launch, *cta, launch.step < watched ? std::min(end, watched) : end);
  }
  if (launch.status == LaunchStatus::running && launch.step >= most) {
    report_runaway(launch);
    launch.status = LaunchStatus::failed;
  }
  if (launch.status != LaunchStatus::running && !launch.turn.told_end) {
    launch.turn.told_end = true;
    report_leaks(launch);
    if (launch.monitor != nullptr) launch.monitor->launch_ends(launch);
  }
  return launch.step - begin;
}

void wake(Launch& launch, Cta& cta, Warp& warp, LaneGroup& lane_group) {
  lane_group.state = LaneGroupState::ready;
  warp.current = -1;
  if (launch.monitor != nullptr) launch.monitor->resume(exec_of(launch, cta, warp, lane_group));
}

void wake_all(Launch& launch, Cta& cta, WaitKind kind, std::uint64_t object) {
  for (Warp& warp : cta.warps) {
    for (LaneGroup& f : warp.lane_groups) {
      if (f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == kind && f.wait.object == object) {
        wake(launch, cta, warp, f);
      }
    }
  }
}

}  // namespace kvscope::ptx
