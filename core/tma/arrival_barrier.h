// The barrier that says a tile has arrived (mbarrier): it counts arrivals of threads and bytes of copies, and a phase
// is over when none of either is missing.
//
//   phase     n        n is kept whole here; hardware shows its parity alone
//   pending   arrivals still missing in this phase, of `expected`
//   tx        bytes announced and not yet arrived; below 0 when they arrive first
//
//   init 1 | expect 1024 | arrive      | complete 512 | complete 512
//   0 1 0  | 0 1 1024    | 0 0 1024    | 0 0 512      | 1 1 0           phase, pending, tx
//
// wait(parity) is true once the phase of that parity is over: (phase & 1) != parity. A fresh barrier lets wait(1)
// through: that is how a producer enters its first lap.
// A real barrier says nothing when it is misused: it hangs or lets torn data through. This one goes on as the hardware
// would where that is defined, and keeps what went wrong (diagnoses()).
// Source: PTX ISA, "Asynchronous barrier objects"; the demand that a phase be observed before the next one's arrivals:
// its section on mbarrier.arrive.
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
  pending_underflow,  // more arrivals than the phase expects: undefined on hardware, left out here
  unobserved_phase,   // an arrival before anybody saw the last phase end
  two_phases_behind,  // a waiter whose phase is over for two laps or more: parity shows it another phase's answer
  ahead_of_phase,     // a waiter whose phase has not begun: parity shows it the last one's answer
  late_bytes,         // bytes below 0 while nobody owns the phase: they belong to the last one, which ended too early
  too_many_bytes,     // |tx| past 2^20 - 1: undefined on hardware, left out here
  deadlock,           // a wait that nothing is on its way to end
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
  void inval();  // every other call but init is then refused: GeometryError

  // mbarrier.expect_tx: `bytes` more will arrive; no arrival. GeometryError below 0, here and below.
  void expect_tx(std::int64_t bytes);
  // What the copy engine does when bytes have landed.
  void complete_tx(std::int64_t bytes);
  void arrive(std::int64_t count = 1);
  void arrive_expect_tx(std::int64_t bytes);
  // A producer says that the current phase is its own before it has announced anything, so that bytes may come first.
  // The first phase is owned from init on; expect_tx and arrive own a phase too.
  void own();

  // mbarrier.test_wait: has the phase of this parity ended? A yes counts as seeing it.
  bool test_wait(int parity);
  // A waiter that knows which lap it is on: phase -1 is the free first lap of a producer. False, with a deadlock among
  // the diagnoses, when the phase is not over: in one thread nobody else will end it.
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
  std::int64_t observed_ = -1;  // the last phase that somebody saw end
  bool live_ = false;
  bool owned_ = false;
  std::int64_t operations_ = 0;
  std::vector<BarrierDiagnosis> diagnoses_;
};

}  // namespace kvscope
