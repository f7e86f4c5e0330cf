// One tile on its way through LDS, as places: which lane of which copy brings an element, where it stands, and in which
// registers it ends. No byte is moved; core/staging/lds moves them, by the same lists.
//
//   DRAM --copy: wave, instruction, lane--> LDS byte --read--> wave, lane, register
//
// A register is 32 bits of a lane: elements 4 / size a piece, the register tile of KVBuffer row by row. K's registers
// are a wave's own keys, so waves whose parts are the same hold the same; V's are in every wave.
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

// Which copy instruction of load_from_dram, and which of its lanes.
struct LdsCopyPlace {
  WaveIdx wave;
  std::int64_t instruction = 0;  // of the wave, in order of issue
  int lane = 0;
  std::int64_t dram_byte = 0;  // of the lane's 16 bytes, from the tile's first
  bool zero = false;           // past the valid rows: zeros are written
};

struct RegisterPlace {
  WaveIdx wave;
  int lane = 0;
  std::int64_t index = 0;  // 32-bit register of the operand's register tile
  int bit = 0;             // where in it the element begins: 0, 8, 16 or 24
  std::int64_t step = 0;   // k-step: which load of the register tile brings it
  friend bool operator==(const RegisterPlace&, const RegisterPlace&) = default;
};

class LdsStaging {
 public:
  // Stage 0; without full_kv, block b of the columns in stage b % stages. GeometryError with every reason why KVBuffer
  // cannot stage the tile, or when one strip takes more registers than a lane has; UnsupportedError for V of an MLA
  // cache, and for V without full_kv whose strips do not fit in registers together.
  LdsStaging(const KVBufferParams& params, const StepCache& cache, const StagedTile& tile);

  [[nodiscard]] const KVBufferConfig& config() const { return config_; }
  [[nodiscard]] std::int64_t valid_rows() const { return valid_rows_; }
  [[nodiscard]] const std::byte* origin() const { return origin_; }  // the tile's first element in memory

  // IndexError outside the tile.
  [[nodiscard]] std::int64_t lds_byte(KeyIdx key, DimIdx depth) const;
  [[nodiscard]] LdsCopyPlace copy_of(KeyIdx key, DimIdx depth) const;
  [[nodiscard]] std::vector<RegisterPlace> registers_of(KeyIdx key, DimIdx depth) const;  // wave by wave

  // Back. IndexError outside the block's stage, or outside the register tile. `block`: 0 with full_kv.
  [[nodiscard]] TileElement element_at_byte(std::int64_t lds_byte, std::int64_t block = 0) const;
  // One element for each that the register holds after k-step `step`, lowest bits first; none for registers that are
  // set to zero.
  [[nodiscard]] std::vector<TileElement> elements_at(WaveIdx wave, int lane, std::int64_t index,
                                                     std::int64_t step = 0) const;
  [[nodiscard]] std::int64_t registers() const;  // 32-bit, of a lane; at most kLaneRegisters
  [[nodiscard]] std::int64_t steps() const;      // k-steps: loads of the register tile, one after the other
  [[nodiscard]] std::int64_t blocks() const;     // 1 with full_kv
  [[nodiscard]] std::int64_t block_of(DimIdx depth) const;
  [[nodiscard]] StageIdx stage_of(std::int64_t block) const;
  // What a wave copies of a block.
  [[nodiscard]] std::vector<CopyInstruction> copies(WaveIdx wave, std::int64_t block, const DramTile& tile) const;

 private:
  KVBufferConfig config_;
  std::int64_t valid_rows_ = 0;
  std::int64_t row_stride_ = 0;  // [elements] of the tile in DRAM
  const std::byte* origin_ = nullptr;
};

}  // namespace kvscope
