// Races in global memory within one launch, among the threads of all CTAs and the engines that copy for them.
//
//   RACE read-after-write  global 0x200000000 (parts + 0)  kernel reduce  cta (1,0,0)
//     write  thread 0 (warp 0 lane 0) of cta (0,0,0)    st.global.u32             reduce.cu:32
//     read   thread 0 (warp 0 lane 0) of cta (1,0,0)    ld.volatile.global.u32    reduce.cu:40
//     nothing orders them
//
// As in shared memory (race_checker.h) two accesses of a common byte, one of them a write, not both strong, are a race
// unless one happened before the other. Within a CTA order comes from its barriers; between CTAs from a release and an
// acquire, or a fence and an atomic or volatile access on each side, at a scope that holds both; from nothing else: a
// CTA that starts when another has ended is not ordered behind it. Two plain stores of equal bytes are a note.
//
// What a thread has seen by a relaxed read is known behind its next fence, and behind a barrier of its CTA too: so the
// last block's sum of the programming guide is in order. What is not seen: proxy fences of global bytes.
// Source: PTX ISA, "Memory Consistency Model".
//
// Off unless asked for: every access of global memory is kept, by cells of 4 bytes, in about 70 bytes each.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/virtual/check/race_checker.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct GlobalRaceOptions {
  SameValue same_value = SameValue::note;
  bool collectives_order = false;  // RaceOptions
  // Past these nothing more is kept, past the last nothing more is looked for: WATCH_LIMIT says so once.
  std::size_t most_cells = std::size_t{8} << 20;   // 32 MiB of device memory
  std::size_t most_reads = std::size_t{16} << 20;  // beside the first of each cell
  std::size_t most_flags = std::size_t{1} << 20;   // locations that somebody has published through
};

class GlobalRaces final : public OrderMonitor {
 public:
  explicit GlobalRaces(GlobalRaceOptions options = {});
  ~GlobalRaces() override;

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
