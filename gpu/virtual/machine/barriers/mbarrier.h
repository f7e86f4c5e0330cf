// The machine's representation of an mbarrier object in shared memory: phase, pending arrivals, pending bytes,
// arrivers.
//
//   init 1 | expect 1024 | arrive      | complete 512 | complete 512
//   0 1 0  | 0 1 1024    | 0 0 1024    | 0 0 512      | 1 1 0           phase, pending, tx
//
// A phase completes when no arrivals and no bytes are pending; the next phase then begins with `expected` arrivals.
// Bytes may land before they are announced (tx < 0) while an arrival is still pending.
// core/tma/arrival_barrier.h implements the same arithmetic for the model; tests compare the two.
// Source: PTX ISA, "mbarrier".
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct Mbarrier {
  static constexpr std::int64_t kMost = (1 << 20) - 1;  // maximum number of arrivals of a phase, and of bytes
  std::int64_t expected = 0;                            // arrivals of the next phase
  std::int64_t current = 0;                             // arrivals of the current phase
  std::int64_t pending = 0;                             // arrivals of the current phase that are still missing
  std::int64_t tx = 0;  // [bytes] announced and not yet landed; negative: they landed before they were announced
  std::int64_t phase = 0;

  // For reports: copies ever issued against it, and the last eight arrivals of this phase (thread and pc).
  std::int64_t copies = 0;
  std::int64_t copied_bytes = 0;
  struct Arrival {
    std::int32_t thread = -1;
    std::int32_t pc = -1;
  };
  std::array<Arrival, 8> arrivals{};
  std::int32_t arrival_count = 0;

  // For reports: the last bytes announced and landed. A copy that lands in pieces is one entry.
  struct Bytes {
    std::int64_t bytes = 0;
    std::int64_t phase = 0;    // in which they counted, or the rest of them
    std::uint64_t number = 0;  // of a copy; 0: announced by expect_tx
    std::int32_t thread = -1;  // that announced them, or issued the copy
    std::int32_t pc = -1;
    AsyncKind kind{};
  };
  std::array<Bytes, 8> last_bytes{};
  std::int32_t bytes_count = 0;  // entries ever made
  // Adds to the last entry if it is of the same copy.
  void remember_bytes(const Bytes& entry);

  [[nodiscard]] bool phase_done(int parity) const { return (phase & 1) != parity; }
  [[nodiscard]] std::string text() const;  // "phase 2, pending 1 of 4, tx -64"

  // --- operations; they check only what their comments state ---------------------------------------------------------

  void init(std::int64_t count) { *this = Mbarrier{.expected = count, .current = count, .pending = count}; }
  // Returns false and changes nothing if |tx| would exceed kMost.
  [[nodiscard]] bool expect_tx(std::int64_t bytes) { return add_tx(bytes); }
  [[nodiscard]] bool complete_tx(std::int64_t bytes);
  // Returns false and changes nothing if fewer than `count` arrivals are pending.
  [[nodiscard]] bool arrive(std::int64_t count);
  // arrive_drop: an arrival that also lowers the expected count of later phases.
  [[nodiscard]] bool arrive_and_drop(std::int64_t count);
  // cp.async.mbarrier.arrive without .noinc: adds one pending arrival to this phase.
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
