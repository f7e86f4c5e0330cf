// Imports requests from a trace with one JSON object per line, in the format of the Mooncake traces:
//
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353, ...]}
//
// `timestamp` is in milliseconds; the earliest row is time 0, and rows may be in any order. `hash_ids` identifies the
// prompt's content, one number per 512 tokens, the last one possibly partial: 6955 tokens are 14 numbers, and the 14th
// covers 299 tokens. Equal numbers mean equal text in equal context, so they become ContentSpans whose content is the
// number plus kImportedContent; no content that the scenario lists can be equal to them. Without the key no prefix is
// shared. Other keys are ignored: such traces contain more than a paging model needs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

inline constexpr std::int64_t kHashedTokens = 512;  // tokens per entry of hash_ids

// Rows in the order of the file; only the first `limit` when it is not 0. Throws InputError(source, ...) with up to 20
// bad rows by line: "line 2: 13 hash_ids cover at most 6656 tokens, but input_length is 6955: give 14".
[[nodiscard]] std::vector<Request> import_jsonl(std::string_view text, std::string_view source, std::int64_t limit = 0);

}  // namespace kvscope
