// cp.async: 4, 8 or 16 bytes per lane from global to shared memory, in groups of the issuing thread. Bytes that a copy
// does not read are filled with zeros.
//
//   cp.async [d], [s], 16, 12      12 bytes of s, then 4 zeros, when the group is waited for (policy late)
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

ThreadCopies& copies_of(Cta& cta, std::int32_t thread) {
  auto& all = cta.async.cp_async;
  if (all.empty()) all.resize(cta.warps.size() * kLanes);
  return all[static_cast<std::size_t>(thread)];
}

AsyncOp as_operation(const Cta& cta, std::int32_t thread, const CpAsyncCopy& c) {
  return {c.number, AsyncKind::cp_async, cta.index, thread, c.pc, 0, 0};
}

void move(Launch& launch, Cta& cta, std::int32_t thread, CpAsyncCopy& c) {
  c.performed = true;
  std::byte* const to = shared_at(cta, offset_of(c.target), c.bytes);
  const std::byte* const from = c.read > 0 ? launch.memory->at(c.source, c.read) : nullptr;
  if (to == nullptr) return;
  if (c.read > 0 && from == nullptr) {
    engine_fault(launch, cta, as_operation(cta, thread, c), ReportKind::use_after_free,
                 fmt::format("{} bytes at 0x{:x}, which has been freed since the copy was issued", c.read, c.source));
    return;
  }
  if (launch.monitor != nullptr) {
    const AsyncOp op = as_operation(cta, thread, c);
    const ByteRange read{Space::global, c.source, c.read}, write{Space::shared, c.target, c.bytes};
    const std::span<const ByteRange> reads(&read, c.read > 0 ? 1 : 0), writes(&write, 1);
    launch.monitor->async_moves(launch, cta, op, reads, writes);
    if (c.read > 0) std::memcpy(to, from, c.read);
    std::memset(to + c.read, 0, static_cast<std::size_t>(c.bytes - c.read));
    launch.monitor->async_done(launch, cta, op);
    return;
  }
  if (c.read > 0) std::memcpy(to, from, c.read);
  std::memset(to + c.read, 0, static_cast<std::size_t>(c.bytes - c.read));
}

// The number of bytes that a lane reads: n, src-size, or 0.
struct ReadSize {
  std::array<std::int64_t, kLanes> of{};
  bool whole = true;
};
ReadSize read_sizes(const Exec& exec, const Op& op, std::int64_t n) {
  ReadSize sizes;
  sizes.of.fill(n);
  const std::uint32_t reg = op.at[3];
  const int width = width_of(op, 3);
  if (reg == kNoRegister || width == 8) return sizes;  // a cache policy
  if (width == 0) {                                    // a predicate: true ignores the source
    LaneMask word;
    std::memcpy(&word, exec.registers + reg, sizeof word);
    if ((op.negated >> 3 & 1) != 0) word = ~word;
    sizes.whole = word == 0;
    for (std::size_t i = 0; i < kLanes; ++i) sizes.of[i] = (word >> i & 1) != 0 ? 0 : n;
    return sizes;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    sizes.of[i] = static_cast<std::int64_t>(lane_value(exec, reg, width, static_cast<int>(i)));
    sizes.whole = sizes.whole && sizes.of[i] == n;
  }
  return sizes;
}

Flow cp_async(Exec& exec, const Op& op, LaneMask lanes) {
  const int first = std::countr_zero(lanes);
  const auto n = static_cast<std::int64_t>(lane_value(exec, op.at[2], width_of(op, 2), first));
  LaneAddresses targets, sources;
  operand_addresses(exec, op, 0, targets);
  operand_addresses(exec, op, 1, sources);
  const ReadSize sizes = read_sizes(exec, op, n);

  LaneMask good = lanes;
  for (LaneMask rest = lanes; rest != 0 && !sizes.whole; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::int64_t size = sizes.of[static_cast<std::size_t>(lane)];
    if (size >= 0 && size <= n) continue;
    good &= ~(LaneMask{1} << lane);
    if (fault(exec, op, lane, ReportKind::cp_arg, fmt::format("cp.async of {} bytes with a source size of {}", n, size),
              fmt::format("0 to {}: the rest is filled with zeros", n)) == Flow::stopped) {
      return Flow::stopped;
    }
  }

  Reach to;
  const AccessRequest write{
      .space = Space::shared, .kind = AccessKind::store, .bytes = static_cast<std::int32_t>(n), .own_cta = true};
  if (good == 0) return Flow::next;
  LaneMask left = good;
  if (!reach(exec, op, write, targets, left, to)) return Flow::stopped;
  good = to.lanes;
  if (sizes.whole && good != 0) {
    Reach from;
    const AccessRequest read{.space = Space::global, .kind = AccessKind::load, .bytes = static_cast<std::int32_t>(n)};
    LaneAddresses checked = sources;
    left = good;
    if (!reach(exec, op, read, checked, left, from)) return Flow::stopped;
    good = from.lanes;
  } else {
    for (LaneMask rest = good; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const auto i = static_cast<std::size_t>(lane);
      if (sizes.of[i] == 0) continue;  // nothing is read, so the source address is not checked
      Space space = Space::global;
      const LaneRequest read{Space::global, AccessKind::load, sizes.of[i], n};
      if (reach_lane(exec, op, lane, read, space, sources.at[i]) != nullptr) continue;
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      good &= ~(LaneMask{1} << lane);
    }
  }

  const bool now = exec.launch.config.options.policy == Policy::early;
  const std::int32_t pc = pc_of(exec, op);
  const std::uint64_t number = exec.launch.next_async;
  for (LaneMask rest = good; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto i = static_cast<std::size_t>(lane);
    const std::int32_t thread = thread_of(exec, lane);
    ThreadCopies& mine = copies_of(exec.cta, thread);
    mine.copies.push_back({exec.launch.next_async++, sources.at[i], static_cast<std::uint32_t>(targets.at[i]), pc,
                           static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(sizes.of[i]), false});
    ++exec.cta.async.pushed;
  }
  if (good != 0 && exec.launch.monitor != nullptr)
    exec.launch.monitor->copies_issue(exec, {good, pc, number, n, sources.at, targets.at, sizes.of});
  for (LaneMask rest = now ? good : 0; rest != 0; rest &= rest - 1) {
    const std::int32_t thread = thread_of(exec, std::countr_zero(rest));
    move(exec.launch, exec.cta, thread, copies_of(exec.cta, thread).copies.back());
  }
  return Flow::next;
}

void close_group(ThreadCopies& t) {
  const auto count = static_cast<std::int32_t>(t.copies.size());
  t.groups.push_back(count - t.grouped);
  t.grouped = count;
}

// Retires the oldest groups until `most` remain; returns the number of the last retired copy, plus 1.
std::uint64_t retire(Exec& exec, std::int32_t thread, ThreadCopies& t, std::size_t most) {
  if (t.groups.size() <= most) return 0;
  const std::size_t groups = t.groups.size() - most;
  std::int32_t count = 0;
  for (std::size_t g = 0; g < groups; ++g) count += t.groups[g];
  std::uint64_t last = t.arrived > 0 ? t.arrived + 1 : 0;
  for (std::int32_t c = 0; c < count; ++c) {
    CpAsyncCopy& copy = t.copies[static_cast<std::size_t>(c)];
    if (!copy.performed) move(exec.launch, exec.cta, thread, copy);
    last = copy.number + 1;
  }
  t.copies.erase(t.copies.begin(), t.copies.begin() + count);
  t.groups.erase(t.groups.begin(), t.groups.begin() + static_cast<std::ptrdiff_t>(groups));
  t.grouped -= count;
  return last;
}

Flow commit_cp_async(Exec& exec, const Op&, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    close_group(copies_of(exec.cta, thread_of(exec, std::countr_zero(rest))));
    ++exec.cta.async.pushed;
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_commit(exec, AsyncKind::cp_async, lanes);
  return Flow::next;
}

Flow wait_for(Exec& exec, LaneMask lanes, std::size_t most) {
  std::array<std::uint64_t, kLanes> last{};
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::int32_t thread = thread_of(exec, lane);
    last[static_cast<std::size_t>(lane)] = retire(exec, thread, copies_of(exec.cta, thread), most);
  }
  event(exec);
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_wait(exec, AsyncKind::cp_async, lanes, false, last);
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

Flow wait_cp_async_group(Exec& exec, const Op& op, LaneMask lanes) {
  return wait_for(exec, lanes, lane_value(exec, op.at[0], width_of(op, 0), std::countr_zero(lanes)));
}

Flow wait_all(Exec& exec, const Op& op, LaneMask lanes) {
  commit_cp_async(exec, op, lanes);
  return wait_for(exec, lanes, 0);
}

Flow mbarrier_arrive(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const Space space = space_of(instr);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    const MbarrierAt at = find_mbarrier_at(exec, op, lane, space, address, false);
    if (at.object == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    if (!instr.has(Mod::noinc) && !at.object->raise_pending()) {
      if (fault(exec, op, lane, ReportKind::mbar_underflow,
                fmt::format("cp.async.mbarrier.arrive: {} arrivals are already pending, the maximum of a phase",
                            Mbarrier::kMost)) == Flow::stopped) {
        return Flow::stopped;
      }
      continue;
    }
    CpAsyncArrival arrival;
    arrival.op = new_operation(exec, op, lane, AsyncKind::cp_async);
    arrival.op.mbarrier = shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), at.offset);
    const ThreadCopies& mine = copies_of(exec.cta, arrival.op.thread);
    arrival.last = mine.copies.empty() ? 0 : mine.copies.back().number;
    if (exec.launch.monitor != nullptr) {
      exec.launch.monitor->cp_async_arrive(exec, LaneMask{1} << lane, arrival.op.mbarrier);
    }
    if (exec.launch.config.options.policy == Policy::early) {
      perform_copies(exec.launch, exec.cta, arrival.op.thread, arrival.last);
      arrive_by_engine(exec.launch, exec.cta, at.offset, arrival.op);
    } else {
      exec.cta.async.arrivals.push_back(arrival);
      ++exec.cta.async.pushed;
    }
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

}  // namespace

void Monitor::copies_issue(const Exec& exec, const LaneCopies& copies) {
  std::uint64_t number = copies.first;
  for (LaneMask rest = copies.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto i = static_cast<std::size_t>(lane);
    const ByteRange read{Space::global, copies.sources[i], copies.reads[i]};
    const ByteRange written{Space::shared, copies.targets[i], copies.bytes};
    const AsyncOp op{number++, AsyncKind::cp_async, exec.cta.index, thread_of(exec, lane), copies.pc, 0, 0};
    async_issue(exec, op, std::span(&read, read.bytes > 0 ? 1 : 0), std::span(&written, 1));
  }
}

void perform_copies(Launch& launch, Cta& cta, std::int32_t thread, std::uint64_t last) {
  ThreadCopies& t = copies_of(cta, thread);
  std::int32_t count = 0;
  for (CpAsyncCopy& copy : t.copies) {
    if (copy.number > last) break;
    if (!copy.performed) move(launch, cta, thread, copy);
    t.arrived = copy.number;
    ++count;
  }
  t.copies.erase(t.copies.begin(), t.copies.begin() + count);
  t.grouped = std::max(0, t.grouped - count);
  for (std::int32_t& group : t.groups) {  // the groups remain, with the copies that are left in them
    const std::int32_t done = std::min(group, count);
    group -= done;
    count -= done;
  }
}

std::uint64_t waiting_copies(const Cta& cta) {
  std::uint64_t count = 0;
  for (const ThreadCopies& t : cta.async.cp_async) {
    count += static_cast<std::uint64_t>(
        std::count_if(t.copies.begin(), t.copies.end(), [](const CpAsyncCopy& c) { return !c.performed; }));
  }
  return count;
}

void perform_one_copy(Launch& launch, Cta& cta, std::uint64_t pick) {
  for (std::size_t thread = 0; thread < cta.async.cp_async.size(); ++thread) {
    for (CpAsyncCopy& copy : cta.async.cp_async[thread].copies) {
      if (copy.performed) continue;
      if (pick-- > 0) continue;
      move(launch, cta, static_cast<std::int32_t>(thread), copy);
      return;
    }
  }
}

MachineHandler find_cp_async(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::cp_async:
      return cp_async;
    case Opcode::cp_async_commit_group:
      return commit_cp_async;
    case Opcode::cp_async_wait_group:
      return wait_cp_async_group;
    case Opcode::cp_async_wait_all:
      return wait_all;
    case Opcode::cp_async_mbarrier_arrive:
      return mbarrier_arrive;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
