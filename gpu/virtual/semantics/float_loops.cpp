// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/float_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler float_family(const OpQuery& query) {
  return find_float(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
