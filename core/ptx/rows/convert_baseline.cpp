#include "core/ptx/rows/convert_loops.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {

RowHandler convert_baseline(const Ask& ask) {
  return find_conversion(ask);
}

}  // namespace kvscope::ptx::rows
