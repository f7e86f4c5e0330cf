#include "core/ptx/rows/bits_loops.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {

RowHandler bits_baseline(const Ask& ask) {
  return find_bits(ask);
}

}  // namespace kvscope::ptx::rows
