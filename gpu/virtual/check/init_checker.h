// Finds reads of shared memory that has not been written. It keeps one bit per byte, set by stores, and by engines when
// their bytes move.
//
//   accumulator not zeroed: UNINITIALIZED  shared 0x00400 (sum + 0)  ...  read  thread 0 (warp 0 lane 0)  ld.shared.f32
//
// Such a read returns ff in every byte, so that it is visible and the same in every run. InitOptions::global applies the
// check to global memory that was allocated without initial values. The 128 bytes of a discard are always checked, until
// they are written again or the launch ends.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class DeviceMemory;

struct InitOptions {
  bool shared = true;
  bool global = false;  // allocations without initial values
};

class InitChecker final : public Monitor {
 public:
  explicit InitChecker(InitOptions options = {}) : options_(options) {}

  // What the host does between launches, in global memory. Bytes outside of one live allocation are ignored.
  void host_wrote(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes);
  // A copy within the device: a byte of `to` counts as written if the byte of `from` does.
  void host_copied(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::int64_t bytes);
  // Offset of the first byte of the range that nothing has written; -1: all have been.
  [[nodiscard]] std::int64_t host_missing(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes);

  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void discarded(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;

 private:
  // One bit per byte, from `first` on; 64 in a word.
  struct Written {
    Written(std::uint64_t at, std::size_t count) : first(at), bytes(count), words((count + 63) / 64) {}
    std::uint64_t first = 0;
    std::size_t bytes = 0;
    std::vector<std::uint64_t> words;
    bool everywhere = false;  // all of it had been, when a kernel first discarded parts of it
    bool discarded = false;   // parts of it have been discarded
    void set(std::uint64_t address, std::int64_t count);
    void clear(std::uint64_t address, std::int64_t count);
    // The first byte of the range that has not been written; -1: all have been.
    [[nodiscard]] std::int64_t missing(std::uint64_t address, std::int64_t count) const;
  };
  // Handles all lanes at once; true if they access the CTA's own memory and nothing is to be reported.
  [[nodiscard]] bool is_quick(const Exec& exec, const WarpAccess& access);
  [[nodiscard]] Written* shared_of(const Launch& launch, const Cta& cta, std::uint64_t address);
  [[nodiscard]] Written* global_of(const DeviceMemory& memory, std::uint64_t address);
  void tell(const Exec& exec, const Op& op, int lane, Space space, std::uint64_t address, std::int64_t bytes);

  InitOptions options_;
  std::unordered_map<std::int32_t, Written> shared_;  // by CTA
  const Cta* last_cta_ = nullptr;                     // the last CTA that shared_of returned
  Written* last_ = nullptr;
  std::map<std::uint64_t, Written> global_;  // by allocation
};

}  // namespace kvscope::ptx
