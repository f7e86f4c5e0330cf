// The double buffer of KVBuffer as a kernel: tiles pass through two stages of shared memory. While registers are loaded
// from the stage that has landed, the next tile is in flight.
//
//   step      0            1            2
//   stage 0   tile 0 ....  read         tile 2 ....
//   stage 1                tile 1 ....  read          wait for all groups but the newest, barrier, read, barrier
//
// A stage is blocks of BN keys x block_columns; its vectors of 16 bytes are permuted by (bits, base, shift):
//
//   vector v = (((stage * blocks + column / block_columns) * BN + key) * block_columns + column % block_columns) / SW
//   is at      v ^ ((v >> (base + shift)) % 2^bits << base)                SW: elements of 16 bytes
//
//   64-byte rows, (2,0,3): key 2, column 0 is vector 8, and is stored at 9: byte 144
//
// Copies write shared memory in lane order, so lane l fetches the vector that belongs at its destination. There are two
// kinds of output: registers of 64 lanes as AMD's matrix instructions use them (a thread emulates wave thread / 64,
// lane thread % 64), and by ldmatrix the operands of mma.sync. ldmatrix cannot transpose bytes, so fp8 V is read as
// pairs, and two permutations separate even columns from odd ones.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/lds_stage/config.h"
#include "gpu/kernels/lds_stage/params.h"

extern "C" {  // unmangled, for the names in reports
extern __shared__ __align__(1024) unsigned char region[];
}

namespace kvscope::gpu {
namespace {

DEVICE constexpr int ceil_of(int a, int b) {
  return (a + b - 1) / b;
}

template <StageShape kS>
struct Stage {
  static constexpr int kSize = kS.element_bytes;
  static constexpr int kVector = 16 / kSize;  // SW
  static constexpr int kColumns = kS.block_columns > 0 ? kS.block_columns : kS.BK;
  static constexpr int kRowBytes = kColumns * kSize;
  static constexpr int kBlocks = kS.whole ? kS.depth / kColumns : 1;  // per stage
  static constexpr int kBytes = kBlocks * kS.BN * kRowBytes;
  static constexpr int kSteps = kS.whole ? 1 : kS.depth / kS.BK;  // per tile
  static constexpr int kWaves = kStageThreads / 64;
  // Copies: sub-tiles of 32 keys of a block, assigned to waves round-robin; 64 lanes copy kCopyRows per instruction.
  static constexpr int kRowVectors = kRowBytes / 16;
  static constexpr int kCopyRows = 64 / kRowVectors;
  static constexpr int kSubTiles = kS.BN / 32 * kBlocks;
  static constexpr int kCopies = ceil_of(kSubTiles, kWaves) * (32 / kCopyRows);  // per thread and step
  // Registers of a lane: kRows x kFragment elements.
  static constexpr int kWaveDepth = kS.depth / kS.slices;
  static constexpr int kFragment = kS.mma_depth * kS.M / 64;
  static constexpr int kMmas = ceil_of(kS.is_key ? kS.WN : kWaveDepth, kS.M);
  static constexpr int kMmaSteps = ceil_of(kS.BK, kS.mma_depth);  // per strip
  static constexpr int kStrips = ceil_of(kS.is_key ? kS.depth : kS.WN, kS.BK);
  static constexpr int kRows = kStrips * kMmaSteps * kMmas;
  // Fragments: pieces of kPieceKeys x kPieceColumns, one ldmatrix each.
  static constexpr int kPieceKeys = kS.is_key || kSize == 2 ? 16 : 32;
  static constexpr int kPieceColumns = kS.is_key ? 32 / kSize : 16;
  static constexpr int kPiecesAcross = kBlocks * kColumns / kPieceColumns;
  static constexpr int kPieces = kS.BN / kPieceKeys * kPiecesAcross;
  static_assert(kRowBytes == 64 || kRowBytes == 128, "a lane moves 16 bytes");
};

DEVICE int swizzled(const LdsStageParams& p, int vector) {
  const int mask = (1 << p.swizzle_bits) - 1;
  return vector ^ ((vector >> (p.swizzle_base + p.swizzle_shift) & mask) << p.swizzle_base);
}

// [bytes] offset in the region. `column` counts from the stage's first.
template <StageShape kS>
DEVICE int place_of(const LdsStageParams& p, int stage, int key, int column) {
  using S = Stage<kS>;
  const int block = stage * S::kBlocks + column / S::kColumns;
  const int element = (block * kS.BN + key) * S::kColumns + column % S::kColumns;
  return swizzled(p, element / S::kVector) * 16 + element % S::kVector * S::kSize;
}

// Copies one tile, or one block of its columns, into a stage. Returns without waiting.
template <StageShape kS>
DEVICE void load_step(const LdsStageParams& p, int step) {
  using S = Stage<kS>;
  const int thread = static_cast<int>(threadIdx.x), wave = thread / 64, lane = thread % 64;
  const int sequence = static_cast<int>(blockIdx.x), stage = step % kStages;
  const int token = step / S::kSteps * kS.BN, first_column = step % S::kSteps * kS.BK;
  const int valid_rows = static_cast<int>(p.lengths[sequence]) - token;

  const unsigned char* const data = static_cast<const unsigned char*>(p.cache.data);
  const unsigned char* tile = data;  // without a valid row nothing is read, but the address must be valid
  if (valid_rows > 0) {
    const int page = token / p.cache.page_size, slot = token % p.cache.page_size;
    const int64_t block = p.cache.table[sequence * p.cache.table_stride + page];
    tile += (block * p.cache.block_stride + slot * p.cache.token_stride + p.head * p.cache.head_size + p.first_column) *
            S::kSize;
  }
  const int row_stride = static_cast<int>(p.cache.token_stride);

#pragma unroll 1
  for (int n = 0; n < S::kCopies; ++n) {
    const int sub_tile = n / (32 / S::kCopyRows) * S::kWaves + wave, m = n % (32 / S::kCopyRows);
    if (sub_tile >= S::kSubTiles) break;
    const int block = sub_tile % S::kBlocks, first_key = sub_tile / S::kBlocks * 32 + m * S::kCopyRows;
    const int vector = swizzled(p, lane + 64 * m) % 64;
    const int key = first_key + vector / S::kRowVectors;
    const int column = first_column + block * S::kColumns + vector % S::kRowVectors * S::kVector;
    const int to = ((stage * S::kBlocks + block) * kS.BN + first_key) * S::kRowBytes + 16 * lane;
    const int from = (key * row_stride + column) * S::kSize;
    const bool valid = key < valid_rows;
    cp_async_16(region + to, valid ? tile + from : data, valid ? 16U : 0U);
    if (p.trace != nullptr) {
      const int64_t at = (static_cast<int64_t>(sequence) * p.tiles * S::kSteps + step) * S::kCopies + n;
      p.trace[at * kStageThreads + thread] = {to, from, valid ? 1 : 0, n};
    }
  }
}

// --- registers of 64 lanes -------------------------------------------------------------------------------------------

// A fragment of V, element by element: its key order is that of the sums of the product of Q and K.
template <StageShape kS>
DEVICE int v_key(int lane, int strip, int k, int e) {
  if constexpr (kS.M == 16 && kS.element_bytes == 1) return 32 * (lane / 16) + e;
  const int quad = kS.M == 32 ? 8 * (e / 4) + 4 * (lane / 32) : 16 * (e / 4) + 4 * (lane / 16);
  return strip * kS.BK + k * kS.mma_depth + quad + e % 4;
}

// 16 bytes of a lane's row of registers: elements first .. first + SW - 1.
template <StageShape kS>
DEVICE uint4 read_vector(const LdsStageParams& p, int stage, int strip, int k, int i, int first, int stage_column) {
  using S = Stage<kS>;
  const int thread = static_cast<int>(threadIdx.x), wave = thread / 64, lane = thread % 64;
  if constexpr (kS.is_key) {
    constexpr int kPacks = S::kFragment / S::kVector;
    const int first_depth = strip * kS.BK + k * kS.mma_depth + first / S::kVector * (kS.mma_depth / kPacks);
    if (first_depth >= kS.depth) return make_uint4(0, 0, 0, 0);  // the last strip has half its columns
    const int key = wave % (kS.BN / kS.WN) * kS.WN + i * kS.M + lane % kS.M;
    const int column = first_depth + lane / kS.M * S::kVector - stage_column;
    return *reinterpret_cast<const uint4*>(region + place_of<kS>(p, stage, key, column));
  } else {
    const int column = (kS.slices > 1 ? wave * S::kWaveDepth : 0) + i * kS.M + lane % kS.M;
    uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int part = 0; part < 4 / S::kSize; ++part) {
        const int e = first + word * (4 / S::kSize) + part;
        const unsigned char* from = region + place_of<kS>(p, stage, v_key<kS>(lane, strip, k, e), column);
        const uint32_t bits = S::kSize == 2 ? *reinterpret_cast<const uint16_t*>(from) : *from;
        words[word] |= bits << (8 * S::kSize * part);
      }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
}

template <StageShape kS>
DEVICE void read_registers(const LdsStageParams& p, int step) {
  using S = Stage<kS>;
  const int tile = step / S::kSteps, block = step % S::kSteps;
  const int64_t of_tile = static_cast<int64_t>(blockIdx.x) * p.tiles + tile;
  unsigned char* const lane_rows =
      p.registers + (of_tile * kStageThreads + threadIdx.x) * (S::kRows * S::kFragment * S::kSize);
  // A stage of one block of K is one strip.
  const int first_strip = kS.whole ? 0 : block, last_strip = kS.whole ? S::kStrips : block + 1;
#pragma unroll 1
  for (int strip = first_strip; strip < last_strip; ++strip) {
#pragma unroll 1
    for (int mma = 0; mma < S::kMmaSteps * S::kMmas; ++mma) {
      unsigned char* const row = lane_rows + (strip * S::kMmaSteps * S::kMmas + mma) * (S::kFragment * S::kSize);
#pragma unroll 1
      for (int first = 0; first < S::kFragment; first += S::kVector)
        *reinterpret_cast<uint4*>(row + first * S::kSize) = read_vector<kS>(
            p, step % kStages, strip, mma / S::kMmas, mma % S::kMmas, first, kS.whole ? 0 : block * kS.BK);
    }
  }
}

// --- operands of mma.sync --------------------------------------------------------------------------------------------

template <StageShape kS>
DEVICE void read_fragments(const LdsStageParams& p, int step) {
  using S = Stage<kS>;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t of_step = static_cast<int64_t>(blockIdx.x) * p.tiles * S::kSteps + step;
  uint4* const out = static_cast<uint4*>(p.fragments) + of_step * S::kPieces * 32 + lane;
#pragma unroll 1
  for (int piece = warp; piece < S::kPieces; piece += kStageThreads / 32) {
    // The row of 16 bytes that the lane addresses. K: matrices by columns, then keys; V: by keys, then columns.
    int key = piece / S::kPiecesAcross * S::kPieceKeys, column = piece % S::kPiecesAcross * S::kPieceColumns;
    if constexpr (kS.is_key) {
      key += lane % 8 + lane / 16 * 8;
      column += lane / 8 % 2 * S::kVector;
    } else if constexpr (S::kSize == 2) {
      key += lane % 16;
      column += lane / 16 * S::kVector;
    } else {
      key += lane;
    }
    const uint32_t row = shared_address(region + place_of<kS>(p, step % kStages, key, column));
    uint32_t r[4];
    if constexpr (kS.is_key) {
      ldmatrix_x4(r, row);
    } else {
      ldmatrix_x4_trans(r, row);
    }
    if constexpr (!kS.is_key && S::kSize == 1) {  // even columns, then odd ones: two operands of 32 keys
      out[piece * 32] = make_uint4(__byte_perm(r[0], r[1], 0x6420), __byte_perm(r[2], r[3], 0x6420),
                                   __byte_perm(r[0], r[1], 0x7531), __byte_perm(r[2], r[3], 0x7531));
    } else {
      out[piece * 32] = make_uint4(r[0], r[1], r[2], r[3]);
    }
  }
}

// --- the loop --------------------------------------------------------------------------------------------------------

template <StageShape kS>
DEVICE void stage_tiles(const LdsStageParams& p) {
  using S = Stage<kS>;
  constexpr int kRegionVectors = kStages * S::kBytes / 16;
  constexpr uint32_t kPoisonWord = kStagePoison * 0x01010101U;
  uint4* const vectors = reinterpret_cast<uint4*>(region);
  for (int i = static_cast<int>(threadIdx.x); i < kRegionVectors; i += kStageThreads)
    vectors[i] = make_uint4(kPoisonWord, kPoisonWord, kPoisonWord, kPoisonWord);
  __syncthreads();

  const int steps = p.tiles * S::kSteps;
  load_step<kS>(p, 0);
  cp_async_commit();
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) load_step<kS>(p, step + 1);
    cp_async_commit();  // an empty group counts: one group is always newer than the step's
    cp_async_wait<1>();
    __syncthreads();  // the copies of all threads have landed
    if (p.registers != nullptr) read_registers<kS>(p, step);
    if (p.fragments != nullptr) read_fragments<kS>(p, step);
    __syncthreads();  // all reads of the stage are complete: it may be overwritten
  }
  if (p.image == nullptr) return;
  uint4* const out = reinterpret_cast<uint4*>(p.image) + static_cast<int64_t>(blockIdx.x) * kRegionVectors;
  for (int i = static_cast<int>(threadIdx.x); i < kRegionVectors; i += kStageThreads) out[i] = vectors[i];
}

}  // namespace

#define STAGE_KERNEL(name, shape)                                                                      \
  KERNEL __launch_bounds__(kStageThreads) lds_stage_##name(const __grid_constant__ LdsStageParams p) { \
    stage_tiles<shape>(p);                                                                             \
  }
STAGE_KERNEL(a_k, kShapeAK)
STAGE_KERNEL(a_v, kShapeAV)
STAGE_KERNEL(b_k, kShapeBK)
STAGE_KERNEL(b_v, kShapeBV)
STAGE_KERNEL(c_k, kShapeCK)
STAGE_KERNEL(c_v, kShapeCV)
STAGE_KERNEL(d_k, kShapeDK)
STAGE_KERNEL(d_v, kShapeDV)
STAGE_KERNEL(e_k, kShapeEK)
STAGE_KERNEL(e2_k, kShapeE2K)
STAGE_KERNEL(f_k, kShapeFK)
STAGE_KERNEL(f_v, kShapeFV)
STAGE_KERNEL(g_k, kShapeGK)
STAGE_KERNEL(g_v, kShapeGV)
STAGE_KERNEL(h_k, kShapeHK)
STAGE_KERNEL(i_k, kShapeIK)

}  // namespace kvscope::gpu
