#include "gpu/virtual/machine/barriers/detail/named_barriers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/barriers/detail/cluster_barriers.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// The values of NamedBarrier::reduction.
enum Reduction : std::int32_t { kPlain = 0, kPopc = 1, kAnd = 2, kOr = 3 };

// In Wait::value: the warp has been counted, and waits for the others.
constexpr std::uint64_t kCounted = std::uint64_t{1} << 32;

struct Request {
  std::uint32_t barrier = 0;
  std::uint32_t threads = 0;  // 0: all
  std::int32_t reduction = kPlain;
  bool waits = true;
  bool any_pc = false;  // barrier.sync without .aligned
};

std::uint32_t first_value(const Exec& exec, std::uint32_t reg, LaneMask lanes) {
  std::uint32_t out = 0;
  std::memcpy(&out, exec.registers + reg + 4 * std::countr_zero(lanes), sizeof out);
  return out;
}

bool is_uniform(const Exec& exec, std::uint32_t reg, LaneMask lanes) {
  std::array<std::uint32_t, kLanes> values{};
  std::memcpy(values.data(), exec.registers + reg, sizeof values);
  const std::uint32_t first = values[static_cast<std::size_t>(std::countr_zero(lanes))];
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    if (values[static_cast<std::size_t>(std::countr_zero(left))] != first) return false;
  }
  return true;
}

// Operands: bar.red has d, a {, b}, p; the others a {, b}. p is the last one.
Request request_of(const Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  Request r;
  r.any_pc = instr.has(Mod::barrier) && !instr.has(Mod::aligned);
  r.waits = instr.opcode != Opcode::bar_arrive;
  const bool reduces = instr.opcode == Opcode::bar_red;
  if (reduces) r.reduction = instr.has(Mod::popc) ? kPopc : instr.has(Mod::and_) ? kAnd : kOr;
  const std::size_t first = reduces ? 1 : 0;
  r.barrier = first_value(exec, op.at[first], lanes);
  const std::uint32_t count_register = op.at[first + 1];
  const bool has_count = count_register != kNoRegister && width_of(op, static_cast<int>(first) + 1) == 4;
  if (has_count) r.threads = first_value(exec, count_register, lanes);
  return r;
}

// The lanes of the predicate that bar.red reduces.
LaneMask predicate_of(const Exec& exec, const Op& op) {
  const std::size_t last = op.at[3] != kNoRegister ? 3 : 2;
  LaneMask p = 0;
  std::memcpy(&p, exec.registers + op.at[last], sizeof p);
  return (op.negated >> last & 1) != 0 ? ~p : p;
}

Report mismatch(std::string message, ReportKind kind = ReportKind::barrier_mismatch) {
  Report r;
  r.kind = kind;
  r.message = std::move(message);
  return r;
}

std::string_view reduction_name(std::int32_t reduction) {
  constexpr std::array<std::string_view, 4> kNames{"bar.sync or bar.arrive", "bar.red.popc", "bar.red.and",
                                                   "bar.red.or"};
  return kNames[static_cast<std::size_t>(reduction)];
}

// Writes bar.red's value for the lanes of one lane group that has waited for it.
void write_result(const Program& program, Warp& warp, const LaneGroup& f, std::int32_t pc,
                  const NamedBarrier& barrier) {
  const Op& op = program.ops[static_cast<std::size_t>(pc)];
  if (barrier.reduction == kPlain || op.at[0] == kNoRegister) return;
  std::byte* const reg = registers_of(warp, f) + op.at[0];
  if (barrier.reduction == kPopc) {
    const auto count = static_cast<std::uint32_t>(barrier.reduced);
    for (LaneMask left = f.lanes; left != 0; left &= left - 1) std::memcpy(reg + 4 * std::countr_zero(left), &count, 4);
    return;
  }
  LaneMask word = 0;
  std::memcpy(&word, reg, sizeof word);
  word = barrier.reduced != 0 ? word | f.lanes : word & ~f.lanes;
  std::memcpy(reg, &word, sizeof word);
}

bool is_complete(const Cta& cta, const NamedBarrier& b) {
  std::int64_t arrived = 0;
  bool all = true;
  for (std::size_t w = 0; w < cta.warps.size(); ++w) {
    if (b.arrived[w] != 0) {
      ++arrived;
    } else if (!has_ended(cta.warps[w])) {
      all = false;
    }
  }
  if (arrived == 0) return false;
  return b.expected > 0 ? arrived * kLanes >= b.expected : all;
}

// "0 1 4"
std::string barrier_warps(const std::vector<std::int32_t>& warps) {
  return fmt::format("{}", fmt::join(warps, " "));
}

// A barrier of all threads completes although warps have exited without it.
void report_absent_warps(Launch& launch, const Cta& cta, std::uint32_t number) {
  const NamedBarrier& b = cta.barriers[number];
  if (b.expected > 0) return;
  std::vector<std::int32_t> arrived, exited;
  Report r;
  r.parties.push_back(lanes_party(launch, cta.warps[static_cast<std::size_t>(b.last_warp)],
                                  b.arrived[static_cast<std::size_t>(b.last_warp)], b.last_pc, "arrived"));
  for (std::size_t w = 0; w < cta.warps.size(); ++w) {
    (b.arrived[w] != 0 ? arrived : exited).push_back(static_cast<std::int32_t>(w));
    if (b.arrived[w] != 0 || r.parties.size() > 1) continue;
    const Warp& warp = cta.warps[w];
    const auto at = std::max_element(warp.exited_at.begin(), warp.exited_at.end());
    const auto has_run = [](std::int32_t pc) { return pc >= 0; };
    const auto lanes = std::count_if(warp.exited_at.begin(), warp.exited_at.end(), has_run);
    r.parties.push_back(lanes_party(launch, warp, kAllLanes >> (kLanes - lanes), *at, "exited"));
  }
  if (exited.empty()) return;
  r.kind = ReportKind::absent_threads;
  r.severity = severity_of(r.kind);
  r.message = fmt::format(
      "barrier {} of all threads: {} of {} warps arrived ({}), and the others have exited ({})\n"
      "PTX does not define whether such a barrier completes; here it does",
      number, arrived.size(), cta.warps.size(), barrier_warps(arrived), barrier_warps(exited));
  r.hint = "let all warps reach the barrier, or give it the number of threads that do";
  static_cast<void>(add_report(launch, cta, std::move(r)));
}

void complete(Launch& launch, Cta& cta, std::uint32_t number) {
  NamedBarrier& b = cta.barriers[number];
  report_absent_warps(launch, cta, number);
  for (Warp& warp : cta.warps) {
    for (LaneGroup& f : warp.lane_groups) {
      const bool waits = f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == WaitKind::named_barrier &&
                         f.wait.object == number && (f.wait.value & kCounted) != 0;
      if (!waits) continue;
      write_result(*launch.program, warp, f, f.pc - 1, b);
      f.wait = {};
      wake(launch, cta, warp, f);
    }
  }
  if (launch.monitor != nullptr) {
    launch.monitor->barrier_done(launch, cta, static_cast<int>(number), b.arrived, b.waiting);
  }
  std::fill(b.arrived.begin(), b.arrived.end(), 0);
  std::fill(b.waiting.begin(), b.waiting.end(), 0);
  ++b.phase;
  event(launch, cta);
}

// The lane groups of the warp that wait at this barrier at other instructions.
LaneMask elsewhere(const Exec& exec, const Request& r) {
  LaneMask out = 0;
  for (const LaneGroup& f : exec.warp.lane_groups) {
    if (&f != &exec.lane_group && f.lanes != 0 && f.state == LaneGroupState::waiting && f.retries &&
        f.wait.kind == WaitKind::named_barrier && f.wait.object == r.barrier && f.wait.value == r.threads) {
      out |= f.lanes;
    }
  }
  return out;
}

// Moves the other lane groups of a warp that has arrived past their instruction too.
void move_behind(Exec& exec, const Request& r) {
  for (LaneGroup& f : exec.warp.lane_groups) {
    if (&f == &exec.lane_group || f.lanes == 0 || f.state != LaneGroupState::waiting || !f.retries) continue;
    if (f.wait.kind != WaitKind::named_barrier || f.wait.object != r.barrier || f.wait.value != r.threads) continue;
    ++f.pc;
    f.retries = false;
    f.wait.value |= kCounted;
    if (!r.waits) {
      f.wait = {};
      wake(exec.launch, exec.cta, exec.warp, f);
    }
  }
}

// Counts the warp. Flow::next: it may continue.
Flow arrive(Exec& exec, const Op& op, const Request& r, LaneMask all) {
  Cta& cta = exec.cta;
  NamedBarrier& b = cta.barriers[r.barrier];
  if (b.arrived.empty()) b.arrived.assign(cta.warps.size(), 0), b.waiting.assign(cta.warps.size(), 0);
  const auto w = static_cast<std::size_t>(exec.warp.index);
  const bool idle = std::all_of(b.arrived.begin(), b.arrived.end(), [](LaneMask m) { return m == 0; });
  if (idle) {
    b.expected = static_cast<std::int32_t>(r.threads);
    b.reduction = r.reduction;
    b.reduced = r.reduction == kAnd ? 1 : 0;
    if (r.threads > cta.warps.size() * kLanes) {
      const Flow flow =
          report(exec, mismatch(fmt::format("barrier {} with {} threads: the CTA has {} warps, {} threads", r.barrier,
                                            r.threads, cta.warps.size(), cta.warps.size() * kLanes)));
      if (flow == Flow::stopped) return flow;
    }
  } else if (b.arrived[w] != 0) {
    const Flow flow = report(exec, mismatch(fmt::format("warp {} arrives at barrier {} again before it is complete",
                                                        exec.warp.index, r.barrier),
                                            ReportKind::barrier_rearrive));
    if (flow == Flow::stopped) return flow;
  } else if (b.expected != static_cast<std::int32_t>(r.threads)) {
    const Flow flow =
        report(exec, mismatch(fmt::format("barrier {} is in use with {} threads, but this instruction names {}",
                                          r.barrier, b.expected, r.threads)));
    if (flow == Flow::stopped) return flow;
  } else if (b.reduction != r.reduction) {
    const Flow flow =
        report(exec, mismatch(fmt::format("barrier {} is in use by {}, but this instruction is {}", r.barrier,
                                          reduction_name(b.reduction), reduction_name(r.reduction))));
    if (flow == Flow::stopped) return flow;
  }
  if (r.reduction != kPlain) {
    const LaneMask p = predicate_of(exec, op) & all;
    if (b.reduction == kPopc) b.reduced += static_cast<std::uint64_t>(std::popcount(p));
    if (b.reduction == kAnd) b.reduced &= p == all ? 1 : 0;
    if (b.reduction == kOr) b.reduced |= p != 0 ? 1 : 0;
  }
  b.arrived[w] = all;
  b.waiting[w] = r.waits ? all : 0;
  b.last_pc = exec.lane_group.pc;
  b.last_warp = exec.warp.index;
  if (exec.launch.monitor != nullptr) {
    exec.launch.monitor->barrier_arrive(exec, static_cast<int>(r.barrier), all, r.waits);
  }
  event(exec);
  move_behind(exec, r);
  if (!is_complete(cta, b)) {
    if (!r.waits) return Flow::next;
    exec.lane_group.wait = {.kind = WaitKind::named_barrier, .object = r.barrier, .value = r.threads | kCounted};
    return Flow::waits_behind;
  }
  if (r.waits) write_result(exec.program(), exec.warp, exec.lane_group, exec.lane_group.pc, b);
  complete(exec.launch, cta, r.barrier);
  return Flow::next;
}

Flow run_barrier(Exec& exec, const Op& op, LaneMask lanes) {
  const Request r = request_of(exec, op, lanes);
  const std::size_t first = exec.program().instr(op).opcode == Opcode::bar_red ? 1 : 0;
  if (r.barrier > 15 || !is_uniform(exec, op.at[first], lanes)) {
    return report(exec, mismatch(r.barrier > 15 ? fmt::format("barrier {}: there are 0 to 15", r.barrier)
                                                : "the lanes name different barriers"));
  }
  if (r.threads % kLanes != 0) {
    const Flow flow = report(exec, mismatch(fmt::format("barrier {} with {} threads: a multiple of {} is needed",
                                                        r.barrier, r.threads, kLanes)));
    return flow;
  }
  LaneMask all = lanes;
  if (r.any_pc) all |= elsewhere(exec, r);
  if (all != live_lanes(exec.warp)) {
    exec.lane_group.wait = {.kind = WaitKind::named_barrier, .object = r.barrier, .value = r.threads};
    return Flow::waits;
  }
  return arrive(exec, op, r, all);
}

}  // namespace

void look_again_at_named_barriers(Launch& launch, Cta& cta) {
  for (std::uint32_t i = 0; i < cta.barriers.size(); ++i) {
    const NamedBarrier& b = cta.barriers[i];
    if (!b.arrived.empty() && b.expected == 0 && is_complete(cta, b)) complete(launch, cta, i);
  }
}

void check_named_barriers_at_end(Launch& launch, const Cta& cta) {
  for (std::size_t i = 0; i < cta.barriers.size(); ++i) {
    const NamedBarrier& b = cta.barriers[i];
    std::vector<std::int32_t> arrived;
    for (std::size_t w = 0; w < b.arrived.size(); ++w) {
      if (b.arrived[w] != 0) arrived.push_back(static_cast<std::int32_t>(w));
    }
    if (arrived.empty()) continue;
    Report r = mismatch(fmt::format("the CTA ended while barrier {} had {} of {} warps ({}): no thread waits for it", i,
                                    arrived.size(), b.expected / kLanes, barrier_warps(arrived)));
    r.severity = Severity::note;
    r.parties.push_back(lanes_party(launch, cta.warps[static_cast<std::size_t>(b.last_warp)],
                                    b.arrived[static_cast<std::size_t>(b.last_warp)], b.last_pc, "arrived"));
    if (!add_report(launch, cta, std::move(r))) return;
  }
}

MachineHandler find_named_barrier(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::bar_sync:
    case Opcode::bar_arrive:
    case Opcode::bar_red:
      return run_barrier;
    default:
      return find_cluster_barrier(instr);
  }
}

}  // namespace kvscope::ptx
