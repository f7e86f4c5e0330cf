#include "core/ptx/rows/compare_loops.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {

RowHandler compare_baseline(const Ask& ask) {
  return find_comparison(ask);
}

}  // namespace kvscope::ptx::rows
