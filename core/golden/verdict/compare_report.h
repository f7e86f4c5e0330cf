// The result of a comparison as text, as JSON, and as JUnit XML for continuous integration.
//
//   FAIL  candidate out.npz against golden.safetensors (derived bound, bf16)
//     pass  o: masks    NaN and infinities at the same elements (0 of 16)
//     FAIL  o: bound    1 of 16 elements exceed the bound; largest error 12.1x the allowed error, at ...
//   ...
#pragma once

#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::golden {

// The text of a diagnosis (diagnose.h) follows the first line, because it is what a reader of a failure needs first. It
// has a map of the failing rows, which replaces the list of the worst heads.
[[nodiscard]] std::string text_report(const CompareResult& result, std::string_view diagnosis = {});

// The error budgets, one number for each source of rounding; ends with a newline. Empty when the bound was not used.
[[nodiscard]] std::string budget_report(const CompareResult& result);  // ends with a newline
[[nodiscard]] json::Value json_report(const CompareResult& result);    // {"kvscope_comparison": 1, "passed": ..., ...}
// One test case per criterion, escaped; characters that XML cannot hold become '?'.
[[nodiscard]] std::string junit_report(const CompareResult& result);

}  // namespace kvscope::golden
