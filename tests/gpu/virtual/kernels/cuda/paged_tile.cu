// One tile of a paged cache into the registers of a warp: 64 tokens of one head, 128 bf16 each, pages of 16.
//
//   table[page] -> row = block * rows_per_block -> box {64 columns, 1 head, 16 rows} -> [2 halves][64 rows][128 bytes],
//   128B swizzle -> ldmatrix.x4 of 16 rows x 16 columns, pieces in row order
//
// Pages past the sequence's end: the warp clears K's; V's are fill from a row outside the map.
// `bug` selects one mistake; 0 is the correct kernel.
#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

namespace {

constexpr int kRows = 64, kPage = 16, kHalfBytes = kRows * 128;
constexpr int kFillRow = 1 << 30;

enum Bug {
  kNone = 0,
  kWrongPage = 1,  // the second page uses the first one's table entry
  kWrongRow = 2,   // ldmatrix uses a swizzle of four rows instead of eight
  kExpectTooLittle = 3,
  kWrongHalf = 4,  // the halves of a page are exchanged in shared memory
};

extern "C" {
extern __shared__ __align__(1024) unsigned char tile[];
__shared__ uint64_t full;
}

DEVICE void load(int bug, const TensorMapSlot* map, const int* table, int pages, int rows_per_block, int head,
                 bool value) {
  const int boxes = value ? kRows / kPage : pages;
  const uint32_t to = shared_address(tile);
  mbarrier_arrive_expect_tx(&full, boxes * kPage * 256 - (bug == kExpectTooLittle ? 2048 : 0));
  for (int page = 0; page < boxes; ++page) {
    const int entry = bug == kWrongPage && page == 1 ? 0 : page;
    const int row = page < pages ? table[entry] * rows_per_block : kFillRow;
    for (int half = 0; half < 2; ++half) {
      const int place = bug == kWrongHalf ? 1 - half : half;
      tensor_load_3d(to + place * kHalfBytes + page * kPage * 128, map, 64 * half, head, row, &full);
    }
  }
}

DEVICE uint32_t chunk_address(int bug, int row, int chunk) {
  const int swizzled = chunk % 8 ^ (bug == kWrongRow ? row % 4 : row % 8);
  return shared_address(tile) + chunk / 8 * kHalfBytes + row * 128 + swizzled * 16;
}

DEVICE void stage(int bug, const TensorMapSlot* map, const int* table, int tokens, int rows_per_block, int head,
                  bool value, uint32_t* registers) {
  const int lane = threadIdx.x, pages = (tokens + kPage - 1) / kPage;
  if (lane == 0) mbarrier_init(&full, 1);
  if (!value) {
    for (int i = lane; i < (kRows - pages * kPage) * 16; i += 32) {
      const int row = pages * kPage + i / 16;
      *reinterpret_cast<uint4*>(tile + i % 16 / 8 * kHalfBytes + row * 128 + i % 8 * 16) = make_uint4(0, 0, 0, 0);
    }
  }
  __syncthreads();
  if (lane == 0) load(bug, map, table, pages, rows_per_block, head, value);
  mbarrier_wait(&full, 0);

#pragma unroll 1
  for (int piece = 0; piece < 32; ++piece) {
    const int first = piece / 8 * 16, chunk = piece % 8 * 2;
    uint32_t r[4];
    if (value) {
      ldmatrix_x4_trans(r, chunk_address(bug, first + lane % 16, chunk + lane / 16));
    } else {
      ldmatrix_x4(r, chunk_address(bug, first + lane % 8 + lane / 16 * 8, chunk + lane / 8 % 2));
    }
    for (int i = 0; i < 4; ++i) registers[lane * 128 + piece * 4 + i] = r[i];
  }
}

}  // namespace

// The kernel accesses the pool only through the map. `table`: from the tile's first page. `tokens`: of the sequence,
// from the tile's first. registers [32][128].
KERNEL paged_keys(const void*, const __grid_constant__ TensorMapSlot map, const int* table, int tokens,
                  int rows_per_block, int head, uint32_t* registers) {
  stage(kNone, &map, table, tokens, rows_per_block, head, false, registers);
}
KERNEL paged_values(const void*, const __grid_constant__ TensorMapSlot map, const int* table, int tokens,
                    int rows_per_block, int head, uint32_t* registers) {
  stage(kNone, &map, table, tokens, rows_per_block, head, true, registers);
}
KERNEL paged_keys_bug(const void*, const __grid_constant__ TensorMapSlot map, const int* table, int tokens,
                      int rows_per_block, int head, uint32_t* registers, int bug) {
  stage(bug, &map, table, tokens, rows_per_block, head, false, registers);
}
