// All events of a launch in execution order: one record of a fixed size per event, passed to the caller as it happens.
// No record is kept, so the length of a run is not limited.
//
//   EventList events({.kinds = {MachineEventKind::store}, .warp = 1}, [&](const MachineEvent& e, LaneAddressSpan at) {
//     out << to_text(e, at, program) << '\n';
//   });
//   device.launch(module, config, &events);
//
//   19  cta 0  warp 1  lanes ffffffff  store  shared 0x00480 4 bytes a lane  st.shared.f32  reverse.cu:3
//
// A step is one warp instruction. The events of a step belong to its instruction, or to what engines did after it.
// tile_trace.h records the events of a tile on its way to registers, in the model's format.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

//   kind                       lanes               address                  object        value
//   instruction, retry         where the guard holds
//   split                      that branch                                                target pc
//   merge                      that join
//   load, store, atomic        active              of the first lane                      bytes per lane
//   barrier_arrive             that arrive                                  barrier       1: they wait
//   barrier_done                                                            barrier       threads that arrived
//   mbarrier_*                 that execute it, 0: an engine   the object                 arrivals, bytes, or the phase
//   engine_issue, _moves       of the issuer       written, or else read    operation     bytes written
//   engine_done                of the issuer                                operation     bytes credited
//   group_wait                 that wait           last completed operation of the first lane, in `object`
//   printf                                                                                characters
//   report                     named in the report                          ReportKind
enum class MachineEventKind : std::uint8_t {
  cta_start,
  cta_exit,
  cta_suspend,
  instruction,
  retry,  // an instruction that had to wait is executed again
  split,
  merge,
  park,
  resume,
  exit,
  load,
  store,
  atomic,
  barrier_arrive,
  barrier_done,
  cluster_arrive,
  cluster_wait,
  warp_barrier,
  collective,
  mbarrier_init,
  mbarrier_inval,
  mbarrier_arrive,
  mbarrier_expect,
  mbarrier_complete,  // bytes were credited
  mbarrier_phase,     // the phase completed
  mbarrier_passed,    // a wait found the phase complete
  mbarrier_not_yet,   // a wait found the phase incomplete
  fence,
  proxy_fence,
  engine_issue,
  engine_moves,
  engine_done,
  group_commit,
  group_wait,
  cp_async_arrive,
  printf,
  report,
};
inline constexpr std::size_t kMachineEventKinds = static_cast<std::size_t>(MachineEventKind::report) + 1;
[[nodiscard]] std::string_view name(MachineEventKind kind);  // "engine_moves"
[[nodiscard]] std::optional<MachineEventKind> find_machine_event(std::string_view name);

struct MachineEvent {
  std::uint64_t step = 0;     // warp instructions executed before it
  std::uint64_t address = 0;  // in `space`
  std::uint64_t object = 0;
  std::int64_t value = 0;
  std::int32_t cta = -1;  // linear; -1: the launch as a whole
  std::int32_t pc = -1;   // Program::ops; -1: no instruction
  LaneMask lanes = 0;
  MachineEventKind kind = MachineEventKind::instruction;
  std::int8_t warp = -1;                  // in the CTA; -1: no warp
  Space space = Space::generic;           // of the address; generic: no address
  AsyncKind async = AsyncKind::cp_async;  // of engine_* and group_*
  friend bool operator==(const MachineEvent&, const MachineEvent&) = default;
};
static_assert(sizeof(MachineEvent) == 48);

struct EventFilter {
  std::vector<MachineEventKind> kinds = {};  // empty: all
  std::int32_t cta = -1;                     // -1: all
  std::int32_t warp = -1;                    // -1: all, including events of no warp
  std::uint64_t first_step = 0;
  std::uint64_t last_step = std::numeric_limits<std::uint64_t>::max();
  bool lane_addresses = false;  // pass on the addresses of loads, stores and atomics
};

using LaneAddressSpan = std::span<const std::uint64_t>;  // [32]; empty: not requested, or the event has none

class EventList final : public Monitor {
 public:
  using Sink = std::function<void(const MachineEvent&, LaneAddressSpan)>;
  EventList(EventFilter filter, Sink sink);

  [[nodiscard]] std::int64_t count() const { return count_; }  // records passed on so far

  [[nodiscard]] bool wants_instructions() const override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void cta_suspended(Launch& launch, const Cta& cta) override;
  void instruction(const Exec& exec, const Op& op, LaneMask lanes) override;
  void retried(const Exec& exec, const Op& op, LaneMask lanes) override;
  void split(const Exec& exec, LaneMask taken, std::int32_t pc) override;
  void merge(const Exec& exec, LaneMask joined) override;
  void park(const Exec& exec, const Op& op) override;
  void resume(const Exec& exec) override;
  void exit(const Exec& exec, LaneMask lanes) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) override;
  void barrier_done(Launch& launch, const Cta& cta, int barrier, LaneMasks arrived, LaneMasks waiting) override;
  void cluster_arrive(const Exec& exec, LaneMask lanes, Order order) override;
  void cluster_wait(const Exec& exec, LaneMask lanes, Order order) override;
  void warp_barrier(const Exec& exec, LaneMask lanes) override;
  void collective(const Exec& exec, const Op& op, LaneMask lanes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) override;
  void proxy_fence(const Exec& exec, LaneMask lanes, Space space) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void async_done(Launch& launch, const Cta& cta, const AsyncOp& op) override;
  void group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) override;
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only, OperationNumbers last) override;
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) override;
  void printed(const Exec& exec, std::string_view text) override;
  void reported(Launch& launch, const Report& report) override;

 private:
  void hand_on(const MachineEvent& event, LaneAddressSpan addresses = {});
  void engine(const Launch& launch, const AsyncOp& op, MachineEventKind kind, ByteRanges reads, ByteRanges writes);

  EventFilter filter_;
  std::array<bool, kMachineEventKinds> wanted_{};
  Sink sink_;
  std::int64_t count_ = 0;
};

// One line without its newline. The instruction and its source line are read from `program`.
[[nodiscard]] std::string to_text(const MachineEvent& event, LaneAddressSpan addresses, const Program& program);
// {"step":19,"cta":0,"warp":1,"lanes":"ffffffff","kind":"store",...}; fields that the event does not have are omitted.
[[nodiscard]] std::string to_json_line(const MachineEvent& event, LaneAddressSpan addresses, const Program& program);

}  // namespace kvscope::ptx
