// Finds ld.global.nc of bytes that this launch has written: the read-only path may return the old bytes.
//
//   NC_MODIFIED  global 0x200000000 (x + 0)  ...  write thread 3  st.global.f32  /  read thread 9  ld.global.nc.f32
//
// Kernels without such a load cost nothing. For other kernels every store is recorded, in cells of 4 bytes.
// Source: PTX ISA, "ld.global.nc".
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class NcChecker final : public Monitor {
 public:
  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t) override { return std::make_unique<NcChecker>(); }
  [[nodiscard]] OperationEvents wants_operations() const override { return {false, true, false, false}; }
  void launch_begins(Launch& launch) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;

 private:
  struct Writer {
    std::int32_t pc = -1;
    std::int32_t cta = 0;     // linear
    std::int32_t thread = 0;  // in it
  };
  void note(std::uint64_t address, std::int64_t bytes, const Writer& writer);

  bool needed_ = false;
  std::unordered_map<std::uint64_t, Writer> written_;  // by address / 4
};

}  // namespace kvscope::ptx
