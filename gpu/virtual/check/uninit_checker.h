// Finds reads of registers and of local memory that the thread has not written. It keeps one bit per lane and register,
// and one bit per byte of local memory.
//
//   UNINITIALIZED  kernel k  cta (0,0,0)
//     read   thread 3 (warp 0 lane 3)  add.u32          k.cu:5
//     %r5 is read in lanes 00000008 before anything has written it there
//
// Registers are those of the PTX text, even where the machine stores several in one place. Each call of a function starts
// with only its parameters written, and with its local variables unwritten. Memory of alloca that is reused counts as
// written.
//
// Off by default: compilers copy undefined registers on purpose, and debug builds copy padding. The checker inspects
// every instruction.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct Program;

struct UninitOptions {
  bool registers = true;
  bool local = true;
};

class UninitChecker final : public Monitor {
 public:
  explicit UninitChecker(UninitOptions options = {}) : options_(options) {}

  [[nodiscard]] bool wants_instructions() const override { return true; }
  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void instruction(const Exec& exec, const Op& op, LaneMask lanes) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;

 private:
  // Indices into registers_: [reads, accumulators) are read, [accumulators, writes) are the accumulators of a wgmma (read and written),
  // [writes, end) are written.
  struct Effects {
    std::int32_t reads = 0, accumulators = 0, writes = 0, end = 0;
    std::int32_t guard = -1;
    bool calls = false;
    bool product = false;
  };
  struct ActivationState {
    std::int32_t function = -1;
    std::vector<LaneMask> written;  // [registers]
  };
  struct WarpState {
    std::vector<ActivationState> activations;              // as Warp::activations
    LaneMask calling = 0;                                  // lanes that executed a call and nothing since
    std::array<std::int32_t, kLanes> depth{};              // of these lanes: the call depth before
    std::array<std::vector<std::uint64_t>, kLanes> local;  // one bit per byte that has been written
  };
  void find_effects(const Program& program, const std::vector<bool>& reached);
  void enter(const Exec& exec, WarpState& warp, ActivationState& state, LaneMask lanes);
  void read(const Exec& exec, const Op& op, ActivationState& state, std::int32_t reg, LaneMask lanes);

  UninitOptions options_;
  std::vector<Effects> effects_;  // [ops]
  std::vector<std::int32_t> registers_;
  std::unordered_map<std::int32_t, std::vector<WarpState>> warps_;  // by CTA
};

}  // namespace kvscope::ptx
