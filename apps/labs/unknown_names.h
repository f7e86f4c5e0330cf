// Names in a student's JSON file that the lab does not ask for: a misspelled one is the reason of a missing answer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/json.h"

namespace kvscope::labs {

// For the end of the message about the answer `missing`: the names in `answers` that are none of `names` and are
// probably meant for `missing`, and those that resemble none of them. Empty: there are none. At most three are named.
// Example: {"Row": 5}, "row" -> `; "Row" is unknown: did you mean "row"?`
[[nodiscard]] std::string unknown_names(const json::Value& answers, std::string_view missing,
                                        std::span<const std::string_view> names);

}  // namespace kvscope::labs
