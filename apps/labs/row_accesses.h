// Counts the sectors of global memory that a kernel wastes, by reason. A sector has 32 bytes.
//
//   each lane reads 16 bytes of another row     32 sectors, 16 would do: 16 are wasted, lanes read different rows
//   lanes read every second 16 bytes of a row   32 sectors, 16 would do: 16 are wasted, gaps
//   lanes read adjacent 16 bytes of a row       16 sectors, none is wasted
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
  std::int64_t several_ = 0, gaps_ = 0, all_ = 0;  // sectors: wasted for either reason, and all
};

}  // namespace kvscope::labs
