// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/semantics/detail/bits_loops.h"

#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics::KVSCOPE_ISA {

OpHandler bits_family(const OpQuery& query) {
  return find_bits(query);
}

}  // namespace kvscope::ptx::semantics::KVSCOPE_ISA
