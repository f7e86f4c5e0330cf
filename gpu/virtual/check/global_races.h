// Finds races in global memory within one launch, among the threads of all CTAs and their copy engines.
//
//   RACE read-after-write  global 0x200000000 (parts + 0)  kernel reduce  cta (1,0,0)
//     write  thread 0 (warp 0 lane 0) of cta (0,0,0)    st.global.u32             reduce.cu:32
//     read   thread 0 (warp 0 lane 0) of cta (1,0,0)    ld.volatile.global.u32    reduce.cu:40
//     nothing orders them
//
// As in shared memory (race_checker.h), two accesses of a common byte, at least one of them a write and not both strong,
// are a race unless one happened before the other (happens_before.h). Barriers order the threads of a CTA. CTAs are
// ordered by a release and an acquire, or by a fence and an atomic or volatile access on each side, at a scope that
// includes both. Nothing else orders them: a CTA that starts after another has ended is not ordered after it. Two plain
// stores of equal bytes are a note.
//
// Not found: missing proxy fences for global memory.
// Source: PTX ISA, "Memory Consistency Model".
//
// Off by default: every access to global memory is recorded, in 56 bytes for each 16 that few operations access, and in 64 more for each 4 of
// the others.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/virtual/check/race_checker.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct GlobalRaceOptions {
  SameValue same_value = SameValue::note;
  bool collectives_order = false;  // RaceOptions
  // Beyond the first two nothing more is recorded; beyond the last nothing more is checked. WATCH_LIMIT is reported once.
  std::size_t most_cells = std::size_t{8} << 20;   // 32 MiB of device memory
  std::size_t most_reads = std::size_t{16} << 20;  // in addition to the first of each cell
  std::size_t most_flags = std::size_t{1} << 20;   // locations that a thread has published through
};

class GlobalRaces final : public OrderMonitor {
 public:
  explicit GlobalRaces(GlobalRaceOptions options = {});
  ~GlobalRaces() override;

  // With its share of the limits: a part that stays within it reports no limit, and neither would the whole.
  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t parts) override;
  [[nodiscard]] OperationEvents wants_operations() const override { return {true, true, false, false}; }
  void launch_begins(Launch& launch) override;
  void launch_ends(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void stored(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;

 private:
  struct Grid;
  [[nodiscard]] HappensBefore* order_of(const Cta& cta) override;

  GlobalRaceOptions options_;
  std::unique_ptr<Grid> grid_;
};

}  // namespace kvscope::ptx
