// The parameters of Mojo's KVBuffer, its constants, and the rules for both. In the kernels they are fixed at compile
// time; here they are plain data, all checked at once.
//
//   DRAM tile  BN x depth  --copy-->  LDS stage  num_repeats blocks of BN x bk_smem  --read-->  registers of 64 lanes
//
//   |<----------- smem_depth ----------->|        num_k_tiles strips: BK columns of K, BK keys of V
//   +--------+--------+--------+--------+         register tile of a lane, row-major:
//   | block0 | block1 | block2 | block3 | BN        num_mmas * num_k_mmas2 * register strips rows
//   +--------+--------+--------+--------+           of input_frag_size elements
//   bk_smem
//
// Worked: bf16 K, MMA 32x32x16, BN 64, WN 32, BK 32, depth 128, 256 threads: 1 MMA across the wave's keys, 2 along a
// strip, 4 strips, 8 elements a fragment: 8 rows of 8; 4 blocks a stage of 8192 elements; 4 copy instructions a wave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/layout/swizzle.h"

namespace kvscope {

struct MmaShape {
  std::int64_t M = 0, N = 0, K = 0;
  friend bool operator==(const MmaShape&, const MmaShape&) = default;
};
[[nodiscard]] std::string to_text(const MmaShape& shape);  // "32x32x16"

// The rule of vm_instrs_per_load when the sub-tiles do not divide evenly over the waves.
//   seed   2 * ceil(sub-tiles / waves): too many for the waves with fewer, which then wait for too few copies (a race)
//   newer  0: wait for all copies. A count that is too low only costs time.
enum class VmCountRule : std::uint8_t { seed, newer };

// The order in which the 8-bit transposing read gives a group's columns to its lanes. Sources disagree; an on-device
// test and two independent code bases show `natural`.
//   natural      lane j of 16 holds column j
//   interleaved  lane j of 16 holds column j / 2 + 8 * (j % 2)
enum class Tr8Order : std::uint8_t { natural, interleaved };

struct KVBufferParams {
  DType dtype = DType::bf16;                      // of kv_t
  MmaShape mma_shape{};                           // (M, N, K) of the matrix instruction
  std::optional<Swizzle> swizzle{};               // of 16-byte vectors, not of elements
  std::int64_t BN = 0;                            // [keys] of a tile
  std::int64_t WN = 0;                            // [keys] of a wave's tile
  std::int64_t BK = 0;                            // width of a strip: columns of K, keys of V
  std::int64_t num_threads = 0;                   // of the block; every wave copies
  std::int64_t depth = 0;                         // [columns] of the register tile: the head, or a wave's slice of V
  std::int64_t kv_num_heads = 1;                  // H of the cache
  bool transpose = true;                          // true: K, false: V
  bool full_kv = true;                            // a stage holds BN x smem_depth; false: one block of BN x BK
  std::optional<std::int64_t> cache_depth{};      // [columns] of a head in the cache; default depth
  std::int64_t head_dim_offset = 0;               // first column read
  std::optional<std::int64_t> reg_chunk_depth{};  // maximum columns of K in registers at a time; default depth
  std::optional<std::int64_t> smem_depth{};       // [columns] of a stage; default depth
  std::optional<std::int64_t> reg_chunk_keys{};   // maximum keys of V in registers at a time; default WN
  std::optional<std::int64_t> bk_smem{};          // [columns] of an LDS block; default BK
  std::int64_t num_smem_stages = 2;
  // Only in the model:
  std::int64_t depth_slices =
      1;                     // num_warps_n of a per-wave V: that many waves hold `depth` columns each; 1: all hold all
  std::int64_t k_group = 1;  // MMAs fed by one 16-byte read: 2 for 32x32x8, else 1
  VmCountRule vm_rule = VmCountRule::newer;
  Tr8Order tr8_order = Tr8Order::natural;
};

// The parameters with every default filled in, and the member constants under their Mojo names.
struct KVBufferConstants {
  // parameters
  std::int64_t BN = 0, WN = 0, BK = 0, depth = 0, cache_depth = 0, smem_depth = 0, bk_smem = 0;
  std::int64_t reg_chunk_depth = 0, reg_chunk_keys = 0, num_smem_stages = 0;
  std::int64_t element_bytes = 0;  // 2 or 1
  std::int64_t waves = 0;          // num_threads / 64
  // members
  std::int64_t MMA_M = 0, MMA_N = 0, MMA_K = 0;
  std::int64_t num_mmas = 0;                    // ceil((transpose ? WN : depth) / MMA_N)
  std::int64_t num_k_mmas2 = 0;                 // ceil(BK / MMA_K)
  std::int64_t num_k_tiles = 0;                 // ceil((transpose ? depth : WN) / BK) strips
  std::int64_t input_frag_size = 0;             // MMA_K * MMA_N / 64 elements per lane and MMA
  std::int64_t simd_width = 0;                  // 16 / element_bytes
  std::int64_t warp_tile_rows = 32;             // keys of a copied sub-tile
  std::int64_t num_repeats = 0;                 // smem_depth / bk_smem
  std::int64_t smem_cols = 0;                   // full_kv ? smem_depth : bk_smem
  std::int64_t smem_stage_size = 0;             // BN * smem_cols [elements]
  std::int64_t wtile_dim0 = 0, wtile_dim1 = 0;  // WN, BK
  std::int64_t register_strips = 0;             // strips that fit the register tile
  std::int64_t mma_rows = 0, mma_cols = 0;      // mma_layout, a lane's register tile
  std::int64_t vm_instrs_per_load = 0;
  // derived
  std::int64_t blocks_per_stage = 0;     // full_kv ? num_repeats : 1
  std::int64_t sub_tiles = 0;            // T: 32-row pieces of a block in a stage
  std::int64_t tiles_per_wave = 0;       // ceil(T / waves)
  std::int64_t copy_rows = 0;            // keys of one copy instruction: 16 (64-byte rows) or 8 (128-byte rows)
  std::int64_t copies_per_sub_tile = 0;  // 32 / copy_rows
  std::int64_t depth_blocks = 0;         // ceil(depth / BK): blocks a caller walks when full_kv is false
  std::int64_t stage_bytes = 0;
  std::int64_t region_bytes = 0;  // every stage

  [[nodiscard]] std::int64_t row_bytes() const { return bk_smem * element_bytes; }  // of a block
  [[nodiscard]] std::int64_t parent_cols() const { return num_smem_stages * blocks_per_stage * bk_smem; }
  // LDS parent view: shape (BN, parent_cols), strides (bk_smem, BN).
};

// The formulas alone. GeometryError when a size they divide by is not positive; the rules below are not checked.
[[nodiscard]] KVBufferConstants constants_of(const KVBufferParams& params);

enum class KVBufferRule : std::uint8_t {
  element_type,       // 8 or 16 bits
  sizes,              // every extent positive, head_dim_offset not negative
  mma_shape,          // square, 16 or 32; V: a shape that its reads support
  k_group,            // 2 for 32x32x8, 1 for every other shape
  tile_rows,          // BN % 32 == 0
  stage_blocks,       // smem_depth % bk_smem == 0
  stage_holds_depth,  // full_kv: smem_depth >= depth
  copy_width,         // a block's row is 64 or 128 bytes
  whole_waves,        // num_threads % 64 == 0
  wave_tiles,         // K: BN % WN == 0, WN % M == 0; V: WN % BK == 0, depth % M == 0, WN <= BN
  whole_mma_steps,    // BK % MMA_K == 0
  block_width,        // bk_smem is BK, or BK / 2 for fp8 16x16x128 with BK 128
  whole_strips,       // K: depth % BK == 0, or half a strip that fits one pack
  fragment,           // K: input_frag_size is SW or 2 * SW
  swizzle_closure,    // reader and writer permute within the same range
  swizzle_reach,      // the permuted bits stay inside one copy instruction
  wave_slices,        // per-wave V: one wave per slice; depth divides bk_smem, or is whole blocks and swizzled
  unguarded_blocks,   // full_kv false: (BN / 32) % waves == 0
  blocks_of_strips,   // full_kv false: bk_smem == BK
  special_copy,       // smem_depth 64, BN <= 64, two blocks: waves == (BN / 32) * 2
  v_fp8_strip,        // V, fp8, 32x32x64: BK == 64
  v_fp8_single,       // V, fp8, 16x16x128: WN == BN == BK == 128
  cache_columns,      // the columns are inside a head of the cache
  cache_alignment,    // rows of the cache begin on whole 16-byte vectors
  v_covers_tile,      // diagnostic. V: WN == BN
};
[[nodiscard]] std::string_view name(KVBufferRule rule);  // "tile rows"

struct BrokenBufferRule {
  KVBufferRule rule{};
  Fault fault;  // where: the parameter's name
  friend bool operator==(const BrokenBufferRule&, const BrokenBufferRule&) = default;
};
struct KVBufferReport {
  std::vector<BrokenBufferRule> refusals;     // reasons why the buffer cannot be built
  std::vector<BrokenBufferRule> diagnostics;  // legal, but probably a mistake
};
// Every broken rule at once. Refusals of `sizes` and `element_type` come alone, because other rules depend on them.
[[nodiscard]] KVBufferReport check(const KVBufferParams& params);

// Parameters that obey every rule.
class KVBufferConfig {
 public:
  // GeometryError "KVBuffer (K) rejected: ..." with every broken rule in `refusals`.
  explicit KVBufferConfig(const KVBufferParams& params);

  [[nodiscard]] const KVBufferParams& params() const { return params_; }
  [[nodiscard]] const KVBufferConstants& constants() const { return constants_; }
  [[nodiscard]] const std::vector<BrokenBufferRule>& diagnostics() const { return diagnostics_; }

 private:
  KVBufferParams params_;
  KVBufferConstants constants_;
  std::vector<BrokenBufferRule> diagnostics_;
};

}  // namespace kvscope
