// An mbarrier, which tracks whether a tile has landed: it counts arrivals of threads and bytes of copies. A phase ends
// when no arrival and no byte is outstanding.
//
//   phase     n        the full number; hardware exposes only its parity
//   pending   arrivals still missing in this phase, of `expected`
//   tx        bytes announced and not yet landed; below 0 when bytes land before they are announced
//
//   init 1 | expect 1024 | arrive      | complete 512 | complete 512
//   0 1 0  | 0 1 1024    | 0 0 1024    | 0 0 512      | 1 1 0           phase, pending, tx
//
// wait(parity) is true once the phase of that parity has ended: (phase & 1) != parity. On a new barrier wait(1)
// succeeds immediately, which lets a producer enter its first lap.
// A real barrier does not report misuse: it hangs or lets incomplete data through. This model continues as the hardware
// would where that is defined, and records the fault (diagnoses()).
// Source: PTX ISA, "Asynchronous barrier objects"; its section on mbarrier.arrive requires that a phase is observed
// before the arrivals of the next one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

struct BarrierState {
  std::int64_t phase = 0;
  std::int64_t pending = 0;  // [arrivals]
  std::int64_t tx = 0;       // [bytes]
  friend bool operator==(const BarrierState&, const BarrierState&) = default;
};

enum class BarrierFault : std::uint8_t {
  pending_underflow,  // more arrivals than the phase expects: undefined on hardware; the model ignores the arrival
  unobserved_phase,   // an arrival before any thread observed the end of the last phase
  two_phases_behind,  // a wait for a phase that ended two or more laps ago: its parity now belongs to another phase
  ahead_of_phase,     // a wait for a phase that has not begun: its parity gives the answer of the previous phase
  late_bytes,         // bytes below 0 while no producer owns the phase: the previous phase ended too early
  too_many_bytes,     // |tx| past 2^20 - 1: undefined on hardware; the model ignores the change
  deadlock,           // a wait that no pending operation can end
  live_reinit,        // init of a barrier that was not invalidated
};
[[nodiscard]] std::string_view name(BarrierFault fault);

struct BarrierDiagnosis {
  BarrierFault fault;
  std::int64_t operation;  // the n-th call on this barrier, from 0
  std::string message;     // values, and what to do
};

class ArrivalBarrier {
 public:
  static constexpr std::int64_t kMaxCount = (1 << 20) - 1;  // arrivals of a phase, and bytes of one

  // mbarrier.init. GeometryError unless 1 <= expected <= kMaxCount.
  explicit ArrivalBarrier(std::int64_t expected);
  void init(std::int64_t expected);
  void inval();  // afterwards every call except init throws GeometryError

  // mbarrier.expect_tx: announces `bytes` more, without an arrival. GeometryError when bytes < 0, here and below.
  void expect_tx(std::int64_t bytes);
  // Called by the copy engine when bytes have landed.
  void complete_tx(std::int64_t bytes);
  void arrive(std::int64_t count = 1);
  void arrive_expect_tx(std::int64_t bytes);
  // Marks the current phase as owned by a producer before it announces anything, so that bytes may land first.
  // The first phase is owned from init on; expect_tx and arrive also own the phase.
  void own();

  // mbarrier.test_wait: has the phase of this parity ended? A true result counts as observing it.
  bool test_wait(int parity);
  // A wait by phase number instead of parity: phase -1 is the free first lap of a producer. When the phase has not
  // ended, returns false and adds a deadlock to the diagnoses, because the model has one thread and cannot wait.
  bool wait(std::int64_t phase);

  [[nodiscard]] const BarrierState& state() const { return state_; }
  [[nodiscard]] std::int64_t expected() const { return expected_; }
  [[nodiscard]] const std::vector<BarrierDiagnosis>& diagnoses() const { return diagnoses_; }

 private:
  void begin(std::string_view operation);
  void diagnose(BarrierFault fault, std::string message);
  bool add_tx(std::int64_t bytes);
  void end_phase_if_complete();

  std::int64_t expected_ = 0;
  BarrierState state_;
  std::int64_t observed_ = -1;  // the last phase whose end a thread observed
  bool live_ = false;
  bool owned_ = false;
  std::int64_t operations_ = 0;
  std::vector<BarrierDiagnosis> diagnoses_;
};

}  // namespace kvscope
