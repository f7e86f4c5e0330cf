// A report of lab 07: the first row that fails beside the golden one, and a map of the rows that the student's answer
// names.
//
//              lse     o[0]    o[1]
//   golden     3.79    7.33    1.17
//   report     3.95    6.86    1.29      numbers that differ from the golden ones have CellMark::used
//   your cause 3.58    7.33    1.17      of a kernel with the cause of the answer: those that the report does not have
//                                        have CellMark::wrong
//               head 0    head 1
//   sequence 0  o lse     equal          a row of the answer that equals the golden one has CellMark::wrong
//   sequence 1                           not in the answer: what differs there is not shown, it would be the answer
#pragma once

#include <cstdint>
#include <vector>

#include "apps/labs/hunt_kernel.h"
#include "apps/labs/picture.h"

namespace kvscope::labs {

struct HuntRow {
  const HuntOutput& golden;
  const HuntOutput& report;
  const HuntOutput* named = nullptr;  // of a kernel with the cause that the student names; null: none to show
  std::int64_t sequence = 0, head = 0;
};

// `sequences` and `heads`: the lists of the answer, as submitted; numbers that do not exist are left out.
[[nodiscard]] CasePicture hunt_picture(const HuntProblem& problem, const HuntRow& row,
                                       const std::vector<std::int64_t>& sequences,
                                       const std::vector<std::int64_t>& heads);

}  // namespace kvscope::labs
