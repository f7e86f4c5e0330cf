// cp.async.bulk without a tensor map, its reductions, and the small copies within a cluster: st.async and red.async.
//
//   global -> shared        completes on an mbarrier in the destination CTA, in every CTA of a multicast
//   shared -> another CTA   completes on an mbarrier in that CTA
//   shared -> global        belongs to a group of the thread: commit_group, wait_group{.read}
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/detail/copy_targets.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint64_t kUnit = 16;  // [bytes] sizes and addresses of bulk copies are multiples of it

std::uint64_t operand_value(const Exec& exec, const Op& op, int operand, int lane) {
  return lane_value(exec, op.at[static_cast<std::size_t>(operand)], width_of(op, operand), lane);
}

bool stopped(const Exec& exec) {
  return exec.launch.status == LaunchStatus::failed;
}

// Reports all violations of the 16-byte rule together. Returns true if there are none.
bool check_units(Exec& exec, const Op& op, int lane, std::uint64_t size, std::uint64_t to, std::uint64_t from) {
  std::string wrong;
  const auto check = [&](std::string_view what, std::uint64_t value, bool hex) {
    if (value % kUnit == 0) return;
    if (!wrong.empty()) wrong += ", ";
    wrong += hex ? fmt::format("{} 0x{:x}", what, value) : fmt::format("{} {}", what, value);
  };
  check("size", size, false);
  check("destination", to, true);
  check("source", from, true);
  if (wrong.empty()) return true;
  const std::string_view base = name(exec.program().instr(op).opcode);
  fault(exec, op, lane, ReportKind::cp_arg, fmt::format("{}: {}: not a multiple of 16 bytes", base, wrong));
  return false;
}

// Converts a shared address of a copy to one with the rank. False: a fault was reported.
bool reach_shared(Exec& exec, const Op& op, int lane, AccessKind kind, bool own, std::uint64_t bytes,
                  std::uint64_t& address) {
  Space space = Space::shared;
  // An address is generic only if the instruction does not name .shared; these instructions always do.
  const LaneRequest request{space, kind, static_cast<std::int64_t>(bytes), 1, own};
  return reach_lane(exec, op, lane, request, space, address) != nullptr;
}
bool reach_global(Exec& exec, const Op& op, int lane, AccessKind kind, std::uint64_t bytes, std::uint64_t& address) {
  Space space = Space::global;
  const LaneRequest request{space, kind, static_cast<std::int64_t>(bytes), 1};
  return bytes == 0 || reach_lane(exec, op, lane, request, space, address) != nullptr;
}

// --- issue -----------------------------------------------------------------------------------------------------------

// [d], [s], size, [m] {, mask}: into shared memory.
Flow to_shared(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool from_global = instr.has(Mod::global), own = !instr.has(Mod::shared_cluster);
  const bool reduces = instr.opcode == Opcode::cp_reduce_async_bulk;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.shared = lane_address(exec.registers, op, 0, lane);
    p.other = lane_address(exec.registers, op, 1, lane);
    const std::uint64_t size = operand_value(exec, op, 2, lane) & 0xffffffffU;
    bool fits = check_units(exec, op, lane, size, p.shared, p.other) &&
                reach_shared(exec, op, lane, reduces ? AccessKind::atomic : AccessKind::store, own, size, p.shared) &&
                (from_global ? reach_global(exec, op, lane, AccessKind::load, size, p.other)
                             : reach_shared(exec, op, lane, AccessKind::load, true, size, p.other));
    if (fits && instr.has(Mod::multicast_cluster)) {
      p.multicast = multicast_mask(exec, op, lane, op.list[4]);
      fits = p.multicast.has_value();
    }
    const std::uint64_t barrier = lane_address(exec.registers, op, 3, lane);
    const MbarrierAt at = fits ? find_mbarrier_at(exec, op, lane, Space::shared, barrier, !own) : MbarrierAt{};
    if (at.object == nullptr) {
      if (stopped(exec)) return Flow::stopped;
      continue;
    }
    p.op = new_operation(exec, op, lane, from_global ? AsyncKind::bulk_load : AsyncKind::shared_to_cluster);
    p.op.mbarrier = barrier;
    p.op.bytes = p.bytes = static_cast<std::int64_t>(size);
    p.instr = op.instr;
    p.reduces = reduces;
    ++at.object->copies;
    at.object->copied_bytes += p.bytes;
    if (exec.launch.monitor != nullptr) {
      p.reads.push_back({from_global ? Space::global : Space::shared, p.other, p.bytes});
      add_target_writes(p);
    }
    issue(exec, std::move(p));
  }
  return stopped(exec) ? Flow::stopped : Flow::next;
}

// [g], [s], size: into global memory.
Flow to_global(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool reduces = instr.opcode == Opcode::cp_reduce_async_bulk;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.other = lane_address(exec.registers, op, 0, lane);
    p.shared = lane_address(exec.registers, op, 1, lane);
    const std::uint64_t size = operand_value(exec, op, 2, lane) & 0xffffffffU;
    if (!check_units(exec, op, lane, size, p.other, p.shared) ||
        !reach_shared(exec, op, lane, AccessKind::load, true, size, p.shared) ||
        !reach_global(exec, op, lane, AccessKind::store, size, p.other)) {
      if (stopped(exec)) return Flow::stopped;
      continue;
    }
    p.op = new_operation(exec, op, lane, reduces ? AsyncKind::bulk_reduce : AsyncKind::bulk_store);
    p.bytes = static_cast<std::int64_t>(size);
    p.instr = op.instr;
    p.reduces = reduces;
    if (exec.launch.monitor != nullptr) {
      p.reads.push_back({Space::shared, p.shared, p.bytes});
      p.writes.push_back({Space::global, p.other, p.bytes});
    }
    add_to_group(exec.cta, p.op);
    issue(exec, std::move(p));
  }
  return stopped(exec) ? Flow::stopped : Flow::next;
}

Flow prefetch_bulk(Exec& exec, const Op& op, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    const std::uint64_t size = operand_value(exec, op, 1, lane) & 0xffffffffU;
    if (check_units(exec, op, lane, size, 0, address)) {
      static_cast<void>(reach_global(exec, op, lane, AccessKind::load, size, address));
    }
    if (stopped(exec)) return Flow::stopped;
  }
  return Flow::next;
}

// st.async and red.async: [a], b, [m], both in the same CTA of the cluster.
Flow small_async(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool reduces = instr.opcode == Opcode::red_async;
  const auto size = static_cast<std::size_t>(bits(instr.type()) / 8), count = static_cast<std::size_t>(instr.vector);
  const std::size_t bytes = size * count;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.shared = lane_address(exec.registers, op, 0, lane);
    const Space said = instr.has(Mod::shared_cluster) ? Space::shared : Space::generic;
    Space space = said;
    const LaneRequest request{said, reduces ? AccessKind::atomic : AccessKind::store, static_cast<std::int64_t>(bytes),
                              static_cast<std::int64_t>(bytes)};
    std::uint64_t barrier = lane_address(exec.registers, op, 2, lane);
    MbarrierAt at;
    if (reach_lane(exec, op, lane, request, space, p.shared) != nullptr) {
      at = find_mbarrier_at(exec, op, lane, said, barrier, true);
      barrier &= kWindowBytes - 1;
    }
    if (at.object != nullptr && rank_of(barrier) != rank_of(p.shared)) {
      fault(exec, op, lane, ReportKind::cp_arg,
            fmt::format("the bytes go to rank {} and the mbarrier is in rank {}", rank_of(p.shared), rank_of(barrier)),
            "mapa both with one rank");
      at.object = nullptr;
    }
    if (at.object == nullptr) {
      if (stopped(exec)) return Flow::stopped;
      continue;
    }
    for (std::size_t e = 0; e < count; ++e) {
      const std::uint32_t reg = op.list[1 + e];
      std::memcpy(reinterpret_cast<std::byte*>(p.values.data()) + e * size,
                  exec.registers + reg + static_cast<std::size_t>(lane) * size, size);
    }
    p.op = new_operation(exec, op, lane, reduces ? AsyncKind::red_async : AsyncKind::st_async);
    p.op.mbarrier = barrier;
    p.op.bytes = p.bytes = static_cast<std::int64_t>(bytes);
    p.instr = op.instr;
    p.reduces = reduces;
    ++at.object->copies;
    at.object->copied_bytes += p.bytes;
    if (exec.launch.monitor != nullptr) add_target_writes(p);
    issue(exec, std::move(p));
  }
  return stopped(exec) ? Flow::stopped : Flow::next;
}

// --- groups ----------------------------------------------------------------------------------------------------------

ThreadGroups& groups_of(Cta& cta, std::int32_t thread) {
  auto& all = cta.async.bulk;
  if (all.empty()) all.resize(cta.warps.size() * kLanes);
  return all[static_cast<std::size_t>(thread)];
}

Flow commit_bulk(Exec& exec, const Op&, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    ThreadGroups& t = groups_of(exec.cta, thread_of(exec, std::countr_zero(rest)));
    t.groups.push_back(std::move(t.open));
    t.open.clear();
    ++exec.cta.async.pushed;
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_commit(exec, AsyncKind::bulk_store, lanes);
  return Flow::next;
}

// Performs all but the newest N groups of each lane. With .read the groups are kept: their writes are not yet ordered.
Flow wait_bulk_group(Exec& exec, const Op& op, LaneMask lanes) {
  const bool read = exec.program().instr(op).has(Mod::read);
  std::array<std::uint64_t, kLanes> last{};
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t most = operand_value(exec, op, 0, lane);
    ThreadGroups& t = groups_of(exec.cta, thread_of(exec, lane));
    if (t.groups.size() <= most) continue;
    const std::size_t done = t.groups.size() - most;
    std::vector<std::uint64_t> numbers;
    for (std::size_t g = 0; g < done; ++g) {
      const std::vector<std::uint64_t>& group = t.groups[g];
      if (group.empty()) continue;
      numbers.insert(numbers.end(), group.begin(), group.end());
      t.read = std::max(t.read, group.back());
      last[static_cast<std::size_t>(lane)] = group.back() + 1;
    }
    perform_all(exec.launch, exec.cta, numbers);
    if (!read) t.groups.erase(t.groups.begin(), t.groups.begin() + static_cast<std::ptrdiff_t>(done));
  }
  event(exec);
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_wait(exec, AsyncKind::bulk_store, lanes, read, last);
  return stopped(exec) ? Flow::stopped : Flow::next;
}

// --- performing ------------------------------------------------------------------------------------------------------

// Combines `to` with `from` element by element, with the instruction's operation.
void reduce_bytes(const Instr& instr, std::byte* to, const std::byte* from, std::int64_t bytes, bool global) {
  const Type type = instr.type();
  const Reduce reduce = find_reduce(reduce_op(instr), type);
  if (reduce == nullptr) return;
  const int size = bits(type) / 8;
  for (std::int64_t b = 0; b < bytes; b += size) reduce(to + b, from + b, nullptr, global);
}

void move(const Launch& launch, const PendingOp& p, std::byte* to, const std::byte* from, bool global) {
  if (p.bytes == 0) return;
  if (p.reduces) {
    reduce_bytes(launch.program->decoded.instrs[p.instr], to, from, p.bytes, global);
  } else {
    std::memmove(to, from, static_cast<std::size_t>(p.bytes));  // within shared memory they may overlap
  }
}

const std::byte* source_of(Launch& launch, Cta& cta, const PendingOp& p) {
  switch (p.op.kind) {
    case AsyncKind::bulk_load:
      return launch.memory->at(p.other, p.bytes);
    case AsyncKind::shared_to_cluster:
      return shared_at(cta, offset_of(p.other), p.bytes);
    case AsyncKind::st_async:
    case AsyncKind::red_async:
      return reinterpret_cast<const std::byte*>(p.values.data());
    default:
      return shared_at(cta, offset_of(p.shared), p.bytes);
  }
}

}  // namespace

void add_to_group(Cta& cta, const AsyncOp& store) {
  ThreadGroups& t = groups_of(cta, store.thread);
  t.open.push_back(store.number);
  t.last = store;
  ++cta.async.pushed;
}

void perform_bulk(Launch& launch, Cta& cta, const PendingOp& p) {
  const std::byte* const from = source_of(launch, cta, p);
  const bool stores = p.op.kind == AsyncKind::bulk_store || p.op.kind == AsyncKind::bulk_reduce;
  const std::vector<Cta*> targets = stores ? std::vector<Cta*>() : live_targets(launch, cta, p);
  if (stores) {
    std::byte* const to = launch.memory->writable_at(p.other, p.bytes);
    if (from != nullptr && (to != nullptr || p.bytes == 0)) {
      move(launch, p, to, from, true);
    } else {
      engine_fault(launch, cta, p.op, ReportKind::use_after_free,
                   fmt::format("{} bytes at 0x{:x}, which has been freed since the copy was issued", p.bytes, p.other));
    }
  } else if (from == nullptr && p.bytes > 0) {
    engine_fault(launch, cta, p.op, ReportKind::use_after_free,
                 fmt::format("{} bytes at 0x{:x}, which has been freed since the copy was issued", p.bytes, p.other));
  } else {
    for (Cta* const target : targets) {
      std::byte* const to = shared_at(*target, offset_of(p.shared), p.bytes);
      if (to != nullptr) move(launch, p, to, from, false);
    }
  }
  if (launch.monitor != nullptr) launch.monitor->async_done(launch, cta, p.op);
  if (p.op.mbarrier == 0) return;
  for (Cta* const target : targets) complete_tx(launch, *target, offset_of(p.op.mbarrier), p.op.bytes, p.op);
}

MachineHandler find_bulk_copy(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::cp_async_bulk:
    case Opcode::cp_reduce_async_bulk:
      return instr.has(Mod::bulk_group) ? to_global : to_shared;
    case Opcode::cp_async_bulk_commit_group:
      return commit_bulk;
    case Opcode::cp_async_bulk_wait_group:
      return wait_bulk_group;
    case Opcode::cp_async_bulk_prefetch:
      return prefetch_bulk;
    case Opcode::st_async:
    case Opcode::red_async:
      return small_async;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
