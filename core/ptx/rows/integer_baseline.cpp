#include "core/ptx/rows/integer_loops.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {

RowHandler integer_baseline(const Ask& ask) {
  return find_integer(ask);
}

}  // namespace kvscope::ptx::rows
