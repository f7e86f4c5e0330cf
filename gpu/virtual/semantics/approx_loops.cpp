// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/approx_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler approx_family(const OpQuery& query) {
  return find_function(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
