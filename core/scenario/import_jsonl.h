// Requests from a trace of one JSON object a line, as the Mooncake traces are written:
//
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353, ...]}
//
// `timestamp` is in milliseconds; the earliest row is time 0, and rows may stand in any order. `hash_ids` names what
// the prompt says, one number for every 512 tokens, the last of them partly filled: 6955 tokens are 14 numbers, and the
// 14th stands for 299. Equal numbers are equal text in equal context, so they become ContentSpans whose content is the
// number plus kImportedContent: nothing the scenario itself lists can be equal to them. Without the key nothing is
// shared. Other keys are left alone: such traces carry more than a paging model needs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace kvscope {

inline constexpr std::int64_t kHashedTokens = 512;  // that one of hash_ids stands for

// Rows in the order of the file; the first `limit` only when it is not 0. Throws InputError(source, ...) with up to 20
// bad rows by line: "line 2: 13 hash_ids stand for 6656 tokens at most, input_length is 6955: 14 are wanted".
[[nodiscard]] std::vector<Request> import_jsonl(std::string_view text, std::string_view source, std::int64_t limit = 0);

}  // namespace kvscope
