// Small kernels that test behavior which the manuals leave open. Each performs one operation and stores its result; the
// host (gpu/hardware) interprets it. Waits time out, so that no probe hangs a machine.
//
//   probe_copy              up to four loads into a window of 0xCD, the window written out, a store from it
//   probe_under_expected    a barrier that expects fewer bytes than arrive
//   probe_shared_base       the start of dynamic shared memory; _static: with a static array
//   probe_mma_*             D = A B + C of a warp, 16 x 8
//   probe_wgmma_*           the same of a warpgroup, 64 x 8
//   probe_nan, probe_divide results of arithmetic where PTX does not define the bits
//   probe_elect             the lane that elect.sync selects in a part of a warp
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/common/wgmma.cuh"
#include "gpu/kernels/probes/config.h"
#include "gpu/kernels/probes/params.h"
#include "gpu/kernels/probes/questions.cuh"

extern "C" {  // unmangled, for the names in reports
extern __shared__ __align__(1024) unsigned char probe_window[];
}

namespace kvscope::gpu {
namespace {

// False: the phase did not complete within kProbePolls tests.
DEVICE bool wait_a_while(uint64_t* barrier, uint32_t parity) {
  for (int i = 0; i < kProbePolls; ++i)
    if (mbarrier_try_wait(barrier, parity)) return true;
  return false;
}

DEVICE uint64_t* barrier_behind(int window_bytes) {
  return reinterpret_cast<uint64_t*>(probe_window + window_bytes);
}

// Fills the window and initializes the barrier: copies may then begin.
DEVICE void prepare(int window_bytes, const unsigned char* image, uint64_t* barrier) {
  for (int i = threadIdx.x; i < window_bytes; i += kProbeThreads)
    probe_window[i] = image == nullptr ? static_cast<unsigned char>(kProbePoison) : image[i];
  fence_proxy_async();
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
}

// Counts the bytes of the window that are no longer poison, with all threads.
DEVICE uint32_t bytes_there(int window_bytes) {
  int there = 0;
  for (int base = 0; base < window_bytes; base += kProbeThreads) {
    const int i = base + threadIdx.x;
    there += __syncthreads_count(i < window_bytes && probe_window[i] != kProbePoison);
  }
  return static_cast<uint32_t>(there);
}

// Offset of a byte of row `row` for a matrix descriptor without swizzle: blocks of eight rows of 16 bytes; the second
// chunk of 16 bytes is 128 bytes after the first, the next eight rows 256 bytes later.
DEVICE int block_place(int row, int byte) {
  return row / 8 * 256 + row % 8 * 16 + byte / 16 * 128 + byte % 16;
}
DEVICE uint64_t block_descriptor(const void* start) {
  return static_cast<uint64_t>((shared_address(start) & 0x3ffff) >> 4) | static_cast<uint64_t>(128 >> 4) << 16 |
         static_cast<uint64_t>(256 >> 4) << 32;
}

// Register r of A: row lane / 4 + 8 (r % 2), bytes 4 (lane % 4) + 16 (r / 2) .. + 3; of B: column lane / 4, bytes
// 4 (lane % 4) + 16 r. Register i of D: row lane / 4 + 8 (i / 2), column 2 (lane % 4) + i % 2. For all types.
template <Number kNumber>
DEVICE void multiply_of_warp(const ProbeProductParams& p) {
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  const unsigned char* a_tile = p.a + static_cast<int64_t>(blockIdx.x) * 16 * kProbeRowBytes;
  const unsigned char* b_tile = p.b + static_cast<int64_t>(blockIdx.x) * kProbeColumns * kProbeRowBytes;
  const int64_t c_tile = static_cast<int64_t>(blockIdx.x) * 16 * kProbeColumns;
  uint32_t a[4], b[2];
  float d[4];
  for (int r = 0; r < 4; ++r)
    a[r] = *reinterpret_cast<const uint32_t*>(a_tile + (g + 8 * (r % 2)) * kProbeRowBytes + 4 * t + 16 * (r / 2));
  for (int r = 0; r < 2; ++r) b[r] = *reinterpret_cast<const uint32_t*>(b_tile + g * kProbeRowBytes + 4 * t + 16 * r);
  for (int i = 0; i < 4; ++i) d[i] = p.c[c_tile + (g + 8 * (i / 2)) * kProbeColumns + 2 * t + i % 2];
  warp_product<kNumber>(d, a, b);
  for (int i = 0; i < 4; ++i) p.d[c_tile + (g + 8 * (i / 2)) * kProbeColumns + 2 * t + i % 2] = d[i];
}

template <Number kNumber>
DEVICE void multiply_of_warpgroup(const ProbeProductParams& p) {
  __shared__ __align__(128) unsigned char a_block[64 * kProbeRowBytes];
  __shared__ __align__(128) unsigned char b_block[kProbeColumns * kProbeRowBytes];
  const unsigned char* a_tile = p.a + static_cast<int64_t>(blockIdx.x) * 64 * kProbeRowBytes;
  const unsigned char* b_tile = p.b + static_cast<int64_t>(blockIdx.x) * kProbeColumns * kProbeRowBytes;
  for (int i = threadIdx.x; i < 64 * kProbeRowBytes; i += kProbeThreads)
    a_block[block_place(i / kProbeRowBytes, i % kProbeRowBytes)] = a_tile[i];
  for (int i = threadIdx.x; i < kProbeColumns * kProbeRowBytes; i += kProbeThreads)
    b_block[block_place(i / kProbeRowBytes, i % kProbeRowBytes)] = b_tile[i];
  fence_proxy_async();
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64_t c_tile = static_cast<int64_t>(blockIdx.x) * 64 * kProbeColumns;
  float d[4];
  for (int i = 0; i < 4; ++i) d[i] = p.c[c_tile + (16 * warp + g + 8 * (i / 2)) * kProbeColumns + 2 * t + i % 2];
  keep(d);
  wgmma_fence();
  group_product<kNumber>(d, block_descriptor(a_block), block_descriptor(b_block));
  wgmma_commit();
  wgmma_wait<0>();
  keep(d);
  for (int i = 0; i < 4; ++i) p.d[c_tile + (16 * warp + g + 8 * (i / 2)) * kProbeColumns + 2 * t + i % 2] = d[i];
}

}  // namespace

KERNEL probe_copy(const __grid_constant__ ProbeCopyParams p) {
  uint64_t* barrier = barrier_behind(p.window_bytes);
  prepare(p.window_bytes, p.image, barrier);
  if (p.load_count > 0) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(barrier, p.expected_bytes);
      for (int i = 0; i < p.load_count; ++i)
        tensor_load_2d(shared_address(probe_window) + p.loads[i].at, &p.load_map, p.loads[i].column, p.loads[i].row,
                       barrier);
    }
    if (!wait_a_while(barrier, 0)) trap();
  }
  for (int i = threadIdx.x; i < p.window_bytes; i += kProbeThreads) p.window[i] = probe_window[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    p.seen[0] = shared_address(probe_window);
    if (p.store_count > 0) {
      tensor_store_2d(&p.store_map, p.store.column, p.store.row, shared_address(probe_window) + p.store.at);
      bulk_commit();
      bulk_wait<0>();
    }
  }
}

KERNEL probe_under_expected(const __grid_constant__ ProbeUnderExpectedParams p) {
  uint64_t* barrier = barrier_behind(p.window_bytes);
  prepare(p.window_bytes, nullptr, barrier);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(barrier, p.first_bytes);
    tensor_load_2d(shared_address(probe_window), &p.map, 0, 0, barrier);
  }
  const bool first = wait_a_while(barrier, 0);
  const uint32_t there_first = bytes_there(p.window_bytes);
  // The unexpected bytes count toward those that the second phase expects.
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(barrier, p.second_bytes);
  const bool second = wait_a_while(barrier, 1);
  const uint32_t there_second = bytes_there(p.window_bytes);
  if (threadIdx.x == 0) {
    p.seen[0] = first;
    p.seen[1] = there_first;
    p.seen[2] = second;
    p.seen[3] = there_second;
  }
}

KERNEL probe_shared_base(const __grid_constant__ ProbeSharedBaseParams p) {
  p.seen[0] = shared_address(probe_window);
  p.seen[1] = 0;
  p.seen[2] = 0;
}

KERNEL probe_shared_base_static(const __grid_constant__ ProbeSharedBaseParams p) {
  __shared__ unsigned char beside[kProbeStaticBytes];
#pragma unroll 1
  for (int i = 0; i < kProbeStaticBytes; ++i) beside[i] = static_cast<unsigned char>(p.seen[3] + i);
  p.seen[0] = shared_address(probe_window);
  p.seen[1] = shared_address(beside);
  p.seen[2] = beside[p.seen[3]];
}

#define PRODUCTS(number)                                                                                       \
  KERNEL probe_mma_##number(const __grid_constant__ ProbeProductParams p) {                                    \
    multiply_of_warp<Number::number>(p);                                                                       \
  }                                                                                                            \
  KERNEL __launch_bounds__(kProbeThreads) probe_wgmma_##number(const __grid_constant__ ProbeProductParams p) { \
    multiply_of_warpgroup<Number::number>(p);                                                                  \
  }
PRODUCTS(bf16)
PRODUCTS(f16)
PRODUCTS(e4m3)
#undef PRODUCTS

// Bits as integers, so that the compiler does not fold the operations.
KERNEL probe_nan(const __grid_constant__ ProbeBitsParams p) {
  const uint64_t inf = 0x7ff0000000000000, minus_inf = 0xfff0000000000000, one = 0x3ff0000000000000,
                 nan_a = 0x7ff8000000000123, nan_b = 0xfff8000000000456, signalling = 0x7ff0000000000001;
  uint64_t r[kProbeNanResults];
  for (int i = 0; i < kProbeNanResults; ++i) r[i] = 0;
#define ASK_F64(i, opcode, a, b)                                                                               \
  asm volatile("{\n.reg .f64 x, y, z;\nmov.b64 x, %1;\nmov.b64 y, %2;\n" opcode " z, x, y;\nmov.b64 %0, z;\n}" \
               : "=l"(r[i])                                                                                    \
               : "l"(a), "l"(b))
#define ASK_F32(i, opcode, a, b)                                                              \
  asm volatile("{\n.reg .f32 x, y, z;\n.reg .b32 w;\nmov.b32 x, %1;\nmov.b32 y, %2;\n" opcode \
               " z, x, y;\nmov.b32 w, z;\ncvt.u64.u32 %0, w;\n}"                              \
               : "=l"(r[i])                                                                   \
               : "r"(a), "r"(b))
#define ASK_16(i, opcode, a, b)                                                                                    \
  asm volatile("{\n.reg .b16 x, y, z;\nmov.b16 x, %1;\nmov.b16 y, %2;\n" opcode " z, x, y;\ncvt.u64.u16 %0, z;\n}" \
               : "=l"(r[i])                                                                                        \
               : "h"(a), "h"(b))
  ASK_F64(0, "add.rn.f64", inf, minus_inf);
  ASK_F64(1, "mul.rn.f64", inf, uint64_t{0});
  ASK_F64(2, "div.rn.f64", uint64_t{0}, uint64_t{0});
  ASK_F64(3, "add.rn.f64", nan_a, one);
  ASK_F64(4, "add.rn.f64", one, nan_b);
  ASK_F64(5, "add.rn.f64", nan_a, nan_b);
  ASK_F64(6, "add.rn.f64", signalling, one);
  ASK_F64(7, "min.f64", nan_a, nan_b);
  ASK_F64(8, "max.f64", nan_a, nan_b);
  ASK_F64(9, "min.f64", nan_a, one);
  ASK_F64(10, "max.f64", signalling, one);
  ASK_F32(11, "add.rn.f32", 0x7f800000u, 0xff800000u);
  ASK_F32(12, "mul.rn.f32", 0x7fc00123u, 0x3f800000u);
  ASK_F32(13, "min.f32", 0x7fc00123u, 0xffc00456u);
  ASK_16(14, "add.rn.f16", static_cast<uint16_t>(0x7c00), static_cast<uint16_t>(0xfc00));
  ASK_16(15, "add.rn.bf16", static_cast<uint16_t>(0x7f80), static_cast<uint16_t>(0xff80));
#undef ASK_F64
#undef ASK_F32
#undef ASK_16
  for (int i = 0; i < kProbeNanResults; ++i) p.results[i] = r[i];
}

// Dividend 100, then -100 for signed types; quotient, then remainder.
KERNEL probe_divide(const __grid_constant__ ProbeBitsParams p) {
  uint64_t r[kProbeDivisions];
  const uint64_t zero = p.results[0];  // set by the host
#define ASK(i, width, sign, value)                                                                      \
  asm volatile("{\n.reg .b" width " x, y, q, m;\ncvt.u" width ".u64 x, %2;\ncvt.u" width                \
               ".u64 y, %3;\ndiv." sign width " q, x, y;\nrem." sign width " m, x, y;\ncvt.u64.u" width \
               " %0, q;\ncvt.u64.u" width " %1, m;\n}"                                                  \
               : "=l"(r[i]), "=l"(r[i + 1])                                                             \
               : "l"(value), "l"(zero))
  const uint64_t hundred = 100 + zero, minus_hundred = ~hundred + 1;
  ASK(0, "16", "u", hundred);
  ASK(2, "16", "s", minus_hundred);
  ASK(4, "32", "u", hundred);
  ASK(6, "32", "s", minus_hundred);
  ASK(8, "64", "u", hundred);
  ASK(10, "64", "s", minus_hundred);
#undef ASK
  for (int i = 0; i < kProbeDivisions; ++i) p.results[i] = r[i];
}

KERNEL probe_elect(const __grid_constant__ ProbeElectParams p) {
  const uint32_t lane = threadIdx.x;
  for (int i = 0; i < kProbeElectMasks; ++i) {
    if ((p.masks[i] >> lane & 1) != 0) {
      uint32_t chosen;
      const uint32_t leader = elect_leader(p.masks[i], chosen);
      p.leaders[32 * i + lane] = leader | chosen << 31;
    }
    __syncwarp();
  }
}

}  // namespace kvscope::gpu
