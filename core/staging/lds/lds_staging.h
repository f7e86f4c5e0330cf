// The places of one tile on the LDS path: the lane and copy that bring an element, its LDS byte, and its registers.
// This class moves no bytes; core/staging/lds moves them with the same lists.
//
//   DRAM --copy: wave, instruction, lane--> LDS byte --read--> wave, lane, register
//
// A register is 32 bits of a lane and holds 4 / size elements, in the order of KVBuffer's register tile. K's registers
// hold a wave's own part of the keys, so waves with the same part hold the same; every wave holds all of V.
// Example: bf16 K, BN 64, WN 64, BK 32, (3,0,4), key 5, depth 10: LDS byte 324 of stage 0; register 1 of lane 37, low
// half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/index.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/staged_tile.h"

namespace kvscope {

// A lane of a copy instruction of load_from_dram.
struct LdsCopyPlace {
  WaveIdx wave;
  std::int64_t instruction = 0;  // of the wave, in order of issue
  int lane = 0;
  std::int64_t dram_byte = 0;  // of the lane's 16 bytes, from the tile's first
  bool zero = false;           // past the valid rows: LDS receives zeros
};

struct RegisterPlace {
  WaveIdx wave;
  int lane = 0;
  std::int64_t index = 0;  // 32-bit register of the operand's register tile
  int bit = 0;             // the element's first bit in it: 0, 8, 16 or 24
  std::int64_t step = 0;   // k-step: the load of the register tile that brings it
  friend bool operator==(const RegisterPlace&, const RegisterPlace&) = default;
};

class LdsStaging {
 public:
  // Stage 0; without full_kv, block b of the columns in stage b % stages. GeometryError with every reason why KVBuffer
  // cannot stage the tile, or when one strip needs more registers than a lane has; UnsupportedError for V of an MLA
  // cache, and for V without full_kv whose strips do not fit in registers together.
  LdsStaging(const KVBufferParams& params, const StepCache& cache, const StagedTile& tile);

  [[nodiscard]] const KVBufferConfig& config() const { return config_; }
  [[nodiscard]] std::int64_t valid_rows() const { return valid_rows_; }
  [[nodiscard]] const std::byte* origin() const { return origin_; }  // the tile's first element in memory

  // IndexError outside the tile.
  [[nodiscard]] std::int64_t lds_byte(KeyIdx key, DimIdx depth) const;
  [[nodiscard]] LdsCopyPlace copy_of(KeyIdx key, DimIdx depth) const;
  [[nodiscard]] std::vector<RegisterPlace> registers_of(KeyIdx key, DimIdx depth) const;  // wave by wave

  // The inverse. IndexError outside the block's stage, or outside the register tile. `block`: 0 with full_kv.
  [[nodiscard]] TileElement element_at_byte(std::int64_t lds_byte, std::int64_t block = 0) const;
  // The elements that the register holds after k-step `step`, lowest bits first; none for registers that are
  // set to zero.
  [[nodiscard]] std::vector<TileElement> elements_at(WaveIdx wave, int lane, std::int64_t index,
                                                     std::int64_t step = 0) const;
  [[nodiscard]] std::int64_t registers() const;  // 32-bit, of a lane; at most kLaneRegisters
  [[nodiscard]] std::int64_t steps() const;      // k-steps: loads of the register tile, one after the other
  [[nodiscard]] std::int64_t blocks() const;     // 1 with full_kv
  [[nodiscard]] std::int64_t block_of(DimIdx depth) const;
  [[nodiscard]] StageIdx stage_of(std::int64_t block) const;
  // The copies of a wave for a block.
  [[nodiscard]] std::vector<CopyInstruction> copies(WaveIdx wave, std::int64_t block, const DramTile& tile) const;

 private:
  KVBufferConfig config_;
  std::int64_t valid_rows_ = 0;
  std::int64_t row_stride_ = 0;  // [elements] of the tile in DRAM
  const std::byte* origin_ = nullptr;
};

}  // namespace kvscope
