// The tile shapes that lds_stage is compiled for: the parameters of a KVBuffer, fixed at compile time.
//
//   |<-------------- depth -------------->|      a strip: BK columns of K, BK keys of V
//   +--------+--------+--------+--------+        a block of threads: waves of 64 lanes, two warps each
//   | block0 | block1 | block2 | block3 | BN
//   +--------+--------+--------+--------+
//   block_columns
#pragma once

namespace kvscope::gpu {

struct StageShape {
  int element_bytes = 2;
  int M = 0;              // rows and columns of the matrix instruction that uses the registers
  int mma_depth = 0;      // length of its sum
  int BN = 0;             // [keys] of a tile
  int WN = 0;             // [keys] of a wave
  int BK = 0;             // of a strip
  int depth = 0;          // [columns] of a tile
  bool is_key = true;     // K; false: V
  bool whole = true;      // a stage holds all columns; false: one block of BK, processed block by block
  int slices = 1;         // V: number of waves, each with depth / slices columns
  int block_columns = 0;  // 0: BK
};

inline constexpr int kStageThreads = 256;
inline constexpr int kStages = 2;
inline constexpr int kStagePoison = 0xEE;  // initial bytes of shared memory, where no copy writes

inline constexpr StageShape kShapeAK{2, 32, 16, 64, 32, 32, 128};
inline constexpr StageShape kShapeAV{2, 32, 16, 64, 32, 32, 128, false};
inline constexpr StageShape kShapeBK{2, 32, 16, 64, 64, 32, 128};
inline constexpr StageShape kShapeBV{2, 32, 16, 64, 64, 32, 128, false};
inline constexpr StageShape kShapeCK{1, 32, 64, 64, 64, 64, 128};
inline constexpr StageShape kShapeCV{1, 32, 64, 64, 64, 64, 128, false};
inline constexpr StageShape kShapeDK{2, 32, 16, 64, 64, 32, 256};
inline constexpr StageShape kShapeDV{2, 32, 16, 64, 64, 32, 256, false};
inline constexpr StageShape kShapeEK{2, 32, 16, 128, 128, 32, 512, true, false};
inline constexpr StageShape kShapeE2K{2, 32, 16, 32, 32, 32, 512};
inline constexpr StageShape kShapeFK{2, 16, 32, 128, 32, 32, 64};
inline constexpr StageShape kShapeFV{2, 16, 32, 128, 128, 32, 64, false, true, 4};
inline constexpr StageShape kShapeGK{1, 16, 128, 128, 32, 128, 128};
inline constexpr StageShape kShapeGV{1, 16, 128, 128, 128, 128, 128, false, true, 4};
inline constexpr StageShape kShapeHK{1, 16, 128, 128, 32, 128, 576, true, true, 1, 64};
inline constexpr StageShape kShapeIK{2, 32, 16, 64, 64, 32, 64};

}  // namespace kvscope::gpu
