// Finds uses of undefined values: of bytes of shared, global or local memory, and of registers, that nothing has written.
// A read alone is not reported. The checker follows the value through registers, memory and the parameters of calls, and
// reports where it changes what others observe:
//
//   a branch, or a predicate of an instruction that does more than compute    an address
//   a store or a copy to global memory                                        vote.all, .any, .uni, and match
//   a printf, an operand of a barrier or of another instruction that is not a computation
//
//   accumulator not zeroed: UNINITIALIZED  shared 0x00400 (sum + 0)
//     read   thread 0 (warp 0 lane 0)  ld.shared.f32          k.cu:7
//     used   thread 0 (warp 0 lane 0)  st.global.f32          k.cu:9
//     the value is stored to global memory: no thread and no copy had written this byte since the CTA began
//
// A row past the end that is read and then masked by selp, or multiplied into an element that is not stored, is thus not
// reported. undefined_results.h has the rules for results of computations. After a report the value counts as defined.
//
// Shared memory has one bit per byte, set by stores and by engines when their bytes move. Undefined bytes read as ff, so
// that such a read is visible and the same in every run. InitOptions::global applies the check to global memory that was
// allocated without initial values. The 128 bytes of a discard are always checked, until they are written again or the
// launch ends.
//
// Cost: a warp's instructions are examined only while one of its registers or parameters has undefined bits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/check/undefined_bytes.h"
#include "gpu/virtual/check/undefined_params.h"
#include "gpu/virtual/check/undefined_registers.h"
#include "gpu/virtual/check/undefined_results.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

class DeviceMemory;

// The memory whose bytes are undefined until they are written. Undefined values are followed everywhere.
struct InitOptions {
  bool shared = true;
  bool global = false;  // allocations without initial values
  bool registers = false;
  bool local = false;
};

class InitChecker final : public Monitor {
 public:
  explicit InitChecker(InitOptions options = {}) : options_(options) {}

  // A device allocation has ended. If its address is used again, nothing has written its bytes.
  void host_freed(std::uint64_t address) { global_.erase(address); }
  // What the host does between launches, in global memory. Bytes outside of one live allocation are ignored.
  void host_wrote(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes);
  // A copy within the device: a byte of `to` counts as written if the byte of `from` does.
  void host_copied(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::int64_t bytes);
  // Offset of the first byte of the range that nothing has written; -1: all have been.
  [[nodiscard]] std::int64_t host_missing(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes);

  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t parts) override;
  void join(Monitor& part) override;
  [[nodiscard]] bool wants_instructions() const override { return options_.registers || options_.local; }
  [[nodiscard]] bool wants_instructions_of(const Cta& cta, const Warp& warp) const override;
  [[nodiscard]] OperationEvents wants_operations() const override { return {true, true, false, true}; }
  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void instruction(const Exec& exec, const Op& op, LaneMask lanes) override;
  void retried(const Exec& exec, const Op& op, LaneMask lanes) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void collective(const Exec& exec, const Op& op, LaneMask lanes) override;
  void discarded(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void box_moves(Launch& launch, const Cta& cta, const PendingOp& copy) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void copies_issue(const Exec&, const LaneCopies&) override {}  // from global memory: async_moves
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;

 private:
  struct Global {
    UndefinedBytes bytes;
    bool everywhere = false;  // only a discard is the reason for this entry
    bool discarded = false;
  };
  // The read that an undefined value comes from.
  struct Origin {
    std::int32_t pc = -1;
    std::int32_t warp = 0, lane = 0;
    std::int32_t function = -1, reg = -1;  // a register; -1: memory
    Space space = Space::shared;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    bool discarded = false;
  };
  struct ActivationState {
    std::int32_t function = -1;
    std::uint64_t entered = 0;
    std::int64_t param_bytes = 0;  // per lane
    UndefinedRegisters registers;
    UndefinedParams params;
  };
  struct WarpState {
    bool active = false;                       // a register has undefined bits
    std::deque<ActivationState> activations;   // references stay valid when it grows
    std::uint32_t watched = 0;                 // instructions
    LaneMask calling = 0;                      // lanes that executed a call and nothing since
    std::array<std::int32_t, kLanes> depth{};  // of these lanes: the call depth before
    std::array<UndefinedBytes, kLanes> local;
    bool has_local = false;
    // ldmatrix and wmma.load: undefined bytes of the rows, until the instruction completes.
    std::array<std::uint16_t, kLanes> rows{};
    std::optional<std::uint32_t> rows_origin;
  };
  using LaneBytes = std::array<std::uint64_t, kLanes>;  // bit i: byte i of the lane's access is undefined

  // init_checker.cpp: values in registers.
  WarpState& warp_of(const Cta& cta, const Warp& warp);
  [[nodiscard]] WarpState* active_warp(const Exec& exec);
  UndefinedRegisters& registers_of(const Exec& exec, WarpState& warp);
  void activate(const Exec& exec, WarpState& warp);
  void deactivate_if_clean(const Exec& exec, WarpState& warp);
  [[nodiscard]] const UndefinedEffects& effects_of(const Program& program, std::int32_t pc);
  void enter(const Exec& exec, WarpState& warp, LaneMask lanes);
  void mark_unwritten(const Exec& exec, std::int32_t activation, UndefinedRegisters& registers, LaneMask lanes) const;
  void forget_dead(const Exec& exec, UndefinedRegisters& registers);
  // Reports undefined bits of these registers in `lanes`, which then count as defined.
  void use(const Exec& exec, const Op& op, UndefinedRegisters& registers, RegisterAt reg, LaneMask lanes,
           std::string_view how);
  void use_control(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
                   UndefinedRegisters& registers);
  void compute(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
               UndefinedRegisters& registers);
  void exchange(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
                UndefinedRegisters& registers);
  void shuffle(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
               UndefinedRegisters& registers);
  void vote(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes,
            UndefinedRegisters& registers);
  // init_calls.cpp: values that calls pass.
  [[nodiscard]] ActivationState& state_of(const Exec& exec, WarpState& warp, std::int32_t activation);
  [[nodiscard]] static std::uint64_t undefined_in(const ActivationState& state, const CallValue& value, int lane,
                                                  std::int64_t from, std::int64_t bytes, std::uint32_t& origin);
  static void pass_undefined(const ActivationState& from, const CallValue& source, ActivationState& to,
                             const CallValue& target, LaneMask lanes);
  void call(const Exec& exec, const Op& op, const UndefinedEffects& effects, LaneMask lanes, WarpState& warp);
  void take_arguments(const Exec& exec, WarpState& warp, LaneMask lanes);
  void give_results(const Exec& exec, const Op& op, WarpState& warp, LaneMask lanes);
  void write_params(const Exec& exec, WarpState& warp, const WarpAccess& access, const LaneBytes& undefined,
                    std::uint32_t origin);
  [[nodiscard]] std::optional<std::uint32_t> read_params(const Exec& exec, WarpState& warp, const WarpAccess& access,
                                                         LaneBytes& undefined);
  // init_products.cpp
  void product_of_warpgroup(const Exec& exec, const Op& op, const AsyncOp& async, ByteRanges reads);

  // init_memory.cpp: values in memory.
  // Handles all lanes at once; true if they access the CTA's own memory and all bytes that are read are defined.
  [[nodiscard]] bool is_quick(const Exec& exec, const WarpAccess& access);
  [[nodiscard]] UndefinedBytes* shared_of(const Launch& launch, const Cta& cta, std::uint64_t address);
  [[nodiscard]] Global* global_of(const DeviceMemory& memory, std::uint64_t address);
  // The bytes that an address of the space belongs to; null: all of them are defined and nothing is kept.
  struct Bytes {
    UndefinedBytes* bytes = nullptr;
    std::uint64_t at = 0;  // the address in them
  };
  [[nodiscard]] Bytes bytes_of(const Exec& exec, Space space, std::uint64_t address, int lane);
  void mark_bytes(const Exec& exec, Space space, std::uint64_t address, int lane, std::int64_t bytes,
                  std::uint64_t undefined, std::uint32_t origin);
  // A key for 4 bytes of memory.
  [[nodiscard]] std::uint64_t place_of(const Launch& launch, const Cta& cta, std::int32_t thread, Space space,
                                       std::uint64_t address) const;
  [[nodiscard]] std::uint32_t origin_at(const Exec& exec, const Op& op, Space space, std::uint64_t address, int lane,
                                        std::int64_t bytes);
  void load(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined, std::uint32_t origin);
  void store(const Exec& exec, const Op& op, const WarpAccess& access);
  void atomic(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined,
              std::optional<std::uint32_t> origin);
  void write_bytes(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined,
                   std::uint32_t origin);
  void copy_bytes(const Launch& launch, const Cta& cta, const AsyncOp& async, const ByteRange& read, const Bytes& from,
                  const ByteRange& written, const Bytes& to, bool adds);
  void take_rows(const Exec& exec, const Op& op, WarpState& warp);
  void mark_local(const Exec& exec, WarpState& warp, int lane, std::uint64_t from, std::int64_t bytes);
  void mark_alloca(const Exec& exec, const Op& op, WarpState& warp, LaneMask lanes);

  // init_reports.cpp
  std::uint32_t add_origin(const Origin& origin);
  // Gives the undefined bits of a register that was never written an origin: its read here.
  void name_unwritten(const Exec& exec, const Op& op, UndefinedRegisters& registers, std::uint32_t reg, LaneMask lanes);
  void tell(const Exec& exec, const Op& op, int lane, LaneMask lanes, std::uint32_t origin, std::string_view how);
  [[nodiscard]] std::string cause_of(const Exec& exec, const Origin& origin) const;

  InitOptions options_;
  const InitChecker* whole_ = nullptr;                       // of a part of a launch: what was written before
  std::unordered_map<std::int32_t, UndefinedBytes> shared_;  // by CTA
  const Cta* last_cta_ = nullptr;                            // the last CTA that shared_of returned
  UndefinedBytes* last_ = nullptr;
  std::map<std::uint64_t, Global> global_;                          // by allocation
  bool discards_everywhere_ = false;                                // an entry of global_ is Global::everywhere
  std::unordered_map<std::int32_t, std::vector<WarpState>> warps_;  // by CTA
  std::int64_t active_ = 0;                                         // of warps_
  bool has_local_ = false;                                          // a warp has
  std::vector<Origin> origins_{Origin{}};                           // 0: a register that was never written
  std::unordered_map<std::uint64_t, std::uint32_t> stored_;  // place_of 4 bytes -> origin of an undefined value there
  std::unordered_map<std::int32_t, UndefinedEffects> effects_;  // by pc
};

}  // namespace kvscope::ptx
