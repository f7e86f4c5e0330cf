// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/matrix_loops.h"

#include "gpu/virtual/semantics/detail/fragment_product.h"
#include "gpu/virtual/semantics/detail/hopper_product.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler matrix_family(const OpQuery& query) {
  return find_mma_in_order(query);
}

void product(int m, int n, int k, const float* a, const float* b, float* d) {
  product_in_order(m, n, k, a, b, d);
}

void hopper_product(const MatrixProduct& product, const float* a, const float* b, float* d) {
  add_hopper_product(product, a, b, d);
}

void numbers(Type type, const std::byte* from, int count, float* to) {
  decode_numbers(type, from, count, to);
}

bool exact_products(const float* numbers, int count) {
  return has_exact_products(numbers, count);
}

void fragment_product(const FragmentProduct& product, std::byte* registers) {
  fragment_product_in_order(product, registers);
}

void quads(bool by_columns, int columns, int length, const float* from, float* to) {
  (by_columns ? quads_of_columns : quads_of_rows)(columns, length, from, to);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
