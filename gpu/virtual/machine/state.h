// The complete state of a running launch as plain values and indices: copying a `Launch` copies the machine. A debugger
// moves backward with such copies.
//
//   Launch          grid, steps, monitors, device memory (by pointer: the host's)
//     Cta           shared memory, named barriers, arrival barriers, operations in flight
//       Warp        registers of its activations, exited lanes
//         LaneGroup activation, pc, lanes: the lanes of a warp that execute together
//
// Lane groups: of the ready lane groups of a warp, the one deepest in calls runs first, then the one with the lowest
// pc. Lane groups with the same pc and identical calls are merged before that. A lane group runs until it splits,
// reaches the pc of another, waits, ends, or has used up its turn. Both sides of an if therefore reconverge after it,
// without help from the compiler.
//
// Lanes that entered a function by the same chain of calls share one activation, even if they entered at different
// times. Identical calls are thus the same activation, and lanes that entered separately can reconverge inside the
// function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/barriers/mbarrier.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/limits.h"
#include "gpu/virtual/machine/memory/device_memory.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/program/register_buffer.h"
#include "gpu/virtual/machine/tensor/tensor_memory.h"
#include "gpu/virtual/machine/warp/run_counts.h"

namespace kvscope::ptx {

inline constexpr std::uint64_t kGridBarrierOffset = 4;  // of the counter in Launch::grid_workspace
inline constexpr std::uint64_t kSharedBase = 0x400;     // static variables begin here; CUDA reserves the bytes below

enum class WaitKind : std::uint8_t {
  none,
  warp_sync,      // other lanes of a mask: object = mask
  warp_aligned,   // all lanes of the warp at this pc
  warpgroup,      // four warps at this pc
  named_barrier,  // object = number
  mbarrier,       // object = shared address; value: phase parity or token
  cluster_barrier,
  tensor_room,  // free columns of tensor memory
  tensor_peer,  // the same instruction in the other CTA of a pair
};

struct Wait {
  WaitKind kind = WaitKind::none;
  std::uint64_t object = 0;
  std::uint64_t value = 0;
  bool parity = false;     // of an mbarrier: value is a parity, else a phase
  bool timed_out = false;  // woken without its condition: try_wait returns false
};

enum class LaneGroupState : std::uint8_t { ready, waiting };

struct LaneGroup {
  std::int32_t activation = 0;  // Warp::activations: the innermost one
  std::int32_t depth = 0;       // call depth; 0: the kernel itself
  std::int32_t pc = 0;
  LaneMask lanes = 0;
  LaneGroupState state = LaneGroupState::ready;
  bool retries = false;   // parked at its instruction, or woken there: the instruction is already counted
  bool had_turn = false;  // has taken kTurn backward branches while others were ready: the others run first
  Wait wait;
  std::int64_t backward = 0;  // branches taken backwards since its last event
  std::int64_t quiet = 0;     // instructions since the CTA's event number `quiet_since`
  std::uint64_t quiet_since = 0;

  // The instruction that it executes next, or that it waits at: a wait is past its instruction unless it retries it.
  [[nodiscard]] std::int32_t instruction() const { return state == LaneGroupState::waiting && !retries ? pc - 1 : pc; }
};

// A call of a function by some lanes of a warp.
struct Activation {
  std::int32_t function = -1;
  std::int32_t caller = -1;       // Warp::activations; -1: the kernel itself
  std::int32_t return_pc = -1;    // where the caller continues
  RegisterBuffer registers;       // FunctionCode::initial, then the lanes' values
  std::vector<std::byte> params;  // [lane][FunctionCode::param_bytes]: addresses from kBodyParams (address_operand.h)
  std::int64_t param_room = 0;    // [bytes] of params that Launch::local_bytes counts: the most since it exists
  std::int64_t local_base = 0;    // [bytes] in each lane's local memory: its .local variables
  // [lane]: end of its local memory, extended by alloca; the local memory of callees begins after the largest one.
  std::array<std::int64_t, kLanes> local_end{};
  std::int32_t users = 0;     // lane groups and activations directly above it; 0: may be reused
  std::uint64_t entered = 0;  // Launch::step when it began: distinguishes reuses of this object
};

struct Warp {
  std::int32_t index = 0;                            // in the CTA
  LaneMask exited = 0;                               // including lanes that never existed
  std::array<std::int32_t, kLanes> exited_at = [] {  // [lane]: the pc of its exit; -1: still runs, or never existed
    std::array<std::int32_t, kLanes> none{};
    none.fill(-1);
    return none;
  }();
  std::vector<LaneGroup> lane_groups;
  std::vector<Activation> activations;
  // [lane]: local memory, extended as calls need it.
  std::array<std::vector<std::byte>, kLanes> local;
  std::int64_t steps = 0;          // instructions issued
  std::int32_t current = -1;       // the lane group whose turn it is; -1: to be chosen
  std::int32_t max_registers = 0;  // as set by setmaxnreg; 0: not set
};

// Four consecutive warps, the first one a multiple of four.
struct Warpgroup {
  bool apart = false;  // its warps diverged (already reported): none of them waits for the others any more
};

struct NamedBarrier {
  std::int32_t expected = 0;      // threads; 0: all that have not exited
  std::vector<LaneMask> arrived;  // [warps] in this phase
  std::vector<LaneMask> waiting;  // [warps] lanes of `arrived` that wait
  std::uint64_t reduced = 0;      // bar.red's value so far
  std::int32_t reduction = 0;     // 0: plain; 1: popc, 2: and, 3: or
  std::int64_t phase = 0;
  std::int32_t last_pc = -1, last_warp = -1;  // of the last arrival
};

enum class CtaState : std::uint8_t { fresh, running, suspended, done };

struct Cta {
  std::int32_t index = 0;            // linear in the grid, x fastest
  std::array<std::int64_t, 3> at{};  // its coordinates
  std::int32_t cluster_rank = 0;
  CtaState state = CtaState::fresh;
  std::vector<std::byte> shared;  // byte i is at address kSharedBase + i
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;  // empty if unused
  std::array<NamedBarrier, 16> barriers;
  std::map<std::uint64_t, Mbarrier> mbarriers;  // live ones, by offset in the window
  AsyncState async;                             // of this CTA's threads
  TensorMemory tensor;
  std::int64_t steps = 0;    // warp instructions: %clock
  std::uint64_t events = 0;  // changes that other threads can observe
  std::int32_t turn = 0;     // the warp whose turn it is
  // [warps] lanes that have arrived at the cluster's barrier, and those of them that may pass its wait.
  std::vector<LaneMask> cluster_arrived;
  std::vector<LaneMask> cluster_passed;
};

enum class Policy : std::uint8_t { late, early, seeded };

struct LaunchOptions {
  Policy policy = Policy::late;
  std::uint64_t seed = 0;  // policy seeded: not 0
  LaunchLimits limits{};
  int max_reports = 20;
  Suppressions* suppressions = nullptr;  // reports to leave out; they outlive the launch
  bool stop_at_first_error = false;
  std::int32_t resident_limit = 264;  // CTAs that have started and not ended
  bool cooperative = false;           // all CTAs start together
  bool non_portable_cluster = false;  // up to 16 CTAs
  std::int64_t shared_opt_in = 0;     // [bytes] of dynamic and static shared memory; 0: at most 48 KiB
  bool report_div_by_zero = true;
  bool report_uni_diverged = true;
  std::string ctas = {};  // the CTAs that run: cta_sample.h; "": all
  std::int64_t jobs = 1;  // threads that run CTAs which cannot see one another: launch_parts.h
};

struct LaunchConfig {
  std::string kernel;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{};  // 0: the kernel's cluster size, or none
  std::int64_t dynamic_shared = 0;        // [bytes]
  std::vector<std::byte> params;          // the kernel's parameter block
  LaunchOptions options;
};

enum class LaunchStatus : std::uint8_t { running, finished, failed };

// The state of the round robin between two calls of run(), so that stepping follows the same schedule as running.
struct Turn {
  std::int32_t cta = -1;       // Cta::index; -1: to be chosen
  std::int64_t warp_left = 0;  // warp instructions left of the warp's turn, and of the CTA's
  std::int64_t cta_left = 0;
  std::int32_t time_outs = 0;  // rounds in which every try_wait was woken, since the last event
  std::int32_t spins = 0;      // rounds in which every CTA was suspended, since the last event
  std::uint64_t events = 0;    // Launch::events when those rounds were counted
  bool told_begin = false;     // the monitor has been notified that the launch began
  bool told_end = false;       // the monitor has been notified that it ended
};

struct Launch {
  std::shared_ptr<const Program> program;
  std::int32_t function = -1;  // Module::functions: the kernel
  LaunchConfig config;
  const KernelLayout* layout = nullptr;                                  // points into program
  DeviceMemory* memory = nullptr;                                        // must outlive the launch
  Monitor* monitor = nullptr;                                            // may be null
  bool watch_changed = false;                                            // Monitor::wants_instructions_of
  std::vector<std::pair<std::int32_t, std::uint64_t>> module_addresses;  // variable -> device address
  std::int64_t number = 1;                                               // %gridid
  bool reads_grid_workspace = false;                                     // the kernel has a barrier of the grid
  std::uint64_t grid_workspace = 0;  // device address of a cooperative launch's; 0: none, and such a barrier traps
  // [Module::functions] the initial registers of an activation, with addresses of variables filled in; only functions
  // that this kernel can reach.
  std::shared_ptr<const std::vector<RegisterBuffer>> initial_registers;

  std::vector<std::int64_t> sample;  // clusters that run, ascending; empty: all

  std::deque<Cta> ctas;       // started and not ended, and those a cluster still needs
  std::int64_t next_cta = 0;  // of those that run: their number if all do
  std::int64_t ended_ctas = 0;
  std::uint64_t step = 0;  // warp instructions of the launch
  std::uint64_t next_async = 1;
  std::uint64_t random = 0;  // state of the seeded schedule
  std::uint64_t events = 0;  // of all its CTAs
  // [ops] number of times that a backward branch was taken, counted only near the end of limits.instructions; otherwise
  // empty.
  std::vector<std::uint32_t> backward_taken;
  RunCounts run_counts;  // if the monitor wants them
  Turn turn;
  LaunchStatus status = LaunchStatus::running;
  Reports reports{20};
  std::string short_kernel;      // as reports name the kernel: found at the first one
  std::string printed;           // by vprintf
  std::int64_t local_bytes = 0;  // local memory and call parameters of the CTAs in `ctas`
  std::int64_t heap_blocks = 0;  // by malloc, freed ones included
  std::int32_t threads = 1;      // that ran the CTAs
  std::string one_thread;        // why one thread ran them although several were asked for; "": neither

  [[nodiscard]] std::int64_t cta_count() const { return config.grid[0] * config.grid[1] * config.grid[2]; }
  [[nodiscard]] std::int64_t ctas_to_run() const;  // fewer in a sampled launch
};

// The argument of a handler: the running lane group and its registers.
struct Exec {
  Launch& launch;
  Cta& cta;
  Warp& warp;
  LaneGroup& lane_group;
  std::byte* registers = nullptr;  // of the lane group's innermost activation

  [[nodiscard]] const Program& program() const { return *launch.program; }
};

}  // namespace kvscope::ptx
