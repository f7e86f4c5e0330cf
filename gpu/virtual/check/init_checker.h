// Reads of shared memory that nobody has written: one bit a byte, set by stores and by engines when their bytes move.
//
//   accumulator not zeroed: UNINITIALIZED  shared 0x00400 (sum + 0)  ...  read  thread 0 (warp 0 lane 0)  ld.shared.f32
//
// The value such a read gives is ff in every byte, so that it shows and is the same each time. Global memory that was
// allocated without being filled is held to the same by Options::global; 128 bytes that a kernel has discarded always,
// until they are written again or the launch ends.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct InitOptions {
  bool shared = true;
  bool global = false;  // of allocations that are not initialized
};

class InitChecker final : public Monitor {
 public:
  explicit InitChecker(InitOptions options = {}) : options_(options) {}

  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void discarded(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;

 private:
  // A bit a byte, from the first byte of the space's piece; 64 to a word.
  struct Written {
    Written(std::uint64_t at, std::size_t count) : first(at), bytes(count), words((count + 63) / 64) {}
    std::uint64_t first = 0;
    std::size_t bytes = 0;
    std::vector<std::uint64_t> words;
    bool everywhere = false;  // all of it was, when a kernel began to discard parts of it
    bool discarded = false;   // parts of it
    void set(std::uint64_t address, std::int64_t count);
    void clear(std::uint64_t address, std::int64_t count);
    // The first byte of the range that was never written; -1: all were.
    [[nodiscard]] std::int64_t missing(std::uint64_t address, std::int64_t count) const;
  };
  // Lanes in the CTA's own memory of which there is nothing to say: done, all at once.
  [[nodiscard]] bool is_quick(const Exec& exec, const WarpAccess& access);
  [[nodiscard]] Written* shared_of(const Launch& launch, const Cta& cta, std::uint64_t address);
  [[nodiscard]] Written* global_of(const Launch& launch, std::uint64_t address);
  void tell(const Exec& exec, const Op& op, int lane, Space space, std::uint64_t address, std::int64_t bytes);

  InitOptions options_;
  std::unordered_map<std::int32_t, Written> shared_;  // by CTA
  const Cta* last_cta_ = nullptr;                     // shared_of was asked for
  Written* last_ = nullptr;
  std::map<std::uint64_t, Written> global_;  // by allocation
};

}  // namespace kvscope::ptx
