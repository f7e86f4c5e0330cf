// wmma of every shape and type in C++: whole fragments loaded, modified element by element, multiplied, stored.
// One warp, one tile: D = A B + 2 C, each matrix by rows or by columns; and four warps on a product staged in shared
// memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

namespace wmma = nvcuda::wmma;

enum How { kColumnsOfA = 1, kColumnsOfB = 2, kColumnsOfC = 4 };
enum Bug { kNone = 0, kNoBarrier = 1, kPastTheEnd = 2, kHole = 3 };

template <int kM, int kN, int kK, class InType, class ElementType, class CType, class DType, bool kBits = false>
struct Tile {
  static constexpr int m = kM, n = kN, k = kK;
  static constexpr bool bits = kBits;
  using In = InType;
  using Element = ElementType;
  using C = CType;
  using D = DType;
  using FragmentC = wmma::fragment<wmma::accumulator, kM, kN, kK, CType>;
  using FragmentD = wmma::fragment<wmma::accumulator, kM, kN, kK, DType>;
};

template <class M, class LayoutA, class LayoutB>
DEVICE void multiply(typename M::FragmentD& fd, const typename M::Element* a, const typename M::Element* b,
                     const typename M::FragmentC& fc, int lda, int ldb) {
  wmma::fragment<wmma::matrix_a, M::m, M::n, M::k, typename M::In, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, M::m, M::n, M::k, typename M::In, LayoutB> fb;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, b, ldb);
  if constexpr (M::bits)
    wmma::bmma_sync(fd, fa, fb, fc, wmma::experimental::bmmaBitOpAND);
  else
    wmma::mma_sync(fd, fa, fb, fc);
}

// `kAnyLayout`: A and B by rows or by columns; otherwise A by rows and B by columns.
template <class M, bool kAnyLayout>
DEVICE void tile(typename M::D* d, const typename M::Element* a, const typename M::Element* b, const typename M::C* c,
                 int lda, int ldb, int ldc, int how) {
  using Row = wmma::row_major;
  using Column = wmma::col_major;
  typename M::FragmentC fc;
  typename M::FragmentD fd;
  const wmma::layout_t order = how & kColumnsOfC ? wmma::mem_col_major : wmma::mem_row_major;
  wmma::load_matrix_sync(fc, c, ldc, order);
#pragma unroll
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] + fc.x[i];
  const int inputs = how & (kColumnsOfA | kColumnsOfB);
  if constexpr (kAnyLayout) {
    if (inputs == 0) multiply<M, Row, Row>(fd, a, b, fc, lda, ldb);
    if (inputs == kColumnsOfA) multiply<M, Column, Row>(fd, a, b, fc, lda, ldb);
    if (inputs == (kColumnsOfA | kColumnsOfB)) multiply<M, Column, Column>(fd, a, b, fc, lda, ldb);
  }
  if (inputs == kColumnsOfB) multiply<M, Row, Column>(fd, a, b, fc, lda, ldb);
  wmma::store_matrix_sync(d, fd, ldc, order);
}

#define TILE(name, m, n, k, in, element, c_type, d_type)                                                        \
  KERNEL wmma_##name(d_type* d, const element* a, const element* b, const c_type* c, int lda, int ldb, int ldc, \
                     int how) {                                                                                 \
    tile<Tile<m, n, k, in, element, c_type, d_type>, true>(d, a, b, c, lda, ldb, ldc, how);                     \
  }
#define SHAPES(name, type, c_type, d_type)                       \
  TILE(name##_m16n16k16, 16, 16, 16, type, type, c_type, d_type) \
  TILE(name##_m32n8k16, 32, 8, 16, type, type, c_type, d_type)   \
  TILE(name##_m8n32k16, 8, 32, 16, type, type, c_type, d_type)

SHAPES(f16_f32_f32, __half, float, float)
SHAPES(f16_f16_f16, __half, __half, __half)
TILE(f16_f16_f32_m16n16k16, 16, 16, 16, __half, __half, __half, float)
TILE(f16_f32_f16_m16n16k16, 16, 16, 16, __half, __half, float, __half)
SHAPES(bf16, __nv_bfloat16, float, float)
SHAPES(s8, signed char, int, int)
SHAPES(u8, unsigned char, int, int)
TILE(tf32_m16n16k8, 16, 16, 8, wmma::precision::tf32, float, float, float)
TILE(f64_m8n8k4, 8, 8, 4, double, double, double, double)

#define SMALL(name, k, in, is_bits)                                                                                   \
  KERNEL wmma_##name(int* d, const void* a, const void* b, const int* c, int lda, int ldb, int ldc, int how) {        \
    tile<Tile<8, 8, k, wmma::experimental::precision::in, void, int, int, is_bits>, false>(d, a, b, c, lda, ldb, ldc, \
                                                                                           how);                      \
  }
SMALL(s4_m8n8k32, 32, s4, false)
SMALL(u4_m8n8k32, 32, u4, false)
SMALL(b1_m8n8k128, 128, b1, true)

// C [32][32] = A [32][k] B [k][32] by four warps, 16 of k at a time through shared memory; rows are 8 longer there.
constexpr int kSide = 32, kStep = 16, kRowA = kStep + 8, kRowB = kSide + 8;
DEVICE void staged(float* c, const __half* a, const __half* b, int k, int bug) {
  __shared__ __align__(32) __half tile_a[kSide * kRowA];
  __shared__ __align__(32) __half tile_b[kStep * kRowB];
  __shared__ __align__(32) float tile_c[kSide * kSide];
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, row = warp / 2 * 16, column = warp % 2 * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int from = 0; from < k; from += kStep) {
    for (int i = t; i < kSide * kStep; i += 128) {
      tile_a[i / kStep * kRowA + i % kStep] = a[i / kStep * k + from + i % kStep];
      if (bug != kHole || i / kSide < kStep - 1)
        tile_b[i / kSide * kRowB + i % kSide] = b[(from + i / kSide) * kSide + i % kSide];
    }
    if (bug != kNoBarrier) __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, tile_a + row * kRowA, kRowA);
    wmma::load_matrix_sync(fb, tile_b + column, kRowB);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  wmma::store_matrix_sync(tile_c + row * kSide + column, sum, kSide, wmma::mem_row_major);
  __syncthreads();
  for (int i = t; i < kSide * kSide; i += 128) c[i] = tile_c[i];
  if (bug == kPastTheEnd) wmma::store_matrix_sync(c + 16 * kSide + 16 + 32, sum, kSide, wmma::mem_row_major);
}
KERNEL wmma_staged(float* c, const __half* a, const __half* b, int k, int bug) {
  staged(c, a, b, k, bug);
}
