// A launch of a kernel on the virtual GPU as plain data: what can be launched, its code, and its state between two warp
// instructions. The program implements KernelRun; viz does not see the virtual GPU.
//
//   run->go({.move = KernelMove::line}, keep_going)     the state at the next source line of the same warp
//
// A step is one instruction of one warp; a position is the number of steps that have been executed. scale.ptx with a
// grid of 2 and a block of 64 has 2 CTAs of 2 warps of 12 instructions: positions 0 to 48. The launch is deterministic,
// so that every way to a position shows the same state.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kvscope::viz {

inline constexpr int kWarpLanes = 32;

// --- what can be launched --------------------------------------------------------------------------------------------

struct KernelParameter {
  std::string name;  // of the source or of the PTX; empty: the file has only its number
  std::string type;  // "u64", "Params, 24 bytes"
};

struct KernelEntry {
  std::string name;   // in the PTX
  std::string shown;  // the shortest form that no other kernel of the file has
  std::vector<KernelParameter> parameters;
  std::string block;  // the block that the kernel was compiled for: "128"; empty: any
};

struct KernelFile {
  std::string path;
  std::vector<KernelEntry> entries;
};

// A launch as its user types it; the words of `kvscope ptx run`.
struct KernelLaunch {
  std::string path;
  std::string entry;  // empty: the only kernel of the file
  std::string grid = "1", block = "1", cluster, shared = "0";
  std::vector<std::string> arguments;  // by parameter; empty: none, such as for a struct that `others` sets by fields
  std::vector<std::string> others;     // further words: {"--policy", "early"}
  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

// --- its code --------------------------------------------------------------------------------------------------------

struct KernelSource {
  std::string path;
  std::vector<std::string> lines;             // empty: it cannot be read here
  std::vector<std::int32_t> lines_with_code;  // from 1, in order: where a breakpoint can be
};

struct KernelInstruction {
  std::string text;          // with its guard, on one line
  std::int32_t source = -1;  // KernelCode::sources; -1: the PTX has no line information, or its file cannot be read
  std::int32_t line = 0;     // from 1
  std::int32_t ptx_line = 0;
};

struct KernelCode {
  std::string kernel;                 // its short name
  std::string launch;                 // "grid 2, block 32"
  std::vector<KernelSource> sources;  // the last one is the PTX
  std::vector<KernelInstruction> instructions;
};

// --- its state -------------------------------------------------------------------------------------------------------

// Lanes of a warp that execute the same instruction together.
struct KernelGroup {
  enum class State : std::uint8_t { next, ready, waits };
  std::int32_t cta = 0, warp = 0;
  std::string cta_name;  // "(0,0,0)"
  std::string lanes;     // "all lanes", "lanes 0-15"
  State state = State::ready;
  std::int32_t instruction = 0;  // KernelCode::instructions: executed next, or waited at
  std::string waits_for;         // "barrier 0"; empty: it does not wait
};

struct KernelRegister {
  std::string name, type;                      // "%r4", "u32"
  std::array<std::string, kWarpLanes> values;  // in the notation of the type; empty: the lane is not in the group
  std::array<std::string, kWarpLanes> bits;    // the same in hexadecimal
};

// Who wrote bytes of shared memory last.
struct KernelWriter {
  std::string text;               // "warp 0 lanes 0-31  st.shared.f32"
  std::uint64_t step = 0;         // the position before the write
  std::int32_t instruction = -1;  // KernelCode::instructions
  std::int32_t warp = -1;         // -1: a copy
  friend bool operator==(const KernelWriter&, const KernelWriter&) = default;
};

struct KernelShared {
  std::uint64_t base = 0;  // the address of the first byte
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> writer;  // [bytes] index of writers; -1: not written
  std::vector<KernelWriter> writers;
  std::vector<std::pair<std::uint64_t, std::string>> variables;  // address and name, in order
};

struct KernelReport {
  std::uint64_t step = 0;         // the position before the instruction that was reported
  std::string title;              // "RACE_WR"
  std::string message;            // one sentence
  std::string text;               // the whole report, several lines
  std::string severity;           // "error", "warning", "note"
  std::int32_t instruction = -1;  // KernelCode::instructions; -1: it names none
};

enum class KernelStatus : std::uint8_t { running, finished, failed };

struct KernelState {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> last;  // the position at the end of the launch, once it has been there
  KernelStatus status = KernelStatus::running;
  std::string arrived;  // why the last movement ended here: "breakpoint 1", "barrier 0 completed"; empty: as asked
  // Of all CTAs that have started and not ended, and that of the next instruction.
  std::vector<KernelGroup> groups;
  std::int32_t next = -1;  // index of groups; -1: no warp can run
  // The lane group whose registers and shared memory are shown: the next one, or one of the warp that was asked for.
  std::int32_t shown = -1;
  std::vector<KernelRegister> registers;
  KernelShared shared;
  std::string barriers, copies;       // of the CTA, one a line; empty: none
  std::vector<KernelReport> reports;  // all that are known, also of later positions, in order
  std::int32_t report = -1;           // index of reports: the one that the last movement stopped at; -1: none
  std::string printed;                // by printf
};

// --- movements -------------------------------------------------------------------------------------------------------

enum class KernelMove : std::uint8_t {
  stay,
  start,      // position 0
  end,        // the end of the launch
  seek,       // to KernelWish::step
  back,       // one warp instruction, of whichever warp executed it
  step,       // the same forward
  back_line,  // where the warp was last at another line
  line,       // the next source line of the same warp
  over,       // the same, not in functions that the line calls
  warp,       // the next instruction of the same warp
  barrier,    // behind what completes a barrier
  event,      // behind the next effect that other threads can observe
  write,      // behind the next instruction or copy that writes KernelWish::word
  report,     // behind the next instruction that is reported
  run,        // to the next breakpoint or report
};

struct KernelBreakpoint {
  std::int32_t source = 0;  // KernelCode::sources
  std::int32_t line = 0;
  friend auto operator<=>(const KernelBreakpoint&, const KernelBreakpoint&) = default;
};

// Bytes of the shared memory of a CTA: {0, 0x404, 4} is the second word of CTA 0, if its KernelShared::base is 0x400.
struct KernelWord {
  std::int32_t cta = -1;      // KernelGroup::cta
  std::uint64_t address = 0;  // of the first byte, as KernelShared::base
  std::int64_t bytes = 4;
  friend bool operator==(const KernelWord&, const KernelWord&) = default;
};

struct KernelWish {
  KernelMove move = KernelMove::stay;
  std::uint64_t step = 0;            // seek
  KernelWord word = {};              // write
  std::int32_t cta = -1, warp = -1;  // whose registers are shown; -1: those of the next instruction
  std::string lanes = {};            // KernelGroup::lanes, for a warp with several groups; empty: its first
  std::vector<KernelBreakpoint> breakpoints = {};
};

class KernelRun {
 public:
  virtual ~KernelRun() = default;
  [[nodiscard]] virtual const KernelCode& code() const = 0;
  // One call at a time. `keep_going` is asked during long movements; false ends the movement where it is.
  [[nodiscard]] virtual KernelState go(const KernelWish& wish, const std::function<bool()>& keep_going) = 0;
};

}  // namespace kvscope::viz
