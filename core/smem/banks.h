// Banks: how many cycles one access of a wave or warp to shared memory takes, and which lanes conflict.
//
//   bank of byte address a = (a / 4) % banks
//
// An access is served phase by phase; a phase serves a fixed set of lanes. Within a phase every bank delivers one
// 32-bit word per cycle, to all lanes that request that word. So a phase takes as many cycles as the largest number of
// distinct words requested of one bank:
//
//   degree = max over banks of the distinct words of the phase in it        cycles = sum of degrees
//   conflicts = cycles - phases
//
// Example: 32 lanes, 4 bytes each, 128 bytes apart, sm_90: one phase, all 32 words in bank 0: degree 32, 31 conflicts.
// Lanes that write the same word count once, as do lanes that read the same word. NVIDIA's phases are consecutive
// lanes. AMD does not document the phases of 128-bit reads; the lists here come from published measurements (see
// docs/FIDELITY.md). A profile is plain data, so that other phases can be tried.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

enum class SharedTarget : std::uint8_t { gfx942, gfx950, nvidia };
enum class SharedOp : std::uint8_t {
  read,      // 1 to 16 bytes per lane
  write,     // 1 to 16 bytes per lane
  ldmatrix,  // NVIDIA: lane 8m + r gives the 16-byte row r of matrix m
};

// Lanes of each phase, in the order they are served. No lane occurs twice. The phases cover the whole wave, except that
// ldmatrix .x1 and .x2 use the addresses of the first 8 and 16 lanes only.
using Phases = std::vector<std::vector<int>>;

inline constexpr std::int64_t kNvidiaBanks = 32, kGfx950Banks = 64;  // of 4 bytes

struct BankProfile {
  std::string_view name;  // "gfx950, 128-bit read"
  int banks = 32;
  int lanes = 32;  // of a wave or warp
  Phases phases;
  int width = 0;  // [bytes] per lane of the accesses it describes: 4 (also 1 and 2), 8, 16; 0: any
};

// The profile for accesses of `width` bytes a lane: 1, 2, 4, 8 or 16. ldmatrix: width 16; `matrices` of .x1, .x2, .x4.
// GeometryError for another width. UnsupportedError: ldmatrix on AMD.
[[nodiscard]] BankProfile bank_profile(SharedTarget target, SharedOp op, int width, int matrices = 4);

// One access: where each lane reads or writes. Lanes without an address, and lanes that are in no phase, are inactive.
struct SharedAccess {
  int width = 16;                                      // [bytes] a lane
  std::vector<std::optional<std::int64_t>> addresses;  // [lanes] bytes, multiples of width
};

// Lanes of one phase that request different words of one bank.
struct BankConflict {
  int phase = 0;
  int bank = 0;
  std::vector<std::int64_t> words;      // byte addresses of the distinct words, in the order of the lanes
  std::vector<std::vector<int>> lanes;  // [words] the lanes that request each word
};

struct BankReport {
  std::vector<int> degrees;             // [phases]; 0 for a phase without an active lane
  std::vector<BankConflict> conflicts;  // every bank of a phase with more than one requested word
  [[nodiscard]] int cycles() const;     // wavefronts, as a profiler counts them
  [[nodiscard]] int ideal() const;      // phases with an active lane
  [[nodiscard]] int extra() const { return cycles() - ideal(); }
};

// GeometryError, all faults at once: the number of addresses differs from the number of lanes, a width that the profile
// does not describe, a misaligned or negative address (with lane, address and width), a lane in two phases or outside
// the wave.
[[nodiscard]] BankReport bank_report(const BankProfile& profile, const SharedAccess& access);

}  // namespace kvscope
