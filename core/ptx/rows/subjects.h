// The handlers by subject. Each subject knows its instructions and answers nullptr for all others; those whose loops are
// compiled once per instruction set have three names.
#pragma once

#include "core/ptx/rows/ask.h"

namespace kvscope::ptx::rows {

[[nodiscard]] RowHandler integer_baseline(const Ask& ask);
[[nodiscard]] RowHandler integer_avx2(const Ask& ask);
[[nodiscard]] RowHandler integer_avx512(const Ask& ask);

[[nodiscard]] RowHandler bits_baseline(const Ask& ask);
[[nodiscard]] RowHandler bits_avx2(const Ask& ask);
[[nodiscard]] RowHandler bits_avx512(const Ask& ask);

[[nodiscard]] RowHandler compare_baseline(const Ask& ask);
[[nodiscard]] RowHandler compare_avx2(const Ask& ask);
[[nodiscard]] RowHandler compare_avx512(const Ask& ask);

[[nodiscard]] RowHandler float_baseline(const Ask& ask);
[[nodiscard]] RowHandler float_avx2(const Ask& ask);
[[nodiscard]] RowHandler float_avx512(const Ask& ask);

[[nodiscard]] RowHandler convert_baseline(const Ask& ask);
[[nodiscard]] RowHandler convert_avx2(const Ask& ask);
[[nodiscard]] RowHandler convert_avx512(const Ask& ask);

}  // namespace kvscope::ptx::rows
