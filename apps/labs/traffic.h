// The sectors of global memory that each line of a kernel reads and writes, by array, and why they are too many. A
// sector has 32 bytes.
//
//   table  line 8   396 sectors where 12 are needed     the same entry is read in each turn of the loop
//
// Give a Traffic to run_kernel as its monitor; the arrays of LabCall are numbered as there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apps/labs/kernel_run.h"
#include "apps/labs/picture.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::labs {

// One memory instruction of a warp.
struct WarpSample {
  std::int64_t bytes = 0;  // of a lane
  ptx::LaneMask lanes = 0;
  std::array<std::uint64_t, ptx::kLanes> addresses{};
};

// One line's accesses of one array.
struct LineTraffic {
  std::int64_t runs = 0, sectors = 0;
  std::int64_t several = 0, gaps = 0;  // sectors wasted as lanes access different rows, or leave gaps
  std::int64_t alone = 0, same = 0;    // runs with one active lane; runs in which lanes share an address
  std::int64_t most_wasted = -1;       // of `sample`
  WarpSample sample;                   // the instruction that wastes the most sectors
};

class Traffic final : public ptx::Monitor {
 public:
  explicit Traffic(std::int64_t row_bytes) : row_bytes_(static_cast<std::uint64_t>(row_bytes)) {}

  void access(const ptx::Exec& exec, const ptx::Op& op, const ptx::WarpAccess& access) override;

  [[nodiscard]] std::int64_t sectors(const KernelRun& run, std::size_t array) const;
  // The line of the student's file that accesses the most sectors of the array, if one does.
  struct Line {
    std::int64_t number = 0;
    LineTraffic traffic;
    std::string reason;  // why there may be more sectors than needed
  };
  [[nodiscard]] std::optional<Line> worst_line(const KernelRun& run, std::size_t array) const;

 private:
  using Key = std::pair<std::uint64_t, std::int64_t>;  // array's place in memory, line
  std::uint64_t row_bytes_;
  std::map<Key, LineTraffic> lines_;
};

// The sector of `array` that each lane of the line's sample accesses.
[[nodiscard]] CasePicture picture_of_lanes(const std::string& array, const Traffic::Line& line);

// The compiler of the PTX, by its first lines: "Triton", "clang", "nvcc or NVRTC 12.8"; "an unknown compiler"
// otherwise. Compilers keep other values in registers, so sectors may differ.
[[nodiscard]] std::string compiler_of(const LabKernel& kernel);

}  // namespace kvscope::labs
