#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kObjectBytes = 8;

std::uint64_t address_of(const Cta& cta, std::uint64_t offset) {
  return shared_address(static_cast<std::uint64_t>(cta.cluster_rank), offset);
}

// "full + 0 (phase 3, pending 1 of 4, tx 1024)"
std::string state_of(const Launch& launch, const Cta& cta, std::uint64_t offset, const Mbarrier& b) {
  const ReportAddress at = name_address(launch, Space::shared, address_of(cta, offset), kObjectBytes);
  return fmt::format("{} ({})", place_name(at), b.text());
}

// Extends the bounds of live objects; resets them when the last object is invalidated.
void note_alive(Cta& cta, std::uint64_t offset) {
  cta.async.barriers_begin = std::min(cta.async.barriers_begin, offset);
  cta.async.barriers_end = std::max(cta.async.barriers_end, offset + kObjectBytes);
}

// Writes the opaque bytes of the object. Their value carries no information for the kernel.
void write_image(Cta& cta, std::uint64_t offset, std::uint64_t image) {
  if (std::byte* at = shared_at(cta, offset, kObjectBytes)) std::memcpy(at, &image, sizeof image);
}

void tell(Launch& launch, const Cta& cta, const Exec* exec, int lane, MbarrierEvent what, std::uint64_t offset,
          std::int64_t value, Order order, Scope scope) {
  if (launch.monitor == nullptr) return;
  const LaneMask lanes = exec != nullptr ? LaneMask{1} << lane : 0;
  launch.monitor->mbarrier(launch, cta, exec, lanes, what, address_of(cta, offset), value, order, scope);
}

// After a change: wakes the lane groups that wait for a phase that has completed.
void settle(Launch& launch, Cta& cta, const Exec* exec, int lane, std::uint64_t offset, const Mbarrier& b,
            std::int64_t phase_before) {
  event(launch, cta);
  if (b.phase == phase_before) return;
  tell(launch, cta, exec, lane, MbarrierEvent::phase_done, offset, phase_before, Order::release, Scope::cta);
  wake_all(launch, cta, WaitKind::mbarrier, offset);
}

std::string too_many_bytes(const Launch& launch, const Cta& cta, std::uint64_t offset, const Mbarrier& b,
                           std::int64_t bytes) {
  return fmt::format("{} more bytes at {}: a phase counts at most {}", bytes, state_of(launch, cta, offset, b),
                     Mbarrier::kMost);
}

// True if unannounced bytes have landed and no pending arrival is left to announce them: this phase never completes.
bool owes_bytes(const Mbarrier& b) {
  return b.pending == 0 && b.tx < 0;
}
std::string owed_bytes(const Launch& launch, const Cta& cta, std::uint64_t offset, const Mbarrier& b) {
  return fmt::format("{} bytes landed without an expect_tx, and no pending arrival can add one: {}", -b.tx,
                     state_of(launch, cta, offset, b));
}
constexpr const char* kArrivalsHint = "one arrival too many: see who arrives, and the count of mbarrier.init";
constexpr const char* kRefilledHint =
    "the phase has all its arrivals and waits for the bytes of its copies: a stage that is filled again too early, "
    "before its readers have released it, or one arrival too many";
constexpr const char* kExpectHint = "announce every copy's bytes with mbarrier.arrive.expect_tx";

// Data shared by the handlers, for one lane.
struct Site {
  Exec& exec;
  const Op& op;
  int lane;
  MbarrierAt at;
  Order order;
  Scope scope;

  [[nodiscard]] Launch& launch() const { return exec.launch; }
  Flow wrong(ReportKind kind, std::string message, std::string hint = {}) const {
    return fault(exec, op, lane, kind, std::move(message), std::move(hint),
                 name_address(exec.launch, Space::shared, address_of(*at.cta, at.offset), kObjectBytes), "arrived");
  }
};

std::int64_t operand_value(const Exec& exec, const Op& op, int operand, int lane, std::int64_t without) {
  const std::uint32_t reg = op.at[static_cast<std::size_t>(operand)];
  if (reg == kNoRegister) return without;
  return static_cast<std::int64_t>(lane_value(exec, reg, width_of(op, operand), lane) & 0xffffffffU);
}

Flow expect(const Site& s, std::int64_t bytes) {
  Mbarrier& b = *s.at.object;
  const std::int64_t phase = b.phase;
  if (!b.expect_tx(bytes)) {
    return s.wrong(ReportKind::mbar_tx, too_many_bytes(s.launch(), *s.at.cta, s.at.offset, b, bytes));
  }
  b.remember_bytes({.bytes = bytes, .phase = phase, .thread = thread_of(s.exec, s.lane), .pc = pc_of(s.exec, s.op)});
  tell(s.launch(), *s.at.cta, &s.exec, s.lane, MbarrierEvent::expect_tx, s.at.offset, bytes, s.order, s.scope);
  event(s.launch(), *s.at.cta);
  return Flow::next;
}

Flow arrive_at(const Site& s, std::int64_t count, bool drops, bool may_complete) {
  Mbarrier& b = *s.at.object;
  const std::int64_t phase = b.phase;
  if (count > b.pending || count < 1 || (!may_complete && count == b.pending)) {
    const std::string of = state_of(s.launch(), *s.at.cta, s.at.offset, b);
    return s.wrong(ReportKind::mbar_underflow,
                   count == b.pending ? fmt::format("arrive.noComplete of {} would complete the phase: {}", count, of)
                                      : fmt::format("an arrival of {} at {}", count, of),
                   b.pending == 0 && b.tx > 0 ? kRefilledHint : kArrivalsHint);
  }
  tell(s.launch(), *s.at.cta, &s.exec, s.lane, MbarrierEvent::arrive, s.at.offset, count, s.order, s.scope);
  b.remember(thread_of(s.exec, s.lane), pc_of(s.exec, s.op));
  static_cast<void>(drops ? b.arrive_and_drop(count) : b.arrive(count));
  settle(s.launch(), *s.at.cta, &s.exec, s.lane, s.at.offset, b, phase);
  s.exec.lane_group.backward = 0;
  if (!owes_bytes(b)) return Flow::next;
  return s.wrong(ReportKind::mbar_tx, owed_bytes(s.launch(), *s.at.cta, s.at.offset, b),
                 std::string(kExpectHint) + announced_and_landed(s.launch(), b));
}

// Runs `body(site)` for each lane, in ascending order, at the object that the address operand names.
template <class Body>
Flow for_each_object(Exec& exec, const Op& op, LaneMask lanes, int operand, const Body& body) {
  const Instr& instr = exec.program().instr(op);
  const Space space = space_of(instr);
  const bool remote = instr.has(Mod::shared_cluster) || space == Space::generic;
  const Order order = order_of(instr) == Order::relaxed   ? Order::relaxed
                      : order_of(instr) == Order::acquire ? Order::acquire
                                                          : Order::release;
  const Scope scope = scope_of(instr) == Scope::none ? Scope::cta : scope_of(instr);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = lane_address(exec.registers, op, operand, lane);
    const MbarrierAt at = find_mbarrier_at(exec, op, lane, space, address, remote);
    if (at.object == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    if (body(Site{exec, op, lane, at, order, scope}) == Flow::stopped) return Flow::stopped;
  }
  return Flow::next;
}

// --- the instructions ------------------------------------------------------------------------------------------------

Flow init(Exec& exec, const Op& op, LaneMask lanes) {
  const Space space = space_of(exec.program().instr(op));
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    Space where = space;
    const LaneRequest request{space, AccessKind::store, kObjectBytes, kObjectBytes, true, true};
    if (reach_lane(exec, op, lane, request, where, address) == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    const std::uint64_t offset = offset_of(address);
    const ReportAddress at = name_address(exec.launch, Space::shared, address, kObjectBytes);
    const std::int64_t count = operand_value(exec, op, 1, lane, 0);
    if (where != Space::shared || count < 1 || count > Mbarrier::kMost) {
      const std::string message =
          where != Space::shared
              ? fmt::format("mbarrier.init at 0x{:x}, which is not shared memory", address)
              : fmt::format("mbarrier.init of {} with count {}: 1 to {}", place_name(at), count, Mbarrier::kMost);
      if (fault(exec, op, lane, ReportKind::no_mbarrier, message, {}, at) == Flow::stopped) return Flow::stopped;
      continue;
    }
    const auto live = exec.cta.mbarriers.find(offset);
    if (live != exec.cta.mbarriers.end()) {
      const std::string of = state_of(exec.launch, exec.cta, offset, live->second);
      if (fault(exec, op, lane, ReportKind::mbarrier_touched, fmt::format("mbarrier.init of a live mbarrier, {}", of),
                "execute mbarrier.inval before a second init", at, "write") == Flow::stopped) {
        return Flow::stopped;
      }
    }
    exec.cta.mbarriers[offset].init(count);
    note_alive(exec.cta, offset);
    write_image(exec.cta, offset, static_cast<std::uint64_t>(count));
    tell(exec.launch, exec.cta, &exec, lane, MbarrierEvent::init, offset, count, Order::weak, Scope::none);
    event(exec);
  }
  return Flow::next;
}

Flow inval(Exec& exec, const Op& op, LaneMask lanes) {
  return for_each_object(exec, op, lanes, 0, [](const Site& s) {
    tell(s.launch(), *s.at.cta, &s.exec, s.lane, MbarrierEvent::inval, s.at.offset, 0, Order::weak, Scope::none);
    auto& all = s.at.cta->mbarriers;
    all.erase(s.at.offset);
    if (all.empty()) s.at.cta->async.barriers_begin = ~std::uint64_t{0}, s.at.cta->async.barriers_end = 0;
    event(s.exec);
    return Flow::next;
  });
}

// d or _, [m] {, count or bytes}
template <bool kDrops>
Flow arrive_instr(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool expects = instr.has(Mod::expect_tx), may_complete = !instr.has(Mod::noComplete);
  return for_each_object(exec, op, lanes, 1, [&](const Site& s) {
    const std::uint64_t token = s.at.object->token();
    const std::int64_t value = operand_value(exec, op, 2, s.lane, 1);
    Flow flow = expects ? expect(s, value) : Flow::next;
    if (flow != Flow::stopped) flow = arrive_at(s, expects ? 1 : value, kDrops, may_complete);
    if (op.at[0] != kNoRegister) register_of<std::uint64_t>(exec, op.at[0])[s.lane] = token;
    return flow;
  });
}

Flow expect_tx(Exec& exec, const Op& op, LaneMask lanes) {
  return for_each_object(exec, op, lanes, 0,
                         [&](const Site& s) { return expect(s, operand_value(exec, op, 1, s.lane, 0)); });
}

Flow complete_tx_instr(Exec& exec, const Op& op, LaneMask lanes) {
  return for_each_object(exec, op, lanes, 0, [&](const Site& s) {
    Mbarrier& b = *s.at.object;
    const std::int64_t bytes = operand_value(exec, op, 1, s.lane, 0), phase = b.phase;
    if (!b.complete_tx(bytes)) {
      return s.wrong(ReportKind::mbar_tx, too_many_bytes(s.launch(), *s.at.cta, s.at.offset, b, bytes));
    }
    tell(s.launch(), *s.at.cta, &exec, s.lane, MbarrierEvent::complete_tx, s.at.offset, bytes, s.order, s.scope);
    settle(s.launch(), *s.at.cta, &exec, s.lane, s.at.offset, b, phase);
    if (!owes_bytes(b)) return Flow::next;
    return s.wrong(ReportKind::mbar_tx, owed_bytes(s.launch(), *s.at.cta, s.at.offset, b), kExpectHint);
  });
}

// The lanes whose phase is complete. `waits` receives the first incomplete object and phase.
struct Asked {
  LaneMask yes = 0;
  LaneMask asked = 0;
  Wait wait;
};

// For monitors: lanes that test the same object with the same result are reported together.
struct Answer {
  LaneMask lanes = 0;
  const Cta* cta = nullptr;
  std::uint64_t offset = 0;
  std::int64_t phase = 0;
  bool done = false;
  Order order = Order::acquire;
  Scope scope = Scope::cta;
};
void tell_answer(const Exec& exec, Answer& a) {
  if (a.lanes != 0 && exec.launch.monitor != nullptr) {
    exec.launch.monitor->mbarrier(exec.launch, *a.cta, &exec, a.lanes,
                                  a.done ? MbarrierEvent::wait_true : MbarrierEvent::wait_false,
                                  address_of(*a.cta, a.offset), a.phase - (a.done ? 1 : 0),
                                  a.order == Order::relaxed ? Order::relaxed : Order::acquire, a.scope);
  }
  a.lanes = 0;
}

Flow ask(Exec& exec, const Op& op, LaneMask lanes, Asked& out) {
  const bool parity = exec.program().instr(op).has(Mod::parity);
  Answer answer;
  const Flow flow_of_all = for_each_object(exec, op, lanes, 1, [&](const Site& s) {
    const Mbarrier& b = *s.at.object;
    const std::uint64_t value = lane_value(exec, op.at[2], width_of(op, 2), s.lane);
    out.asked |= LaneMask{1} << s.lane;
    bool done = false;
    if (parity) {
      done = b.phase_done(static_cast<int>(value & 1));
    } else {
      // A token contains 24 bits of the phase.
      const std::int64_t behind = (b.phase - Mbarrier::phase_of(value)) & 0xffffff;
      done = behind != 0;
      if (behind > 1) {
        const Flow flow = s.wrong(ReportKind::no_mbarrier,
                                  fmt::format("a token of phase {}, and the barrier is {}", Mbarrier::phase_of(value),
                                              state_of(s.launch(), *s.at.cta, s.at.offset, b)),
                                  "wait with the token of the current phase, or of the one before");
        if (flow == Flow::stopped) return flow;
      }
    }
    if (done) out.yes |= LaneMask{1} << s.lane;
    if (answer.cta != s.at.cta || answer.offset != s.at.offset || answer.done != done) tell_answer(exec, answer);
    answer = {answer.lanes | LaneMask{1} << s.lane, s.at.cta, s.at.offset, b.phase, done, s.order, s.scope};
    if (!done && out.wait.kind == WaitKind::none) {
      out.wait.kind = WaitKind::mbarrier;
      out.wait.object = s.at.offset;
      out.wait.value = parity ? value & 1 : static_cast<std::uint64_t>(Mbarrier::phase_of(value));
      out.wait.parity = parity;
    }
    return Flow::next;
  });
  tell_answer(exec, answer);
  return flow_of_all;
}

Flow test_wait(Exec& exec, const Op& op, LaneMask lanes) {
  Asked asked;
  if (ask(exec, op, lanes, asked) == Flow::stopped) return Flow::stopped;
  write_predicate(exec, op.at[0], lanes, asked.yes);
  return Flow::next;
}

// Waits at this instruction until the phase completes; the machine times the wait out when nothing else can run.
Flow try_wait(Exec& exec, const Op& op, LaneMask lanes) {
  const bool timed_out = exec.lane_group.wait.timed_out;
  Asked asked;
  if (ask(exec, op, lanes, asked) == Flow::stopped) return Flow::stopped;
  // If some lanes may continue, the others receive false and may test again.
  if (asked.yes == 0 && asked.wait.kind != WaitKind::none && !timed_out) {
    exec.lane_group.wait = asked.wait;
    return Flow::waits;
  }
  exec.lane_group.wait = {};
  write_predicate(exec, op.at[0], lanes, asked.yes);
  return Flow::next;
}

Flow pending_count(Exec& exec, const Op& op, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t token = lane_value(exec, op.at[1], 8, lane);
    register_of<std::uint32_t>(exec, op.at[0])[lane] = static_cast<std::uint32_t>(Mbarrier::pending_of(token));
  }
  return Flow::next;
}

}  // namespace

MbarrierAt find_mbarrier_at(Exec& exec, const Op& op, int lane, Space space, std::uint64_t address, bool remote) {
  Space where = space;
  const LaneRequest request{space, AccessKind::load, kObjectBytes, kObjectBytes, !remote, true};
  if (reach_lane(exec, op, lane, request, where, address) == nullptr) return {};
  Cta* const cta = where == Space::shared ? cta_of_rank(exec.launch, exec.cta, rank_of(address)) : nullptr;
  if (cta != nullptr) {
    const auto found = cta->mbarriers.find(offset_of(address));
    if (found != cta->mbarriers.end()) return {&found->second, cta, offset_of(address)};
  }
  const ReportAddress at = name_address(exec.launch, where, address, kObjectBytes);
  fault(exec, op, lane, ReportKind::no_mbarrier,
        cta == nullptr ? fmt::format("0x{:x} is not in shared memory, where mbarriers are", address)
                       : fmt::format("there is no mbarrier at {}", place_name(at)),
        "execute mbarrier.init first, and mbarrier.inval last", at);
  return {};
}

bool report_touched(Exec& exec, const Op& op, LaneMask lanes, const LaneAddresses& addresses,
                    const AccessRequest& request) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = addresses.at[static_cast<std::size_t>(lane)];
    Cta* const cta = cta_of_rank(exec.launch, exec.cta, rank_of(address));
    if (cta == nullptr) continue;
    const std::uint64_t from = offset_of(address);
    const auto it = cta->mbarriers.lower_bound(from < 7 ? 0 : from - 7);
    if (it == cta->mbarriers.end() || it->first >= from + static_cast<std::uint64_t>(request.bytes)) continue;
    const Flow flow = fault(exec, op, lane, ReportKind::mbarrier_touched,
                            fmt::format("{} bytes of a live mbarrier, {}", request.bytes,
                                        state_of(exec.launch, *cta, it->first, it->second)),
                            "execute mbarrier.inval before the memory is reused",
                            name_address(exec.launch, Space::shared, address, request.bytes),
                            request.kind == AccessKind::load ? "read" : "write");
    return flow != Flow::stopped;
  }
  return true;
}

std::string announced_and_landed(const Launch& launch, const Mbarrier& b) {
  std::string out;
  const auto kept = static_cast<std::int32_t>(b.last_bytes.size());
  for (std::int32_t i = std::max(0, b.bytes_count - kept); i < b.bytes_count; ++i) {
    const Mbarrier::Bytes& e = b.last_bytes[static_cast<std::size_t>(i) % b.last_bytes.size()];
    if (e.phase != b.phase) continue;
    const std::string by = e.number == 0 ? fmt::format("by thread {}", e.thread)
                                         : fmt::format("of {} issued by thread {}", name(e.kind), e.thread);
    out += fmt::format("\n{:<9}  {} bytes {} at {}", e.number == 0 ? "announced" : "landed", e.bytes, by,
                       launch.program->source_text(e.pc));
  }
  return out;
}

void complete_tx(Launch& launch, Cta& cta, std::uint64_t offset, std::int64_t bytes, const AsyncOp& op) {
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end()) {
    const ReportAddress at = name_address(launch, Space::shared, address_of(cta, offset), kObjectBytes);
    engine_fault(launch, cta, op, ReportKind::no_mbarrier,
                 fmt::format("{} bytes have landed, but there is no longer an mbarrier at {}", bytes, place_name(at)),
                 "wait for the copy before mbarrier.inval", at);
    return;
  }
  Mbarrier& b = found->second;
  const std::int64_t phase = b.phase;
  const auto report = [&](std::string message) {
    engine_fault(launch, cta, op, ReportKind::mbar_tx, std::move(message),
                 std::string(kExpectHint) + announced_and_landed(launch, b),
                 name_address(launch, Space::shared, address_of(cta, offset), kObjectBytes));
  };
  if (!b.complete_tx(bytes)) {
    report(too_many_bytes(launch, cta, offset, b, bytes));
    return;
  }
  b.remember_bytes({.bytes = bytes,
                    .phase = b.tx != 0 ? b.phase : phase,
                    .number = op.number,
                    .thread = op.thread,
                    .pc = op.pc,
                    .kind = op.kind});
  tell(launch, cta, nullptr, 0, MbarrierEvent::complete_tx, offset, bytes, Order::release, Scope::cluster);
  settle(launch, cta, nullptr, 0, offset, b, phase);
  if (owes_bytes(b)) report(owed_bytes(launch, cta, offset, b));
}

void arrive_by_engine(Launch& launch, Cta& cta, std::uint64_t offset, const AsyncOp& op) {
  const auto found = cta.mbarriers.find(offset);
  const ReportAddress at = name_address(launch, Space::shared, address_of(cta, offset), kObjectBytes);
  if (found == cta.mbarriers.end()) {
    engine_fault(
        launch, cta, op, ReportKind::no_mbarrier,
        fmt::format("an arrival for completed copies, but there is no longer an mbarrier at {}", place_name(at)),
        "wait for the copies before mbarrier.inval", at);
    return;
  }
  Mbarrier& b = found->second;
  const std::int64_t phase = b.phase;
  b.remember(op.thread, op.pc);
  if (!b.arrive(1)) {
    engine_fault(launch, cta, op, ReportKind::mbar_underflow,
                 fmt::format("an arrival of 1 at {}", state_of(launch, cta, offset, b)), kArrivalsHint, at);
    return;
  }
  tell(launch, cta, nullptr, 0, MbarrierEvent::arrive, offset, 1, Order::release, Scope::cta);
  settle(launch, cta, nullptr, 0, offset, b, phase);
}

MachineHandler find_mbarrier(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::mbarrier_init:
      return init;
    case Opcode::mbarrier_inval:
      return inval;
    case Opcode::mbarrier_arrive:
      return arrive_instr<false>;
    case Opcode::mbarrier_arrive_drop:
      return arrive_instr<true>;
    case Opcode::mbarrier_expect_tx:
      return expect_tx;
    case Opcode::mbarrier_complete_tx:
      return complete_tx_instr;
    case Opcode::mbarrier_test_wait:
      return test_wait;
    case Opcode::mbarrier_try_wait:
      return try_wait;
    case Opcode::mbarrier_pending_count:
      return pending_count;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
