// The slot of each token of each sequence, whatever the form of the table, and the slots that a conversion gives them.
//
// Example: a table [[5, 0]] with pages of 4 and 6 tokens: slots 20, 21, 22, 23, 0, 1. Packed into pages of 3: 0 to 5.
#pragma once

#include <cstdint>
#include <vector>

#include "core/golden/layouts/detail/layout_reader.h"

namespace kvscope::golden {

// Slots count through blocks and pages: block * page_size + slot.
struct TokenMap {
  std::int64_t blocks = 0, page_size = 0;
  std::vector<std::vector<std::int64_t>> slots;  // [sequence][token]
  [[nodiscard]] std::int64_t tokens() const;
};

// The tokens of an input whose pages are read. `queries`: the new tokens of each sequence, for lengths that leave them
// out. Reports faults to the reader.
[[nodiscard]] TokenMap tokens_of(LayoutReader& reader, const std::vector<std::int64_t>& queries);

// Whether each page of `page` tokens of every sequence is one aligned run of slots, so that the pool can stay as it is.
[[nodiscard]] bool fills_pages(const TokenMap& map, std::int64_t page);

// New slots: the tokens of each sequence in consecutive blocks, or one row of `positions` for each sequence.
[[nodiscard]] TokenMap packed(const TokenMap& from, std::int64_t page);
[[nodiscard]] TokenMap in_rows(const TokenMap& from, std::int64_t positions);

}  // namespace kvscope::golden
