// Names the fault behind a failed comparison. At most 16 failing rows and 8 correct ones are computed again under each
// hypothesis (hypotheses.h); a hypothesis explains the candidate when its prediction is within the error bound of every
// failing row. The result is a ranking, with the place of the fault where the hypothesis has one.
//
//   diagnosis  page 3 of sequence 2 was read from block 11, not 40
//     look at  lookup table entry [2, 3] as the kernel reads it
//     evidence 16 of 16 failing rows reproduced within 0.31x the allowed error; 8 of 8 correct rows too
//     excluded every page uses table column 0: differs from the output by at least 4.1e+03x the allowed error
//   fails at   32 of 96 rows: sequence 2 of 3; all 8 heads; all 64 dims
//
// The cause is certain when it explains all rows looked at and no other hypothesis does. A cause that reads past the
// cache in some failing rows, where the values are unknown, is named if it explains all others, at least two with
// numbers, but it is never certain. When none explains the failing rows the answer is "none of N hypotheses", with the
// pattern of the failures over sequences, heads and dims.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/golden/diagnosis/failure_pattern.h"
#include "core/golden/diagnosis/hypotheses.h"

namespace kvscope::golden {

struct Explanation {
  std::string name, cause, look_at;
  std::int64_t failing_explained = 0;  // of Diagnosis::failing_rows
  std::int64_t correct_explained = 0;  // of Diagnosis::correct_rows
  double misfit = 0;                   // worst error / allowed over the explained failing rows
  std::int64_t sequence = -1;          // the only sequence that the cause changes; -1: all
  std::int64_t page = -1;              // its page that the cause names; -1: none
  std::int64_t failing_outside = 0;    // of failing_rows: the cause reads past the cache, so its values are unknown
  // Of a diagnosis of groups: the share of the change that the cause makes which the candidate has, and the size of
  // this change in standard deviations of rounding.
  double change_share = 0, change_deviations = 0;
};

struct Diagnosis {
  bool candidate_passes = false;  // nothing to explain
  bool of_groups = false;         // each element is within its bound, but tests of many elements fail
  std::int64_t hypotheses = 0;    // tried
  std::int64_t failing_rows = 0;  // looked at
  std::int64_t correct_rows = 0;
  bool certain = false;
  std::vector<Explanation> explanations;  // best first; those that explain every failing row
  std::vector<Explanation> nearest;       // the next best, at most 3
  FailurePattern pattern;
};

// Golden and candidate must be comparable (compare.h). InputError when the problem does not reproduce the golden: it is
// another problem's.
[[nodiscard]] Diagnosis diagnose(const DiagnosisInput& input);

[[nodiscard]] std::string text_report(const Diagnosis& diagnosis);  // ends with a newline
[[nodiscard]] json::Value json_report(const Diagnosis& diagnosis);

}  // namespace kvscope::golden
