// An mbarrier object of shared memory as the machine keeps it: phases, arrivals, bytes still to come, and who arrived.
//
//   init 1 | expect 1024 | arrive      | complete 512 | complete 512
//   0 1 0  | 0 1 1024    | 0 0 1024    | 0 0 512      | 1 1 0           phase, pending, tx
//
// A phase is over when neither arrivals nor bytes are missing; the next one then begins with `expected` arrivals.
// Bytes may come before they are announced (tx < 0), as long as an arrival is still missing.
// The same arithmetic, with lessons instead of reports: core/tma/arrival_barrier.h; the two are held to each other by
// tests. Source: PTX ISA, "mbarrier".
#pragma once

#include <array>
#include <cstdint>

namespace kvscope::ptx {

struct Mbarrier {
  static constexpr std::int64_t kMost = (1 << 20) - 1;  // arrivals of a phase; bytes of one
  std::int64_t expected = 0;                            // arrivals of the next phase
  std::int64_t current = 0;                             // arrivals of this one
  std::int64_t pending = 0;                             // of these, still missing
  std::int64_t tx = 0;  // [bytes] announced and not yet arrived; below 0: they came first
  std::int64_t phase = 0;

  // For reports: copies ever issued against it, and who arrived in this phase (thread and pc), last eight.
  std::int64_t copies = 0;
  std::int64_t copied_bytes = 0;
  struct Arrival {
    std::int32_t thread = -1;
    std::int32_t pc = -1;
  };
  std::array<Arrival, 8> arrivals{};
  std::int32_t arrival_count = 0;

  [[nodiscard]] bool phase_done(int parity) const { return (phase & 1) != parity; }

  // --- what happens to it; nothing is checked but what is said -------------------------------------------------------

  void init(std::int64_t count) { *this = Mbarrier{.expected = count, .current = count, .pending = count}; }
  // False, and nothing changed: |tx| would pass kMost.
  [[nodiscard]] bool expect_tx(std::int64_t bytes) { return add_tx(bytes); }
  [[nodiscard]] bool complete_tx(std::int64_t bytes);
  // False, and nothing changed: fewer than `count` are missing.
  [[nodiscard]] bool arrive(std::int64_t count);
  // One that leaves: an arrival, and not expected in later phases.
  [[nodiscard]] bool arrive_and_drop(std::int64_t count);
  // cp.async.mbarrier.arrive without .noinc: one arrival more is missing in this phase.
  [[nodiscard]] bool raise_pending();
  void remember(std::int32_t thread, std::int32_t pc) {
    arrivals[static_cast<std::size_t>(arrival_count++) % arrivals.size()] = {thread, pc};
  }

  // --- tokens: what mbarrier.arrive returns --------------------------------------------------------------------------
  //
  //   63 .. 40  39 .. 20  19 .. 0
  //   phase     0         pending before the arrival
  [[nodiscard]] std::uint64_t token() const {
    return static_cast<std::uint64_t>(phase) << 40 | static_cast<std::uint64_t>(pending);
  }
  [[nodiscard]] static std::int64_t phase_of(std::uint64_t token) { return static_cast<std::int64_t>(token >> 40); }
  [[nodiscard]] static std::int64_t pending_of(std::uint64_t token) { return static_cast<std::int64_t>(token & kMost); }

 private:
  bool add_tx(std::int64_t bytes);
  void end_phase_if_complete();
};

}  // namespace kvscope::ptx
