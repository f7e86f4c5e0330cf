// Counts how the lanes of a warp share rows in global memory: the reason for wasted sectors.
//
//   lanes 0 .. 31 read 16 bytes of one row each      several: half of each sector is wasted
//   lanes 0 .. 31 read adjacent 16 bytes             adjacent
//   lanes 0 .. 31 read every second 16 bytes         gaps
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::labs {

class RowAccesses final : public ptx::Monitor {
 public:
  explicit RowAccesses(std::int64_t row_bytes) : row_bytes_(static_cast<std::uint64_t>(row_bytes)) {}

  void access(const ptx::Exec& exec, const ptx::Op& op, const ptx::WarpAccess& access) override;
  // Of a kernel whose sectors are too many.
  [[nodiscard]] std::string_view reason() const;

 private:
  std::uint64_t row_bytes_;
  std::int64_t several_ = 0, gaps_ = 0, adjacent_ = 0;  // instructions
};

}  // namespace kvscope::labs
