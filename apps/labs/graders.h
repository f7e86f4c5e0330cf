// One function per lab, each in its lab_NN_name.cpp: the grader of that lab.
#pragma once

#include <memory>

#include "apps/labs/grade.h"

namespace kvscope::labs {

[[nodiscard]] std::unique_ptr<Grader> address_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> rows_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> table_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> block_pool_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> scheduler_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> softmax_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> fault_hunt_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> swizzle_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> gather_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> four_kernels_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> tma_tile_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> through_lds_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> paged_decode_grader(const Lab& lab, const GradeOptions& options);
[[nodiscard]] std::unique_ptr<Grader> page_size_grader(const Lab& lab, const GradeOptions& options);

}  // namespace kvscope::labs
