// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/convert_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler convert_family(const OpQuery& query) {
  return find_conversion(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
