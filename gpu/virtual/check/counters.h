// Counts of a launch per instruction: runs, lanes, wavefronts of shared memory, sectors of global memory, waits, splits
// of the warp. Sums by instruction class and by source line follow from them.
//
//   decode.cu:88   st.shared.v4.b32    runs 128   lanes 4096   wavefronts 1024 of 512   conflicts 512
//
// These are counts, not times. A wavefront is one pass over the banks, a sector is 32 bytes of global memory
// (wavefronts.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/check/wavefronts.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

enum class InstructionClass : std::uint8_t {
  integer,
  floating,
  convert,
  move,       // mov, selp, rearranged bits
  predicate,  // setp and other instructions whose result is a predicate
  control,
  warp,  // shfl, vote, ...
  shared_memory,
  global_memory,
  other_memory,  // local, param, const, generic
  atomic,
  barrier,
  copy,  // cp.async, bulk and tensor copies
  matrix,
  other,
};
inline constexpr int kInstructionClasses = 15;
[[nodiscard]] std::string_view name(InstructionClass c);  // "shared memory"
[[nodiscard]] InstructionClass class_of(const Instr& instr);

struct OpCounts {
  std::int64_t runs = 0;       // warp instructions
  std::int64_t lanes = 0;      // lanes that took part in these runs
  std::int64_t divergent = 0;  // runs with fewer lanes than the warp has live ones
  std::int64_t splits = 0;     // branches that split their lanes
  std::int64_t waits = 0;      // times that it parked
  std::int64_t wavefronts = 0;
  std::int64_t ideal_wavefronts = 0;
  std::array<std::int64_t, 6> degrees{};  // accesses by wavefronts of their worst group: 1, 2, 3-4, 5-8, 9-16, 17-32
  std::int64_t requests = 0;              // of global memory
  std::int64_t sectors = 0;
  std::int64_t ideal_sectors = 0;
  std::int64_t lines = 0;
  std::int64_t copies = 0;        // issued to an engine
  std::int64_t copied_bytes = 0;  // of global memory read or written by them, rows clipped to the tensor
  std::int64_t credited = 0;      // [bytes] to an arrival barrier, fill included

  [[nodiscard]] std::int64_t conflicts() const { return wavefronts - ideal_wavefronts; }
  OpCounts& operator+=(const OpCounts& other);
  friend bool operator==(const OpCounts&, const OpCounts&) = default;
};

// The sum over all instructions of one place in the sources.
struct LineCounts {
  std::string source;  // as Program::source_text
  OpCounts counts;
};

class Counters final : public Monitor {
 public:
  explicit Counters(const Program& program) : program_(program), ops_(program.ops.size()) {}

  // After the launch; counts of several launches are added.
  [[nodiscard]] const std::vector<OpCounts>& ops() const { return ops_; }  // by pc
  [[nodiscard]] OpCounts total() const;
  [[nodiscard]] std::array<std::int64_t, kInstructionClasses> by_class() const;  // runs
  [[nodiscard]] std::vector<LineCounts> by_line() const;                         // in the order of first pc

  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t) override { return std::make_unique<Counters>(program_); }
  void join(Monitor& part) override;
  [[nodiscard]] bool wants_run_counts() const override { return true; }
  void split(const Exec& exec, LaneMask taken, std::int32_t pc) override;
  void park(const Exec& exec, const Op& op) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void launch_ends(Launch& launch) override;

 private:
  // The destinations of one cp.async instruction, whose lanes issue one by one.
  struct Gathered {
    std::uint64_t step = 0;
    std::int32_t pc = -1;
    LaneMask lanes = 0;
    int bytes = 0;
    std::array<std::uint64_t, kLanes> shared{};
    std::array<std::uint64_t, kLanes> global{};
    LaneMask reading = 0;
  };
  [[nodiscard]] OpCounts& at(std::int32_t pc) { return ops_[static_cast<std::size_t>(pc)]; }
  void count_shared(OpCounts& counts, std::span<const std::uint64_t, kLanes> addresses, LaneMask lanes, int bytes,
                    bool atomic);
  void count_gathered();

  const Program& program_;
  WavefrontMemory shapes_;
  std::vector<OpCounts> ops_;
  Gathered gathered_;
};

}  // namespace kvscope::ptx
