// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/matrix_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler matrix_family(const OpQuery& query) {
  return find_mma_in_order(query);
}

void product(int m, int n, int k, const float* a, const float* b, float* d) {
  product_in_order(m, n, k, a, b, d);
}

void numbers(Type type, const std::byte* from, int count, float* to) {
  decode_numbers(type, from, count, to);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
