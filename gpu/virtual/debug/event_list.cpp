#include "gpu/virtual/debug/event_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

using Kind = MachineEventKind;

constexpr std::array<std::string_view, kMachineEventKinds> kNames = {"cta_start",
                                                                     "cta_exit",
                                                                     "cta_suspend",
                                                                     "instruction",
                                                                     "retry",
                                                                     "split",
                                                                     "merge",
                                                                     "park",
                                                                     "resume",
                                                                     "exit",
                                                                     "load",
                                                                     "store",
                                                                     "atomic",
                                                                     "barrier_arrive",
                                                                     "barrier_done",
                                                                     "cluster_arrive",
                                                                     "cluster_wait",
                                                                     "warp_barrier",
                                                                     "collective",
                                                                     "mbarrier_init",
                                                                     "mbarrier_inval",
                                                                     "mbarrier_arrive",
                                                                     "mbarrier_expect",
                                                                     "mbarrier_complete",
                                                                     "mbarrier_phase",
                                                                     "mbarrier_passed",
                                                                     "mbarrier_not_yet",
                                                                     "fence",
                                                                     "proxy_fence",
                                                                     "engine_issue",
                                                                     "engine_moves",
                                                                     "engine_done",
                                                                     "group_commit",
                                                                     "group_wait",
                                                                     "cp_async_arrive",
                                                                     "printf",
                                                                     "report"};

MachineEvent of_cta(const Launch& launch, const Cta& cta, Kind kind) {
  MachineEvent e;
  e.step = launch.step;
  e.cta = cta.index;
  e.kind = kind;
  return e;
}

MachineEvent of_lanes(const Exec& exec, Kind kind, LaneMask lanes) {
  MachineEvent e = of_cta(exec.launch, exec.cta, kind);
  e.warp = static_cast<std::int8_t>(exec.warp.index);
  e.pc = exec.lane_group.pc;
  e.lanes = lanes;
  return e;
}

MachineEvent of_op(const Exec& exec, const Op& op, Kind kind, LaneMask lanes) {
  MachineEvent e = of_lanes(exec, kind, lanes);
  e.pc = pc_of(exec, op);
  return e;
}

Kind kind_of(MbarrierEvent event) {
  static constexpr std::array<Kind, 8> kKinds = {Kind::mbarrier_init,   Kind::mbarrier_inval,    Kind::mbarrier_arrive,
                                                 Kind::mbarrier_expect, Kind::mbarrier_complete, Kind::mbarrier_phase,
                                                 Kind::mbarrier_passed, Kind::mbarrier_not_yet};
  return kKinds[static_cast<std::size_t>(event)];
}

bool is_mbarrier(Kind kind) {
  return kind >= Kind::mbarrier_init && kind <= Kind::mbarrier_not_yet;
}
bool is_engine(Kind kind) {
  return kind >= Kind::engine_issue && kind <= Kind::engine_done;
}
bool is_group(Kind kind) {
  return kind == Kind::group_commit || kind == Kind::group_wait;
}
bool has_object(Kind kind) {
  return is_engine(kind) || kind == Kind::group_wait || kind == Kind::barrier_arrive || kind == Kind::barrier_done;
}
bool has_address(Kind kind) {
  return kind == Kind::load || kind == Kind::store || kind == Kind::atomic || is_mbarrier(kind) ||
         kind == Kind::engine_issue || kind == Kind::engine_moves || kind == Kind::cp_async_arrive;
}

// The JSON key of the event's value; empty: the event has no value.
std::string_view value_name(Kind kind) {
  switch (kind) {
    case Kind::split:
      return "to_pc";
    case Kind::load:
    case Kind::store:
    case Kind::atomic:
      return "bytes_a_lane";
    case Kind::barrier_arrive:
      return "waits";
    case Kind::barrier_done:
      return "threads";
    case Kind::mbarrier_init:
    case Kind::mbarrier_arrive:
      return "arrivals";
    case Kind::mbarrier_expect:
    case Kind::mbarrier_complete:
    case Kind::engine_issue:
    case Kind::engine_moves:
    case Kind::engine_done:
      return "bytes";
    case Kind::mbarrier_phase:
    case Kind::mbarrier_passed:
    case Kind::mbarrier_not_yet:
      return "phase";
    case Kind::printf:
      return "characters";
    default:
      return {};
  }
}

std::string value_text(const MachineEvent& e) {
  switch (e.kind) {
    case Kind::load:
    case Kind::store:
    case Kind::atomic:
      return fmt::format(" {} bytes a lane", e.value);
    case Kind::barrier_arrive:
      return e.value != 0 ? " and waits" : "";
    case Kind::split:
      return fmt::format(" to op {}", e.value);
    default:
      return value_name(e.kind).empty() ? "" : fmt::format(" {} {}", value_name(e.kind), e.value);
  }
}

}  // namespace

std::string_view name(MachineEventKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<MachineEventKind> find_machine_event(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<MachineEventKind>(found - kNames.begin());
}

EventList::EventList(EventFilter filter, Sink sink) : filter_(std::move(filter)), sink_(std::move(sink)) {
  wanted_.fill(filter_.kinds.empty());
  for (const Kind kind : filter_.kinds) wanted_[static_cast<std::size_t>(kind)] = true;
}

// The step of a split is known only if every step is reported.
bool EventList::wants_instructions() const {
  return wanted_[static_cast<std::size_t>(Kind::instruction)] || wanted_[static_cast<std::size_t>(Kind::retry)] ||
         wanted_[static_cast<std::size_t>(Kind::split)];
}

void EventList::hand_on(const MachineEvent& e, LaneAddressSpan addresses) {
  if (!wanted_[static_cast<std::size_t>(e.kind)] || e.step < filter_.first_step || e.step > filter_.last_step) return;
  if (filter_.cta >= 0 && e.cta != filter_.cta) return;
  if (filter_.warp >= 0 && e.warp != filter_.warp) return;
  ++count_;
  sink_(e, filter_.lane_addresses ? addresses : LaneAddressSpan{});
}

// --- calls from the machine ------------------------------------------------------------------------------------------

void EventList::cta_begins(Launch& launch, const Cta& cta) {
  hand_on(of_cta(launch, cta, Kind::cta_start));
}
void EventList::cta_ends(Launch& launch, const Cta& cta) {
  hand_on(of_cta(launch, cta, Kind::cta_exit));
}
void EventList::cta_suspended(Launch& launch, const Cta& cta) {
  hand_on(of_cta(launch, cta, Kind::cta_suspend));
}

void EventList::instruction(const Exec& exec, const Op& op, LaneMask lanes) {
  hand_on(of_op(exec, op, Kind::instruction, lanes));
}
void EventList::retried(const Exec& exec, const Op& op, LaneMask lanes) {
  hand_on(of_op(exec, op, Kind::retry, lanes));
}

void EventList::split(const Exec& exec, LaneMask taken, std::int32_t pc) {
  MachineEvent e = of_lanes(exec, Kind::split, taken);
  e.value = pc;
  hand_on(e);
}
void EventList::merge(const Exec& exec, LaneMask joined) {
  hand_on(of_lanes(exec, Kind::merge, joined));
}
void EventList::park(const Exec& exec, const Op& op) {
  hand_on(of_op(exec, op, Kind::park, exec.lane_group.lanes));
}
void EventList::resume(const Exec& exec) {
  hand_on(of_lanes(exec, Kind::resume, exec.lane_group.lanes));
}
void EventList::exit(const Exec& exec, LaneMask lanes) {
  hand_on(of_lanes(exec, Kind::exit, lanes));
}

void EventList::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  const Kind kind = access.kind == AccessKind::load    ? Kind::load
                    : access.kind == AccessKind::store ? Kind::store
                                                       : Kind::atomic;
  MachineEvent e = of_op(exec, op, kind, access.lanes);
  e.space = access.space;
  if (access.lanes != 0) e.address = access.addresses[static_cast<std::size_t>(std::countr_zero(access.lanes))];
  e.value = access.bytes;
  hand_on(e, access.addresses);
}

void EventList::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) {
  MachineEvent e = of_lanes(exec, Kind::barrier_arrive, lanes);
  e.object = static_cast<std::uint64_t>(barrier);
  e.value = waits ? 1 : 0;
  hand_on(e);
}
void EventList::barrier_done(Launch& launch, const Cta& cta, int barrier, LaneMasks arrived, LaneMasks) {
  MachineEvent e = of_cta(launch, cta, Kind::barrier_done);
  e.object = static_cast<std::uint64_t>(barrier);
  for (const LaneMask lanes : arrived) e.value += std::popcount(lanes);
  hand_on(e);
}
void EventList::cluster_arrive(const Exec& exec, LaneMask lanes, Order) {
  hand_on(of_lanes(exec, Kind::cluster_arrive, lanes));
}
void EventList::cluster_wait(const Exec& exec, LaneMask lanes, Order) {
  hand_on(of_lanes(exec, Kind::cluster_wait, lanes));
}
void EventList::warp_barrier(const Exec& exec, LaneMask lanes) {
  hand_on(of_lanes(exec, Kind::warp_barrier, lanes));
}
void EventList::collective(const Exec& exec, const Op& op, LaneMask lanes) {
  hand_on(of_op(exec, op, Kind::collective, lanes));
}

void EventList::mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                         std::uint64_t address, std::int64_t amount, Order, Scope) {
  MachineEvent e = exec != nullptr ? of_lanes(*exec, kind_of(event), lanes) : of_cta(launch, cta, kind_of(event));
  e.space = Space::shared;
  e.address = address;
  e.value = amount;
  hand_on(e);
}

void EventList::fence(const Exec& exec, LaneMask lanes, Order, Scope) {
  hand_on(of_lanes(exec, Kind::fence, lanes));
}
void EventList::proxy_fence(const Exec& exec, LaneMask lanes, Space space) {
  MachineEvent e = of_lanes(exec, Kind::proxy_fence, lanes);
  e.space = space;
  hand_on(e);
}

void EventList::engine(const Launch& launch, const AsyncOp& op, MachineEventKind kind, ByteRanges reads,
                       ByteRanges writes) {
  MachineEvent e;
  e.step = launch.step;
  e.cta = op.cta;
  e.warp = static_cast<std::int8_t>(op.thread / kLanes);
  e.lanes = LaneMask{1} << op.thread % kLanes;
  e.pc = op.pc;
  e.kind = kind;
  e.async = op.kind;
  e.object = op.number;
  e.value = kind == Kind::engine_done ? op.bytes : 0;
  for (const ByteRange& range : writes) e.value += range.bytes;
  if (const auto& ranges = writes.empty() ? reads : writes; !ranges.empty()) {
    e.space = ranges.front().space;
    e.address = ranges.front().address;
  }
  hand_on(e);
}
void EventList::async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) {
  engine(exec.launch, op, Kind::engine_issue, reads, writes);
}
void EventList::async_moves(Launch& launch, const Cta&, const AsyncOp& op, ByteRanges reads, ByteRanges writes) {
  engine(launch, op, Kind::engine_moves, reads, writes);
}
void EventList::async_done(Launch& launch, const Cta&, const AsyncOp& op) {
  engine(launch, op, Kind::engine_done, {}, {});
}

void EventList::group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) {
  MachineEvent e = of_lanes(exec, Kind::group_commit, lanes);
  e.async = kind;
  hand_on(e);
}
void EventList::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool, OperationNumbers last) {
  MachineEvent e = of_lanes(exec, Kind::group_wait, lanes);
  e.async = kind;
  const std::uint64_t behind = lanes != 0 ? last[static_cast<std::size_t>(std::countr_zero(lanes))] : 0;
  e.object = behind > 0 ? behind - 1 : 0;
  hand_on(e);
}
void EventList::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  MachineEvent e = of_lanes(exec, Kind::cp_async_arrive, lanes);
  e.space = Space::shared;
  e.address = mbarrier;
  hand_on(e);
}

void EventList::printed(const Exec& exec, std::string_view text) {
  MachineEvent e = of_lanes(exec, Kind::printf, exec.lane_group.lanes);
  e.value = static_cast<std::int64_t>(text.size());
  hand_on(e);
}

void EventList::reported(Launch& launch, const Report& report) {
  const auto& grid = launch.config.grid;
  MachineEvent e;
  e.step = launch.step;
  e.cta = static_cast<std::int32_t>(report.cta[0] + grid[0] * (report.cta[1] + grid[1] * report.cta[2]));
  e.kind = Kind::report;
  e.object = static_cast<std::uint64_t>(report.kind);
  if (report.address.known) e.space = report.address.space, e.address = report.address.absolute;
  if (!report.parties.empty()) {
    e.warp = static_cast<std::int8_t>(report.parties.front().warp);
    e.lanes = report.parties.front().lanes;
    e.pc = report.parties.front().pc;
  }
  hand_on(e);
}

// --- as text ---------------------------------------------------------------------------------------------------------

std::string to_text(const MachineEvent& e, LaneAddressSpan addresses, const Program& program) {
  std::string out = fmt::format("{:>8}", e.step);
  const auto to = std::back_inserter(out);
  if (e.cta >= 0) fmt::format_to(to, "  cta {}", e.cta);
  if (e.warp >= 0) fmt::format_to(to, "  warp {}", e.warp);
  if (e.warp >= 0) fmt::format_to(to, "  lanes {:08x}", e.lanes);
  fmt::format_to(to, "  {}", name(e.kind));
  if (is_engine(e.kind) || is_group(e.kind)) fmt::format_to(to, "  {}", name(e.async));
  if (e.kind == Kind::report) fmt::format_to(to, "  {}", name(static_cast<ReportKind>(e.object)));
  if (has_object(e.kind)) fmt::format_to(to, " {}", e.object);
  if (e.space != Space::generic && (has_address(e.kind) || e.kind == Kind::report)) {
    fmt::format_to(to, "  {} 0x{:05x}", name(e.space), e.address);
  }
  out += value_text(e);
  for (LaneMask rest = addresses.empty() ? 0 : e.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    fmt::format_to(to, "{}{:x}", rest == e.lanes ? "  at " : " ", addresses[lane]);
  }
  if (e.pc >= 0) fmt::format_to(to, "  {}  {}", program.statement(e.pc).opcode, program.source_text(e.pc));
  return out;
}

std::string to_json_line(const MachineEvent& e, LaneAddressSpan addresses, const Program& program) {
  std::string out = fmt::format(R"({{"step":{},"kind":"{}")", e.step, name(e.kind));
  const auto to = std::back_inserter(out);
  if (e.cta >= 0) fmt::format_to(to, R"(,"cta":{})", e.cta);
  if (e.warp >= 0) fmt::format_to(to, R"(,"warp":{},"lanes":"{:08x}")", e.warp, e.lanes);
  if (is_engine(e.kind) || is_group(e.kind)) fmt::format_to(to, R"(,"engine":"{}")", name(e.async));
  if (e.kind == Kind::report) fmt::format_to(to, R"(,"report":"{}")", name(static_cast<ReportKind>(e.object)));
  if (has_object(e.kind)) {
    const bool barrier = e.kind == Kind::barrier_arrive || e.kind == Kind::barrier_done;
    fmt::format_to(to, R"(,"{}":{})", barrier ? "barrier" : "operation", e.object);
  }
  if (e.space != Space::generic) fmt::format_to(to, R"(,"space":"{}")", name(e.space));
  if (e.space != Space::generic && (has_address(e.kind) || e.kind == Kind::report)) {
    fmt::format_to(to, R"(,"address":{})", e.address);
  }
  if (const std::string_view value = value_name(e.kind); !value.empty()) {
    fmt::format_to(to, R"(,"{}":{})", value, e.value);
  }
  if (!addresses.empty()) {
    out += R"(,"addresses":[)";
    for (LaneMask rest = e.lanes; rest != 0; rest &= rest - 1) {
      fmt::format_to(to, "{}{}", rest == e.lanes ? "" : ",",
                     addresses[static_cast<std::size_t>(std::countr_zero(rest))]);
    }
    out += ']';
  }
  if (e.pc >= 0) {
    fmt::format_to(to, R"(,"pc":{},"opcode":"{}","source":)", e.pc, program.statement(e.pc).opcode);
    out += '"';
    for (const char c : program.source_text(e.pc)) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    out += '"';
  }
  return out + '}';
}

}  // namespace kvscope::ptx
