// Registers and local memory that a thread reads before it has written them: one bit a lane of every register, one bit
// a byte of local memory.
//
//   UNINITIALIZED  kernel k  cta (0,0,0)
//     read   thread 3 (warp 0 lane 3)  add.u32          k.cu:5
//     %r5 is read in lanes 00000008 before anything has written it there
//
// Registers are those of the text, whatever places they share. Each call of a function begins with none written but its
// parameters, and with its local variables unwritten. Memory of alloca that is taken again counts as written.
//
// Off unless asked for: compilers copy undefined registers on purpose, and code for a debugger copies padding. Costs a
// look at every instruction.
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
  // [first, last) of registers_: what the statement reads, of a wgmma the accumulators, what it writes.
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
    LaneMask calling = 0;                                  // have come to a call, and have done nothing since
    std::array<std::int32_t, kLanes> depth{};              // of these: how deep they were
    std::array<std::vector<std::uint64_t>, kLanes> local;  // a bit a byte that has been written
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
