// An mbarrier object of shared memory as the machine keeps it: phases, arrivals, bytes still to come, and who arrived.
// Source: PTX ISA, "mbarrier".
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
};

}  // namespace kvscope::ptx
