#include "core/ptx/rows/float_loops.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {

RowHandler float_baseline(const Ask& ask) {
  return find_float(ask);
}

}  // namespace kvscope::ptx::rows
