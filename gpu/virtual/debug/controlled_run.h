// A launch under a debugger's control: it moves forward and backward, to a step, a line, a breakpoint, or a change of
// watched bytes.
//
//   ControlledRun run(device, module, config);
//   run.add_breakpoint(run.pcs_of("scale.cu", 12));
//   Stop stop = run.run();            stops before the first instruction of line 12 is executed
//   run.back(1);                      before the previous instruction, of whichever warp executed it
//   run.seek(0);                      at the beginning
//
// A position is the number of warp instructions executed so far. The machine is deterministic, so that number
// identifies the whole state. Moving backward restores the nearest snapshot and runs forward from it; a stop is found
// by running past it and moving back. Checkers receive each step once, even if the step is executed again. A snapshot
// copies the machine and the device's memory. At most 64 snapshots are kept, within `most_snapshot_bytes`; the distance
// between them doubles as the run grows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/check/monitor_chain.h"
#include "gpu/virtual/debug/last_writers.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::ptx {

// The instruction that is executed next at a position, and the lane group that executes it.
struct Position {
  std::uint64_t step = 0;  // warp instructions done
  std::int32_t cta = -1;   // linear; -1: the launch has no next instruction
  std::int32_t warp = -1;
  std::int32_t pc = -1;
  LaneMask lanes = 0;  // of the lane group, before the guard is applied
};

enum class StopReason : std::uint8_t {
  step,        // the requested number of steps was executed
  breakpoint,  // before its instruction
  watchpoint,  // after the instruction that changed the bytes
  write,       // after the instruction or copy that wrote the bytes
  line,        // a different source line
  barrier,     // after the instruction or copy that completed a barrier
  event,       // after an effect that other threads can observe
  report,      // after the instruction that was reported
  finished,
  failed,       // the launch ended with an error
  beginning,    // position 0: there is no earlier position
  interrupted,  // by set_keep_going: anywhere on the way
};
[[nodiscard]] std::string_view name(StopReason reason);

struct Stop {
  StopReason reason = StopReason::step;
  std::string what;  // "breakpoint 1", "shared 0x00400: 00 00 80 3f -> 00 00 00 40"; may be empty
  Position at;       // breakpoint or line: the next instruction; otherwise the instruction just executed
};

// Watched bytes; `cta` applies to shared memory only. The start and the end of a CTA, when its shared memory appears and
// disappears, are not changes.
struct Watch {
  Space space = Space::global;
  std::int32_t cta = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 4;
};

class ControlledRun {
 public:
  // Begins the launch; throws as Device::begin does. `device` and `monitor` (if any) must outlive this object.
  ControlledRun(Device& device, const LoadedModule& module, const LaunchConfig& config, Monitor* monitor = nullptr,
                std::int64_t most_snapshot_bytes = std::int64_t{1} << 30);
  ~ControlledRun();

  // --- current position ---
  [[nodiscard]] std::uint64_t step() const { return launch_.step; }
  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] bool ended() const { return launch_.status != LaunchStatus::running; }
  // The next instruction. It is looked up, or found by executing one step and moving back.
  [[nodiscard]] Position position();
  // The last writers at the current position.
  [[nodiscard]] const LastWriters& writers() const { return writers_; }
  // Reports up to the current position, in the order of steps.
  [[nodiscard]] std::vector<Report> reports() const;

  // --- forward and backward ---
  Stop run();                       // to the next breakpoint, watchpoint or report, or to the end
  Stop steps(std::uint64_t count);  // warp instructions, of any warp
  // The next three end at the latest when that warp ends.
  Stop warp_step();                   // until the next warp has executed one instruction
  Stop line();                        // until that warp reaches a line that is shown differently (source_place.h)
  Stop over();                        // the same, but not in functions that the line calls, also if they are inlined
  Stop to(StopReason reason);         // barrier, event or report
  Stop to_write(const Watch& watch);  // of shared memory: to after the next instruction or copy that writes any byte
  Stop seek(std::uint64_t step);      // to any position; past the end: the end
  Stop back(std::uint64_t count);
  Stop back_line();  // to where that warp was last at a different line; at the end, to the last instruction

  // Asked during every movement, at least once in 2^16 instructions; false ends it where it is.
  void set_keep_going(std::function<bool()> keep_going) { keep_going_ = std::move(keep_going); }

  // --- stop conditions --- The pcs where a line begins: each op of the line, or of code inlined into it, that follows
  // an op of another line. `file` may be the end of a path. Ops without a source line have their line in the PTX.
  [[nodiscard]] std::vector<std::int32_t> pcs_of(std::string_view file, std::int32_t line) const;
  // The lines of the file that pcs_of() finds, in order; empty: the program has no instruction of that file.
  [[nodiscard]] std::vector<std::int32_t> lines_of(std::string_view file) const;
  int add_breakpoint(std::vector<std::int32_t> pcs);
  int add_watch(const Watch& watch);
  // False: no breakpoint or watchpoint has that number.
  bool remove(int number);

 private:
  class Watcher;
  struct Snapshot {
    Launch launch;
    DeviceMemory memory;
    LastWriters writers;
  };
  struct Until;

  void advance(std::uint64_t steps);
  [[nodiscard]] Stop arrived() const;
  [[nodiscard]] std::pair<int, int> depth_at(const Position& at) const;
  void keep_snapshot();
  void go_to(std::uint64_t step);
  void harvest();
  Stop search(const Until& until);
  [[nodiscard]] Stop end_stop() const;

  DeviceMemory& memory_;
  Launch launch_;
  Monitor* monitor_;
  std::unique_ptr<Watcher> watcher_;
  LastWriters writers_;
  MonitorChain all_;
  MonitorChain again_;               // without the monitors that receive each step only once
  std::vector<Snapshot> snapshots_;  // by step; the first is at the beginning
  std::uint64_t distance_ = 4096;    // steps between two snapshots
  std::int64_t most_snapshot_bytes_;
  std::uint64_t furthest_ = 0;   // steps that the checkers have received
  Reports furthest_reports_;     // at that step
  std::vector<Report> reports_;  // by step
  std::map<int, std::vector<std::int32_t>> breakpoints_;
  std::map<int, Watch> watches_;
  int next_number_ = 1;
  std::function<bool()> keep_going_;
  bool interrupted_ = false;  // the last movement
};

}  // namespace kvscope::ptx
