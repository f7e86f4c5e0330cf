// Which element of the tile a register holds after the reads, in closed form. The addresses of lds_to_registers.h must
// give the same map (held by tests/core/staging/lds/lds_to_registers_test.cpp).
//
//   register tile of a lane: row (strip % register_strips) * num_mmas * num_k_mmas2 + k * num_mmas + i, element e
//   kb = (wave % (BN / WN)) * WN; c0 = first column of the wave's slice
//
//   K  any          key kb + M i + l % M      depth BK b + MMA_K k + (e / SW) (MMA_K / packs) + SW (l / M) + e % SW
//      32x32x8      key kb + 32 i + l % 32    depth BK b + 16 (k / 2) + 8 (l / 32) + 4 (k % 2) + e
//   V  32x32x16     key BK b + 16 k + 8 (e / 4) + 4 (l / 32) + e % 4            depth c0 + 32 i + l % 32
//      32x32x8      key BK b + 8 k + 4 (l / 32) + e                             depth c0 + 32 i + l % 32
//      16x16x32     key BK b + 32 k + 16 (e / 4) + 4 (l / 16) + e % 4           depth c0 + 16 i + l % 16
//      32x32x64     key 64 b + 8 (e / 4) + 4 (l / 32) + e % 4                   depth c0 + 32 i + l % 32
//      16x16x128    key 32 (l / 16) + e                                         depth c0 + 16 i + l % 16
//
// V's key order is not the matrix instruction's slot order: it is the order of the result of Q K^T in registers, which
// can therefore be the other operand without being moved.
// Example: bf16 V, 32x32x16: lane 63, row 3, element 7: key 15, depth 127.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/index.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

// One register of a wave, by its indices in the fragments.
struct RegisterSlot {
  StripIdx strip;
  std::int64_t k = 0;  // MMA_K step of the strip
  std::int64_t i = 0;  // MMA across keys (K) or depth (V)
  int lane = 0;
  std::int64_t e = 0;  // element of the fragment
};

struct TileElement {
  KeyIdx key;
  DimIdx depth;  // of the whole V, also for a wave's slice of it
  friend bool operator==(const TileElement&, const TileElement&) = default;
};

// Row of a lane's register tile.
[[nodiscard]] std::int64_t register_row(const KVBufferConstants& c, StripIdx strip, std::int64_t k, std::int64_t i);

// Empty: a register that is set to zero, because the last strip of K has only half its columns.
[[nodiscard]] std::optional<TileElement> register_element(const KVBufferConfig& config, WaveIdx wave,
                                                          const RegisterSlot& slot);

}  // namespace kvscope
