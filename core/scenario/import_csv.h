// Imports requests from a comma-separated trace in the format of the Azure LLM inference traces:
//
//   TIMESTAMP,ContextTokens,GeneratedTokens
//   2023-11-16 18:17:03.9799600,4808,10            -> arrival      0 us, prompt 4808, generate 10
//   2023-11-16 18:17:04.0319600,3180,8             -> arrival 52,000 us
//
// Times have 0 to 9 decimals, a blank or a T before the hour, and may end in Z or an offset such as +01:00; parts of a
// microsecond are cut off. The earliest row is time 0. Rows may be in any order: make_requests() sorts them. The format
// has no prompt contents, so no prefixes are shared.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

// Rows in the order of the file; only the first `limit` when it is not 0. Throws InputError(source, ...) with up to 20
// bad rows by line: "line 7: GeneratedTokens "-3" is not an integer in [0, 2147483647]: correct or remove the row".
[[nodiscard]] std::vector<Request> import_csv(std::string_view text, std::string_view source, std::int64_t limit = 0);

}  // namespace kvscope
