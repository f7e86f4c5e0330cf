// Every interleaving of the waves of a block that execute a program of lab 12 (wave_program.h), searched for a read of
// bytes that are not there.
//
// The rules of the machine, as in core/staging/lds/schedule.h:
//   issue    adds copies to the wave's queue; they fill the wave's part of the stage, and land in the order of issue
//   wait     vmcnt(N) waits until at most N copies of this wave are in flight; copies of other waves do not count
//   barrier  no wave passes before all have arrived
//   read     of all parts of a stage, by the copies of all waves; it is complete before the next statement
//
// A copy may land at any time after its issue. The search lets it land as late as possible: when a wait requires it.
// That is enough. Landed copies decide neither which statement comes next nor whether a stage was overwritten, because
// a copy counts as overwriting from its issue on; and a read that is correct with fewer landed copies is correct with
// more. So a program is correct in every interleaving and landing if it is correct in these. Checked
// against a search with free landing by tests/labs/wave_search_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/labs/wave_program.h"

namespace kvscope::labs {

enum class WaveFaultKind : std::uint8_t {
  own_copy,    // a wave reads before one of its copies has landed, or was issued
  other_copy,  // the same with a copy of another wave
  reuse,       // a wave reads a stage into which a wave has issued a later tile
  stuck,       // a wave waits at a barrier that others never reach
};
inline constexpr std::size_t kWaveFaultKinds = 4;

struct WaveStep {
  std::int64_t wave = -1;  // -1: a barrier that all waves pass
  WaveOp op;
  std::vector<std::int64_t> in_flight;  // [waves] after the step
};

struct WaveFault {
  std::string message;          // "wave 2 reads K stage 0 before its copy 5 has landed"
  std::vector<WaveStep> steps;  // a shortest interleaving that ends in the fault, without computations
};

struct WaveSearch {
  std::array<std::optional<WaveFault>, kWaveFaultKinds> faults;  // the first of each kind
  std::int64_t states = 0;                                       // visited
  bool complete = true;                                          // false: stopped at kMostWaveStates
  [[nodiscard]] bool correct() const;
};

inline constexpr std::int64_t kMostWaveStates = 1'500'000;

// `ops`: the statements of each wave, 1 to 4 waves, fewer than 2^16 statements each.
[[nodiscard]] WaveSearch search_interleavings(std::span<const std::vector<WaveOp>> ops);

// The steps as a table, the last `most` of them.
[[nodiscard]] std::string steps_text(const WaveFault& fault, std::size_t most = 24);

}  // namespace kvscope::labs
