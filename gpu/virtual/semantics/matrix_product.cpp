#include "gpu/virtual/semantics/matrix_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gpu/virtual/semantics/detail/exact_fma.h"
#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/fp8.h"
#include "gpu/virtual/semantics/detail/matrix_sums.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx {

using namespace semantics;

namespace {

// The functions compiled for an instruction set.
struct MatrixLoops {
  decltype(&baseline::product) product;
  decltype(&baseline::hopper_product) hopper_product;
  decltype(&baseline::numbers) numbers;
  decltype(&baseline::exact_products) exact_products;
  decltype(&baseline::fragment_product) fragment_product;
  decltype(&baseline::quads) quads;
};
#define KVSCOPE_MATRIX_LOOPS(isa) \
  { isa::product, isa::hopper_product, isa::numbers, isa::exact_products, isa::fragment_product, isa::quads }
MatrixLoops loops_for(Simd simd) {
#if defined(KVSCOPE_AVX512)
  if (simd == Simd::avx512) return KVSCOPE_MATRIX_LOOPS(avx512);
#endif
#if defined(KVSCOPE_AVX2)
  if (simd == Simd::avx2) return KVSCOPE_MATRIX_LOOPS(avx2);
#endif
  static_cast<void>(simd);
  return KVSCOPE_MATRIX_LOOPS(baseline);
}
#undef KVSCOPE_MATRIX_LOOPS

}  // namespace

void multiply_add(const MatrixProduct& product, const float* a, const float* b, float* d, Simd simd) {
  if (product.sum == SumMode::seq) {
    loops_for(simd).product(product.m, product.n, product.k, a, b, d);
    if (product.d != Type::f16) return;
    for (int i = 0; i < product.m * product.n; ++i) d[i] = f16_to_f32(f64_to_f16(double{d[i]}));
    return;
  }
  if (product.sum == SumMode::hopper) return loops_for(simd).hopper_product(product, a, b, d);
  for (int i = 0; i < product.m; ++i) {
    for (int j = 0; j < product.n; ++j) {
      float& x = d[i * product.n + j];
      x = exact_element(product, x, a + i * product.k, b + j, product.n);
    }
  }
}

void multiply_add(const MatrixProduct& product, const std::int32_t* a, const std::int32_t* b, std::int32_t* d) {
  const bool bits = product.a == Type::b1;
  std::vector<std::int32_t> products(static_cast<std::size_t>(product.n));  // of a row: at most 256 products of 16 bits
  const auto add_row = [&](const std::int32_t* row_a, auto multiply) {
    std::int32_t* const __restrict sums = products.data();
    for (int k = 0; k < product.k; ++k) {
      const std::int32_t x = row_a[k];
      const std::int32_t* const row_b = b + k * product.n;
      for (int j = 0; j < product.n; ++j) sums[j] += multiply(x, row_b[j]);
    }
  };
  for (int i = 0; i < product.m; ++i) {
    std::fill(products.begin(), products.end(), 0);
    const std::int32_t* const row_a = a + i * product.k;
    if (!bits) {
      add_row(row_a, [](std::int32_t x, std::int32_t y) { return x * y; });
    } else if (product.both) {
      add_row(row_a, [](std::int32_t x, std::int32_t y) { return x & y; });
    } else {
      add_row(row_a, [](std::int32_t x, std::int32_t y) { return x ^ y; });
    }
    for (int j = 0; j < product.n; ++j) {
      std::int32_t& element = d[i * product.n + j];
      std::int64_t sum = std::int64_t{element} + products[static_cast<std::size_t>(j)];
      if (product.saturate) sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
      element = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
    }
  }
}

void multiply_add(const MatrixProduct& product, const double* a, const double* b, double* d) {
  for (int i = 0; i < product.m; ++i) {
    for (int j = 0; j < product.n; ++j) {
      double sum = d[i * product.n + j];
      for (int k = 0; k < product.k; ++k) {
        const double x = a[i * product.k + k], y = b[k * product.n + j];
        sum = product.rounding == Rounding::nearest ? with_nan_of(__builtin_fma(x, y, sum), x, y, sum)
                                                    : fma_rounded(x, y, sum, product.rounding);
      }
      d[i * product.n + j] = sum;
    }
  }
}

namespace {

// Row by row: the rows of B that the row's numbers select, then a product of one row.
template <class T, class Multiply>
void for_each_sparse_row(const MatrixProduct& product, const T* a, const std::uint16_t* positions, const T* b, T* d,
                         const Multiply& multiply) {
  const int numbers = product.k / 2;
  MatrixProduct row = product;
  row.m = 1;
  row.k = numbers;
  row.sparse = false;
  std::vector<T> selected(static_cast<std::size_t>(numbers * product.n));
  for (int i = 0; i < product.m; ++i) {
    for (int j = 0; j < numbers; ++j)
      std::copy_n(b + positions[i * numbers + j] * product.n, product.n, selected.data() + j * product.n);
    multiply(row, a + i * numbers, selected.data(), d + i * product.n);
  }
}

}  // namespace

void multiply_add_sparse(const MatrixProduct& product, const float* a, const std::uint16_t* positions, const float* b,
                         float* d, Simd simd) {
  for_each_sparse_row(product, a, positions, b, d,
                      [simd](const MatrixProduct& row, const float* row_a, const float* row_b, float* row_d) {
                        multiply_add(row, row_a, row_b, row_d, simd);
                      });
}
void multiply_add_sparse(const MatrixProduct& product, const std::int32_t* a, const std::uint16_t* positions,
                         const std::int32_t* b, std::int32_t* d) {
  for_each_sparse_row(product, a, positions, b, d,
                      [](const MatrixProduct& row, const std::int32_t* row_a, const std::int32_t* row_b,
                         std::int32_t* row_d) { multiply_add(row, row_a, row_b, row_d); });
}

void multiply_add_scaled(const MatrixProduct& product, const BlockScales& scales, const float* a,
                         const std::uint16_t* positions, const float* b, float* d) {
  const int per_row = product.k / scales.block;
  const int numbers = positions != nullptr ? product.k / 2 : product.k;
  std::vector<double> scales_b(static_cast<std::size_t>(per_row * product.n));  // [k / block][n]
  for (int j = 0; j < product.n; ++j) {
    for (int s = 0; s < per_row; ++s) scales_b[static_cast<std::size_t>(s * product.n + j)] = scales.b[j * per_row + s];
  }
  for (int i = 0; i < product.m; ++i) {
    float* const sums = d + i * product.n;
    for (int x = 0; x < numbers; ++x) {
      const int column = positions != nullptr ? positions[i * numbers + x] : x;
      const double scaled = double{a[i * numbers + x]} * scales.a[i * per_row + column / scales.block];
      const float* const row_b = b + column * product.n;
      const double* const of_b = scales_b.data() + column / scales.block * product.n;
      for (int j = 0; j < product.n; ++j)
        sums[j] = static_cast<float>(double{sums[j]} + scaled * (double{row_b[j]} * of_b[j]));
    }
    for (int j = 0; j < product.n; ++j) sums[j] = canonical(sums[j]);
  }
}

void multiply_add_in_halves(const MatrixProduct& product, const float* a, const std::uint16_t* positions,
                            const float* b, float* d) {
  constexpr int kMostRows = 16, kMostK = 64, kMostColumns = 8;
  const MatrixProduct& p = product;
  MatrixProduct half = p;
  half.a = half.b = Type::f16;
  half.k = p.k / 2;
  const int numbers = p.sparse ? half.k : p.k, half_numbers = numbers / 2;  // of a row of A
  float sums[kMostRows * kMostColumns] = {}, half_a[kMostRows * kMostK], half_b[kMostK * kMostColumns];
  std::uint16_t half_positions[kMostRows * kMostK];
  for (int upper = 0; upper < 2; ++upper) {
    for (int k = 0; k < half_numbers; ++k) {
      const int from = k / 2 * 4 + 2 * upper + k % 2;
      for (int i = 0; i < p.m; ++i) {
        half_a[i * half_numbers + k] = a[i * numbers + from];
        if (p.sparse) half_positions[i * half_numbers + k] = positions[i * numbers + from];
      }
      for (int j = 0; j < p.n && !p.sparse; ++j) half_b[k * p.n + j] = b[from * p.n + j];
    }
    p.sparse ? multiply_add_sparse(half, half_a, half_positions, b, sums) : multiply_add(half, half_a, half_b, sums);
  }
  for (int i = 0; i < p.m * p.n; ++i) {
    const float sum = d[i] + sums[i];
    d[i] = p.d == Type::f16 ? f16_to_f32(f64_to_f16(double{sum})) : canonical(sum);
  }
}

double decode_scale(Type type, std::uint8_t bits) {
  if (type == Type::ue8m0) return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
  return double{e4m3_to_f32(bits & 0x7f)};
}

void decode_elements(Type type, const std::byte* from, int count, float* to, Simd simd) {
  loops_for(simd).numbers(type, from, count, to);
}

void decode_elements(Type type, const std::byte* from, int count, std::int32_t* to) {
  for (int i = 0; i < count; ++i) {
    switch (type) {
      case Type::s8:
        to[i] = static_cast<i8>(from[i]);
        break;
      case Type::u8:
        to[i] = static_cast<u8>(from[i]);
        break;
      case Type::s4:
      case Type::u4: {
        const u8 nibble = static_cast<u8>(from[i / 2]) >> (4 * (i % 2)) & 0xf;
        to[i] = type == Type::s4 ? (nibble ^ 8) - 8 : nibble;
        break;
      }
      default:
        to[i] = static_cast<u8>(from[i / 8]) >> (i % 8) & 1;
        break;
    }
  }
}

void multiply_add_fragments(const FragmentProduct& product, std::byte* registers, Simd simd) {
  loops_for(simd).fragment_product(product, registers);
}
bool have_exact_products(const float* numbers, int count, Simd simd) {
  return loops_for(simd).exact_products(numbers, count);
}
void arrange_quads(bool by_columns, int columns, int length, const float* from, float* to, Simd simd) {
  loops_for(simd).quads(by_columns, columns, length, from, to);
}

std::uint16_t f16_bits_of(float x) {
  return f64_to_f16(double{x});
}
float float_of_f16_bits(std::uint16_t x) {
  return f16_to_f32(x);
}

}  // namespace kvscope::ptx
