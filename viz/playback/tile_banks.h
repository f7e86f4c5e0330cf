// The banks that one read of a tile uses, phase by phase, with the swizzle and without it: the addresses are those of
// its lanes, without the swizzle each byte goes back to where the swizzle took it from.
//
//   bank of a byte = byte / 4 % banks; in a phase, a bank serves one 32-bit word a cycle to every lane that requests it
//
// Example: 8 rows of 128 B, ldmatrix asks for chunk c3 of each: 8 groups of 4 banks, 1 wavefront; without the swizzle
// all of them are in banks 12 to 15: 8 wavefronts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "viz/playback/tile.h"

namespace kvscope::viz {

// One word that a bank must deliver in a phase, and the lanes that want it.
struct BankWord {
  std::int64_t bank = 0;
  std::int64_t byte = 0;  // of shared memory, a multiple of 4; the swizzled place also where swizzled is false
  std::vector<std::int64_t> lanes;
};

struct BankPhaseUse {
  std::vector<BankWord> words;        // by bank, then by byte
  std::vector<std::int64_t> of_bank;  // [banks] distinct words
  std::int64_t wavefronts = 0;        // the most words of one bank
};

struct BankUse {
  std::vector<BankPhaseUse> phases;
  std::int64_t wavefronts = 0;  // of all phases
  std::int64_t conflicts = 0;   // wavefronts less phases with an active lane
};

// Empty when the tile has no geometry, no phases or no lane reads.
// `swizzled` true: cycles and conflicts are the read's own.      // held by tests/viz/playback/tile_test.cpp
[[nodiscard]] BankUse bank_use(const Tile& tile, std::int64_t read, bool swizzled);
// The same with each byte at `place(byte)`: other layouts (tile_layouts.h).
[[nodiscard]] BankUse bank_use(const Tile& tile, std::int64_t read,
                               const std::function<std::int64_t(std::int64_t)>& place);

}  // namespace kvscope::viz
