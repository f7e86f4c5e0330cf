#include "gpu/virtual/check/tensor_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

bool is_tensor_access(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::tcgen05_ld:
    case Opcode::tcgen05_st:
    case Opcode::tcgen05_cp:
    case Opcode::tcgen05_mma:
    case Opcode::tcgen05_mma_ws:
    case Opcode::tcgen05_mma_sp:
    case Opcode::tcgen05_mma_ws_sp:
      return true;
    default:
      return false;
  }
}

// Whether a view covers an access of any lane of a warp.
bool covers_any_lane(const Clock& clock, ActorKey lane0, Step step) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (clock.covers(lane0 + static_cast<ActorKey>(lane), step)) return true;
  }
  return false;
}

}  // namespace

HappensBefore* TensorChecker::order_of(const Cta& cta) {
  const auto at = ctas_.find(cta.index);
  return at == ctas_.end() ? nullptr : at->second.order.get();
}

void TensorChecker::launch_begins(Launch& launch) {
  ctas_.clear();
  const auto& instrs = launch.program->decoded.instrs;
  uses_tensor_memory_ = std::any_of(instrs.begin(), instrs.end(), is_tensor_access);
}

void TensorChecker::cta_begins(Launch& launch, const Cta& cta) {
  if (!uses_tensor_memory_) return;
  State state;
  for (std::int64_t rank = 0; rank < cluster_size(launch); ++rank) {
    const Cta* const other = cta_of_rank(launch, cta, static_cast<std::uint64_t>(rank));
    const auto at = other == nullptr ? ctas_.end() : ctas_.find(other->index);
    if (at != ctas_.end()) state.order = at->second.order;
  }
  if (state.order == nullptr) state.order = std::make_shared<HappensBefore>(Space::shared, launch);
  state.order->begin(cta);
  state.after.resize(cta.warps.size());
  ctas_.insert_or_assign(cta.index, std::move(state));
}

void TensorChecker::cta_ends(Launch&, const Cta& cta) {
  ctas_.erase(cta.index);
}

void TensorChecker::tensor_access(const Exec& exec, const Op& op, const TensorAccess& access) {
  const auto at = ctas_.find(access.cta);
  if (at == ctas_.end()) return;
  for (const TensorRegion& region : access.regions) look(exec, op, access, region);
  WarpViews& warp = at->second.order->warp(exec);
  Mark mark;
  mark.write = access.kind != AccessKind::load;
  mark.engine = access.operation != 0;
  mark.pc = pc_of(exec, op);
  if (mark.engine) {
    mark.thread = thread_of(exec, access.lane);
    mark.actor = at->second.order->key(warp.cta(), engine_of_thread(AsyncKind::tcgen05, mark.thread));
    mark.step = step_of(access.operation);
  } else {
    mark.thread = thread_of(exec, 0);
    mark.actor = warp.lane0();
  }
  std::vector<Mark>& marks = at->second.marks;
  for (const TensorRegion& region : access.regions) {
    mark.region = region;
    const auto same = std::find_if(marks.begin(), marks.end(), [&](const Mark& m) {
      return m.region == region && m.write == mark.write && m.actor == mark.actor;
    });
    if (same != marks.end()) {
      *same = mark;
    } else {
      marks.push_back(mark);
    }
  }
}

void TensorChecker::look(const Exec& exec, const Op& op, const TensorAccess& access, const TensorRegion& region) {
  const State& state = ctas_.at(access.cta);
  WarpViews& warp = state.order->warp(exec);
  const bool write = access.kind != AccessKind::load, engine = access.operation != 0;
  const State& own = ctas_.at(exec.cta.index);
  const Known& after = own.after[static_cast<std::size_t>(exec.warp.index)];
  const ActorKey own_engine =
      state.order->key(warp.cta(), engine_of_thread(AsyncKind::tcgen05, thread_of(exec, access.lane)));
  for (const Mark& m : state.marks) {
    if (!(m.write || write) || !overlaps(m.region, region)) continue;
    if (engine && m.engine && m.actor == own_engine) continue;  // in issue order
    const bool own_warp = !m.engine && m.actor == warp.lane0();
    if (own_warp) {
      if (!m.waited) return tell(exec, op, access.lane, m, region, write, false);
      continue;
    }
    const auto covers = [&m](const Clock& clock) {
      return m.engine ? clock.covers(m.actor, m.step) : m.waited && covers_any_lane(clock, m.actor, m.step);
    };
    bool ordered = false;
    for (int lane = engine ? access.lane : 0; lane < (engine ? access.lane + 1 : kLanes) && !ordered; ++lane)
      ordered = covers(warp.ordered(lane));
    if (!ordered) return tell(exec, op, access.lane, m, region, write, false);
    if (after == nullptr || !covers(after->ordered) || (!m.engine && !m.fenced))
      return tell(exec, op, access.lane, m, region, write, true);
  }
}

void TensorChecker::tell(const Exec& exec, const Op& op, int lane, const Mark& before, const TensorRegion& region,
                         bool write, bool fence) {
  const Op& that = exec.program().ops[static_cast<std::size_t>(before.pc)];
  const std::string_view instruction = name(exec.program().instr(op).opcode);
  const std::string cells = region.columns == 1
                                ? fmt::format("column {}", region.column)
                                : fmt::format("columns {} to {}", region.column, region.column + region.columns - 1);
  const bool own_warp = !before.engine && before.thread / kLanes == exec.warp.index;
  Report r;
  r.kind = fence ? ReportKind::tensor_fence : ReportKind::tensor_order;
  r.severity = severity_of(r.kind);
  if (!fence) {
    r.message = fmt::format("{} {} {} of tensor memory before {} on them is known to be complete", instruction,
                            write ? "writes" : "reads", cells, name(exec.program().instr(that).opcode));
    r.hint = before.engine ? "tcgen05.commit after the operation, and a wait for its mbarrier before this access"
             : own_warp ? (before.write ? "tcgen05.wait::st comes between them" : "tcgen05.wait::ld comes between them")
                        : (before.write ? "tcgen05.wait::st, then a barrier of both warps, come between them"
                                        : "tcgen05.wait::ld, then a barrier of both warps, come between them");
  } else {
    const bool first = !before.engine && !before.fenced;
    r.message = fmt::format("{} {} {} of tensor memory after a synchronization without tcgen05.fence::{}", instruction,
                            write ? "writes" : "reads", cells, first ? "before_thread_sync" : "after_thread_sync");
    r.hint =
        first
            ? "tcgen05.fence::before_thread_sync comes after the wait for the first access, before the synchronization"
            : "tcgen05.fence::after_thread_sync comes between the synchronization and this access";
  }
  const LaneMask lanes = exec.lane_group.lanes;
  r.parties.push_back(lane_party(exec, op, lane, lanes, write ? "write" : "read"));
  ReportParty other;
  other.action = before.write ? "write" : "read";
  other.thread = before.thread;
  other.warp = before.thread / kLanes;
  other.actor = before.engine ? fmt::format("tensor core, issued by thread {}", before.thread)
                              : fmt::format("warp {}", other.warp);
  other.pc = before.pc;
  other.opcode = exec.program().statement(before.pc).opcode;
  other.source = exec.program().source_text(before.pc);
  r.parties.push_back(std::move(other));
  Exec again{exec.launch, exec.cta, exec.warp, exec.lane_group, exec.registers};
  static_cast<void>(report(again, std::move(r)));
}

void TensorChecker::tensor_wait(const Exec& exec, const Op&, bool stores) {
  const auto at = ctas_.find(exec.cta.index);
  if (at == ctas_.end()) return;
  WarpViews& warp = at->second.order->warp(exec);
  const Step step = warp.act(exec.lane_group.lanes);
  for (Mark& m : at->second.marks) {
    if (m.engine || m.actor != warp.lane0() || m.write != stores || m.waited) continue;
    m.waited = true;
    m.step = step;
  }
}

void TensorChecker::tensor_fence(const Exec& exec, const Op&, LaneMask lanes, bool before) {
  const auto at = ctas_.find(exec.cta.index);
  if (at == ctas_.end()) return;
  WarpViews& warp = at->second.order->warp(exec);
  if (!before) {
    Known& known = at->second.after[static_cast<std::size_t>(exec.warp.index)];
    each_lane(lanes, [&](int lane) { known = known == nullptr ? warp.known(lane) : joined(known, warp.known(lane)); });
    return;
  }
  for (Mark& m : at->second.marks) {
    if (!m.engine && m.actor == warp.lane0() && m.waited) m.fenced = true;
  }
}

void TensorChecker::tensor_freed(const Exec& exec, const Op& op, std::int64_t column, std::uint64_t columns) {
  const auto at = ctas_.find(exec.cta.index);
  if (at == ctas_.end()) return;
  const TensorRegion freed{0, kTensorLanes, static_cast<std::int32_t>(column), static_cast<std::int32_t>(columns)};
  WarpViews& warp = at->second.order->warp(exec);
  for (const Mark& m : at->second.marks) {
    if (!overlaps(m.region, freed)) continue;
    bool complete = !m.engine && m.waited;
    for (int lane = 0; lane < kLanes && !complete; ++lane) {
      // An operation whose result another warp has read, or whose barrier any warp has waited for, is complete.
      complete = m.engine && warp.ordered(lane).covers(m.actor, m.step);
    }
    if (complete) continue;
    tell(exec, op, 0, m, freed, true, false);
    break;
  }
  std::erase_if(at->second.marks, [&](const Mark& m) { return overlaps(m.region, freed); });
}

}  // namespace kvscope::ptx
