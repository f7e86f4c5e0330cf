// Judges a test whose results are exact whole numbers: all cases must match. The message of a failed test names the
// error if a hypothesis about it explains every result that differs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/case_stream.h"
#include "apps/labs/grade.h"

namespace kvscope::labs {

struct ExactCase {
  Words expected;
  std::string text;                                             // the case in words, without its result
  std::int64_t size = 0;                                        // the smallest failing case is shown
  std::function<CasePicture(const Words& given)> picture = {};  // of the case with a result that differs
};

// A typical error: what it returns in each case. A hypothesis explains a run when it agrees with the student's result
// in every case, and differs from the expected one in at least one.
struct Hypothesis {
  std::string message;
  std::function<Words(std::size_t)> result;
  std::optional<int> hint = {};  // without one, that of the test
};

// Numbers of a result for a report; pass another `text_of` to describe them.
[[nodiscard]] std::string words_text(const Words& words);

[[nodiscard]] TestResult judge_exact(const Lab& lab, std::string_view test, std::span<const ExactCase> cases,
                                     const HarnessRun& run, std::span<const Hypothesis> hypotheses,
                                     const std::function<std::string(const Words&)>& text_of = words_text);

// The result of a test whose program failed in a case: the message is the reason, the case is shown.
[[nodiscard]] TestResult stopped_in_case(const Lab& lab, std::string_view test, const HarnessRun& run,
                                         const std::string& case_text);

}  // namespace kvscope::labs
