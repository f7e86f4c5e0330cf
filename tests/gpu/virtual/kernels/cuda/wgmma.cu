// K18: D = A B + D by a warpgroup, 64 x 64 x 16 bf16, with operands given by descriptors: four swizzle modes, A and B
// each along k or along m or n, A from shared memory or from registers.
#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

extern "C" {
extern __shared__ __align__(1024) unsigned char operands[];  // A, then B 16384 bytes later
}

enum Bug { kNone = 0, kNoProxyFence = 19, kReadEarly = 29, kNoWgmmaFence = 129 };  // B19, B29, B29

// Layout of an operand in shared memory: `row` bytes per row (16: no swizzle), steps between blocks [bytes].
struct Layout {
  int row, leading, stride, along_mn;
};

// Offset of element (mn, k); PTX ISA, "Shared Memory Matrix Layout".
DEVICE uint32_t offset_of(const Layout& layout, int mn, int k) {
  const int row = layout.row, chunks = row / 16;
  uint32_t at;
  if (!layout.along_mn)
    at = row == 16 ? mn / 8 * layout.stride + mn % 8 * 16 + k / 8 * layout.leading + k % 8 * 2
                   : mn / 8 * layout.stride + mn % 8 * row + k * 2;
  else
    at = row == 16 ? mn % 8 * 2 + mn / 8 * layout.stride + k % 8 * 16 + k / 8 * layout.leading
                   : mn % 8 * 2 + mn / 8 % chunks * 16 + mn / (8 * chunks) * layout.leading + k % 8 * row +
                         k / 8 * layout.stride;
  return at ^ (at / 128 % chunks * 16);
}
DEVICE uint64_t descriptor(const Layout& layout, uint32_t start) {
  const uint64_t mode = layout.row == 128 ? 1 : layout.row == 64 ? 2 : layout.row == 32 ? 3 : 0;
  return (start & 0x3ffff) >> 4 | static_cast<uint64_t>(layout.leading >> 4) << 16 |
         static_cast<uint64_t>(layout.stride >> 4) << 32 | mode << 62;
}

#define ACCUMULATORS(d)                                                                                       \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), \
      "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),  \
      "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), \
      "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define D_REGISTERS                                                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31}"

template <int kTransA, int kTransB>
DEVICE void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " D_REGISTERS ", %32, %33, 1, 1, 1, %34, %35;"
               : ACCUMULATORS(d)
               : "l"(a), "l"(b), "n"(kTransA), "n"(kTransB)
               : "memory");
}
template <int kTransB>
DEVICE void multiply(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " D_REGISTERS
               ", {%32, %33, %34, %35}, %36, 1, 1, 1, %37;"
               : ACCUMULATORS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransB)
               : "memory");
}

// a [64][16] and b [64][16] (k fastest in both), d [64][64]: its first values are read, the sums written.
DEVICE void tile(int bug, float* out, const uint16_t* a, const uint16_t* b, const Layout& a_layout,
                 const Layout& b_layout, int a_in_registers) {
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
  unsigned char *a_tile = operands, *b_tile = operands + 16384;
  for (int i = t; i < 64 * 16; i += 128) {
    const int mn = i / 16, k = i % 16;
    *reinterpret_cast<uint16_t*>(a_tile + offset_of(a_layout, mn, k)) = a[i];
    *reinterpret_cast<uint16_t*>(b_tile + offset_of(b_layout, mn, k)) = b[i];
  }
  if (bug != kNoProxyFence) fence_proxy_async();
  __syncthreads();

  // Register i: row 16 warp + lane / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (lane % 4) + i % 2.
  float d[32];
  const auto place = [&](int i) {
    return (16 * warp + lane / 4 + 8 * (i / 2 % 2)) * 64 + 8 * (i / 4) + 2 * (lane % 4) + i % 2;
  };
#pragma unroll
  for (int i = 0; i < 32; ++i) d[i] = out[place(i)];
  uint32_t a_registers[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = 16 * warp + lane / 4 + 8 * (r % 2), k = lane % 4 * 2 + r / 2 * 8;
    a_registers[r] = *reinterpret_cast<const uint32_t*>(a + row * 16 + k);
  }

  if (bug != kNoWgmmaFence) wgmma_fence();
  const uint64_t a_at = descriptor(a_layout, shared_address(a_tile)),
                 b_at = descriptor(b_layout, shared_address(b_tile));
  if (a_in_registers && b_layout.along_mn) multiply<1>(d, a_registers, b_at);
  if (a_in_registers && !b_layout.along_mn) multiply<0>(d, a_registers, b_at);
  if (!a_in_registers && a_layout.along_mn && b_layout.along_mn) multiply<1, 1>(d, a_at, b_at);
  if (!a_in_registers && a_layout.along_mn && !b_layout.along_mn) multiply<1, 0>(d, a_at, b_at);
  if (!a_in_registers && !a_layout.along_mn && b_layout.along_mn) multiply<0, 1>(d, a_at, b_at);
  if (!a_in_registers && !a_layout.along_mn && !b_layout.along_mn) multiply<0, 0>(d, a_at, b_at);
  wgmma_commit();
  if (bug != kReadEarly) wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < 32; ++i) out[place(i)] = d[i];
  if (bug == kReadEarly) wgmma_wait<0>();
}

KERNEL wgmma_tile(float* out, const uint16_t* a, const uint16_t* b, const __grid_constant__ Layout a_layout,
                  const __grid_constant__ Layout b_layout, int a_in_registers, int bug) {
  tile(bug, out, a, b, a_layout, b_layout, a_in_registers);
}
