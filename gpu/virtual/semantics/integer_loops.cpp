// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/integer_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler integer_family(const OpQuery& query) {
  return find_integer(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
