// A launch under control: forwards and backwards, to a step, a line, a breakpoint, a change of some bytes.
//
//   ControlledRun run(device, module, config);
//   run.add_breakpoint(run.pcs_of("scale.cu", 12));
//   Stop stop = run.run();            stands before the first instruction of line 12, nothing of it done
//   run.back(1);                      before the instruction that came before it, of whatever warp
//   run.seek(0);                      at the beginning
//
// A position is a number of warp instructions done. The machine is deterministic, so a position says everything: going
// back is going there again from the nearest snapshot, and a stop is found by running past it and going back to it.
// Checkers hear of every step once, however often it is run again. Snapshots copy the machine and the device's memory;
// at most 64 are kept, and no more bytes than `most_snapshot_bytes`, the distances doubling as the run grows.
#pragma once

#include <array>
#include <cstdint>
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

// The instruction that is next at a position: who runs it.
struct Position {
  std::uint64_t step = 0;  // warp instructions done
  std::int32_t cta = -1;   // linear; -1: nothing comes next
  std::int32_t warp = -1;
  std::int32_t pc = -1;
  LaneMask lanes = 0;  // of the lane group, its guard not yet looked at
};

enum class StopReason : std::uint8_t {
  step,        // as far as was asked
  breakpoint,  // before one
  watchpoint,  // behind the instruction that changed the bytes
  line,        // another line of the sources
  barrier,     // behind the instruction or copy that completed a barrier
  event,       // behind what others can see
  report,      // behind the instruction that was reported
  finished,
  failed,     // the launch ended by an error
  beginning,  // there is nothing further back
};
[[nodiscard]] std::string_view name(StopReason reason);

struct Stop {
  StopReason reason = StopReason::step;
  std::string what;  // "breakpoint 1", "shared 0x00400: 00 00 80 3f -> 00 00 00 40"; may be empty
  Position at;       // who stopped it: of a breakpoint or line the instruction that comes next, else the one just done
};

// Bytes that are watched; `cta` is for shared memory.
struct Watch {
  Space space = Space::global;
  std::int32_t cta = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 4;
};

class ControlledRun {
 public:
  // Begins the launch; throws as Device::begin. `device`, and `monitor` if there is one, outlive this.
  ControlledRun(Device& device, const LoadedModule& module, const LaunchConfig& config, Monitor* monitor = nullptr,
                std::int64_t most_snapshot_bytes = std::int64_t{1} << 30);
  ~ControlledRun();

  // --- where it is ---
  [[nodiscard]] std::uint64_t step() const { return launch_.step; }
  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] bool ended() const { return launch_.status != LaunchStatus::running; }
  // Who runs next. Looked up, or found by running one step and going back.
  [[nodiscard]] Position position();
  // Of the bytes as they are here.
  [[nodiscard]] const LastWriters& writers() const { return writers_; }
  // Up to here, in the order of steps.
  [[nodiscard]] std::vector<Report> reports() const;

  // --- forwards and backwards ---
  Stop run();                       // to the next breakpoint, watchpoint or report, or to the end
  Stop steps(std::uint64_t count);  // warp instructions of whatever warp
  Stop warp_step();                 // until the warp that is next has done one
  Stop line();                      // until that warp stands at another line of the sources
  Stop to(StopReason reason);       // barrier, event or report
  Stop seek(std::uint64_t step);    // anywhere; past the end: the end
  Stop back(std::uint64_t count);
  Stop back_line();  // to where that warp last stood at another line

  // --- what to stop at ---
  // Where a line begins: each op of it, or of what is inlined into it, behind one that is not. `file` may be the end of
  // a path.
  [[nodiscard]] std::vector<std::int32_t> pcs_of(std::string_view file, std::int32_t line) const;
  int add_breakpoint(std::vector<std::int32_t> pcs);
  int add_watch(const Watch& watch);
  // False: there is none of that number.
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
  MonitorChain again_;               // without who must hear of every step once
  std::vector<Snapshot> snapshots_;  // by step; the first is the beginning
  std::uint64_t distance_ = 4096;    // between two
  std::int64_t most_snapshot_bytes_;
  std::uint64_t furthest_ = 0;   // steps that the checkers have heard of
  std::vector<Report> reports_;  // by step
  std::map<int, std::vector<std::int32_t>> breakpoints_;
  std::map<int, Watch> watches_;
  int next_number_ = 1;
};

}  // namespace kvscope::ptx
