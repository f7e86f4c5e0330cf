// cvta, isspacep, mapa and other address computations; a thread's stack; cache hints.
#include "gpu/virtual/machine/memory/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/checked.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/matrix/detail/matrix_moves.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// d = function(lane, a) in each lane; registers of 4 or 8 bytes per lane.
template <class Function>
void for_lanes(Exec& exec, const Op& op, LaneMask lanes, int source, const Function& function) {
  const int to = width_of(op, 0), from = width_of(op, source);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t value = function(lane, lane_value(exec, op.at[static_cast<std::size_t>(source)], from, lane));
    std::memcpy(exec.registers + op.at[0] + lane * to, &value, static_cast<std::size_t>(to));
  }
}

Flow cvta(Exec& exec, const Op& op, LaneMask lanes) {
  const Space space = space_of(exec.program().instr(op));
  for_lanes(exec, op, lanes, 1, [space](int, std::uint64_t a) { return to_generic(space, a); });
  return Flow::next;
}

// Drops the high word unconditionally, as generated code does, and reports an address outside the window. A null pointer becomes
// address 0 of shared memory without a report: kernels convert optional pointers that they never use, and an access at 0 is reported.
Flow cvta_to(Exec& exec, const Op& op, LaneMask lanes) {
  const Space space = space_of(exec.program().instr(op));
  Flow flow = Flow::next;
  bool told = false;
  for_lanes(exec, op, lanes, 1, [&](int lane, std::uint64_t a) {
    if (space_of(a) == space) return from_generic(space, a);
    if (space == Space::shared && a == 0) return a;
    if (!told && (space != Space::global || space_of(a) != Space::param)) {
      told = true;
      flow = fault(exec, op, lane, ReportKind::bad_window,
                   fmt::format("0x{:x} is an address of {} and not of {}", a, name(space_of(a)), name(space)),
                   "ask isspacep first");
    }
    return space == Space::global || space == Space::constant ? a : a & (kWindowBytes - 1);
  });
  return flow == Flow::stopped ? flow : Flow::next;
}

bool is_in(const Exec& exec, const Instr& instr, std::uint64_t generic) {
  const Space really = space_of(generic);
  if (instr.has(Mod::shared_cluster)) {
    return really == Space::shared &&
           rank_of(generic - kSharedWindow) < static_cast<std::uint64_t>(cluster_size(exec.launch));
  }
  const Space space = space_of(instr);
  // A kernel's parameters are in constant memory, which counts as global.
  if (space == Space::global) return really == Space::global || really == Space::param;
  if (space == Space::shared) {
    return really == Space::shared &&
           rank_of(generic - kSharedWindow) == static_cast<std::uint64_t>(exec.cta.cluster_rank);
  }
  return really == space;
}

Flow isspacep(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  LaneMask yes = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool in = is_in(exec, instr, lane_value(exec, op.at[1], width_of(op, 1), lane));
    yes |= static_cast<LaneMask>(in) << lane;
  }
  write_predicate(exec, op.at[0], lanes, yes);
  return Flow::next;
}

// mapa: the same offset in another CTA of the cluster.
Flow mapa(Exec& exec, const Op& op, LaneMask lanes) {
  const bool generic = !exec.program().instr(op).has(Mod::shared_cluster);
  const std::int64_t ranks = cluster_size(exec.launch);
  Flow flow = Flow::next;
  for_lanes(exec, op, lanes, 1, [&](int lane, std::uint64_t a) {
    const std::uint64_t rank = lane_value(exec, op.at[2], width_of(op, 2), lane) & 0xffffffffU;
    if (rank >= static_cast<std::uint64_t>(ranks) || (generic && space_of(a) != Space::shared)) {
      if (flow == Flow::next) {
        flow = fault(exec, op, lane, ReportKind::bad_window,
                     rank >= static_cast<std::uint64_t>(ranks)
                         ? fmt::format("mapa: rank {} of a cluster of {}", rank, ranks)
                         : fmt::format("mapa: 0x{:x} is an address of {} and not of shared", a, name(space_of(a))));
      }
      return a;
    }
    const std::uint64_t mapped = shared_address(rank, offset_of(a & (kWindowBytes - 1)));
    return generic ? kSharedWindow + mapped : mapped;
  });
  return flow;
}

Flow getctarank(Exec& exec, const Op& op, LaneMask lanes) {
  for_lanes(exec, op, lanes, 1, [](int, std::uint64_t a) { return rank_of(a & (kWindowBytes - 1)); });
  return Flow::next;
}

// --- a thread's stack ------------------------------------------------------------------------------------------------

Activation& activation_of(Exec& exec) {
  return exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
}

Flow alloca_(Exec& exec, const Op& op, LaneMask lanes) {
  auto& ends = activation_of(exec).local_end;
  Flow flow = Flow::next;
  for_lanes(exec, op, lanes, 1, [&](int lane, std::uint64_t size) {
    const auto i = static_cast<std::size_t>(lane);
    const bool said = op.at[2] != kNoRegister;
    const auto align = std::max<std::int64_t>(
        said ? static_cast<std::int64_t>(lane_value(exec, op.at[2], width_of(op, 2), lane)) : 8, 1);
    const std::int64_t from = round_up(ends[i], std::min(align, kMostLocal + 1));
    if (size > static_cast<std::uint64_t>(kMostLocal) || from + static_cast<std::int64_t>(size) > kMostLocal) {
      if (flow == Flow::next) {
        flow = fault(exec, op, lane, ReportKind::stack,
                     fmt::format("alloca of {} bytes after {}: a thread has at most {}", size, from, kMostLocal));
      }
      return static_cast<std::uint64_t>(from);
    }
    const std::int64_t end = from + static_cast<std::int64_t>(size);
    if (!grow_local(exec.launch, exec.warp, LaneMask{1} << lane, end)) {
      if (flow == Flow::next) flow = report(exec, over_local(exec.launch, "alloca", end));
      return static_cast<std::uint64_t>(from);
    }
    ends[i] = end;
    return static_cast<std::uint64_t>(from);
  });
  return flow;
}

Flow stacksave(Exec& exec, const Op& op, LaneMask lanes) {
  const auto& ends = activation_of(exec).local_end;
  for_lanes(exec, op, lanes, 0,
            [&](int lane, std::uint64_t) { return static_cast<std::uint64_t>(ends[static_cast<std::size_t>(lane)]); });
  return Flow::next;
}

Flow stackrestore(Exec& exec, const Op& op, LaneMask lanes) {
  auto& ends = activation_of(exec).local_end;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto saved = static_cast<std::int64_t>(lane_value(exec, op.at[0], width_of(op, 0), lane));
    auto& end = ends[static_cast<std::size_t>(lane)];
    if (saved >= 0 && saved <= end) end = saved;
  }
  return Flow::next;
}

// --- caches ----------------------------------------------------------------------------------------------------------

Flow no_effect(Exec&, const Op&, LaneMask) {
  return Flow::next;
}

Flow createpolicy(Exec& exec, const Op& op, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    register_of<std::uint64_t>(exec, op.at[0])[std::countr_zero(rest)] = 0x1000'0000'0000'0000;
  }
  return Flow::next;
}

// discard: the bytes become undefined. Here they keep their values, which is allowed. Monitors are notified.
Flow discard(Exec& exec, const Op& op, LaneMask lanes) {
  const AccessRequest request{.space = space_of(exec.program().instr(op)), .kind = AccessKind::store, .bytes = 128};
  LaneAddresses addresses;
  operand_addresses(exec, op, 0, addresses);
  Reach r;
  for (LaneMask left = lanes; left != 0;) {
    if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
    if (exec.launch.monitor == nullptr || r.lanes == 0) continue;
    exec.launch.monitor->discarded(
        exec, op,
        {.kind = request.kind, .space = r.space, .bytes = request.bytes, .lanes = r.lanes, .addresses = addresses.at});
  }
  return Flow::next;
}

}  // namespace

void write_predicate(Exec& exec, std::uint32_t reg, LaneMask lanes, LaneMask value) {
  if (reg == kNoRegister) return;
  LaneMask word;
  std::memcpy(&word, exec.registers + reg, sizeof word);
  word = (word & ~lanes) | (value & lanes);
  std::memcpy(exec.registers + reg, &word, sizeof word);
}

MachineHandler find_memory(const Instr& instr) {
  if (const MachineHandler handler = find_load_store(instr)) return handler;
  if (const MachineHandler handler = find_bulk_fill(instr)) return handler;
  if (const MachineHandler handler = find_matrix_move(instr)) return handler;
  switch (instr.opcode) {
    case Opcode::cvta:
      return instr.has(Mod::to) ? cvta_to : cvta;
    case Opcode::isspacep:
      return isspacep;
    case Opcode::mapa:
      return mapa;
    case Opcode::getctarank:
      return getctarank;
    case Opcode::alloca:
      return alloca_;
    case Opcode::stacksave:
      return stacksave;
    case Opcode::stackrestore:
      return stackrestore;
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::applypriority:
      return no_effect;
    case Opcode::createpolicy:
      return createpolicy;
    case Opcode::discard:
      return discard;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
