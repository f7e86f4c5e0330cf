// Checks the registers of asynchronous products (wgmma). From the issue to the wait that covers it, accumulators must
// not be accessed and A's registers must not be written. Earlier writes to either must be fenced before the issue.
//
//   mov %f1, 0;  wgmma.fence;  wgmma.mma_async {%f1, ..};  commit_group;  wait_group 0;  st %f1       clean
//                without it: NO_WGMMA_FENCE                               without it: REG_IN_FLIGHT
//
// This is a monitor. When it is attached, it examines every instruction of modules that use wgmma; modules without
// wgmma cost nothing.
// Source: PTX ISA, "wgmma.fence", "wgmma.mma_async".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class WgmmaRegisters : public Monitor {
 public:
  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t) override { return std::make_unique<WgmmaRegisters>(); }
  [[nodiscard]] bool wants_instructions() const override { return has_products_; }
  [[nodiscard]] bool wants_accesses() const override { return false; }
  [[nodiscard]] OperationEvents wants_operations() const override { return {false, false, false, false}; }
  void launch_begins(Launch& launch) override;
  void instruction(const Exec& exec, const Op& op, LaneMask lanes) override;

 private:
  using Registers = std::vector<std::int32_t>;  // Function::registers, ascending
  struct Uses {
    bool known = false;
    Registers written, read;
  };
  // One product in flight.
  struct Flight {
    std::int32_t pc = -1;
    Registers d, a;
  };
  struct WarpState {
    std::int32_t function = -1;
    std::vector<bool> unfenced;              // [registers] written since the last wgmma.fence
    std::vector<std::int32_t> writer;        // [registers] pc of that write
    std::vector<Flight> open;                // not committed
    std::deque<std::vector<Flight>> groups;  // oldest first
  };

  const Uses& uses_at(const Exec& exec, const Op& op);
  void issue(const Exec& exec, const Op& op, WarpState& warp);
  void look(const Exec& exec, const Op& op, WarpState& warp);
  void tell(const Exec& exec, const Op& op, std::int32_t other, bool in_flight);

  bool has_products_ = false;
  std::vector<Uses> uses_;                                            // [ops]
  std::map<std::pair<std::int32_t, std::int32_t>, WarpState> warps_;  // by CTA and warp
};

}  // namespace kvscope::ptx
