// The reads from a stage into a wave's registers: the address that each lane reads, and its place in the register tile.
//
//   K           one 16-byte read per pack     byte P(stage, key, depth) of the lane's element
//   V, 16 bits  two tr16 reads of 8 bytes     half h: sub-tile (b, k, i) + row, column of the lane
//                 32x32x16, 32x32x8   row 8h + 4 (l / 32) + (l % 16) / 4     column 16 ((l / 16) % 2) + 4 (l % 4)
//                 16x16x32            row 16h + 4 (l / 16) + (l % 16) / 4    column 4 (l % 4)
//   V, 8 bits   four tr8 reads of 8 bytes     q, with p = (l % 16) / 2, o = l % 2:
//                 32x32x64   key 64b + 16q + p % 4 + 8 (p / 4) + 4 (l / 32)   column 32i + 16 ((l / 16) % 2) + 8o
//                 16x16x128  key 32 (l / 16) + 8q + p                         column 16i + 8o
//
// 32x32x8: a 16-byte read of K feeds two MMA steps, one with each half; so do the two tr16 halves of V.
// Where V reads a swizzled image, the vector that holds the 8 bytes is swizzled; the offset inside it is unchanged.
// Example: bf16 K, BN 64, WN 32, BK 32, (3,0,4), stage 0: wave 0, lane 5, strip 0, k 0 reads byte 336.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

enum class LdsReadKind : std::uint8_t { plain, tr16, tr8 };

// Elements [element, element + count) of a register row.
struct RegisterTarget {
  std::int64_t row = 0;
  std::int64_t element = 0;
  std::int64_t count = 0;
  friend bool operator==(const RegisterTarget&, const RegisterTarget&) = default;
};

struct LdsReadInstruction {
  LdsReadKind kind = LdsReadKind::plain;
  std::int64_t width = 16;  // [bytes] a lane
  StripIdx strip;
  std::int64_t k = 0;                        // MMA_K step; the first of the two when one read feeds two
  std::int64_t i = 0;                        // MMA across keys (K) or depth (V)
  std::int64_t part = 0;                     // pack of K, half h or quarter q of V
  bool zero = false;                         // no read: the registers are set to zero
  std::array<std::int64_t, 64> addresses{};  // [lane] bytes from the region's first
  std::vector<RegisterTarget> targets;       // the destinations, in order
};

// Strip `strip` of stage `stage`. IndexError: a missing strip, stage or wave. GeometryError: a strip whose block is not
// in the stage (full_kv false); a stage other than 0 of a per-wave V, which counts the blocks of its slice only.
[[nodiscard]] std::vector<LdsReadInstruction> strip_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                                          StripIdx strip);
// Every strip; GeometryError in the same cases.
[[nodiscard]] std::vector<LdsReadInstruction> all_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage);
// Block `block` of the depth from a stage that holds that block alone (full_kv false; GeometryError otherwise):
// K: its strip. V: the columns of the block, for each strip of keys.
[[nodiscard]] std::vector<LdsReadInstruction> block_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                                          std::int64_t block);

}  // namespace kvscope
