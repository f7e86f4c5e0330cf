#include "gpu/virtual/machine/matrix/detail/warpgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// Wait::value of a warp whose warpgroup is complete: it may continue.
constexpr std::uint64_t kMet = 1;

std::span<Warp> group_of(Exec& exec) {
  const auto first = static_cast<std::size_t>(exec.warp.index / kGroupWarps * kGroupWarps);
  return std::span(exec.cta.warps).subspan(first, kGroupWarps);
}

// The lane group of a warp that waits for its warpgroup; null: none does.
LaneGroup* waiting_in(Warp& warp) {
  const auto at = std::find_if(warp.lane_groups.begin(), warp.lane_groups.end(), [](const LaneGroup& f) {
    return f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == WaitKind::warpgroup;
  });
  return at == warp.lane_groups.end() ? nullptr : &*at;
}

void let_go(Exec& exec, Warp& warp, LaneGroup& f) {
  f.wait.value = kMet;
  wake(exec.launch, exec.cta, warp, f);
}
void let_all_go(Exec& exec) {
  for (Warp& warp : group_of(exec)) {
    if (LaneGroup* f = &warp == &exec.warp ? nullptr : waiting_in(warp)) let_go(exec, warp, *f);
  }
  event(exec.launch, exec.cta);
}

// Marks the warpgroup as diverged: reported once, and its warps no longer wait for each other.
std::optional<Flow> fall_apart(Exec& exec, const Op& op, std::string message, const Warp* other, const LaneGroup* at) {
  Report r;
  r.kind = ReportKind::diverged_warpgroup;
  r.message = std::move(message);
  r.hint = "all four warps of a warpgroup execute the same instruction, or none does";
  r.parties.push_back(lanes_party(exec.launch, exec.warp, exec.lane_group.lanes, pc_of(exec, op), "issued"));
  if (at != nullptr) r.parties.push_back(lanes_party(exec.launch, *other, at->lanes, at->pc, "issued"));
  warpgroup_of(exec).apart = true;
  let_all_go(exec);
  if (report(exec, std::move(r)) == Flow::stopped) return Flow::stopped;
  return std::nullopt;
}

std::uint64_t value_in(const std::byte* registers, const GroupValue& value, int lane) {
  std::uint64_t v = 0;
  if (value.bytes == 0) {
    LaneMask word = 0;
    std::memcpy(&word, registers + value.reg, sizeof word);
    return word >> lane & 1;
  }
  std::memcpy(&v, registers + value.reg + lane * value.bytes, static_cast<std::size_t>(value.bytes));
  return v;
}

// Whether all lanes of the warp have one value; false if that is not certain.
bool is_uniform(const std::byte* registers, const GroupValue& value, LaneMask lanes) {
  const std::byte* const first = registers + value.reg;
  if (value.bytes == 0) {
    LaneMask word = 0;
    std::memcpy(&word, first, sizeof word);
    return (word & lanes) == 0 || (word & lanes) == lanes;
  }
  if (lanes != kAllLanes) return false;
  return std::memcmp(first, first + value.bytes, static_cast<std::size_t>((kLanes - 1) * value.bytes)) == 0;
}

// Checks the values within the warp, before it waits. False: stopped.
bool lanes_agree(Exec& exec, const Op& op, LaneMask lanes, std::span<const GroupValue> values) {
  for (const GroupValue& value : values) {
    if (is_uniform(exec.registers, value, lanes)) continue;
    const int first = std::countr_zero(lanes);
    const std::uint64_t own = value_in(exec.registers, value, first);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const std::uint64_t other = value_in(exec.registers, value, lane);
      if (other == own) continue;
      const Flow flow = fault(exec, op, lane, ReportKind::diverged_warpgroup,
                              fmt::format("lanes of warp {} have different values of the {}: 0x{:x} in lane {}, 0x{:x} "
                                          "in lane {}",
                                          exec.warp.index, value.what, own, first, other, lane),
                              "one value for the whole warpgroup");
      if (flow == Flow::stopped) return false;
      break;
    }
  }
  return true;
}

// Checks the values between the warps, which have all arrived. False: stopped.
bool warps_agree(Exec& exec, const Op& op, LaneMask lanes, std::span<const GroupValue> values) {
  for (const GroupValue& value : values) {
    const std::uint64_t own = value_in(exec.registers, value, std::countr_zero(lanes));
    for (Warp& warp : group_of(exec)) {
      const LaneGroup* f = &warp == &exec.warp ? nullptr : waiting_in(warp);
      if (f == nullptr) continue;
      const std::uint64_t other = value_in(registers_of(warp, *f), value, std::countr_zero(f->lanes));
      if (other == own) continue;
      Report r;
      r.kind = ReportKind::diverged_warpgroup;
      r.message = fmt::format(
          "warps of one warpgroup have different values of the {}: 0x{:x} in warp {}, 0x{:x} in "
          "warp {}",
          value.what, other, warp.index, own, exec.warp.index);
      r.hint = "one value for the whole warpgroup";
      r.parties.push_back(lanes_party(exec.launch, exec.warp, lanes, pc_of(exec, op), "issued"));
      r.parties.push_back(lanes_party(exec.launch, warp, f->lanes, f->pc, "issued"));
      if (report(exec, std::move(r)) == Flow::stopped) return false;
      break;
    }
  }
  return true;
}

}  // namespace

std::optional<Flow> meet_warpgroup(Exec& exec, const Op& op, LaneMask lanes, std::span<const GroupValue> values) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (exec.lane_group.wait.kind == WaitKind::warpgroup && exec.lane_group.wait.value == kMet) {
    exec.lane_group.wait = {};
    return std::nullopt;
  }
  const int first = exec.warp.index / kGroupWarps * kGroupWarps;
  if (first + kGroupWarps > static_cast<int>(exec.cta.warps.size())) {
    const Flow flow = fault(exec, op, 0, ReportKind::diverged_warpgroup,
                            fmt::format("warps {} to {} make a warpgroup, and the CTA has {}", first,
                                        first + kGroupWarps - 1, exec.cta.warps.size()),
                            "start it with a multiple of 128 threads");
    return flow;
  }
  if (!exec.lane_group.retries && !lanes_agree(exec, op, lanes, values)) return Flow::stopped;
  if (warpgroup_of(exec).apart) return std::nullopt;
  bool complete = true;
  for (Warp& warp : group_of(exec)) {
    if (&warp == &exec.warp) continue;
    if (live_lanes(warp) == 0) {
      return fall_apart(exec, op,
                        fmt::format("warp {} is at an instruction of warps {} to {}, and warp {} has exited",
                                    exec.warp.index, first, first + kGroupWarps - 1, warp.index),
                        nullptr, nullptr);
    }
    const LaneGroup* const f = waiting_in(warp);
    if (f != nullptr && f->pc != exec.lane_group.pc) {
      return fall_apart(
          exec, op,
          fmt::format("warps {} and {} of one warpgroup are at different instructions: {} and {}", exec.warp.index,
                      warp.index, exec.program().text(exec.lane_group.pc), exec.program().text(f->pc)),
          &warp, f);
    }
    complete = complete && f != nullptr;
  }
  if (!complete) {
    exec.lane_group.wait = {.kind = WaitKind::warpgroup};
    return Flow::waits;
  }
  if (!warps_agree(exec, op, lanes, values)) return Flow::stopped;
  let_all_go(exec);
  exec.lane_group.wait = {};
  return std::nullopt;
}

std::vector<Exec> met_warps(Exec& exec) {
  if (warpgroup_of(exec).apart) return {exec};
  std::vector<Exec> met;
  for (Warp& warp : group_of(exec)) {
    if (&warp == &exec.warp) {
      met.push_back(exec);
      continue;
    }
    for (LaneGroup& f : warp.lane_groups) {
      const bool meets = f.lanes != 0 && f.wait.kind == WaitKind::warpgroup && f.wait.value == kMet;
      if (meets) met.push_back(exec_of(exec.launch, exec.cta, warp, f));
    }
  }
  return met;
}

Flow run_setmaxnreg(Exec& exec, const Op& op, LaneMask lanes) {
  if (const auto flow = meet_warpgroup(exec, op, lanes)) return *flow;
  const Instr& instr = exec.program().instr(op);
  const auto& limits = exec.program().module->functions[static_cast<std::size_t>(exec.launch.function)].limits;
  const auto wanted = static_cast<std::int32_t>(lane_value(exec, op.at[0], width_of(op, 0), 0));
  if (limits.max_registers == 0 && limits.max_threads[0] == 0 && limits.required_threads[0] == 0) {
    Report r;
    r.kind = ReportKind::register_count;
    r.severity = Severity::note;
    r.message = fmt::format("setmaxnreg in kernel {}, which has neither .maxnreg nor a number of threads",
                            exec.launch.config.kernel);
    r.hint = "without __launch_bounds__ or a register limit the assembler ignores it";
    if (report(exec, std::move(r)) == Flow::stopped) return Flow::stopped;
  }
  std::int32_t& current = exec.warp.max_registers;
  if (current == 0) current = limits.max_registers;
  const bool grows = instr.has(Mod::inc);
  if (current != 0 && (grows ? wanted < current : wanted > current)) {
    const Flow flow = fault(
        exec, op, 0, ReportKind::register_count,
        fmt::format("setmaxnreg.{} to {} registers, and a thread may have {}", grows ? "inc" : "dec", wanted, current),
        grows ? "inc takes no fewer than there are" : "dec takes no more than there are");
    if (flow == Flow::stopped) return Flow::stopped;
  }
  current = wanted;
  return Flow::next;
}

}  // namespace kvscope::ptx
