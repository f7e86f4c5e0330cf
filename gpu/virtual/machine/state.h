// Everything a running launch is, as plain values and indices: copying a `Launch` copies the machine, which is how a
// debugger goes back.
//
//   Launch          grid, steps, monitors, device memory (by pointer: the host's)
//     Cta           shared memory, named barriers, arrival barriers, what its engines have still to do
//       Warp        registers of its activations, exited lanes
//         LaneGroup activation, pc, lanes: the lanes of a warp that go on together
//
// Lane groups: of the ready ones of a warp the deepest in calls runs, then the lowest pc, and those at one place with
// identical calls are merged before. It runs until it splits, reaches another's place, waits, ends, or has used up its
// turn. So both sides of an if meet again behind it, without the compiler's help.
//
// Lanes that are in a function by the same chain of calls share one activation, also when they came one after the
// other: so identical calls are the same activation, and lanes that entered apart can meet inside.
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
#include "gpu/virtual/machine/memory/device_memory.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/program/register_buffer.h"

namespace kvscope::ptx {

inline constexpr std::uint64_t kSharedBase = 0x400;  // statics begin here; below it the system's kilobyte

enum class WaitKind : std::uint8_t {
  none,
  warp_sync,      // other lanes of a mask: object = mask
  warp_aligned,   // all lanes of the warp at this pc
  warpgroup,      // four warps at this pc
  named_barrier,  // object = number
  mbarrier,       // object = shared address; value: phase parity or token
  cluster_barrier,
};

struct Wait {
  WaitKind kind = WaitKind::none;
  std::uint64_t object = 0;
  std::uint64_t value = 0;
  bool parity = false;     // of an mbarrier: value is a parity, else a phase
  bool timed_out = false;  // woken without what it waited for: try_wait answers false
};

enum class LaneGroupState : std::uint8_t { ready, waiting };

struct LaneGroup {
  std::int32_t activation = 0;  // Warp::activations: the innermost
  std::int32_t depth = 0;       // of calls; 0: the kernel itself
  std::int32_t pc = 0;
  LaneMask lanes = 0;
  LaneGroupState state = LaneGroupState::ready;
  bool retries = false;   // parked at its instruction, or woken there: it has been counted
  bool had_turn = false;  // has branched backwards kTurn times while others were ready: they go first
  Wait wait;
  std::int64_t backward = 0;  // branches taken backwards since its last event
  std::int64_t quiet = 0;     // instructions since the CTA's event number `quiet_since`
  std::uint64_t quiet_since = 0;
};

// A function at work in some lanes of a warp.
struct Activation {
  std::int32_t function = -1;
  std::int32_t caller = -1;       // Warp::activations; -1: the kernel itself
  std::int32_t return_pc = -1;    // where the caller goes on
  RegisterBuffer registers;       // FunctionCode::initial, then the lanes' values
  std::vector<std::byte> params;  // [lane][FunctionCode::param_bytes]: address kBodyParams on (address_operand.h)
  std::int64_t local_base = 0;    // [bytes] in each lane's local memory: its .local variables
  // [lane]: end of what it uses there, grown by alloca; what it calls begins behind all of them.
  std::array<std::int64_t, kLanes> local_end{};
  std::int32_t users = 0;     // lane groups and activations right above it; 0: may be taken again
  std::uint64_t entered = 0;  // Launch::step when it began: an activation taken again is another one
};

struct Warp {
  std::int32_t index = 0;  // in the CTA
  LaneMask exited = 0;     // also lanes that never were
  std::vector<LaneGroup> lane_groups;
  std::vector<Activation> activations;
  // [lane]: local memory, grown as calls need it.
  std::array<std::vector<std::byte>, kLanes> local;
  std::int64_t steps = 0;          // instructions issued
  std::int32_t current = -1;       // lane groups: whose turn it is; -1: to be chosen
  std::int32_t max_registers = 0;  // as setmaxnreg has left it; 0: it has not
};

// Four warps, from a multiple of four on.
struct Warpgroup {
  bool apart = false;  // they were not at one instruction, which has been said: nobody waits for the others any more
};

struct NamedBarrier {
  std::int32_t expected = 0;      // threads; 0: all that have not exited
  std::vector<LaneMask> arrived;  // [warps] in this phase
  std::vector<LaneMask> waiting;  // [warps] those of them that wait
  std::uint64_t reduced = 0;      // bar.red's value so far
  std::int32_t reduction = 0;     // 0: plain; popc, and, or + 1
  std::int64_t phase = 0;
};

enum class CtaState : std::uint8_t { fresh, running, suspended, done };

struct Cta {
  std::int32_t index = 0;            // linear in the grid, x fastest
  std::array<std::int64_t, 3> at{};  // its coordinates
  std::int32_t cluster_rank = 0;
  CtaState state = CtaState::fresh;
  std::vector<std::byte> shared;  // from kSharedBase on: byte i is at address kSharedBase + i
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;  // or empty
  std::array<NamedBarrier, 16> barriers;
  std::map<std::uint64_t, Mbarrier> mbarriers;  // by offset in the window, live ones
  AsyncState async;                             // of this CTA's threads
  std::int64_t steps = 0;                       // warp instructions: %clock
  std::uint64_t events = 0;                     // changes that others can see
  std::int32_t turn = 0;                        // the warp whose turn it is
  // [warps] lanes that have arrived at the cluster's barrier, and those of them that may pass its wait.
  std::vector<LaneMask> cluster_arrived;
  std::vector<LaneMask> cluster_passed;
};

enum class Policy : std::uint8_t { late, early, seeded };

struct LaunchOptions {
  Policy policy = Policy::late;
  std::uint64_t seed = 0;                         // seeded: not 0
  std::int64_t max_instructions = 1'000'000'000;  // warp instructions
  int max_reports = 20;
  bool stop_at_first_error = false;
  std::int32_t resident_limit = 264;  // CTAs started and not ended
  bool cooperative = false;           // all CTAs start together
  bool non_portable_cluster = false;  // up to 16
  std::int64_t shared_opt_in = 0;     // [bytes] of dynamic and static shared memory; 0: 48 KiB at most
  bool report_div_by_zero = true;
  bool report_uni_diverged = true;
};

struct LaunchConfig {
  std::string kernel;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{};  // 0: the kernel's, or none
  std::int64_t dynamic_shared = 0;        // [bytes]
  std::vector<std::byte> params;          // the kernel's parameter block
  LaunchOptions options;
};

enum class LaunchStatus : std::uint8_t { running, finished, failed };

// Whose turn it is, between two calls of run(): so that stepping goes the way that running goes.
struct Turn {
  std::int32_t cta = -1;       // Cta::index; -1: to be chosen
  std::int64_t warp_left = 0;  // warp instructions that are left of the warp's turn, and of the CTA's
  std::int64_t cta_left = 0;
  std::int32_t time_outs = 0;  // rounds in which every try_wait was woken, since the last event
  std::int32_t spins = 0;      // rounds in which every CTA was suspended, since the last event
  std::uint64_t events = 0;    // Launch::events when those rounds were counted
  bool told_begin = false;     // the monitor knows that the launch has begun
  bool told_end = false;       // and that it has ended
};

struct Launch {
  std::shared_ptr<const Program> program;
  std::int32_t function = -1;  // Module::functions: the kernel
  LaunchConfig config;
  const KernelLayout* layout = nullptr;                                  // of program
  DeviceMemory* memory = nullptr;                                        // outlives the launch
  Monitor* monitor = nullptr;                                            // may be null
  std::vector<std::pair<std::int32_t, std::uint64_t>> module_addresses;  // variable -> device address
  std::int64_t number = 1;                                               // %gridid
  // [Module::functions] the registers of an activation as it begins, variables' addresses filled in; those of the
  // functions that this kernel can reach.
  std::shared_ptr<const std::vector<RegisterBuffer>> initial_registers;

  std::deque<Cta> ctas;  // started and not ended, and those a cluster still needs
  std::int64_t next_cta = 0;
  std::int64_t ended_ctas = 0;
  std::uint64_t step = 0;  // warp instructions of the launch
  std::uint64_t next_async = 1;
  std::uint64_t random = 0;  // state of the seeded schedule
  std::uint64_t events = 0;  // of all its CTAs
  // [ops] how often a branch has gone backwards, counted near the end of max_instructions only; else empty.
  std::vector<std::uint32_t> backward_taken;
  Turn turn;
  LaunchStatus status = LaunchStatus::running;
  Reports reports{20};
  std::string printed;  // by vprintf

  [[nodiscard]] std::int64_t cta_count() const { return config.grid[0] * config.grid[1] * config.grid[2]; }
};

// What a handler gets: who runs, and its registers.
struct Exec {
  Launch& launch;
  Cta& cta;
  Warp& warp;
  LaneGroup& lane_group;
  std::byte* registers = nullptr;  // of the lane group's innermost activation

  [[nodiscard]] const Program& program() const { return *launch.program; }
};

}  // namespace kvscope::ptx
