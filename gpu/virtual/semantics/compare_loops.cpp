// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/compare_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler compare_family(const OpQuery& query) {
  return find_comparison(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
