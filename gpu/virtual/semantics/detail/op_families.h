// Finds handlers, one function per family of instructions. Each returns a handler for its own instructions and nullptr
// for all others. Families whose loops are compiled once per instruction set exist in three namespaces.
#pragma once

#include <array>

#include "gpu/virtual/semantics/detail/op_query.h"

namespace kvscope::ptx {
struct FragmentProduct;
struct MatrixProduct;
}  // namespace kvscope::ptx
namespace kvscope::ptx::semantics {

using Family = OpHandler (*)(const OpQuery& query);

// Compiled once per instruction set, each in its namespace.
// product: d += a b, row-major, the products of each element are added in ascending k. hopper_product: in mode hopper. numbers:
// decode_elements to floats.
// exact_products, fragment_product, quads: the functions of matrix_product.h that have these names, or nearly.
#define KVSCOPE_LOOP_FAMILIES(instruction_set)                                                                   \
  namespace instruction_set {                                                                                    \
  [[nodiscard]] OpHandler integer_family(const OpQuery& query);                                                  \
  [[nodiscard]] OpHandler bits_family(const OpQuery& query);                                                     \
  [[nodiscard]] OpHandler compare_family(const OpQuery& query);                                                  \
  [[nodiscard]] OpHandler float_family(const OpQuery& query);                                                    \
  [[nodiscard]] OpHandler approx_family(const OpQuery& query);                                                   \
  [[nodiscard]] OpHandler convert_family(const OpQuery& query);                                                  \
  [[nodiscard]] OpHandler matrix_family(const OpQuery& query);                                                   \
  void product(int m, int n, int k, const float* a, const float* b, float* d);                                   \
  void hopper_product(const MatrixProduct& product, const float* a, const float* b, float* d);                   \
  void numbers(Type type, const std::byte* from, int count, float* to);                                          \
  bool exact_products(const float* numbers, int count);                                                          \
  void fragment_product(const FragmentProduct& product, std::byte* registers);                                   \
  void quads(bool by_columns, int columns, int length, const float* from, float* to);                            \
  inline constexpr std::array<Family, 7> kFamilies{integer_family, bits_family,    compare_family, float_family, \
                                                   approx_family,  convert_family, matrix_family};               \
  }
KVSCOPE_LOOP_FAMILIES(baseline)
KVSCOPE_LOOP_FAMILIES(avx2)
KVSCOPE_LOOP_FAMILIES(avx512)
#undef KVSCOPE_LOOP_FAMILIES

[[nodiscard]] OpHandler moves(const OpQuery& query);             // mov of vectors
[[nodiscard]] OpHandler integer_lanewise(const OpQuery& query);  // carries, division, dp4a, masks
[[nodiscard]] OpHandler compare_lanewise(const OpQuery& query);  // set, setp of 16 bits, slct, testp, copysign
[[nodiscard]] OpHandler half(const OpQuery& query);              // f16, bf16 and pairs of them
[[nodiscard]] OpHandler float_lanewise(
    const OpQuery& query);  // directed roundings of f64, of quotients and roots; sin, cos, tanh
[[nodiscard]] OpHandler convert_narrow(const OpQuery& query);  // cvt to and from 8 bits, tf32, pairs; cvt.pack
[[nodiscard]] OpHandler convert_any(const OpQuery& query);     // the rest of cvt
[[nodiscard]] OpHandler matrices(const OpQuery& query);        // mma of all types, movmatrix

}  // namespace kvscope::ptx::semantics
