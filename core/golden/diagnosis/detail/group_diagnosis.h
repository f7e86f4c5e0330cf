// Diagnosis of an output whose elements are each within their bound, while a test of many elements fails (compare.h).
//
// The rows are the strongest 16 of the failing groups. Each trial predicts a change p - g of the golden's rows; the
// candidate differs from the golden by x - g. With v the variance of rounding, summed over the elements:
//
//   share       <x - g, p - g> / v  divided by  |p - g|^2 / v      1 if the candidate has the trial's fault
//   deviations  sqrt(|p - g|^2 / v)                                 size of the change that the fault makes
//   gain        |x - g|^2 / v - |x - p|^2 / v                       by how much p is nearer than the golden
//
// A trial explains the rows when every element is within its bound, the change is at least 6 deviations, the share is 1
// within 3 / deviations (at least 0.1), and no other trial gains 25 more.
//
// Example: page 3 of 256 left out changes no element by more than 0.4x its bound; over 16 rows of 64 elements the
// change is 18 deviations, and the candidate has 1.02 of it.
#pragma once

#include "core/golden/diagnosis/detail/output_rows.h"
#include "core/golden/diagnosis/diagnose.h"

namespace kvscope::golden {

// Fills `diagnosis` for input.failing_groups, which is not empty.
void diagnose_groups(const DiagnosisInput& input, const Outputs& outputs, Diagnosis& diagnosis);

}  // namespace kvscope::golden
